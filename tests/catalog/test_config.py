"""Hugging Face files of every family parse to the published count, and to the catalogue's own row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dse.spaces.catalog import architecture as arch
from dse.spaces.catalog import model, names
from dse.spaces.catalog.columns import COLUMNS
from dse.spaces.catalog.huggingface import MODEL_TYPES, read_config

CONFIGS = Path(__file__).parent / "configs"
FILES = {path.stem: path for path in sorted(CONFIGS.glob("*.json"))}

NOT_SHIPPED = {
    "deepseek-v2": 235_741_434_880,
    "deepseek-v2-lite": 15_706_484_224,
    "gemma-2b": 2_506_172_416,
    "gemma-2-2b": 2_614_341_888,
    "gemma-3-1b": 999_885_952,
    "gpt2": 124_439_808,
    "gpt-neox-20b": 20_554_567_680,
    "kimi-k2": 1_026_408_232_448,
    "mistral-7b-v0.1": 7_241_732_096,
    "opt-6.7b": 6_658_473_984,
    "phi-3-mini": 3_821_079_552,
    "qwen1.5-moe-a2.7b": 14_315_784_192,
}
"""Values in published checkpoints of models that the catalogue does not have, or not by that name."""


def fields(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(FILES[name].read_text(encoding="utf-8"))
    return found


def parsed(tmp_path: Path, name: str, **changes: Any) -> Any:
    """The columns of a file with some fields changed; a field set to ... is left out."""
    merged = {key: value for key, value in (fields(name) | changes).items() if value is not ...}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(merged, indent=1), encoding="utf-8")
    return read_config(path)


@pytest.mark.parametrize("name", sorted(set(FILES) - set(NOT_SHIPPED)))
def test_a_file_equals_the_row_of_the_catalogue(name: str) -> None:
    read, row = dict(model(FILES[name])), dict(model(name))
    assert read.pop("source") == str(FILES[name])
    row.pop("source")
    assert read == row


@pytest.mark.parametrize("name", NOT_SHIPPED)
def test_a_file_parses_to_the_published_count(name: str) -> None:
    assert arch.parameters(model(FILES[name])) == NOT_SHIPPED[name]


def test_every_model_type_and_every_family_has_a_file() -> None:
    assert {fields(name)["model_type"] for name in FILES} == set(MODEL_TYPES)
    families = {name.split("-")[0] for name in names("models") if not name.startswith("megatron")}
    assert families <= {name.split("-")[0] for name in FILES}


def test_the_columns_are_those_of_the_table() -> None:
    for path in FILES.values():
        assert set(read_config(path)) == set(COLUMNS["models"])


def test_a_model_is_named_after_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    (folder / "config.json").write_text(FILES["qwen3-4b"].read_text(encoding="utf-8"), encoding="utf-8")
    assert model(folder / "config.json").name == "my-model"
    assert model(str(folder / "config.json")).head_dim == 128


def test_the_width_of_a_head_is_as_given(tmp_path: Path) -> None:
    assert parsed(tmp_path, "qwen3-4b")["head_dim"] == 128  # 2560 / 32 is 80
    assert parsed(tmp_path, "llama-3.2-1b", head_dim=...)["head_dim"] == 64
    assert parsed(tmp_path, "llama-3.2-1b", head_dim=None)["head_dim"] == 64


def test_key_value_heads_left_out_are_the_heads_where_that_is_the_rule(tmp_path: Path) -> None:
    assert parsed(tmp_path, "llama-2-7b", num_key_value_heads=...)["kv_heads"] == 32
    assert parsed(tmp_path, "qwen2.5-7b", num_key_value_heads=None)["kv_heads"] == 28


def test_tied_embeddings_follow_the_field_or_the_type(tmp_path: Path) -> None:
    assert parsed(tmp_path, "llama-3-8b", tie_word_embeddings=...)["tied"] == 0
    assert parsed(tmp_path, "llama-3-8b", tie_word_embeddings=True)["tied"] == 1
    assert parsed(tmp_path, "gpt2")["tied"] == 1
    assert parsed(tmp_path, "gemma-2b", tie_word_embeddings=...)["tied"] == 1


def test_biases_follow_the_fields(tmp_path: Path) -> None:
    plain = parsed(tmp_path, "llama-3-8b")
    biased = parsed(tmp_path, "llama-3-8b", attention_bias=True, mlp_bias=True)
    assert [plain[column] for column in ("qkv_bias", "out_bias", "mlp_bias")] == [0, 0, 0]
    assert [biased[column] for column in ("qkv_bias", "out_bias", "mlp_bias")] == [1, 1, 1]


def window(columns: dict[str, Any]) -> tuple[int, int]:
    return columns["window"], columns["window_layers"]


def test_sliding_windows(tmp_path: Path) -> None:
    assert window(parsed(tmp_path, "mistral-7b-v0.1")) == (4096, 32)
    assert window(parsed(tmp_path, "mistral-7b-v0.1", sliding_window=None)) == (0, 0)
    assert window(parsed(tmp_path, "mistral-7b-v0.1", sliding_window=...)) == (4096, 32)
    assert window(parsed(tmp_path, "mixtral-8x7b", sliding_window=2048)) == (2048, 32)
    # Qwen writes a window that is off; on, it is for the last layers.
    assert window(parsed(tmp_path, "qwen2.5-7b")) == (0, 0)
    on = {"use_sliding_window": True, "sliding_window": 1024, "max_window_layers": 20}
    assert window(parsed(tmp_path, "qwen2.5-7b", **on)) == (1024, 8)
    # Mixed layers by type, by default and by pattern.
    assert (
        window(parsed(tmp_path, "gpt-oss-20b"))
        == window(parsed(tmp_path, "gpt-oss-20b", layer_types=...))
        == (128, 12)
    )
    types = ["sliding_attention"] * 3 + ["full_attention"] * 21
    assert window(parsed(tmp_path, "gpt-oss-20b", layer_types=types)) == (128, 3)
    assert window(parsed(tmp_path, "gemma-3-1b")) == (512, 22)
    assert window(parsed(tmp_path, "gemma-3-1b", sliding_window_pattern=2)) == (512, 13)
    assert window(parsed(tmp_path, "gemma-2-2b")) == (4096, 13)


def test_mixtures_in_some_of_the_layers(tmp_path: Path) -> None:
    assert parsed(tmp_path, "qwen3-30b-a3b", decoder_sparse_step=2)["moe_layers"] == 24
    assert parsed(tmp_path, "qwen3-30b-a3b", mlp_only_layers=[0, 1, 2])["moe_layers"] == 45
    assert parsed(tmp_path, "deepseek-v3", first_k_dense_replace=0)["moe_layers"] == 61
    assert parsed(tmp_path, "deepseek-v3", moe_layer_freq=2, first_k_dense_replace=1)["moe_layers"] == 30


def test_shared_experts_count_together(tmp_path: Path) -> None:
    assert parsed(tmp_path, "deepseek-v2-lite")["shared_ffn"] == 2 * 1408
    assert parsed(tmp_path, "deepseek-v2-lite", n_shared_experts=None)["shared_ffn"] == 0
    shared = parsed(tmp_path, "qwen1.5-moe-a2.7b")
    assert (shared["shared_ffn"], shared["shared_gate"]) == (5632, 1)


def test_groups_of_experts_limit_where_a_token_goes(tmp_path: Path) -> None:
    assert parsed(tmp_path, "deepseek-v3")["group_limit"] == 4
    assert parsed(tmp_path, "kimi-k2")["group_limit"] == 0
    assert parsed(tmp_path, "deepseek-v2")["group_limit"] == 3
    assert parsed(tmp_path, "deepseek-v2", topk_method="greedy")["group_limit"] == 0


def test_dropout_is_whether_any_rate_is_above_zero(tmp_path: Path) -> None:
    assert parsed(tmp_path, "gpt2")["dropout"] == 1
    off = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    assert parsed(tmp_path, "gpt2", **off)["dropout"] == 0
    assert parsed(tmp_path, "bloom-176b")["dropout"] == 0
    assert parsed(tmp_path, "llama-3-8b", attention_dropout=0.1)["dropout"] == 1


def test_fields_of_later_versions_are_read(tmp_path: Path) -> None:
    later = {"rope_theta": ..., "rope_scaling": ..., "torch_dtype": ..., "dtype": "bfloat16"}
    rope = {"rope_parameters": {"rope_theta": 1e6, "rope_type": "default"}}
    assert parsed(tmp_path, "qwen3-4b", **later, **rope, layer_types=["full_attention"] * 36)["window"] == 0
    assert parsed(tmp_path, "qwen3-30b-a3b", num_experts=..., num_local_experts=128)["experts"] == 128


def test_a_byte_order_mark_and_fields_that_are_off_are_no_matter(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    text = json.dumps(fields("llama-3-8b") | {"mamba_d_state": None, "use_mla": False, "some_list": []})
    path.write_text("\ufeff" + text, encoding="utf-8")
    assert read_config(path)["layers"] == 32
