"""Model types of ``config.json`` whose attention and MLP stand side by side behind one norm, or two."""

from __future__ import annotations

from .configfile import ConfigFile
from .configparts import ACTIVATIONS, Columns, read_dropout, read_sizes

__all__ = ["read_falcon", "read_gptj"]


def read_falcon(c: ConfigFile) -> Columns:
    """Falcon (2311.16867): key-value heads are one, or as many as ``num_kv_heads`` in its newer architecture."""
    shape = read_sizes(
        c,
        layers=("num_hidden_layers", "n_layer"),
        heads=("num_attention_heads", "n_head"),
        context=("max_position_embeddings",),
        tied=True,
    )
    newer = c.flag("new_decoder_architecture", False)
    c.must_be("alibi", False, "positions by ALiBi are not known for this type")
    c.must_be("parallel_attn", True, "attention and MLP in turn are not known for this type")
    c.word("activation", ACTIVATIONS, "gelu")
    norms = c.count("num_ln_in_parallel_attn", 2 if newer else 1, most=2)
    bias = int(c.flag("bias", False))
    few = c.flag("multi_query", True)
    heads = c.count(c.either("num_kv_heads", "n_head_kv"), shape["heads"])
    return shape | {
        "kv_heads": heads if newer else 1 if few else shape["heads"],
        "ffn": c.count("ffn_hidden_size", 4 * shape["hidden"]),
        "layernorm": 1,
        "norms": norms,
        "qkv_bias": bias,
        "out_bias": bias,
        "mlp_bias": bias,
        "dropout": read_dropout(c, 0, "attention_dropout", "hidden_dropout"),
    }


def read_gptj(c: ConfigFile) -> Columns:
    """GPT-J: biases in the MLP only; those of its output projection are not counted."""
    shape = read_sizes(
        c,
        layers=("n_layer", "num_hidden_layers"),
        hidden=("n_embd", "hidden_size"),
        heads=("n_head", "num_attention_heads"),
        context=("n_positions", "max_position_embeddings"),
        rotary=0,
    )
    c.word("activation_function", ACTIVATIONS, "gelu_new")
    rotary, inner = c.count("rotary_dim", 64), c.optional("n_inner")
    if rotary % 2 or rotary > shape["head_dim"]:
        c.fail("rotary_dim", f"found {rotary}, expected an even number of at most {shape['head_dim']}")
    return shape | {
        "ffn": 4 * shape["hidden"] if inner is None else inner,
        "layernorm": 1,
        "norms": 1,
        "mlp_bias": 1,
        "dropout": read_dropout(c, 0, "resid_pdrop", "embd_pdrop", "attn_pdrop"),
    }
