"""A Hugging Face ``config.json`` as the columns of ``models.csv``.

Only model types whose layers are known to the last parameter are read, and only fields whose effect is known:
anything else is an error that names the field. A missing field has the default of its model type in
``transformers`` where that is a rule (no key-value heads given: one for each head), and must be given where it
is the size of one particular model. Layers that predict further tokens are not part of a model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .columns import MODEL_COUNTS
from .configfile import ConfigFile, open_config
from .configparallel import read_falcon, read_gptj
from .configparts import (
    ACTIVATIONS,
    Columns,
    read_dropout,
    read_experts,
    read_group_limit,
    read_kv_heads,
    read_sizes,
    read_window_everywhere,
    read_windows,
)

__all__ = ["MODEL_TYPES", "read_config"]


def read_config(path: Path) -> Columns:
    """The columns of ``models.csv`` for the model that a file describes; ``source`` is the file.

    Raises:
        InputError: the file cannot be read, contradicts itself, or describes an architecture that is not
            known; the message has the file, the line and the field.
    """
    file = open_config(path)
    file.refuse_other_kinds()
    kind = file.word("model_type", tuple(MODEL_TYPES))
    columns: Columns = {**dict.fromkeys(MODEL_COUNTS, 0), "norms": 2}
    columns |= MODEL_TYPES[kind](file)
    file.close()
    return {**columns, "source": str(path)}


def _llama_like(c: ConfigFile, *, kv_required: bool = True) -> Columns:
    """Gated MLP, root-mean-square norms, grouped-query attention, rotated positions."""
    shape = read_sizes(c)
    c.word("hidden_act", ACTIVATIONS, "silu")
    return shape | {
        "kv_heads": read_kv_heads(c, shape["heads"], required=kv_required),
        "ffn": c.count("intermediate_size"),
        "gated": 1,
        "dropout": read_dropout(c, 0, "attention_dropout"),
    }


def _attention_bias(c: ConfigFile) -> Columns:
    bias = int(c.flag("attention_bias", False))
    return {"qkv_bias": bias, "out_bias": bias}


def _llama(c: ConfigFile) -> Columns:
    columns = _llama_like(c, kv_required=False) | _attention_bias(c)
    return columns | {"mlp_bias": int(c.flag("mlp_bias", False))}


def _internlm(c: ConfigFile) -> Columns:
    """InternLM and InternLM2 (2403.17297): as Llama, and one field for the biases of the attention."""
    bias = int(c.flag("bias", True))
    return _llama_like(c, kv_required=False) | {"qkv_bias": bias, "out_bias": bias}


def _mistral(c: ConfigFile) -> Columns:
    columns = _llama_like(c)
    window = 4096 if c.get("sliding_window", 4096) is not None else 0
    return columns | read_window_everywhere(c, columns["layers"], window)


def _mixtral(c: ConfigFile) -> Columns:
    columns = _llama_like(c)
    experts = read_experts(c, "num_local_experts", "num_experts")
    return (
        columns
        | read_window_everywhere(c, columns["layers"], 0)
        | experts
        | {"expert_ffn": columns["ffn"], "moe_layers": columns["layers"]}
    )


def _qwen2(c: ConfigFile) -> Columns:
    columns = _llama_like(c)
    return columns | _qwen_windows(c, columns["layers"]) | {"qkv_bias": 1}


def _qwen_windows(c: ConfigFile, layers: int) -> Columns:
    """With ``use_sliding_window``, the layers from ``max_window_layers`` on have the window."""
    on = c.flag("use_sliding_window", False)
    first = c.count("max_window_layers", least=0) if on else c.get("max_window_layers", None)
    return read_windows(c, layers, (lambda layer: layer >= first) if on else None)


def _qwen3(c: ConfigFile) -> Columns:
    c.count("head_dim")
    columns = _llama_like(c)
    return columns | _attention_bias(c) | _qwen_windows(c, columns["layers"]) | {"qk_norm": 1}


def _qwen_experts(c: ConfigFile, layers: int) -> Columns:
    """MoE in every ``decoder_sparse_step``-th layer but those in ``mlp_only_layers``."""
    c.must_be("use_sliding_window", False, "versions differ in which layers of this type have a window")
    c.get("sliding_window", None)
    c.get("max_window_layers", None)
    step = c.count("decoder_sparse_step", 1)
    dense = c.get("mlp_only_layers", None) or []
    if not isinstance(dense, list) or not all(type(layer) is int and 0 <= layer < layers for layer in dense):
        c.fail("mlp_only_layers", f"found {dense!r}, expected a list of layers from 0 to {layers - 1}")
    sparse = sum((layer + 1) % step == 0 and layer not in dense for layer in range(layers))
    return read_experts(c, "num_experts", "num_local_experts") | {
        "expert_ffn": c.count("moe_intermediate_size"),
        "moe_layers": sparse,
    }


def _qwen2_moe(c: ConfigFile) -> Columns:
    columns = _llama_like(c)
    return (
        columns
        | _qwen_experts(c, columns["layers"])
        | {
            "qkv_bias": int(c.flag("qkv_bias", True)),
            "shared_ffn": c.count("shared_expert_intermediate_size"),
            "shared_gate": 1,
        }
    )


def _qwen3_moe(c: ConfigFile) -> Columns:
    c.count("head_dim")
    columns = _llama_like(c)
    return columns | _attention_bias(c) | _qwen_experts(c, columns["layers"]) | {"qk_norm": 1}


def _deepseek(c: ConfigFile) -> Columns:
    """Latent attention, dense layers first, then shared and routed experts (2405.04434, 2412.19437)."""
    shape = read_sizes(c, divided=False)
    c.word("hidden_act", ACTIVATIONS, "silu")
    c.must_be("attention_bias", False, "biases of latent attention are not known")
    c.must_be("mlp_bias", False, "biases of its MLPs are not known")
    c.must_be("num_key_value_heads", shape["heads"], "latent attention has as many key-value heads as heads")
    rope, nope = c.count("qk_rope_head_dim"), c.count("qk_nope_head_dim")
    if rope % 2:
        c.fail("qk_rope_head_dim", f"found {rope}, expected an even number: positions rotate pairs")
    c.must_be("qk_head_dim", rope + nope, "it is qk_rope_head_dim + qk_nope_head_dim")
    if c.get("head_dim", None) not in (None, rope, rope + nope):
        c.fail(
            "head_dim", f"found {shape['head_dim']}, expected {rope} or {rope + nope} as in qk_rope_head_dim"
        )
    width = c.count("moe_intermediate_size")
    first, step = c.count("first_k_dense_replace", least=0), c.count("moe_layer_freq", 1)
    layers = shape["layers"]
    if first > layers:
        c.fail("first_k_dense_replace", f"found {first}, expected at most the {layers} layers")
    if c.get("q_lora_rank") is not None:
        shape["q_lora"] = c.count("q_lora_rank")
    shared = c.get("n_shared_experts")
    return (
        shape
        | read_experts(c, "n_routed_experts", "num_experts", "num_local_experts")
        | {
            "head_dim": rope + nope,
            "ffn": c.count("intermediate_size"),
            "gated": 1,
            "expert_ffn": width,
            "shared_ffn": 0 if shared is None else c.count("n_shared_experts", least=0) * width,
            "moe_layers": sum(layer >= first and layer % step == 0 for layer in range(layers)),
            "mla": 1,
            "kv_lora": c.count("kv_lora_rank"),
            "rope_dim": rope,
            "nope_dim": nope,
            "value_dim": c.count("v_head_dim"),
            "dropout": read_dropout(c, 0, "attention_dropout"),
        }
    )


def _deepseek_v2(c: ConfigFile) -> Columns:
    columns = _deepseek(c)
    if c.word("topk_method", ("greedy", "group_limited_greedy")) == "greedy":
        c.optional("n_group")
        c.optional("topk_group")
        return columns
    return columns | {"group_limit": read_group_limit(c, columns["experts"], columns["top_k"])}


def _deepseek_v3(c: ConfigFile) -> Columns:
    c.must_be("topk_method", "noaux_tc", "only its router, with a bias for each expert, is known")
    columns = _deepseek(c)
    limit = read_group_limit(c, columns["experts"], columns["top_k"])
    return columns | {"router_bias": 1, "group_limit": limit}


def _gpt_oss(c: ConfigFile) -> Columns:
    """Windows in every other layer, sinks, and biases everywhere (2508.10925)."""
    c.count("head_dim")
    columns = _llama_like(c)
    c.must_be("attention_bias", True, "its attention has biases")
    layers = columns["layers"]
    return (
        columns
        | read_windows(c, layers, lambda layer: layer % 2 == 0)
        | read_experts(
            c, "num_local_experts", "num_experts", routed=("num_experts_per_tok", "experts_per_token")
        )
        | {"expert_ffn": columns["ffn"], "moe_layers": layers}
        | dict.fromkeys(("qkv_bias", "out_bias", "router_bias", "expert_bias", "sinks"), 1)
    )


def _gemma(c: ConfigFile) -> Columns:
    """The MLP's activation is ``hidden_activation`` in newer files; the head_dim is no quotient."""
    c.count("head_dim")
    c.must_be("use_bidirectional_attention", False, "only causal attention is known")
    named = [field for field in ("hidden_activation", "hidden_act") if c.get(field, None) is not None]
    for field in named:
        c.word(field, ACTIVATIONS)
    shape = read_sizes(c, tied=True)
    return (
        shape
        | _attention_bias(c)
        | {
            "kv_heads": read_kv_heads(c, shape["heads"], required=True),
            "ffn": c.count("intermediate_size"),
            "gated": 1,
            "dropout": read_dropout(c, 0, "attention_dropout"),
        }
    )


def _gemma2(c: ConfigFile) -> Columns:
    columns = _gemma(c)
    return columns | read_windows(c, columns["layers"], lambda layer: layer % 2 == 0) | {"norms": 4}


def _gemma3(c: ConfigFile) -> Columns:
    columns = _gemma(c)
    pattern = c.count(c.either("sliding_window_pattern", "_sliding_window_pattern"), 6)
    windows = read_windows(c, columns["layers"], lambda layer: (layer + 1) % pattern != 0)
    return columns | windows | {"norms": 4, "qk_norm": 1}


def _phi3(c: ConfigFile) -> Columns:
    columns = _llama_like(c, kv_required=False)
    dropout = read_dropout(c, 0, "attention_dropout", "resid_pdrop", "embd_pdrop")
    return columns | read_window_everywhere(c, columns["layers"], 0) | {"dropout": dropout}


_CLASSIC = {"layernorm": 1, "qkv_bias": 1, "out_bias": 1, "mlp_bias": 1}


def _gpt2(c: ConfigFile) -> Columns:
    shape = read_sizes(
        c,
        layers=("n_layer", "num_hidden_layers"),
        hidden=("n_embd", "hidden_size"),
        heads=("n_head", "num_attention_heads"),
        context=("n_positions", "max_position_embeddings"),
        tied=True,
        rotary=0,
    )
    c.word("activation_function", ACTIVATIONS, "gelu_new")
    inner = c.optional("n_inner")
    return (
        shape
        | _CLASSIC
        | {
            "ffn": 4 * shape["hidden"] if inner is None else inner,
            "positions": shape["context"],
            "dropout": read_dropout(c, 0.1, "resid_pdrop", "embd_pdrop", "attn_pdrop"),
        }
    )


def _gpt_neox(c: ConfigFile) -> Columns:
    shape = read_sizes(c, rotary=0.25)
    c.word("hidden_act", ACTIVATIONS, "gelu")
    bias = int(c.flag("attention_bias", True))
    return (
        shape
        | _CLASSIC
        | {
            "ffn": c.count("intermediate_size"),
            "qkv_bias": bias,
            "out_bias": bias,
            "dropout": read_dropout(c, 0, "attention_dropout", "hidden_dropout"),
        }
    )


def _bloom(c: ConfigFile) -> Columns:
    """Position by ALiBi, four times the hidden size in the MLP, a norm after the embedding (2211.05100)."""
    shape = read_sizes(
        c,
        layers=("n_layer", "num_hidden_layers"),
        hidden=("n_embed", "hidden_size"),
        heads=("n_head", "num_attention_heads"),
        context=("seq_length",),
        tied=True,
        rotary=0,
    )
    dropout = read_dropout(c, 0, "hidden_dropout", "attention_dropout")
    return shape | _CLASSIC | {"ffn": 4 * shape["hidden"], "embedding_norm": 1, "dropout": dropout}


def _opt(c: ConfigFile) -> Columns:
    """Learned positions with two rows to spare; only with a norm before each block."""
    shape = read_sizes(c, tied=True, rotary=0)
    c.must_be("word_embed_proj_dim", shape["hidden"], "projections of the embedding are not known")
    c.must_be("do_layer_norm_before", True, "norms after each block are not known")
    c.must_be("_remove_final_layer_norm", False, "a model without its last norm is not known")
    c.must_be("enable_bias", True, "a model without biases is not known")
    c.must_be("layer_norm_elementwise_affine", True, "norms without weights are not known")
    c.word("activation_function", ACTIVATIONS, "relu")
    return (
        shape
        | _CLASSIC
        | {
            "ffn": c.count("ffn_dim"),
            "positions": shape["context"] + 2,
            "dropout": read_dropout(c, 0, "attention_dropout") | read_dropout(c, 0.1, "dropout"),
        }
    )


MODEL_TYPES: dict[str, Callable[[ConfigFile], Columns]] = {
    "bloom": _bloom,
    "deepseek_v2": _deepseek_v2,
    "deepseek_v3": _deepseek_v3,
    "falcon": read_falcon,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "glm4_moe_lite": _deepseek_v3,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "gpt_oss": _gpt_oss,
    "gptj": read_gptj,
    "internlm": _internlm,
    "internlm2": _internlm,
    "kimi_k2": _deepseek_v3,
    "llama": _llama,
    "mistral": _mistral,
    "mixtral": _mixtral,
    "opt": _opt,
    "phi3": _phi3,
    "qwen2": _qwen2,
    "qwen2_moe": _qwen2_moe,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
}
"""The model types that are known, and what reads them."""
