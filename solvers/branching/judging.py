"""Designs at the full depth of the search: judged exactly, and told to the tally."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation import BulkEvaluator, Judge
from dse.evaluation.bounds import Boxes
from dse.evaluation.positions import Numbering, Positions
from dse.evaluation.verdict import Outcomes, condition_holds, inside, spread

from .expanding import FIRST, JUDGED, OUTSIDE

__all__ = ["Judged", "Points"]


class Judged(NamedTuple):
    """What each of some designs is (n,), and of the legal ones places, value numbers and outcomes; None: there are none."""

    codes: NDArray[np.int64]
    places: list[NDArray[np.int64]]
    digits: dict[str, NDArray[np.intp]]
    outcomes: Outcomes | None


class Points:
    """Judges designs given by their places on the hull, one row per dimension."""

    def __init__(self, boxes: Boxes) -> None:
        self.problem = boxes.problem
        self.team = boxes.team
        self.grid = boxes.grid
        self._numbering = Numbering(self.grid.sizes)
        self._judge = Judge(self.problem)
        self._metrics = BulkEvaluator(self.problem, self._judge.roots)
        checks = [rule.check for rule in self.problem.rules]
        self._rules = BulkEvaluator(
            self.problem, [*checks, *(c.node for box in self.team.boxes for c in box.where)]
        )

    def digits(self, places: list[NDArray[np.int64]]) -> dict[str, NDArray[np.intp]]:
        """The value numbers per dimension."""
        return {
            name: hull[place]
            for name, hull, place in zip(self.problem.names, self.grid.hull, places, strict=True)
        }

    def codes(self, digits: dict[str, NDArray[np.intp]], n: int) -> NDArray[np.int64]:
        """What each of ``n`` designs is: outside, breaking a rule, or legal (``JUDGED``)."""
        values = self._rules.evaluate(digits)
        found = np.full(n, JUDGED, dtype=np.int64)
        held = inside(self.problem, self.team, digits, {node: spread(b, n) for node, b in values.items()}, n)
        found[~held] = OUTSIDE
        alive = held
        for number, rule in enumerate(self.problem.rules):
            holds = np.broadcast_to(condition_holds(values[rule.check]), (n,))
            found[alive & ~holds] = FIRST + number
            alive = alive & holds
        return found

    def judged(self, places: list[NDArray[np.int64]]) -> Judged:
        """Judge designs given by their places, one array (n,) per dimension."""
        digits = self.digits(places)
        n = len(places[0])
        codes = self.codes(digits, n)
        legal = np.flatnonzero(codes == JUDGED)
        if legal.size < n:
            places = [place[legal] for place in places]
            digits = {name: column[legal] for name, column in digits.items()}
        outcomes = self._judge.evaluate(digits, legal.size, self._metrics) if legal.size else None
        return Judged(codes, places, digits, outcomes)

    def places(self, positions: Positions) -> list[NDArray[np.intp]]:
        """The places, per dimension, of the designs at ``positions``."""
        return self._numbering.places(positions)

    def positions(self, places: list[NDArray[np.int64]]) -> Positions:
        """The positions of designs in the team's hull, first dimension slowest."""
        return self._numbering.positions(places)
