"""The certificate of a search that discards whole boxes of designs: what it cut where, and why.

The search tree's order is a list of axes. Each dimension of the team's part of the space is cut into one or more of
them: a *place* on the dimension (a number from 0, in the order of the team's values) is the sum of digit * stride,
most significant axis first. A node at depth d fixes the digits of the first d axes. Expanding it gives one child for
each digit of the next axis, and each child gets a code: it is open, and expanded later, or closed for a reason.

Batch 0 is the root. A frame expands rows ``start`` to ``start + n`` of a batch; its open children, in row-major order,
are the rows of the next batch. Batches are numbered in the order of frames, with or without open children. Every row
is expanded exactly once, so that the closed children are disjoint boxes that cover everything.

``certificate.bin``, little-endian: :data:`MAGIC`; u32 length and text of a JSON header; frames, each u32 batch, u32
start, u32 n and n * size codes of ``width`` bytes; at the end u32 :data:`END`, u64 frames, u64 boxes, and the SHA-256 of
everything before it. A box is a closed child that stands for a design, and costs one or two bytes besides its share of
the frames.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError, StudyError
from dse.problem import Problem, Team

__all__ = [
    "ABSENT",
    "CERTIFICATE",
    "CERTIFICATE_DRAFT",
    "DOMINATED",
    "INFINITE",
    "JUDGED",
    "OPEN",
    "OUTSIDE",
    "RULES",
    "Axis",
    "Recorder",
    "Wanted",
    "check_wanted",
    "reason_of",
]

CERTIFICATE = "certificate.bin"
CERTIFICATE_DRAFT = f".{CERTIFICATE}.tmp"

OPEN, ABSENT, OUTSIDE, JUDGED, DOMINATED, INFINITE, RULES = range(7)
"""The codes: expanded later; stands for no design; excluded by the team; every design was judged; a design of the
front is better than any in it; an objective is at its worst infinity; RULES + i breaks rule i. Behind the rules, the
constraints. When several apply it is the first of: outside, rules, constraints, infinite, dominated."""

LIMIT = 1_000_000
"""Boxes up to which a certificate is written when nothing else is asked for."""

FORMAT = 1
MAGIC = b"dse certificate\n"
LENGTH = struct.Struct("<I")
FRAME = struct.Struct("<III")
END = 0xFFFF_FFFF
TAIL = struct.Struct("<IQQ")
CHECKSUM = 32  # bytes

_BUFFER = 1 << 20  # bytes that wait to be written

Wanted: TypeAlias = Literal["auto", "always", "never"]
"""Whether a certificate is written: up to :data:`LIMIT` boxes, whatever its size, or not at all."""


def check_wanted(wanted: str, *, kept: bool) -> None:
    """Make sure that a certificate can be had as asked for; ``kept`` says whether the study has a folder.

    Raises:
        InputError: it cannot.
    """
    if wanted not in get_args(Wanted):
        raise InputError(f"certificate must be auto, always or never, but got {wanted!r}")
    if wanted == "always" and not kept:
        raise InputError(
            "a certificate is kept in the folder of a search, and this one has none; give a folder"
        )


class AxisLike(Protocol):
    """What a solver calls an axis."""

    @property
    def dimension(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def stride(self) -> int: ...


class Axis(NamedTuple):
    """One digit of a dimension (by its number): ``size`` values, each ``stride`` places from the next."""

    dimension: int
    size: int
    stride: int


def reason_of(problem: Problem, code: int) -> str:
    """Under which name the accounting counts designs that were pruned for the reason ``code``."""
    if code in (DOMINATED, INFINITE):
        return {DOMINATED: "dominated by the front", INFINITE: "objective not finite"}[code]
    return f"constraint {problem.constraints[code - RULES - len(problem.rules)].name}"


def header_of(problem: Problem, team: Team, axes: Iterable[AxisLike], epsilon: float) -> dict[str, Any]:
    """The header of a certificate: everything that its codes refer to."""
    boxes = [[box.allowed, [conjunct.node for conjunct in box.where]] for box in team.boxes]
    last = RULES + len(problem.rules) + len(problem.constraints) - 1
    return {
        "format": FORMAT,
        "problem": problem.digest,
        "team": team.name,
        "boxes": hashlib.sha256(json.dumps(boxes).encode()).hexdigest(),
        "axes": [[axis.dimension, axis.size, axis.stride] for axis in axes],
        "epsilon": float(epsilon),
        "objectives": [[o.name, o.direction] for o in problem.objectives],
        "rules": [rule.name for rule in problem.rules],
        "constraints": [constraint.name for constraint in problem.constraints],
        "width": 1 if last < 256 else 2,
    }


class Recorder:
    """Writes the certificate of one search, as it goes on, to a draft beside its place.

    A search that is not finished leaves the draft; :meth:`mark` says how much of it belongs to a checkpoint, and
    :meth:`restore` goes on from there. What keeps a certificate from being written (too many boxes, no disk space)
    never stops the search: the draft is removed, ``why`` says so, and boxes are only counted from then on.

    Args:
        folder: the study's.
        limit: most boxes that are written; None for any number.
    """

    def __init__(self, folder: Path, problem: Problem, team: Team, limit: int | None = LIMIT) -> None:
        self.path = folder / CERTIFICATE
        self.draft = folder / CERTIFICATE_DRAFT
        self.problem = problem
        self.team = team
        self.limit = limit
        self.boxes = 0
        self.frames = 0
        self.begun = False
        self.why = ""
        self._dtype = np.dtype("u1")
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self._size = 0  # bytes in the file
        self._waiting = bytearray()
        self._facts: dict[str, Any] | None = None

    # -- by the solver ------------------------------------------------------------------------------

    def begin(self, axes: Iterable[AxisLike], epsilon: float = 0.0) -> None:
        """Start a certificate; one that was begun before is forgotten. ``axes`` in the order of the tree."""
        self._close()
        header = header_of(self.problem, self.team, axes, epsilon)
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=True).encode()
        self._dtype = np.dtype(f"<u{header['width']}")
        self.begun, self.boxes, self.frames, self.why, self._facts = True, 0, 0, "", None
        self._hash, self._size = hashlib.sha256(), 0
        self._waiting = bytearray(MAGIC + LENGTH.pack(len(text)) + text)
        try:
            self.path.unlink(missing_ok=True)
            self._file = self.draft.open("wb", buffering=0)
        except OSError as error:
            self._lost(error)

    def frame(self, batch: int, start: int, codes: NDArray[np.unsignedinteger[Any]]) -> None:
        """Record that rows ``start`` to ``start + n`` of ``batch`` were expanded; codes (n, size of their axis)."""
        self.frames += 1
        self.boxes += int(np.count_nonzero(codes > ABSENT))
        if self.why:
            return
        if self.limit is not None and self.boxes > self.limit:
            self.abandon(f"it would have more than {self.limit:,} boxes, and was not asked for at any size")
            return
        self._waiting += FRAME.pack(batch, start, len(codes))
        self._waiting += codes.astype(self._dtype).tobytes()
        if len(self._waiting) >= _BUFFER:
            self._flush()

    # -- by who runs it -----------------------------------------------------------------------------

    def mark(self) -> dict[str, Any]:
        """What a checkpoint must hold, as JSON values; everything up to here is on the disk then."""
        self._flush(sync=True)
        if self.why:
            return {"boxes": self.boxes, "frames": self.frames, "why": self.why}
        if not self.begun:
            return {}
        return {
            "boxes": self.boxes,
            "frames": self.frames,
            "width": self._dtype.itemsize,
            "size": self._size,
            "sha256": self._hash.hexdigest(),
        }

    def restore(self, mark: Mapping[str, Any]) -> None:
        """Go on from what :meth:`mark` gave; what was written after it is cut off.

        Raises:
            StudyError: what was written up to it is gone, or is not what it was.
        """
        self._close()
        self._waiting, self._facts = bytearray(), None
        self.begun = bool(mark)
        self.boxes, self.frames = mark.get("boxes", 0), mark.get("frames", 0)
        self.why = mark.get("why", "")
        if self.why or not self.begun:
            return
        self._dtype = np.dtype(f"<u{mark['width']}")
        self._size = int(mark["size"])
        try:
            if self.path.exists():  # a kill came between its last byte and the last checkpoint
                self.path.replace(self.draft)
            self._file = self.draft.open("r+b", buffering=0)
            self._hash = _hash_of(self._file, self._size)
            if self._hash.hexdigest() != mark["sha256"]:
                raise StudyError(f"{self.draft.name} is not what the search had written")
            self._file.truncate(self._size)
            self._file.seek(self._size)
        except OSError as error:
            raise StudyError(
                f"{self.draft.name} cannot be gone on with: {error.strerror or error}"
            ) from error

    def abandon(self, why: str) -> None:
        """Give the certificate up: remove what was written, and only count from here on."""
        self._close()
        self._waiting, self._facts = bytearray(), None
        self.why = self.why or why
        for path in (self.draft, self.path):
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def finish(self) -> dict[str, Any] | None:
        """End the certificate and put it in its place.

        Returns:
            What the result says of it: ``file``, ``boxes`` and ``sha256`` of the file, or ``file`` None and ``why``.
            None when the solver makes none and none had to be made.
        """
        if not self.begun and self.limit is not None:
            return None
        if self._facts is None:
            self._facts = self._finish()
        return self._facts

    def _finish(self) -> dict[str, Any]:
        if not self.begun:
            self.why = self.why or "the solver discards no boxes"
        self._waiting += TAIL.pack(END, self.frames, self.boxes)
        self._flush()
        if not self.why and self._file is not None:
            self._waiting += self._hash.digest()
            self._flush(sync=True)
        if not self.why and self._file is not None:
            self._close()
            try:
                self.draft.replace(self.path)
            except OSError as error:
                self._lost(error)
        if self.why:
            return {"file": None, "boxes": self.boxes, "why": self.why}
        return {"file": CERTIFICATE, "boxes": self.boxes, "sha256": self._hash.hexdigest()}

    def standing(self, *, complete: bool) -> dict[str, Any]:
        """What a checkpoint keeps, of a complete search or another: ``facts`` for the result, and a ``mark``."""
        if complete:
            return {"facts": self.finish()}
        mark = self.mark()
        why = self.why or "the search is not finished"
        facts = {"file": None, "boxes": self.boxes, "why": why} if self.begun else None
        return {"facts": facts, "mark": mark}

    # -- the draft ----------------------------------------------------------------------------------

    def _flush(self, *, sync: bool = False) -> None:
        if self._file is None:
            return
        rest = memoryview(bytes(self._waiting))
        self._hash.update(rest)
        self._size += len(rest)
        self._waiting = bytearray()
        try:
            while rest:
                rest = rest[self._file.write(rest) :]
            if sync:
                os.fsync(self._file.fileno())
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> None:
        self.abandon(f"{self.path.name} cannot be written: {error.strerror or error}")

    def _close(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None

    def __del__(self) -> None:
        self._close()


def _hash_of(file: BinaryIO, size: int) -> hashlib._Hash:
    """The hash of the first ``size`` bytes; of fewer if there are no more."""
    found = hashlib.sha256()
    while size > 0 and (part := file.read(min(size, _BUFFER))):
        found.update(part)
        size -= len(part)
    return found
