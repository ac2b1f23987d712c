"""Everything that an exact search keeps of the designs it has seen, in bounded memory.

A tally takes judged designs in any order and any number of pieces, tallies of pieces merge, and the outcome is
the same: counts are sums, the front is an archive, every other record is a minimum by (value, position) or the
smallest hashes of a seeded sample.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.evaluation.hashing import uniform
from dse.evaluation.positions import Positions, as_integer, hashable, packed, unpacked
from dse.evaluation.verdict import Outcomes
from dse.problem import Problem
from dse.study.front import Archive

__all__ = ["BEATEN", "Records", "Swept", "Tally"]

BEATEN = "dominated by the front"
"""Why designs are pruned that may be feasible."""

_FAILURES = 5
_WAITING = 65_536  # rows that wait to be sorted
_MEMORY = 300 * 10**6  # bytes that the designs of a front may take
_POINT, _NAMED = 600, 80  # bytes that one takes, and more for each value in it
_TRAIT_LIMIT = 1_000_000  # values of a dimension beyond which traits are not recorded


class Records:
    """The ``limit`` rows of smallest key, ties by position; columns of given widths travel along.

    Rows wait unsorted until there are many or somebody reads, so that small additions stay cheap.
    """

    def __init__(self, limit: int, widths: Mapping[str, int]) -> None:
        self.limit = limit
        self._rows: dict[str, NDArray[Any]] = {"keys": np.empty(0), "positions": np.empty(0, dtype=np.int64)}
        self._rows |= {name: np.empty((0, width)) for name, width in widths.items()}
        self._waiting: list[dict[str, NDArray[Any]]] = []
        self._held = 0

    def add(self, keys: NDArray[Any], positions: Positions, columns: Mapping[str, NDArray[Any]]) -> None:
        """Take rows in; keys (n,), positions (n,), columns (n, width)."""
        if not self.limit or not len(keys):
            return
        rows = {"keys": keys, "positions": positions, **columns}
        if len(self._rows["keys"]) >= self.limit:
            keep = keys <= self._rows["keys"][-1]  # nothing above the largest kept key can enter
            rows = {name: row[keep] for name, row in rows.items()}
        self._held += len(rows["keys"])
        self._waiting.append(rows)
        if self._held > 2 * self.limit + _WAITING:
            self._settle()

    def _settle(self) -> None:
        if not self._waiting:
            return
        parts = [self._rows, *self._waiting]
        rows = {name: np.concatenate([part[name] for part in parts]) for name in self._rows}
        order = np.lexsort((rows["positions"], rows["keys"]))[: self.limit]
        self._rows = {name: row[order] for name, row in rows.items()}
        self._waiting, self._held = [], 0

    def merge(self, other: Records) -> None:
        """Take in the rows of another record."""
        rows = other.arrays()
        self.add(rows.pop("keys"), rows.pop("positions"), rows)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """``keys``, ``positions`` and the columns, by ascending key."""
        self._settle()
        return dict(self._rows)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Hold what :meth:`arrays` gave."""
        self._rows = {name: arrays[name] for name in self._rows}

    @property
    def positions(self) -> Positions:
        """The positions of the rows, by ascending key."""
        return self.arrays()["positions"]

    @property
    def worst(self) -> float | None:
        """A key that no new row may exceed if it is to be kept; None: any may be."""
        keys = self._rows["keys"]
        return float(keys[-1]) if len(keys) >= self.limit else None


class Swept(NamedTuple):
    """The part of a space that a search evaluated design after design, so that it need not say which.

    Of the combinations of the dimensions ``order``, the first one slowest, the first ``done``, with everything that
    the other dimensions may be. Places in the box around the team count.
    """

    order: tuple[int, ...]
    done: int


class Tally:
    """What an exact search has found so far.

    A search that evaluates every legal design of a part of the space says so in ``swept``; the designs to keep are
    then found when they are asked for. Otherwise ``kept`` samples the positions that :meth:`add` is given.

    Args:
        keep: how many evaluated designs a result holds (all, or beyond that a uniform sample drawn with ``seed``).
        top: how many of the best designs of objective number ``objective`` to keep.
        ties: whether the positions of all designs on the front are kept.

    Where nothing depends on the dimensions numbered ``idle``, a design that is added stands for the ``weight`` designs
    that differ from it in those alone, and is the first of them. Archive, best designs and misses hold the first ones.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        keep: int = 0,
        top: int = 0,
        objective: int = 0,
        ties: bool = False,
        seed: int = 0,
    ) -> None:
        k, c = len(problem.objectives), len(problem.constraints)
        self.problem = problem
        self.options: dict[str, Any] = {
            "keep": keep,
            "top": top,
            "objective": objective,
            "ties": ties,
            "seed": seed,
        }
        self.objective = objective
        self.seed = seed
        self.outside = 0
        self.illegal = [0] * len(problem.rules)
        self.pruned: dict[str, int] = {}
        self.evaluated = 0
        self.failed = 0
        self.feasible = 0
        self.alone = [0] * (c + k)
        self.in_order = [0] * (c + k)
        self.archive = Archive(k, limit=_most(problem), keep_ties=ties)
        self.kept = Records(keep, {})
        self.swept: Swept | None = None
        self.best = Records(top, {})
        self.nearest = Records(1, {})
        self.failures = Records(_FAILURES, {})
        self.relaxed: dict[int, tuple[float, Any]] = {}
        self.idle: tuple[int, ...] = ()
        self.weight = 1
        self.present = [np.zeros(n if n <= _TRAIT_LIMIT else 0, dtype=np.bool_) for n in problem.sizes]

    # -- taking in --------------------------------------------------------------------------------

    def add(
        self,
        positions: Positions,
        outcomes: Outcomes,
        digits: Mapping[str, NDArray[np.intp]],
    ) -> None:
        """Take in judged legal designs: positions (n,), their outcomes, and value numbers per dimension (n,)."""
        n, weight = len(positions), self.weight
        if not n:
            return
        self.evaluated += n * weight
        failed, feasible = outcomes.failed, outcomes.feasible
        if failed.any():
            self.failed += int(np.count_nonzero(failed)) * weight
            lost = positions[failed]
            self.failures.add(_order(lost), lost, {})
        self._add_funnel(outcomes)
        found = int(np.count_nonzero(feasible))
        if found:
            self.feasible += found * weight
            self.relaxed.clear()
            values, places = outcomes.objectives[feasible], positions[feasible]
            self.archive.add(values, places)
            self.best.add(values[:, self.objective], places, {})
            for seen, name in zip(self.present, self.problem.names, strict=True):
                if len(seen) and not seen.all():
                    seen[digits[name][feasible]] = True
        elif not self.feasible:
            self.add_misses(positions, outcomes)
        if self.kept.limit:
            self.kept.add(uniform(hashable(positions), self.seed), positions, {})

    def _add_funnel(self, outcomes: Outcomes) -> None:
        losses = np.concatenate([outcomes.violations > 0.0, outcomes.infinite], axis=1)
        left = ~outcomes.failed
        for at in range(losses.shape[1]):
            lost = losses[:, at] & ~outcomes.failed
            self.alone[at] += int(np.count_nonzero(lost)) * self.weight
            self.in_order[at] += int(np.count_nonzero(lost & left)) * self.weight
            left &= ~lost

    def add_misses(self, positions: Positions, outcomes: Outcomes) -> None:
        """The nearest miss, and the nearest one for each smallest set of violated constraints."""
        missed = ~outcomes.failed & ~outcomes.feasible & ~outcomes.infinite.any(axis=1)
        if not missed.any():
            return
        places, nearness = positions[missed], outcomes.nearness[missed]
        self.nearest.add(nearness, places, {})
        broken = outcomes.violations[missed] > 0.0
        count = broken.sum(axis=1)
        fewest = int(count.min())
        if self.relaxed and fewest > next(iter(self.relaxed)).bit_count():
            return
        rows = count == fewest
        broken, places, nearness = broken[rows], places[rows], nearness[rows]
        patterns, group = np.unique(broken, axis=0, return_inverse=True)
        for number, pattern in enumerate(patterns):
            own = group.reshape(-1) == number
            first = np.lexsort((places[own], nearness[own]))[0]
            mask = sum(1 << at for at in np.flatnonzero(pattern).tolist())
            self._relax(mask, float(nearness[own][first]), as_integer(places[own][first]))

    def _relax(self, mask: int, nearness: float, position: Any) -> None:
        size = mask.bit_count()
        known = next(iter(self.relaxed)).bit_count() if self.relaxed else size
        if size > known:
            return
        if size < known:
            self.relaxed.clear()
        self.relaxed[mask] = min(self.relaxed.get(mask, (nearness, position)), (nearness, position))

    def merge(self, other: Tally) -> None:
        """Take in another tally of the same problem and options; every design must be in one of them only."""
        self.outside += other.outside
        self.evaluated += other.evaluated
        self.failed += other.failed
        self.feasible += other.feasible
        self.illegal = [a + b for a, b in zip(self.illegal, other.illegal, strict=True)]
        self.alone = [a + b for a, b in zip(self.alone, other.alone, strict=True)]
        self.in_order = [a + b for a, b in zip(self.in_order, other.in_order, strict=True)]
        for reason, count in other.pruned.items():
            self.prune(reason, count)
        self.archive.merge(other.archive)
        for name in ("kept", "best", "nearest", "failures"):
            getattr(self, name).merge(getattr(other, name))
        self.present = [a | b for a, b in zip(self.present, other.present, strict=True)]
        if self.feasible:
            self.relaxed.clear()
        else:
            for mask, (nearness, position) in other.relaxed.items():
                self._relax(mask, nearness, position)

    def prune(self, reason: str, count: int) -> None:
        """Account for ``count`` designs discarded by a bound."""
        self.pruned[reason] = self.pruned.get(reason, 0) + count

    @property
    def beaten(self) -> int:
        """How many designs were discarded because the front beats them; feasible ones may be among them."""
        return self.pruned.get(BEATEN, 0)

    # -- checkpoints ------------------------------------------------------------------------------

    def pack(self, extra: Mapping[str, Any]) -> bytes:
        """The tally and ``extra`` (JSON values) as bytes that :meth:`unpack` reads; no code in them."""
        arrays: dict[str, NDArray[Any]] = {
            f"archive.{name}": array for name, array in self.archive.state().items()
        }
        for name in ("kept", "best", "nearest", "failures"):
            record: Records = getattr(self, name)
            arrays |= {f"{name}.{column}": array for column, array in record.arrays().items()}
        arrays |= {f"present.{at}": np.packbits(seen) for at, seen in enumerate(self.present)}
        facts = {
            "options": self.options,
            "outside": self.outside,
            "illegal": self.illegal,
            "pruned": self.pruned,
            "idle": self.idle,
            "weight": self.weight,
            "evaluated": self.evaluated,
            "failed": self.failed,
            "feasible": self.feasible,
            "alone": self.alone,
            "in_order": self.in_order,
            "swept": self.swept,
            "relaxed": [
                [mask, nearness, packed(position)] for mask, (nearness, position) in self.relaxed.items()
            ],
            "extra": extra,
        }
        arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **arrays)
        return buffer.getvalue()

    @classmethod
    def unpack(cls, problem: Problem, data: bytes) -> tuple[Tally, dict[str, Any]]:
        """The tally and extra values that :meth:`pack` wrote."""
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        facts = json.loads(arrays["facts"].tobytes())
        tally = cls(problem, **facts["options"])
        for name in ("outside", "illegal", "pruned", "evaluated", "failed", "feasible", "alone", "in_order"):
            setattr(tally, name, facts[name])
        if facts["swept"] is not None:
            tally.swept = Swept(tuple(facts["swept"][0]), facts["swept"][1])
        tally.idle, tally.weight = tuple(facts["idle"]), facts["weight"]
        tally.relaxed = {mask: (nearness, unpacked(value)) for mask, nearness, value in facts["relaxed"]}
        tally.archive = Archive.from_state(
            {
                name.removeprefix("archive."): array
                for name, array in arrays.items()
                if name.startswith("archive.")
            },
            limit=_most(problem),
        )
        for name in ("kept", "best", "nearest", "failures"):
            record: Records = getattr(tally, name)
            record.restore({column: arrays[f"{name}.{column}"] for column in record.arrays()})
        tally.present = [
            np.unpackbits(arrays[f"present.{at}"], count=len(seen)).astype(np.bool_)
            for at, seen in enumerate(tally.present)
        ]
        return tally, facts["extra"]


def _most(problem: Problem) -> int:
    """The most designs that a front may have, so that a result of them fits into memory."""
    named = len(problem.dimensions) + len(problem.metrics) + len(problem.objectives)
    return min(1_000_000, _MEMORY // (_POINT + _NAMED * named))


def _order(positions: Positions) -> NDArray[np.float64]:
    """Keys by which positions come first that are low; wide ones are told apart by themselves alone."""
    return np.zeros(len(positions)) if positions.dtype.kind == "S" else positions.astype(np.float64)
