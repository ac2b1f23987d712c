"""Reading a certificate: its checksum and header, and every box of its tree once, in the order of the file.

Nothing in the file is taken on trust. The axes must cut each dimension into digits that name every place once; every
row of every batch must be expanded once. Then the children of a node are disjoint and make it up, whatever the codes
say, and so are and do all closed boxes together. The designs of each code are counted on the way, as exact integers.

Memory: the digits of the rows that still wait to be expanded (a byte a digit, where axes are short), and one frame.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dse.errors import VerificationFailed
from dse.study.certificate import (
    ABSENT,
    CHECKSUM,
    END,
    FORMAT,
    FRAME,
    LENGTH,
    MAGIC,
    OPEN,
    RULES,
    TAIL,
    Axis,
)

__all__ = ["Certificate", "Closed", "Replay", "Tree"]

_LEAST = len(MAGIC) + LENGTH.size + TAIL.size + CHECKSUM
_HASHED = 1 << 24  # bytes hashed at once
_EXACT = 2**62  # counts up to here are kept in 64 bits


@dataclass(frozen=True)
class Certificate:
    """A certificate file whose checksum holds. ``frames`` are the bytes of its frames; ``sha256`` is the whole file's."""

    path: Path
    header: dict[str, Any]
    axes: tuple[Axis, ...]
    frames: NDArray[np.uint8] = field(repr=False)
    n_frames: int
    n_boxes: int
    sha256: str

    @classmethod
    def read(cls, path: Path) -> Certificate:
        """Read a certificate.

        Raises:
            VerificationFailed: there is none, it cannot be read, its checksum is wrong, or its header or end is damaged.
        """
        try:
            size = path.stat().st_size
            data = np.memmap(path, dtype=np.uint8, mode="r") if size else np.empty(0, dtype=np.uint8)
        except FileNotFoundError:
            raise VerificationFailed(f"{path.name} is missing") from None
        except OSError as error:
            raise VerificationFailed(f"{path.name} cannot be read: {error.strerror or error}") from error
        if len(data) < _LEAST or data[: len(MAGIC)].tobytes() != MAGIC:
            raise VerificationFailed(f"{path.name} is no certificate")
        hasher = hashlib.sha256()
        body = data[:-CHECKSUM]
        for first in range(0, len(body), _HASHED):
            hasher.update(body[first : first + _HASHED].data)
        checksum = data[-CHECKSUM:].tobytes()
        if hasher.digest() != checksum:
            raise VerificationFailed(f"{path.name} is damaged: its checksum does not hold")
        hasher.update(checksum)
        (length,) = LENGTH.unpack(data[len(MAGIC) :][: LENGTH.size].tobytes())
        first = len(MAGIC) + LENGTH.size
        end, frames, boxes = TAIL.unpack(body[-TAIL.size :].tobytes())
        if end != END or first + length > len(body) - TAIL.size:
            raise VerificationFailed(f"{path.name} is damaged: it does not end as a certificate does")
        header = _header(path.name, body[first : first + length].tobytes())
        axes = tuple(Axis(*axis) for axis in header["axes"])
        return cls(path, header, axes, body[first + length : -TAIL.size], frames, boxes, hasher.hexdigest())


def _header(name: str, text: bytes) -> dict[str, Any]:
    """The header, whose form is checked and not its content."""
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        raise VerificationFailed(f"{name} is damaged: its header is no JSON") from None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise VerificationFailed(f"{name} is no certificate of format {FORMAT}")
    axes = header.get("axes")
    good = isinstance(axes, list) and all(
        isinstance(axis, list) and len(axis) == 3 and all(type(n) is int and n >= 0 for n in axis)
        for axis in axes
    )
    good = good and header.get("width") in (1, 2) and isinstance(header.get("epsilon"), float)
    if not good:
        raise VerificationFailed(f"{name} is damaged: its header has no axes, width or epsilon")
    return header


class Tree:
    """The axes of a certificate over dimensions of ``sizes`` places.

    ``spans[d]`` are, per dimension, the places under one node of depth d.

    Raises:
        VerificationFailed: the axes do not name every place once.
    """

    def __init__(self, axes: Sequence[Axis], sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.axes = tuple(axes) or (Axis(0, 1, self.sizes[0]),)
        axes = self.axes
        if not all(0 <= axis.dimension < len(sizes) for axis in axes):
            raise VerificationFailed("an axis of the certificate is of a dimension that there is not")
        spans = []
        for at, size in enumerate(sizes):
            own = [axis for axis in axes if axis.dimension == at]
            chained = all(upper.stride == lower.size * lower.stride for upper, lower in pairwise(own))
            covered = own[0].size * own[0].stride if own else size
            if not chained or covered < size or (own and own[-1].stride < 1):
                raise VerificationFailed(
                    f"the axes of the certificate do not name every place of dimension {at + 1} once"
                )
            spans.append(covered)
        self.spans = [tuple(spans)]
        for axis in axes:
            spans[axis.dimension] = axis.stride
            self.spans.append(tuple(spans))
        self._padded = [at for at, size in enumerate(sizes) if self.spans[0][at] > size]
        largest = max((axis.size for axis in axes), default=1)
        self.dtype = np.min_scalar_type(largest)

    def places(self, digits: NDArray[Any], dimension: int) -> NDArray[np.int64]:
        """The lowest place (n,) on a dimension under nodes with these digits (n, depth)."""
        low = np.zeros(len(digits), dtype=np.int64)
        for at, axis in enumerate(self.axes[: digits.shape[1]]):
            if axis.dimension == dimension:
                low += digits[:, at].astype(np.int64) * axis.stride
        return low

    def counts(self, digits: NDArray[Any]) -> tuple[int, NDArray[Any]]:
        """How many designs the children of nodes with these digits (n, depth) stand for.

        Returns:
            A factor that all share, and the others (n, size), or (1, 1) when all are alike.
        """
        axis, spans = self.axes[digits.shape[1]], self.spans[digits.shape[1] + 1]
        padded = [at for at in self._padded if spans[at] > 1 or at == axis.dimension]
        shared = math.prod(
            min(span, size)
            for at, (span, size) in enumerate(zip(spans, self.sizes, strict=True))
            if at not in padded
        )
        if not padded:
            return shared, np.ones((1, 1), dtype=np.int64)
        bound = math.prod(min(spans[at], self.sizes[at]) for at in padded)
        counts: NDArray[Any] = np.ones((1, 1), dtype=np.int64 if bound < _EXACT else object)
        for at in padded:
            low = self.places(digits, at)[:, None]
            if at == axis.dimension:
                low = low + np.arange(axis.size) * axis.stride
            counts = counts * np.clip(self.sizes[at] - low, 0, spans[at])
        return shared, counts


class Closed(NamedTuple):
    """The boxes of one frame: ``codes`` (m,), ``digits`` (m, depth), and the number of the first of them."""

    first: int
    codes: NDArray[np.uint16]
    digits: NDArray[Any]

    @property
    def depth(self) -> int:
        """How many axes are fixed."""
        return int(self.digits.shape[1])


@dataclass
class _Batch:
    digits: NDArray[Any]
    waits: NDArray[np.bool_]
    left: int


class Replay:
    """Goes through a certificate. ``designs`` counts, per code, the designs of its boxes so far.

    Args:
        sizes: places per dimension.
        codes: how many codes have a meaning.
    """

    def __init__(self, certificate: Certificate, sizes: Sequence[int], codes: int = RULES) -> None:
        self.certificate = certificate
        self.tree = Tree(certificate.axes, sizes)
        self.codes = codes
        self.designs: dict[int, int] = {}
        self.boxes = 0
        self._batches: dict[int, _Batch] = {}

    def __iter__(self) -> Iterator[Closed]:
        """The boxes, frame by frame.

        Raises:
            VerificationFailed: the frames do not cover every design once, or end too early; says where.
        """
        name = self.certificate.path.name
        data = self.certificate.frames
        width = np.dtype(f"<u{self.certificate.header['width']}")
        at = number = 0
        root = np.empty((1, 0), dtype=self.tree.dtype)
        self._batches = {0: _Batch(root, np.ones(1, dtype=np.bool_), 1)}
        while at < len(data):
            if at + FRAME.size > len(data):
                raise VerificationFailed(f"{name}: frame {number} is cut off")
            batch, start, n = FRAME.unpack(data[at : at + FRAME.size].tobytes())
            at += FRAME.size
            rows = self._take(number, batch, start, n)
            depth = rows.shape[1]
            if depth == len(self.tree.axes):
                raise VerificationFailed(f"{name}: frame {number} goes on where all axes are fixed")
            size = self.tree.axes[depth].size
            stop = at + n * size * width.itemsize
            if stop > len(data):
                raise VerificationFailed(f"{name}: frame {number} is cut off")
            codes = np.frombuffer(data[at:stop].tobytes(), dtype=width).reshape(n, size)
            at, number = stop, number + 1
            yield self._expand(number, rows, codes)
        if self._batches:
            lost = sum(batch.left for batch in self._batches.values())
            raise VerificationFailed(f"{name}: {lost:,} open boxes were never expanded")
        if (number, self.boxes) != (self.certificate.n_frames, self.certificate.n_boxes):
            raise VerificationFailed(
                f"{name} has {number:,} frames and {self.boxes:,} boxes, but says that it has "
                f"{self.certificate.n_frames:,} and {self.certificate.n_boxes:,}"
            )

    def _take(self, number: int, batch: int, start: int, n: int) -> NDArray[Any]:
        """The digits of the rows that a frame expands, which wait no longer."""
        found = self._batches.get(batch)
        if found is None or not n or start + n > len(found.waits) or not found.waits[start : start + n].all():
            raise VerificationFailed(
                f"{self.certificate.path.name}: frame {number} expands rows {start:,} to {start + n:,} of batch "
                f"{batch:,}, which are not all there to be expanded"
            )
        found.waits[start : start + n] = False
        found.left -= n
        if not found.left:
            del self._batches[batch]
        return found.digits[start : start + n]

    def _expand(self, number: int, rows: NDArray[Any], codes: NDArray[Any]) -> Closed:
        """Count the children of a frame, put the open ones in their batch and return the closed ones."""
        name = self.certificate.path.name
        if codes.max() >= self.codes:
            raise VerificationFailed(
                f"{name}: frame {number - 1} has a code that means nothing: {codes.max()}"
            )
        shared, counts = self.tree.counts(rows)
        counts = np.broadcast_to(counts, codes.shape)
        if ((counts == 0) != (codes == ABSENT)).any():
            raise VerificationFailed(
                f"{name}: frame {number - 1} calls a box absent that stands for designs, or has one that stands for none"
            )
        if counts.dtype != object and int(counts.max()) * counts.size >= _EXACT:
            counts = counts.astype(object)
        for code in np.flatnonzero(np.bincount(codes.reshape(-1))).tolist():
            if code > ABSENT:
                own = shared * int(counts[codes == code].sum())
                self.designs[code] = self.designs.get(code, 0) + own
        children, digits = np.nonzero(codes == OPEN)
        if len(children):
            self._batches[number] = _Batch(
                _extended(rows, children, digits), np.ones(len(children), dtype=np.bool_), len(children)
            )
        children, digits = np.nonzero(codes > ABSENT)
        closed = Closed(self.boxes, codes[children, digits], _extended(rows, children, digits))
        self.boxes += len(children)
        return closed


def _extended(rows: NDArray[Any], children: NDArray[np.intp], digits: NDArray[np.intp]) -> NDArray[Any]:
    """The digits of some children: their parent's and their own."""
    found = np.empty((len(children), rows.shape[1] + 1), dtype=rows.dtype)
    found[:, :-1] = rows[children]
    found[:, -1] = digits
    return found
