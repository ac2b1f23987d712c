"""How time, boxes and memory grow with what is searched: generated spaces that differ in one thing at a time.

python -m tests.bench.growth

Needs no reference problems. The figures are of branch and bound, one run each, in processes of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.bench.cases import Case, Outcome, per_tenfold, run
from tests.bench.generator import Shape
from tests.bench.measuring import Line, Missing, Options, main
from tests.bench.peers import shown, tried

BASE = Shape(size=1e8, depth=3, objectives=2, constraints=2, tightness=0.5)
LIMIT = 30.0  # seconds of one search; beyond, the curve ends
EVALUATIONS = 5000


def curves(quick: bool) -> dict[str, list[Shape]]:
    """By what differs, the shapes."""
    sizes = (1e4, 1e5) if quick else (1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12)
    base = replace(BASE, size=1e5) if quick else BASE
    return {
        "size": [replace(base, size=size) for size in sizes],
        "depth": [replace(base, depth=depth) for depth in (1, 2, 4, 6)],
        "objectives": [replace(base, size=base.size / 10, objectives=k) for k in (1, 2, 3, 4)],
        "constraints": [replace(base, constraints=n) for n in (0, 1, 4)],
        "tightness": [replace(base, tightness=share) for share in (0.9, 0.2, 0.02)],
    }


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    for varied, shapes in curves(options.quick).items():
        done: list[Outcome] = []
        for shape in shapes:
            what = f"generated, {varied} {getattr(shape, varied):g}"
            try:
                found = run(Case(shape.source, limit=LIMIT))
            except Missing as missing:
                yield Line(what, None, note=f"{missing}; {shape.source}")
                break
            done.append(found)
            options.details[f"{varied} {getattr(shape, varied):g}"] = {
                "source": shape.source,
                "total": found.total,
                "seconds": found.seconds,
                "boxes": found.boxes,
                "peak": found.peak,
                "front": found.front,
            }
            last = varied == "size" and shape is shapes[-1]
            peer = (
                shown(tried("pymoo", shape.source, EVALUATIONS), "pymoo NSGA-II", found.vectors)
                if last
                else ""
            )
            yield Line(
                what,
                found.seconds[0],
                peer=peer,
                note=f"{found.total:.2e} designs, {found.boxes:,} boxes, front {found.front:,}, peak {found.peak:.0f} MB",
            )
        if varied == "size" and len(done) > 1:
            yield Line(
                "generated: growth of boxes per tenfold designs",
                per_tenfold(done[0], done[-1]),
                "x",
                note=f"from {done[0].total:.0e} to {done[-1].total:.0e} designs",
            )


if __name__ == "__main__":
    main(__doc__, lines)
