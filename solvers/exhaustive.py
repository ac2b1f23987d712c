"""Exhaustive search: every legal design is evaluated, in memory that does not grow.

Large spaces run as compiled loops where llvmlite is installed; otherwise, and where they cannot be compiled, NumPy
evaluates block after block. Both give the same tally.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dse.errors import InputError
from dse.problem import Problem, Team
from dse.study.exact import walk
from dse.study.listing import Listing, few_legal
from dse.study.registry import unlisted
from dse.study.solver import ExactSearch, ExactSolver
from dse.study.sweeping import Sweeping, sweeping

if TYPE_CHECKING:
    from dse.evaluation.compiled import Nest

__all__ = ["Exhaustive", "refusal"]

POSITION_LIMIT = 2**62

COMPILED_FROM = 10_000_000
"""Legal designs from which on compiling is repaid."""


def box_size(problem: Problem, team: Team) -> int:
    """The number of designs in the box around a team."""
    return math.prod(len(axis) for axis in team.hull(problem.sizes))


def refusal(problem: Problem, team: Team) -> str | None:
    """Why a problem cannot be enumerated; None when it can."""
    reason = unlisted(problem)
    if reason is not None:
        return reason
    size = box_size(problem, team)
    if size > POSITION_LIMIT:
        return f"the team's part of the space has {size:.3g} designs; at most {POSITION_LIMIT:.3g} can be numbered"
    return None


LISTED = 5_000_000
"""Legal designs up to which they are listed."""

SPARSE = 100
"""Combinations for each legal design from which on listing is sooner."""


class Exhaustive(ExactSolver):
    """Evaluates every legal design.

    Option ``jit``: ``auto`` compiles large spaces, ``on`` all that can be compiled, ``off`` none.
    """

    name = "exhaustive"
    title = "every legal design, streamed in blocks"
    needs = frozenset({"bulk"})
    options = frozenset({"jit"})

    def refuse(self, problem: Problem, team: Team) -> str | None:
        """Refuse what cannot be enumerated."""
        return refusal(problem, team)

    def explore(self, search: ExactSearch) -> None:
        """Evaluate everything: a list of the few legal designs, or all, compiled if that is wanted and possible.

        Raises:
            InputError: the option ``jit`` is another, or is ``on`` and the problem cannot be compiled.
        """
        if _jit(search.options) != "on" and listed(search.problem, search.team) is not None:
            walk(search, Listing)
            return
        nest = _nest(search)
        if nest is not None:
            from .compiled import explore

            explore(search, nest)
            return
        if search.state is not None and "next" not in search.state:
            search.restart({"next": 0})  # compiled loops began it, which cannot go on here
        with sweeping(search.problem, search.team) as pieces:
            walk(search, Sweeping, pieces)


def listed(problem: Problem, team: Team) -> int | None:
    """How many legal designs there are, where listing them is sooner than looking at every combination."""
    size = box_size(problem, team)
    return few_legal(problem, team, min(LISTED, size // SPARSE)) if size > COMPILED_FROM else None


def _nest(search: ExactSearch) -> Nest | None:
    """The compiled loops for a search; None when blocks are to be evaluated."""
    jit = _jit(search.options)
    small = box_size(search.problem, search.team) < COMPILED_FROM
    if jit == "off" or (jit == "auto" and (small or "next" in (search.state or {}))):
        return None
    from dse.evaluation.compiled import Declined, Nest, Wanted

    options = search.tally.options
    wanted = Wanted(options["top"], options["objective"] if options["top"] else 0, options["ties"])
    try:
        return Nest.of(search.problem, search.team, wanted, least=0 if jit == "on" else COMPILED_FROM)
    except Declined as declined:
        if jit == "on":
            raise InputError(f"option jit=on cannot be kept: {declined}") from None
        return None


def _jit(options: Mapping[str, Any]) -> str:
    """What the option ``jit`` says; YAML may read on and off as truth values."""
    given = options.get("jit", "auto")
    found = "on" if given is True else "off" if given is False else given
    if found not in ("auto", "on", "off"):
        raise InputError(f"option jit must be auto, on or off, but got {given!r}")
    return str(found)
