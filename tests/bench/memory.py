"""Peak memory of every case in a process of its own, and that it does not grow with the size of the space.

python -m tests.bench.memory --data ../shared
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.bench.cases import Case, run
from tests.bench.generator import Shape
from tests.bench.measuring import Line, Missing, Options, main
from tests.bench.peers import Found, tried

BAR = 500.0
GROWTH = ("training_1e8", "training_1e9", "training_1e10", "training_1e11", "training_1e12")
GROWN = 1.25  # more than that is growth, and no accident
EPSILON = 0.01
EVALUATIONS = 10_000


def cases(options: Options) -> dict[str, Case]:
    """The cases by what they are called in the figures of the other benchmarks."""
    found: dict[str, Case] = {}
    names = ("training_1e5", "training_1e7") if options.quick else (*GROWTH, "training_1e13", "camera_1e9")
    for name in names:
        if source := options.reference(name):
            found[name] = Case(source)
    if source := options.reference("training_1e7"):
        found["numpy training_1e7"] = Case(source, "exhaustive", options={"jit": "off"}, workers=1)
    if options.quick:
        return found
    if source := options.reference("training_1e9"):
        found["jit training_1e9"] = Case(source, "exhaustive", options={"jit": "on"})
    if source := options.reference("training_6e14"):
        found["training_6e14 1"] = Case(source, objectives=("tps",))
        found["training_6e14 2"] = Case(source, objectives=("tps", "memg"))
        found["training_6e14 epsilon"] = Case(source, options={"epsilon": EPSILON}, ties=False)
    return found


def seen(options: Options) -> dict[str, float]:
    """Peaks that other benchmarks of this run noted."""
    found: dict[str, float] = {}
    for path in sorted(options.seen.glob("*.json")) if options.seen else ():
        details: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")).get("details", {})
        for name, figures in details.items():
            if isinstance(figures, dict) and "peak" in figures:
                found[name] = figures["peak"]
    return found


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    known = seen(options)
    peaks: dict[str, float] = {}
    missing = []
    for name, case in cases(options).items():
        try:
            peaks[name] = known[name] if name in known else run(case).peak
        except Missing as reason:
            missing.append(f"{name}: {reason}")
    options.details["peaks"] = peaks
    source = options.reference("training_1e9") or Shape(size=1e6).source
    peer = tried("pymoo", source, EVALUATIONS)
    if not peaks:
        peaks["generated 1e6"] = run(Case(Shape(size=1e6).source)).peak
    most = max(peaks, key=lambda name: peaks[name])
    yield Line(
        f"memory: peak of the largest of {len(peaks)} cases, {most}",
        peaks[most],
        "MB",
        BAR,
        peer=f"pymoo NSGA-II, {EVALUATIONS:,} evaluations: {peer.peak:.0f} MB"
        if isinstance(peer, Found)
        else f"pymoo: {peer}",
        ratio=peer.peak / peaks[most] if isinstance(peer, Found) else None,
        note="MB: " + ", ".join([*(f"{name} {peak:.0f}" for name, peak in peaks.items()), *missing]),
    )
    ends = [peaks[name] for name in GROWTH if name in peaks]
    if len(ends) == len(GROWTH):
        yield Line(
            "memory: 10^12 designs to 10^8",
            ends[-1] / ends[0],
            "x",
            GROWN,
            note="10^8 to 10^12: " + ", ".join(f"{peak:.0f} MB" for peak in ends),
        )


if __name__ == "__main__":
    main(__doc__, lines)
