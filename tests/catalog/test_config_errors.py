"""A config.json that cannot be used is an error with file, line and field; nothing is guessed."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dse.errors import InputError
from dse.spaces.catalog import model
from dse.spaces.catalog.huggingface import read_config

CONFIGS = Path(__file__).parent / "configs"


def refusal(path: Path) -> str:
    """The message after the file's name."""
    with pytest.raises(InputError) as caught:
        read_config(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    return message.removeprefix(str(path)).removeprefix(":").strip()


def refused(tmp_path: Path, name: str, **changes: Any) -> str:
    """The message for a known file with some fields changed; a field set to ... is left out."""
    fields = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    merged = {key: value for key, value in (fields | changes).items() if value is not ...}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(merged, indent=1), encoding="utf-8")
    message = refusal(path)
    line, _, rest = message.partition(": ")
    return rest if line.isdigit() else message


def refused_text(tmp_path: Path, text: str) -> str:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")
    return refusal(path)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("llama-3-8b", {"model_type": "lama"}, "model_type: found \"lama\", expected one of bloom, deepseek_v2, "),
        ("llama-3-8b", {"model_type": ...}, "model_type: found no such field, expected one of bloom, deepseek_v2, "),
        ("llama-3-8b", {"model_type": None}, "model_type: found no such field, expected one of bloom"),
        ("llama-3-8b", {"head_dim": 127}, "head_dim: 127 numbers of a head of 127 are rotated, expected pairs"),
        ("llama-3-8b", {"hidden_size": 4128}, "num_attention_heads: 129 numbers of a head of 129 are rotated"),
        ("deepseek-v3", {"qk_rope_head_dim": 63}, "qk_rope_head_dim: found 63, expected an even number"),
        ("deepseek-v3", {"n_group": 7, "topk_group": 4}, "n_group: found 7, expected a divisor of the 256 experts"),
        ("deepseek-v2", {"n_group": 7}, "n_group: found 7, expected a divisor of the 160 experts"),
        ("deepseek-v3", {"n_group": 64, "topk_group": 1},
         "topk_group: found 1, but 1 of 64 groups have 4 experts, fewer than the 8 that a token uses"),
        ("llama-3-8b", {"model_type": 3}, "model_type: found 3, expected one of"),
        ("llama-3-8b", {"model_type": "nemotron_h"}, "model_type: found \"nemotron_h\", expected one of"),
        ("llama-3-8b", {"hidden_size": ...}, "hidden_size: found no such field, expected one for model_type 'llama'"),
        ("llama-3-8b", {"hidden_size": "4096"}, "hidden_size: found \"4096\", expected a whole number"),
        ("llama-3-8b", {"hidden_size": 4096.5}, "hidden_size: found 4096.5, expected a whole number"),
        ("llama-3-8b", {"hidden_size": True}, "hidden_size: found true, expected a whole number"),
        ("llama-3-8b", {"hidden_size": None}, "hidden_size: found null, expected a whole number"),
        ("llama-3-8b", {"num_hidden_layers": -1}, "num_hidden_layers: found -1, expected 1 to 10,000"),
        ("llama-3-8b", {"num_hidden_layers": 0}, "num_hidden_layers: found 0, expected 1 to 10,000"),
        ("llama-3-8b", {"num_hidden_layers": 10**30}, "num_hidden_layers: found 1000000"),
        ("llama-3-8b", {"vocab_size": 10**12}, "vocab_size: found 1000000000000, expected 1 to 100,000,000"),
        ("llama-3-8b", {"intermediate_size": []}, "intermediate_size: found [], expected a whole number"),
        ("llama-3-8b", {"num_key_value_heads": 5}, "num_key_value_heads: found 5, expected a divisor of the 32 heads"),
        ("llama-3-8b", {"num_key_value_heads": 64}, "num_key_value_heads: found 64, expected a divisor of the 32 heads"),
        ("llama-3-8b", {"num_attention_heads": 40, "num_key_value_heads": 40},
         "num_attention_heads: found 40, expected a divisor of the hidden size 4096, or a head_dim"),
        ("llama-3-8b", {"head_dim": 0}, "head_dim: found 0, expected 1 to"),
        ("llama-3-8b", {"hidden_act": "xielu"}, "hidden_act: found \"xielu\", expected one of silu, "),
        ("llama-3-8b", {"tie_word_embeddings": "no"}, "tie_word_embeddings: found \"no\", expected true or false"),
        ("llama-3-8b", {"attention_dropout": 2}, "attention_dropout: found 2, expected a number from 0 to 1"),
        ("llama-3-8b", {"mamba_d_state": 16}, "mamba_d_state: found a field that is not known for model_type 'llama'"),
        ("llama-3-8b", {"num_local_expert": 8}, "num_local_expert: found a field that is not known"),
        ("llama-3-8b", {"layer_types": ["full_attention"]}, "layer_types: found a field that is not known"),
        ("llama-3-8b", {"num_key_value_head": 4},
         "num_key_value_head: found a field that is not known for model_type 'llama' and may change the architecture"),
        ("llama-3-8b", {"vision_config": {"hidden_size": 1}}, "vision_config: found another modality"),
        ("llama-3-8b", {"audio_config": {"d_model": 1}}, "audio_config: found another modality"),
        ("llama-3-8b", {"image_token_id": 7}, "image_token_id: found another modality"),
        ("llama-3-8b", {"text_config": {"hidden_size": 1}}, "text_config: found a nested configuration"),
        ("llama-3-8b", {"is_encoder_decoder": True}, "is_encoder_decoder: found true, expected false"),
        ("llama-3-8b", {"architectures": ["LlamaForSequenceClassification"]}, "architectures: found \"LlamaFor"),
        ("gpt2", {"add_cross_attention": True}, "add_cross_attention: found true, expected false"),
        ("gpt2", {"activation_function": "tanh3"}, "activation_function: found \"tanh3\", expected one of"),
        ("gpt2", {"n_layer": ...}, "n_layer: found no such field"),
        ("gpt2", {"num_hidden_layers": 13}, "num_hidden_layers: found 13, expected 12 as in n_layer"),
        ("bloom-176b", {"seq_length": ...}, "seq_length: found no such field"),
        ("qwen2.5-7b", {"num_key_value_heads": ...}, "num_key_value_heads: found no such field"),
        ("qwen2.5-7b", {"use_sliding_window": True, "max_window_layers": ...}, "max_window_layers: found no such field"),
        ("qwen2.5-7b", {"use_sliding_window": True, "max_window_layers": 2, "sliding_window": None},
         "sliding_window: found null, expected a whole number"),
        ("qwen2.5-7b", {"layer_types": ["full_attention"] * 27}, "layer_types: found 27 items, expected one for each of 28"),
        ("qwen2.5-7b", {"layer_types": "full_attention"}, "layer_types: found \"full_attention\", expected a list"),
        ("qwen3-4b", {"head_dim": ...}, "head_dim: found no such field"),
        ("qwen3-4b", {"layer_types": ["linear_attention"] + ["full_attention"] * 35},
         "layer_types: found \"linear_attention\", expected only full_attention, sliding_attention"),
        ("qwen3-4b", {"layer_types": [3] * 36}, "layer_types: found 3, expected only"),
        ("qwen3-30b-a3b", {"num_experts_per_tok": 129}, "num_experts_per_tok: found 129, expected at most the 128 experts"),
        ("qwen3-30b-a3b", {"mlp_only_layers": [48]}, "mlp_only_layers: found [48], expected a list of layers from 0 to 47"),
        ("qwen3-30b-a3b", {"mlp_only_layers": 3}, "mlp_only_layers: found 3, expected a list"),
        ("qwen3-30b-a3b", {"use_sliding_window": True}, "use_sliding_window: found true, expected false"),
        ("qwen3-30b-a3b", {"decoder_sparse_step": 0}, "decoder_sparse_step: found 0, expected 1 to"),
        ("mixtral-8x7b", {"num_local_experts": ...}, "num_local_experts: found no such field"),
        ("mixtral-8x7b", {"num_experts": 4}, "num_experts: found 4, expected 8 as in num_local_experts"),
        ("deepseek-v3", {"kv_lora_rank": None}, "kv_lora_rank: found null, expected a whole number"),
        ("deepseek-v3", {"q_lora_rank": ...}, "q_lora_rank: found no such field"),
        ("deepseek-v3", {"num_key_value_heads": 8}, "num_key_value_heads: found 8, expected 128"),
        ("deepseek-v3", {"first_k_dense_replace": 62}, "first_k_dense_replace: found 62, expected at most the 61 layers"),
        ("deepseek-v3", {"head_dim": 56}, "head_dim: found 56, expected 64 or 192"),
        ("deepseek-v3", {"topk_group": 9}, "topk_group: found 9, expected at most n_group, 8"),
        ("deepseek-v3", {"topk_method": "other"}, "topk_method: found \"other\", expected \"noaux_tc\""),
        ("deepseek-v3", {"index_topk": 2048}, "index_topk: found a field that is not known"),
        ("deepseek-v3", {"attention_bias": True}, "attention_bias: found true, expected false"),
        ("gpt-oss-20b", {"attention_bias": False}, "attention_bias: found false, expected true"),
        ("gpt-oss-20b", {"experts_per_token": 2}, "experts_per_token: found 2, expected 4 as in num_experts_per_tok"),
        ("gemma-3-1b", {"use_bidirectional_attention": True}, "use_bidirectional_attention: found true"),
        ("opt-6.7b", {"word_embed_proj_dim": 512}, "word_embed_proj_dim: found 512, expected 4096"),
        ("opt-6.7b", {"do_layer_norm_before": False}, "do_layer_norm_before: found false, expected true"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_used(
    tmp_path: Path, name: str, changes: dict[str, Any], message: str
) -> None:
    assert refused(tmp_path, name, **changes).startswith(message)


def test_the_line_of_the_field_is_told(tmp_path: Path) -> None:
    text = '{\n "model_type": "llama",\n "num_attention_heads": 8,\n "hidden_size": 100,\n "num_hidden_layers": 2\n}\n'
    assert refused_text(tmp_path, text).startswith("3: num_attention_heads: found 8, expected a divisor")


def test_a_misspelt_field_is_told_with_the_nearest(tmp_path: Path) -> None:
    assert refused(tmp_path, "llama-3-8b", num_key_value_head=4).endswith(
        "; did you mean 'num_key_value_heads'?"
    )
    assert refused(tmp_path, "llama-3-8b", mamba_d_state=4).endswith("; if it does not, remove it")


def test_an_unknown_type_lists_the_known_ones_and_the_nearest(tmp_path: Path) -> None:
    message = refused(tmp_path, "llama-3-8b", model_type="qwen3moe")
    assert "deepseek_v3" in message
    assert message.endswith("did you mean 'qwen3_moe'?")


@pytest.mark.parametrize("cut", [1, 20, 200, -3])
def test_a_truncated_file_is_told_with_its_line(tmp_path: Path, cut: int) -> None:
    text = (CONFIGS / "llama-3-8b.json").read_text(encoding="utf-8").rstrip()
    message = refused_text(tmp_path, text[:cut])
    assert "found broken JSON" in message
    assert message.split(":")[0].isdigit()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "found an empty file, expected a Hugging Face config.json"),
        ("[1, 2]", "found [1, 2], expected a JSON object"),
        ('"llama"', 'found "llama", expected a JSON object'),
        ("null", "found null, expected a JSON object"),
        ("{}", "model_type: found no such field"),
        (
            '{"model_type": "llama", "model_type": "gpt2"}',
            "found unusable JSON ('model_type' is given more than once)",
        ),
        ('{"hidden_size": NaN}', "found unusable JSON (NaN is no JSON number)"),
        ('{"a": ' + "9" * 5000 + "}", "found unusable JSON ("),
        ("[" * 200_000, "found unusable JSON (too deeply nested)"),
        ("layers: 3\n", "1:1: found broken JSON"),
    ],
    ids=str,
)
def test_text_that_is_no_object(tmp_path: Path, text: str, message: str) -> None:
    assert refused_text(tmp_path, text).startswith(message)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(10_000_000)
    assert refusal(path) == (
        "found more than 1,000,000 bytes, expected a Hugging Face config.json of at most that"
    )


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(b'{"a": "\xff\xfe"}')
    assert refusal(path) == "found byte 7 that is not UTF-8, expected a Hugging Face config.json as text"


def test_a_path_without_a_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "config.json") == "found no file, expected a Hugging Face config.json"
    assert refusal(tmp_path) == "found a folder, expected a Hugging Face config.json"
    with pytest.raises(InputError, match="found no file"):
        model("./nowhere/config.json")
    with pytest.raises(InputError):
        model("bad\0name.json")


def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.json"
    path.write_text("{}", encoding="utf-8")

    def forbid(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbid)
    assert refusal(path) == "the file cannot be read: Permission denied"


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=2)
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(sorted(path.stem for path in CONFIGS.glob("*.json"))), data=st.data())
def test_any_value_in_any_field_is_read_or_refused(tmp_path: Path, name: str, data: st.DataObject) -> None:
    fields = json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8"))
    field = data.draw(st.sampled_from(sorted(fields)))
    fields[field] = data.draw(VALUES)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(fields), encoding="utf-8")
    with contextlib.suppress(InputError):
        columns = read_config(path)
        assert all(isinstance(value, int) and value >= 0 for key, value in columns.items() if key != "source")
        assert columns["heads"] % columns["kv_heads"] == 0
