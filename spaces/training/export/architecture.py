"""A model's row of the catalogue as Megatron-LM's arguments, and back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dse.errors import InputError

from .flags import Flags
from .shapes import cell

__all__ = ["Architecture", "model_flags", "read_architecture"]

_Row = Mapping[str, object]


def model_flags(row: _Row, seq_len: int) -> Iterator[tuple[str, str]]:
    """The arguments of ``pretrain_gpt.py`` for a model, each with its value or "".

    Raises:
        InputError: the model has a part that Megatron-LM does not build.
    """
    if why := _unbuildable(row):
        raise InputError(f"megatron cannot express the model: {why}")
    yield "num-layers", f"{cell(row, 'layers')}"
    yield "hidden-size", f"{cell(row, 'hidden')}"
    yield "ffn-hidden-size", f"{cell(row, 'ffn')}"
    yield "num-attention-heads", f"{cell(row, 'heads')}"
    yield from _attention(row)
    if cell(row, "gated"):
        yield "swiglu", ""
    yield "normalization", "LayerNorm" if cell(row, "layernorm") else "RMSNorm"
    if not cell(row, "out_bias"):
        yield "disable-bias-linear", ""
        if cell(row, "qkv_bias"):
            yield "add-qkv-bias", ""
    if not cell(row, "tied"):
        yield "untie-embeddings-and-output-weights", ""
    learned = cell(row, "positions")
    yield "position-embedding-type", "learned_absolute" if learned else "rope"
    yield "max-position-embeddings", f"{learned or max(cell(row, 'context'), seq_len)}"
    if not cell(row, "dropout"):
        yield "attention-dropout", "0.0"
        yield "hidden-dropout", "0.0"
    yield from _experts(row)
    yield "vocab-size", f"{cell(row, 'vocab')}"


def _unbuildable(row: _Row) -> str:
    if cell(row, "embedding_norm"):
        return "it has a norm behind the embedding, which Megatron-LM has none of"
    if cell(row, "norms") not in (0, 2):
        return f"it has {cell(row, 'norms')} norms in a layer, and Megatron-LM builds 2"
    if cell(row, "shared_gate"):
        return "its shared experts have a gate, which this version has none of"
    if cell(row, "out_bias") and not cell(row, "qkv_bias"):
        return "it has a bias behind attention and none before it"
    if cell(row, "sinks") and not cell(row, "gated"):
        return "it has attention sinks without a gated MLP"
    return ""


def _attention(row: _Row) -> Iterator[tuple[str, str]]:
    if cell(row, "mla"):
        yield "multi-latent-attention", ""
        if cell(row, "q_lora"):
            yield "q-lora-rank", f"{cell(row, 'q_lora')}"
        yield "kv-lora-rank", f"{cell(row, 'kv_lora')}"
        yield "qk-head-dim", f"{cell(row, 'nope_dim')}"
        yield "qk-pos-emb-head-dim", f"{cell(row, 'rope_dim')}"
        yield "v-head-dim", f"{cell(row, 'value_dim')}"
    else:
        yield "kv-channels", f"{cell(row, 'head_dim')}"
        if cell(row, "kv_heads") != cell(row, "heads"):
            yield "group-query-attention", ""
            yield "num-query-groups", f"{cell(row, 'kv_heads')}"
    if cell(row, "qk_norm"):
        yield "qk-layernorm", ""
    if cell(row, "sinks"):
        yield "softmax-type", "learnable"
    if cell(row, "window"):
        yield "window-size", f"{cell(row, 'window') - 1},0"
        layers, windowed = cell(row, "layers"), cell(row, "window_layers")
        full = layers - windowed
        if full:
            every = layers // full
            regular = layers // every == full
            yield "window-attn-skip-freq", f"{every}" if regular else f"([1]*{windowed}+[0]*{full})"


def _experts(row: _Row) -> Iterator[tuple[str, str]]:
    if not cell(row, "experts"):
        return
    yield "num-experts", f"{cell(row, 'experts')}"
    yield "moe-router-topk", f"{cell(row, 'top_k')}"
    yield "moe-ffn-hidden-size", f"{cell(row, 'expert_ffn')}"
    if cell(row, "shared_ffn"):
        yield "moe-shared-expert-intermediate-size", f"{cell(row, 'shared_ffn')}"
    sparse = cell(row, "moe_layers")
    if dense := cell(row, "layers") - sparse:
        yield "moe-layer-freq", f"([0]*{dense}+[1]*{sparse})"
    yield "moe-grouped-gemm", ""
    yield "moe-token-dispatcher-type", "alltoall"


# -- back --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a launch line says of the model.

    ``cells`` are those columns of the catalogue that follow from the arguments; ``hints`` are others, which tell rows
    of one architecture apart.
    """

    cells: Mapping[str, int]
    hints: Mapping[str, int]

    def differences(self, row: _Row) -> list[str]:
        """The columns in which a row of the catalogue is another model."""
        found = []
        for column, value in self.cells.items():
            there = cell(row, column)
            if column == "window" and value and there in (value, value - 1):
                continue  # a window is counted with or without the token itself
            if column in row and there != value:
                found.append(f"{column} {there}, not {value}")
        return found

    def distance(self, row: _Row) -> int:
        """How much a row differs in hints; position embeddings weigh more than the longest context."""
        weights = {"positions": 2, "context": 1}
        return sum(w for column, w in weights.items() if cell(row, column) != self.hints.get(column, 0))

    @property
    def row(self) -> dict[str, float]:
        """All columns, as a new row of the catalogue."""
        defaults = {"norms": 2, "vocab": 0, "context": 0, "dropout": 0}
        return {**defaults, **self.hints, **self.cells}


def read_architecture(flags: Flags) -> Architecture:
    """The model that a launch line trains, with Megatron-LM's defaults for what it leaves out.

    Raises:
        InputError: a size is missing or no whole number.
    """
    layers, hidden, heads = (
        flags.need("num-layers"),
        flags.need("hidden-size"),
        flags.need("num-attention-heads"),
    )
    gated = flags.on("swiglu") or flags.on("quick-geglu")
    ffn = flags.number("ffn-hidden-size", int(4 * hidden * 2 / 3 / 64) * 64 if gated else 4 * hidden)
    biased = not flags.on("disable-bias-linear")
    mla = flags.on("multi-latent-attention")
    cells = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "ffn": ffn,
        "gated": int(gated),
        "tied": int(not flags.on("untie-embeddings-and-output-weights")),
        "layernorm": int(flags.value("normalization", "LayerNorm") == "LayerNorm"),
        "qk_norm": int(flags.on("qk-layernorm")),
        "qkv_bias": int(biased or flags.on("add-qkv-bias")),
        "out_bias": int(biased),
        "sinks": int(flags.value("softmax-type", "vanilla") == "learnable"),
        "mla": int(mla),
        **_read_heads(flags, hidden, heads, mla=mla),
        **_read_window(flags, layers),
        **_read_experts(flags, layers, ffn),
    }
    longest = flags.number("max-position-embeddings", flags.number("seq-length", 0))
    learned = flags.value(
        "position-embedding-type", "learned_absolute"
    ) == "learned_absolute" and not flags.on("use-rotary-position-embeddings")
    hints = {"positions": longest if learned else 0, "context": longest}
    if not cells["experts"]:
        cells["mlp_bias"] = int(biased)
    if "vocab-size" in flags:
        cells["vocab"] = flags.number("vocab-size", 0)
    drops = [flags.decimal(name, 0.1) for name in ("attention-dropout", "hidden-dropout")]
    hints["dropout"] = int(any(drops))
    return Architecture(cells, hints)


def _read_heads(flags: Flags, hidden: int, heads: int, *, mla: bool) -> dict[str, int]:
    if mla:
        return {
            "q_lora": flags.number("q-lora-rank", 0),
            "kv_lora": flags.number("kv-lora-rank", 32),
            "nope_dim": flags.number("qk-head-dim", 128),
            "rope_dim": flags.number("qk-pos-emb-head-dim", 64),
            "value_dim": flags.number("v-head-dim", 128),
        }
    if "kv-channels" not in flags and hidden % heads:
        raise flags.fault(
            "hidden-size", f"{hidden} is not divisible by {heads} attention heads; add --kv-channels"
        )
    grouped = flags.on("group-query-attention")
    return {
        "head_dim": flags.number("kv-channels", hidden // heads),
        "kv_heads": flags.number("num-query-groups", 1) if grouped else heads,
    }


def _read_window(flags: Flags, layers: int) -> dict[str, int]:
    if "window-size" not in flags:
        return {"window": 0, "window_layers": 0}
    found = re.match(r"\(?\s*(\d+)\s*,", flags.value("window-size", ""))
    if not found:
        raise flags.fault("window-size", "expected two whole numbers, such as 127,0")
    every = flags.value("window-attn-skip-freq", "")
    if not every:
        windowed = layers
    elif every.isdecimal() and int(every):
        windowed = layers - layers // int(every)
    else:
        windowed = sum(_pattern(flags, "window-attn-skip-freq", every, layers))
    return {"window": int(found.group(1)) + 1, "window_layers": windowed}


def _read_experts(flags: Flags, layers: int, ffn: int) -> dict[str, int]:
    experts = flags.number("num-experts", 0)
    if not experts:
        return {"experts": 0, "moe_layers": 0}
    every = flags.value("moe-layer-freq", "1")
    if every.isdecimal() and int(every):
        sparse = -(-layers // int(every))
    else:
        sparse = sum(_pattern(flags, "moe-layer-freq", every, layers))
    return {
        "experts": experts,
        "top_k": flags.number("moe-router-topk", 2),
        "expert_ffn": flags.number("moe-ffn-hidden-size", ffn),
        "shared_ffn": flags.number("moe-shared-expert-intermediate-size", 0),
        "moe_layers": sparse,
    }


def _pattern(flags: Flags, name: str, written: str, layers: int) -> list[int]:
    """A list of zeros and ones, one for each layer, from an expression such as ``([0]*3+[1]*58)``."""
    try:
        pattern = _listed(ast.parse(written, mode="eval").body, layers)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise flags.fault(
            name, f"expected a whole number or a list such as '([0]*3+[1]*{layers - 3})'"
        ) from None
    if len(pattern) != layers or set(pattern) - {0, 1}:
        raise flags.fault(
            name, f"expected {layers} zeros and ones, one for each layer, but got {len(pattern)} entries"
        )
    return pattern


def _listed(node: ast.expr, most: int) -> list[int]:
    match node:
        case ast.List(elts) if all(isinstance(e, ast.Constant) and type(e.value) is int for e in elts):
            return [e.value for e in elts if isinstance(e, ast.Constant) and isinstance(e.value, int)]
        case ast.BinOp(left, ast.Add(), right):
            return _listed(left, most) + _listed(right, most)
        case ast.BinOp(left, ast.Mult(), ast.Constant(int(times))) if 0 <= times <= most:
            found = _listed(left, most) * times
            if len(found) <= 4 * most:
                return found
    raise ValueError
