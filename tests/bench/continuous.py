"""A space of 6 x 10^14 designs with nearly continuous trade-offs: exact fronts of one and two objectives, and a
certified 1 % front of three.

python -m tests.bench.continuous --data ../shared
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tests.bench.cases import Case, run
from tests.bench.measuring import Line, Missing, Options, main, timed
from tests.bench.peers import Designs, Found, shown, tried
from tests.bench.sources import problem_of
from tests.bench.truth import compared

NAME = "training_6e14"
OBJECTIVES = (("tps",), ("tps", "memg"))
EPSILON = 0.01
DRAWN = 200_000
EVALUATIONS = 10_000


def exact(source: str, name: str, objectives: tuple[str, ...], options: Options) -> Line:
    """The exact front of some of the objectives."""
    k = len(objectives)
    what = f"exact, {name}, {k} objective{'s'[: k > 1]}"
    bar = None if options.quick else 3.0
    try:
        found = run(Case(source, objectives=objectives, runs=options.times(3)))
    except Missing as missing:
        return Line(what, None, bar=bar, note=str(missing))
    options.details[f"{name} {k}"] = {
        "seconds": found.seconds,
        "cpu": found.cpu,
        "boxes": found.boxes,
        "peak": found.peak,
    }
    peer = tried("pymoo", source, EVALUATIONS, objectives=objectives)
    return timed(
        f"{what}: {found.front} vectors, {found.tied} designs",
        found.seconds,
        bar,
        peer=shown(peer, "pymoo NSGA-II", found.vectors),
        ratio=peer.seconds / min(found.seconds) if isinstance(peer, Found) else None,
        wrong=compared(name, found, k),
        note=f"{found.boxes:,} boxes, CPU {min(found.cpu):.2f} s, peak {found.peak:.0f} MB; ratio of times",
    )


def uncovered(source: str, front: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> str:
    """The feasible designs, of many drawn at random and those a peer found, that no point of the front covers."""
    designs = Designs(problem_of(source))
    rng = np.random.default_rng(1)
    for _ in range(DRAWN // 20_000):
        designs.evaluate(np.stack([rng.integers(0, size, 20_000) for size in designs.sizes], axis=1))
        designs.seen.clear()
    drawn = np.array([*designs.archive, *others])
    if not len(drawn):
        return "none of the drawn designs is feasible, so nothing was checked"
    points = np.array(front).reshape(-1, drawn.shape[1])
    missed = sum(not (points <= y + EPSILON * np.abs(y)).all(axis=1).any() for y in drawn)
    return f"{missed} of {len(drawn)} feasible designs are not covered" if missed else ""


def epsilon(source: str, name: str, options: Options) -> Line:
    """The certified front of all three objectives within 1 %."""
    bar = None if options.quick else 30.0
    case = Case(source, options={"epsilon": EPSILON}, ties=False, runs=options.times(1), limit=180.0)
    try:
        found = run(case)
    except Missing as missing:
        return Line(f"1 % front, {name}", None, bar=bar, note=str(missing))
    options.details[f"{name} epsilon"] = {
        "seconds": found.seconds, "cpu": found.cpu, "boxes": found.boxes, "peak": found.peak
    }  # fmt: skip
    peer = tried("pymoo", source, EVALUATIONS)
    others = peer.vectors if isinstance(peer, Found) else []
    return timed(
        f"1 % front, {name}, 3 objectives, 2 workers: {found.front} vectors",
        found.seconds,
        bar,
        peer=shown(peer, "pymoo NSGA-II"),
        ratio=peer.seconds / min(found.seconds) if isinstance(peer, Found) else None,
        wrong=uncovered(source, found.vectors, others),
        note=f"{found.boxes:,} boxes, CPU {min(found.cpu):.2f} s, peak {found.peak:.0f} MB; covers what {DRAWN:,} random draws and the peer found",
    )


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    name = "training_1e7" if options.quick else NAME
    source = options.reference(name)
    if source is None:
        return
    for objectives in OBJECTIVES:
        yield exact(source, name, objectives, options)
    yield epsilon(source, name, options)


if __name__ == "__main__":
    main(__doc__, lines)
