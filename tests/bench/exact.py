"""The exact front of three objectives by branch and bound, ties included, on problems of 10^8 to 10^13 designs.

python -m tests.bench.exact --data ../shared
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tests.bench.cases import Case, Outcome, per_tenfold, run
from tests.bench.measuring import Line, Missing, Options, main, timed
from tests.bench.peers import Found, shown, tried
from tests.bench.truth import compared

# problem -> bar in seconds, runs
BARS: dict[str, tuple[float | None, int]] = {
    "training_1e8": (None, 3),
    "training_1e9": (1.2, 3),
    "training_1e10": (None, 3),
    "training_1e11": (2.5, 3),
    "training_1e12": (4.0, 3),
    "training_1e13": (10.0, 3),
    "camera_1e9": (2.0, 3),
}
EVALUATIONS = 10_000


def searched(name: str, source: str, options: Options) -> tuple[Line, Outcome | None]:
    """One problem, and pymoo on it."""
    bar, runs = BARS.get(name, (None, 1))
    case = Case(source, runs=options.times(runs))
    try:
        found = run(case)
    except Missing as missing:
        return Line(f"exact front, {name}", None, bar=bar, note=str(missing)), None
    options.details[name] = {
        "seconds": found.seconds, "cpu": found.cpu, "boxes": found.boxes, "peak": found.peak, "total": found.total
    }  # fmt: skip
    peer = tried("pymoo", source, EVALUATIONS)
    line = timed(
        f"exact front, {name}: {found.front:,} vectors, {found.tied:,} designs",
        found.seconds,
        bar,
        peer=shown(peer, "pymoo NSGA-II", found.vectors),
        ratio=found.total / min(found.seconds) / peer.rate if isinstance(peer, Found) else None,
        wrong=compared(name, found),
        note=f"{found.boxes:,} boxes for {found.total:.2e} designs, CPU {min(found.cpu):.2f} s, peak {found.peak:.0f} MB; "
        "ratio of designs accounted for per second",
    )
    return line, found


def growth(outcomes: dict[str, Outcome]) -> Iterator[Line]:
    """By how much the number of boxes grows with ten times the designs."""
    for first, last, bar in (("training_1e8", "training_1e12", 3.0), ("training_1e12", "training_1e13", 6.0)):
        if first not in outcomes or last not in outcomes:
            continue
        between = [o for name, o in outcomes.items() if name.startswith("training")]
        steps = [
            per_tenfold(a, b)
            for a, b in pairwise(between)
            if outcomes[first].total <= a.total and b.total <= outcomes[last].total
        ]
        yield Line(
            f"boxes, {first} to {last}: growth per tenfold",
            per_tenfold(outcomes[first], outcomes[last]),
            "x",
            bar,
            note=f"largest between neighbours {max(steps):.2f}x",
        )


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    outcomes: dict[str, Outcome] = {}
    for name in ("camera_480", "training_1e5", "training_1e7") if options.quick else BARS:
        source = options.reference(name)
        if source is None:
            continue
        line, outcome = searched(name, source, options)
        yield line
        if outcome is not None:
            outcomes[name] = outcome
    yield from growth(outcomes)


if __name__ == "__main__":
    main(__doc__, lines)
