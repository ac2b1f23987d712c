"""The Pareto front of a stream of designs: exact, and the same whatever the order of the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dse.errors import DseError
from dse.evaluation.positions import Positions
from dse.study.dominance import checked, covered, front_of_sorted, groups, nondominated, thin
from dse.study.vectorset import VectorSet

__all__ = ["Archive", "FrontTooLarge", "nondominated"]

_PENDING = 8192  # rows kept unsorted before the front is brought up to date
_SLACK = 2  # how many times its limit an archive may hold on the way


class FrontTooLarge(DseError):
    """The front has more distinct vectors than the limit, or had more than twice as many on the way."""


class Archive:
    """The distinct non-dominated vectors seen so far; of each, its lowest position and its number of designs.

    All objectives are minimized. Adding the same designs in any order, in any blocks, through any merges gives
    the same arrays. Each design is to be added once: a position added twice is counted as two ties. Memory
    grows with the front, not with the stream.

    Whether a front is too large is decided by what it is in the end, which :meth:`check` does, and not by what it is on
    the way, which depends on the order of the stream. Only beyond twice its limit does an archive refuse at once.

    Args:
        k: number of objectives, at least 1.
        limit: most distinct vectors of a front; with ``keep_ties`` also the most positions.
        keep_ties: whether the positions of all designs on the front are kept.
    """

    __slots__ = (
        "_columns",
        "_held",
        "_pending",
        "_positions",
        "_set",
        "_tied",
        "_ties",
        "k",
        "keep_ties",
        "limit",
    )

    def __init__(self, k: int, *, limit: int = 1_000_000, keep_ties: bool = False) -> None:
        if k < 1 or limit < 1:
            raise ValueError(f"k and limit must be at least 1, but got k={k}, limit={limit}")
        self.k = k
        self.limit = limit
        self.keep_ties = keep_ties
        self._columns = np.empty((k, 0))  # distinct, lexicographically sorted
        self._positions: Positions = np.empty(0, dtype=np.int64)
        self._ties = np.empty(0, dtype=np.int64)
        self._tied: Positions = np.empty(0, dtype=np.int64)  # with keep_ties: positions, vector after vector
        self._pending: list[tuple[NDArray[np.float64], Positions, NDArray[np.int64]]] = []
        self._held = 0  # rows in _pending
        self._set: VectorSet | None = None  # of the settled vectors

    def __len__(self) -> int:
        """The number of distinct vectors on the front."""
        self._settle()
        return self._positions.size

    def __repr__(self) -> str:
        return f"Archive(k={self.k}, vectors={self._positions.size}, pending={self._held})"

    def add(self, values: ArrayLike, positions: ArrayLike) -> None:
        """Take designs in.

        Args:
            values: objective vectors, shape (n, k), without NaN.
            positions: the index of each design, shape (n,): int64, or byte strings that sort alike.

        Raises:
            ValueError: wrong shapes, or a NaN.
            FrontTooLarge: more than twice as many distinct vectors as the limit are non-dominated so far.
        """
        rows = checked(values, self.k)
        places = _numbers(positions)
        if places.shape != (rows.shape[0],):
            raise ValueError(f"positions must have shape ({rows.shape[0]},), but got {places.shape}")
        self._absorb(np.ascontiguousarray(rows.T), places, np.ones(places.size, np.int64))

    def merge(self, other: Archive) -> None:
        """Take in everything that ``other`` holds, as if its designs had been added here.

        Raises:
            ValueError: the archives differ in ``k`` or ``keep_ties``.
            FrontTooLarge: more than twice as many distinct vectors as the limit are non-dominated so far.
        """
        if (other.k, other.keep_ties) != (self.k, self.keep_ties):
            raise ValueError(
                "archives must agree to be merged, but got "
                f"k={self.k}, keep_ties={self.keep_ties} and k={other.k}, keep_ties={other.keep_ties}"
            )
        other._settle()
        self._absorb(*other._rows())

    def check(self) -> None:
        """Make sure that the front, as it is now, is not too large.

        Raises:
            FrontTooLarge: it has more distinct vectors, or with ``keep_ties`` more designs, than the limit.
        """
        self._settle()
        self._refuse(self._positions.size, int(self._ties.sum()), 1)

    def _refuse(self, vectors: int, designs: int, slack: int) -> None:
        found = "found so far" if slack > 1 else "found"
        if vectors > slack * self.limit:
            raise FrontTooLarge(
                f"the front must have at most {self.limit:,} distinct vectors, but {vectors:,} are {found}; "
                "ask for an epsilon-front (--epsilon 0.01), for one objective and its best designs (--top), "
                "or use fewer or coarser objectives"
            )
        if self.keep_ties and designs > slack * self.limit:
            raise FrontTooLarge(
                f"at most {self.limit:,} tied designs can be listed, but {designs:,} are {found}; "
                "keep one design per vector, or use finer objectives"
            )

    def dominates(self, values: ArrayLike, *, or_equal: bool = False) -> NDArray[np.bool_]:
        """Which vectors, shape (n, k), a vector held here dominates; ``or_equal`` counts equality too.

        Raises:
            ValueError: wrong shape, or a NaN.
        """
        self._settle()
        columns = np.ascontiguousarray(checked(values, self.k).T)
        return covered(self._columns, columns) if or_equal else self._beats(columns)

    def to_arrays(self) -> tuple[NDArray[np.float64], Positions, NDArray[np.int64]]:
        """The front, sorted lexicographically by vector.

        Returns:
            The vectors, shape (f, k); the lowest position of each, shape (f,); how many designs attain
            each, shape (f,).
        """
        self._settle()
        return np.ascontiguousarray(self._columns.T), self._positions.copy(), self._ties.copy()

    def tied_positions(self) -> list[Positions]:
        """For each vector in the order of :meth:`to_arrays`, the ascending positions of all its designs.

        Raises:
            ValueError: the archive was made without ``keep_ties``.
        """
        if not self.keep_ties:
            raise ValueError("tied positions must be kept from the start: use Archive(k, keep_ties=True)")
        self._settle()
        return [part.copy() for part in np.split(self._tied, np.cumsum(self._ties)[:-1]) if part.size]

    def state(self) -> dict[str, NDArray[Any]]:
        """Arrays from which :meth:`from_state` makes an equal archive, for a checkpoint."""
        values, positions, ties = self.to_arrays()
        state: dict[str, NDArray[Any]] = {
            "values": values,
            "positions": positions,
            "ties": ties,
        }
        if self.keep_ties:
            state["tied"] = self._tied.copy()
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, ArrayLike], *, limit: int = 1_000_000) -> Archive:
        """The archive that :meth:`state` described.

        Raises:
            ValueError: an array is missing or the shapes do not fit together.
        """
        missing = {"values", "positions", "ties"} - set(state)
        if missing:
            raise ValueError(f"an archive's state must have {', '.join(sorted(missing))}")
        values = checked(state["values"])
        positions = _numbers(state["positions"])
        ties = np.asarray(state["ties"], dtype=np.int64)
        archive = cls(values.shape[1], limit=limit, keep_ties="tied" in state)
        tied = _numbers(state.get("tied", []))
        fits = positions.shape == ties.shape == values.shape[:1] and (ties > 0).all()
        if not fits or (archive.keep_ties and tied.shape != (ties.sum(),)):
            raise ValueError(
                "an archive's arrays must have equal length, but got "
                f"values {values.shape}, positions {positions.shape}, ties {ties.shape}, tied {tied.shape}"
            )
        columns = np.ascontiguousarray(values.T)
        if archive.keep_ties:
            archive._absorb(np.repeat(columns, ties, axis=1), tied, np.ones(tied.size, np.int64))
        else:
            archive._absorb(columns, positions, ties)
        archive._settle()
        return archive

    def _rows(self) -> tuple[NDArray[np.float64], Positions, NDArray[np.int64]]:
        """What is held, as rows to absorb: one a vector, or one a design when ties are kept."""
        if self.keep_ties:
            every = np.repeat(self._columns, self._ties, axis=1)
            return every, self._tied, np.ones(self._tied.size, np.int64)
        return self._columns, self._positions, self._ties

    def _absorb(self, columns: NDArray[np.float64], positions: Positions, counts: NDArray[np.int64]) -> None:
        keep = ~self._beats(columns)
        if keep.any():
            self._pending.append((columns[:, keep], positions[keep], counts[keep]))
            self._held += int(np.count_nonzero(keep))
        if self._held >= max(_PENDING, self._positions.size):
            self._settle()

    def _beats(self, columns: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which rows a settled vector strictly dominates."""
        beaten = covered(self._columns, columns)
        doubtful = np.flatnonzero(beaten)
        if doubtful.size:
            # A row equal to a vector of the front is dominated by none of it.
            if self._set is None:
                self._set = VectorSet(self._columns)
            beaten[doubtful[self._set.contains(columns[:, doubtful])]] = False
        return beaten

    def _settle(self) -> None:
        """Bring the front up to date with the pending rows."""
        if not self._pending:
            return
        parts = [self._rows(), *self._pending]
        columns = np.concatenate([part[0] for part in parts], axis=1)
        rows = thin(columns)
        columns = columns[:, rows]
        positions = np.concatenate([part[1] for part in parts])[rows]
        counts = np.concatenate([part[2] for part in parts])[rows]
        order, starts = groups(columns, positions)
        ties = np.add.reduceat(counts[order], starts)
        front = front_of_sorted(columns[:, order[starts]])
        self._refuse(front.size, int(ties[front].sum()), _SLACK)
        leaders = order[starts[front]]
        if self.keep_ties:
            kept = np.zeros(starts.size, dtype=np.bool_)
            kept[front] = True
            self._tied = positions[order][np.repeat(kept, ties)]
        self._columns = columns[:, leaders]
        self._set = None
        self._positions = positions[leaders]
        self._ties = ties[front]
        self._pending, self._held = [], 0


def _numbers(positions: ArrayLike) -> Positions:
    """Positions as an array that sorts.

    Raises:
        ValueError: they are neither whole numbers of 64 bits nor byte strings.
    """
    places: Positions = np.asarray(positions)
    if places.dtype.kind == "S":
        return places
    if places.size and not np.can_cast(places.dtype, np.int64):
        raise ValueError(f"positions must be int64 or byte strings, but got {places.dtype}")
    return places.astype(np.int64)
