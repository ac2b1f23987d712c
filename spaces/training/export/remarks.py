"""Comments ``# dse: name=value ...`` in written plans: the inputs and choices that nothing else in the file tells."""

from __future__ import annotations

import re
from collections.abc import Collection

from dse.study.exports import Plan

__all__ = ["SPACE_ONLY", "read_remark", "remark"]

SPACE_ONLY = ("model", "hardware", "cluster")
"""Inputs that no framework is told, so that a comment has them."""

_TOLD = frozenset(("n_gpus", "global_batch", "seq_len", "framework", "precision"))
_OURS = re.compile(r"#\s*dse:\s*(.*)")


def remark(plan: Plan, *, told: Collection[str] = (), untold: Collection[str] = ()) -> list[str]:
    """The comment of a plan, or nothing: inputs that only the space has and those that differ from its defaults.

    ``told`` are inputs that the file tells otherwise, ``untold`` dimensions that it does not tell.
    """
    wanted = ({name for name in SPACE_ONLY if name in plan.inputs} | plan.given) - _TOLD - set(told)
    names = [*(name for name in plan.inputs if name in wanted), *(n for n in untold if n in plan.texts)]
    pairs = " ".join(f"{name}={plan.texts[name].replace(' ', '%20')}" for name in names)
    return [f"# dse: {pairs}"] if pairs else []


def read_remark(comment: str) -> dict[str, str]:
    """The values in a comment; none where it is another."""
    found = _OURS.match(comment)
    values: dict[str, str] = {}
    for pair in found.group(1).split() if found else ():
        name, sign, value = pair.partition("=")
        if sign and name.isidentifier():
            values.setdefault(name, value.replace("%20", " "))
    return values
