"""Comments ``# dse: name=value ...`` in written plans: the inputs and choices that nothing else in the file tells."""

from __future__ import annotations

from collections.abc import Collection

from dse.spaces.remarks import remark_line
from dse.study.exports import Plan

__all__ = ["SPACE_ONLY", "remark"]

SPACE_ONLY = ("model", "hardware", "cluster")
"""Inputs that no framework is told, so that a comment has them."""

_TOLD = frozenset(("n_gpus", "global_batch", "seq_len", "framework", "precision"))


def remark(plan: Plan, *, told: Collection[str] = (), untold: Collection[str] = ()) -> list[str]:
    """The comment of a plan, or nothing: inputs that only the space has and those that differ from its defaults.

    ``told`` are inputs that the file tells otherwise, ``untold`` dimensions that it does not tell.
    """
    wanted = ({name for name in SPACE_ONLY if name in plan.inputs} | plan.given) - _TOLD - set(told)
    names = [*(name for name in plan.inputs if name in wanted), *(n for n in untold if n in plan.texts)]
    return [remark_line({name: plan.texts[name] for name in names})] if names else []
