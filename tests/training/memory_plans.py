"""Plans as the memory model is given them, built in Python: one framework's rows, and models of any shape."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

__all__ = ["GIB", "RECOMPUTES", "SCHEDULES", "SHARDINGS", "gpt", "model", "plan"]

GIB = 2.0**30

COLUMNS = (
    "layers hidden heads kv_heads head_dim ffn gated vocab tied layernorm norms qk_norm qkv_bias out_bias mlp_bias "
    "positions embedding_norm context experts top_k expert_ffn shared_ffn moe_layers router_bias sinks expert_bias "
    "shared_gate mla q_lora kv_lora rope_dim nope_dim value_dim window window_layers dropout"
).split()

SHARDINGS = {
    # resident, sharded, optimizer, gradient, stage, live, bucket
    "ddp": (18, 0, 12, 4, 0, 0, 0),
    "distributed-optimizer": (6, 12, 12, 4, 1, 0, 0),
    "megatron-fsdp": (0, 18, 12, 4, 3, 8, 0),
    "zero0": (20, 0, 16, 2, 0, 0, 0),
    "zero1": (4, 16, 16, 2, 1, 0, 5e8),
    "zero2": (2, 18, 16, 2, 2, 0, 5e8),
    "zero3": (0, 18, 12, 4, 3, 4, 5e8),
    "fsdp2": (0, 16, 8, 4, 3, 8, 0),
    "bf16-gradients": (4, 12, 12, 2, 1, 0, 0),
    "frozen": (2, 0, 0, 0, 0, 0, 0),
}
RECOMPUTES = {
    # attention, elementwise, mlp, full
    "none": (0, 0, 0, 0),
    "attention": (1, 0, 0, 0),
    "selective": (1, 1, 0, 0),
    "mlp": (0, 0, 1, 0),
    "full": (0, 0, 0, 1),
}
SCHEDULES = {
    # dual, level, keeps_all
    "1f1b": (0, 0, 0),
    "gpipe": (0, 0, 1),
    "zb-h1": (0, 1, 0),
    "dualpipe": (1, 0, 0),
}
RUNTIME = {
    "eager": 0, "norm_copy": 0, "logit_bytes": 6, "unfused_gradient": 0, "workspace": 0.1 * GIB,
    "fragmentation": 0.05, "cache": 0.15, "context": 2 * GIB, "step": 0,
}  # fmt: skip


def model(**columns: float) -> SimpleNamespace:
    """A model: zero where nothing is said, two norms a layer, as many key heads as heads."""
    given_ = {"norms": 2, "kv_heads": columns.get("heads", 0), **columns}
    return SimpleNamespace(**{name: float(given_.get(name, 0)) for name in COLUMNS})


def gpt(layers: int, hidden: int, heads: int, **columns: float) -> SimpleNamespace:
    """A layer stack as in the papers: f = 4h, dropout, no vocabulary."""
    return model(
        layers=layers,
        hidden=hidden,
        heads=heads,
        head_dim=hidden // heads,
        ffn=4 * hidden,
        dropout=1,
        **columns,
    )


def row(names: str, values: tuple[float, ...]) -> SimpleNamespace:
    return SimpleNamespace(**dict(zip(names.split(), values, strict=True)))


def plan(
    m: SimpleNamespace,
    *,
    sharding: str = "distributed-optimizer",
    recompute: str = "none",
    schedule: str = "1f1b",
    flash: int = 1,
    runtime: dict[str, float] | None = None,
    **values: Any,
) -> SimpleNamespace:
    """A plan with everything 1 or off but what is said; one micro-batch a pipeline stage at least."""
    chosen: dict[str, Any] = {
        "tp": 1, "pp": 1, "cp": 1, "ep": 1, "chunks": 1, "sequence_parallel": False, "expert_tp": False,
        "recompute_block": 1, "micro_batch": 1.0, "seq_len": 2048.0, "shard_group": 0, "expert_imbalance": 1.0,
        "capacity_factor": 1.0, "embedding": 0, "loss": 0, "dp": 1, "offload": 0, "eight": 0,
        **values,
    }  # fmt: skip
    dp = chosen.pop("dp")
    chosen.setdefault("n_gpus", float(chosen["tp"] * chosen["pp"] * chosen["cp"] * dp))
    replicas = chosen["n_gpus"] / (chosen["tp"] * chosen["pp"] * chosen["cp"])
    chosen.setdefault("global_batch", float(64 * replicas * chosen["micro_batch"]))
    return SimpleNamespace(
        model=m,
        sharding=row("resident sharded optimizer gradient stage live bucket", SHARDINGS[sharding]),
        recompute=row("attention elementwise mlp full", RECOMPUTES[recompute]),
        schedule=row("dual level keeps_all", SCHEDULES[schedule]),
        edges=SimpleNamespace(embedding=chosen.pop("embedding"), loss=chosen.pop("loss")),
        optimizer=SimpleNamespace(offload=chosen.pop("offload")),
        format=SimpleNamespace(eight=chosen.pop("eight")),
        dispatch=SimpleNamespace(dropless=1),
        attention=SimpleNamespace(flash=flash),
        runtime=SimpleNamespace(**{**RUNTIME, **(runtime or {})}),
        **chosen,
    )
