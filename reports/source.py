"""What a report is made from: a comparison of teams, a result, or a study that has one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from dse.problem import Problem
from dse.study.compare import Comparison, TeamReport
from dse.study.result import Result
from dse.study.study import Study

__all__ = ["Material", "Source", "clean", "material"]

_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)


Source: TypeAlias = Comparison | Result | Study
"""What can be drawn and reported."""


@dataclass(frozen=True, slots=True)
class Material:
    """A problem with the teams that searched it; ``whole`` is the search of the whole space, if there was one."""

    problem: Problem
    entries: tuple[TeamReport, ...]
    whole: Result | None = None
    note: str = ""

    @property
    def title(self) -> str:
        """The problem's title, or its name."""
        return self.problem.title or self.problem.name

    @property
    def background(self) -> Result | None:
        """The whole space, unless one of the teams is it."""
        listed = not self.problem.continuous
        whole_team = any(
            e.result is self.whole or (listed and e.result.accounting.outside == 0) for e in self.entries
        )
        return None if whole_team else self.whole


def material(source: Source) -> Material:
    """A source in the one form that reports read."""
    if isinstance(source, Result):
        return Material(source.problem, (TeamReport(source.team, source),))
    if not isinstance(source, Comparison):
        return material(source.result)
    return Material(source.problem, source.rows, source.whole, source.note)


def clean(text: str) -> str:
    """A user's text without what no image or page can hold: control characters, lone surrogates, reordering marks."""
    return _UNPRINTABLE.sub("\ufffd", text)
