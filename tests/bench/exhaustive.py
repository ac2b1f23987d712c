"""Exhaustive search: compiled loops over 2 x 10^9 designs, NumPy over 10^7, and Optuna one trial at a time.

python -m tests.bench.exhaustive --data ../shared
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from tests.bench.cases import Case, Outcome, run
from tests.bench.generator import Shape
from tests.bench.measuring import Line, Missing, Options, main, timed
from tests.bench.peers import Found, shown, tried
from tests.bench.truth import compared

COMPILED = ("training_1e9", 1.5)
NUMPY = ("training_1e7", 1.5e7)
TRIALS = 300


def compiled(source: str, name: str, options: Options, bar: float | None) -> Iterator[Line]:
    """Compiled loops: whole time in fresh processes, then without compilation."""
    case = Case(source, "exhaustive", options={"jit": "on"}, runs=2)
    outcomes: list[Outcome] = []
    for _ in range(options.times(3)):
        try:
            outcomes.append(run(case))
        except Missing as missing:
            yield Line(f"exhaustive [jit], {name}", None, bar=bar, note=str(missing))
            return
    options.details[f"jit {name}"] = {
        "seconds": [o.seconds for o in outcomes],
        "compiling": [o.compiling for o in outcomes],
        "peak": max(o.peak for o in outcomes),
    }
    first = [o.seconds[0] for o in outcomes]
    found = outcomes[0]
    grid = tried("grid", source, TRIALS)
    pace = found.total / statistics.median(first)
    yield timed(
        f"exhaustive [jit], {name}: {found.total:,} designs, compiled first",
        first,
        bar,
        peer=shown(grid, "Optuna GridSampler"),
        ratio=pace / grid.rate if isinstance(grid, Found) else None,
        wrong=compared(name, found),
        note=f"{found.evaluated:,} legal ones, CPU {found.cpu[0]:.2f} s, peak {found.peak:.0f} MB; ratio of designs per second",
    )
    again = [o.feasible / o.seconds[1] for o in outcomes]
    yield Line(
        f"exhaustive [jit], {name}: feasible designs, without compiling",
        max(again),
        "points/s",
        bar and 1e8,
        more=True,
        median=statistics.median(again),
        runs=len(again),
        ratio=statistics.median(again) / grid.rate if isinstance(grid, Found) else None,
        note=f"{found.feasible:,} feasible designs",
    )
    yield timed(f"exhaustive [jit], {name}: compiling", [o.compiling[0] for o in outcomes], bar and 0.5)


def bulk(source: str, name: str, options: Options, bar: float | None) -> Iterator[Line]:
    """NumPy blocks on one core."""
    case = Case(source, "exhaustive", options={"jit": "off"}, workers=1, runs=options.times(3))
    found = run(case)
    options.details[f"numpy {name}"] = {"seconds": found.seconds, "peak": found.peak}
    rates = [found.total / seconds for seconds in found.seconds]
    median = statistics.median(rates)
    texts, ratios = [], []
    for peer, title in {"grid": "GridSampler", "bruteforce": "BruteForceSampler"}.items():
        other = tried(peer, source, TRIALS)
        texts.append(shown(other, f"Optuna {title}"))
        ratios.append(median / other.rate if isinstance(other, Found) else None)
    yield Line(
        f"exhaustive NumPy, {name}, one core: {found.total:,} designs",
        max(rates),
        "points/s",
        bar,
        more=True,
        median=median,
        runs=len(rates),
        peer="\n".join(texts),
        ratio=ratios[0],
        wrong=compared(name, found),
        note=f"{found.evaluated:,} legal ones evaluated, CPU {min(found.cpu):.2f} s, peak {found.peak:.0f} MB",
    )
    yield Line(
        f"exhaustive NumPy, {name}: designs per second to Optuna GridSampler",
        ratios[0],
        "x",
        bar and 1e4,
        more=True,
        ratio=ratios[0],
    )


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    name = "training_1e7" if options.quick else COMPILED[0]
    source = options.reference(name)
    if source:
        yield from compiled(source, name, options, None if options.quick else COMPILED[1])
    name = "training_1e5" if options.quick else NUMPY[0]
    source = options.reference(name)
    if source:
        yield from bulk(source, name, options, None if options.quick else NUMPY[1])
    shape = Shape(size=1e5 if options.quick else 1e7)
    if options.data is None:
        yield from compiled(Shape(size=1e6 if options.quick else 1e9).source, "generated", options, None)
        yield from bulk(shape.source, "generated", options, None)


if __name__ == "__main__":
    main(__doc__, lines)
