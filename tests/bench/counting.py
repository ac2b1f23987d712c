"""Valid configurations of real tuning spaces, counted, against python-constraint2's construction of them.

python -m tests.bench.counting --data ../shared

Ours counts from the JSON on: reading it as a space is part of the time. With llvmlite, and with llvmlite hidden.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.cases import child, peak
from tests.bench.measuring import Line, Missing, Options, main, number
from tests.bench.sources import neutral, problem_of

LIMIT = 20.0  # seconds for the peer; a space that takes it longer is faster here by more than it says
LEAST = 0.05  # seconds that the peer must need for a comparison
HOTSPOT = {True: 20.0, False: 10.0}  # times faster, with llvmlite and without


@dataclass(frozen=True, slots=True)
class Counted:
    """One space: what ours took (best of the runs) and what the peer did; its count is None when it was stopped."""

    name: str
    valid: int
    count: int
    loading: float
    seconds: float
    peer: float | None
    peer_count: int | None

    @property
    def whole(self) -> float:
        """Reading and counting."""
        return self.loading + self.seconds

    @property
    def ratio(self) -> float | None:
        """How many times faster than the peer."""
        return None if self.peer is None else self.peer / self.whole

    @property
    def slower(self) -> bool:
        """Whether it is slower where that counts: the peer is right and needs over 50 ms."""
        right = self.peer_count in (None, self.valid)
        return self.peer is not None and right and self.peer > LEAST and self.peer < self.whole


def counted(path: Path, jit: bool, runs: int, peers: dict[str, dict[str, Any]]) -> Counted:
    """Counts one space in a process of its own; and lets the peer do so, once for both."""
    own = child("counting", {"source": str(path), "jit": jit, "runs": runs})
    if path.stem not in peers:
        try:
            peers[path.stem] = child("peers", {"peer": "constraint", "source": str(path)}, LIMIT)
        except Missing as missing:
            peers[path.stem] = {"seconds": LIMIT if "not done" in str(missing) else None, "count": None}
            peers[path.stem]["missing"] = str(missing)
    peer = peers[path.stem]
    valid = neutral(str(path))["valid"]
    return Counted(
        path.stem, valid, own["count"], own["loading"], own["seconds"], peer["seconds"], peer["count"]
    )


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    paths = options.benchspaces()
    if options.quick:
        paths = [path for path in paths if path.stem in ("bat_nbody", "hotspot", "trap_neg_product")]
    peers: dict[str, dict[str, Any]] = {}
    for jit in (True, False) if paths else ():
        with_or = "with" if jit else "without"
        found = [counted(path, jit, options.times(3), peers) for path in paths]
        options.details[f"{with_or} llvmlite"] = [
            [c.name, c.count, c.loading, c.seconds, c.peer, c.peer_count] for c in found
        ]
        missing = {text for peer in peers.values() if "installed" in (text := peer.get("missing", ""))}
        wrong = [f"{c.name}: {c.count:,} instead of {c.valid:,}" for c in found if c.count != c.valid]
        yield Line(
            f"valid counts of {len(found)} spaces, {with_or} llvmlite: wrong ones",
            len(wrong),
            "",
            0,
            wrong="; ".join(wrong),
        )
        slower = [c for c in found if c.slower]
        compared = [c.ratio for c in found if c.ratio is not None and c.peer and c.peer > LEAST]
        if missing or not compared:
            yield Line("slower than python-constraint2", None, "", 0, note="; ".join(missing))
            continue
        yield Line(
            f"spaces counted slower than python-constraint2, {with_or} llvmlite",
            len(slower),
            "",
            0,
            peer=f"python-constraint2: {len(compared)} spaces where it needs over {LEAST * 1e3:.0f} ms",
            ratio=statistics.median(compared),
            note=_details(found),
        )
        yield from (
            Line(
                f"hotspot, {with_or} llvmlite: times faster than python-constraint2",
                c.ratio,
                "x",
                HOTSPOT[jit],
                more=True,
                ratio=c.ratio,
                peer=f"python-constraint2: {c.peer:.2f} s",
                note=f"reading {c.loading * 1e3:.0f} ms, counting {c.seconds * 1e3:.0f} ms",
            )
            for c in found
            if c.name == "hotspot"
        )


def _details(found: list[Counted]) -> str:
    """Every space: milliseconds of ours and the peer's, and the ratio."""
    texts = []
    for c in found:
        other = "-" if c.peer is None else f"{number(c.peer * 1e3)}{'+' if c.peer_count is None else ''}"
        other += " wrong" if c.peer_count not in (None, c.valid) else ""
        texts.append(f"{c.name} {number(c.whole * 1e3)}/{other}")
    return "ms, ours/peer: " + ", ".join(texts)


def count_here(source: str, jit: bool, runs: int) -> dict[str, Any]:
    """The count of one space in this process, best of several runs, after one of a small space."""
    if not jit:
        sys.modules["llvmlite"] = None  # type: ignore[assignment]
    from dse.evaluation.counting import LegalSpace

    assert LegalSpace(problem_of("camera")).count  # imports are done before the clock starts
    loading, counting, count = [], [], -1
    for _ in range(runs):
        began = time.perf_counter()
        problem = problem_of(source)
        loaded = time.perf_counter()
        count = LegalSpace(problem).count
        loading.append(loaded - began)
        counting.append(time.perf_counter() - loaded)
    return {"count": count, "loading": min(loading), "seconds": min(counting), "peak": peak()}


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        print(json.dumps(count_here(**json.loads(sys.argv[1]))))
    else:
        main(__doc__, lines)
