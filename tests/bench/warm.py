"""10^7 designs and three objectives in a program that is running already: the same search again.

python -m tests.bench.warm --data ../shared
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.cases import Case, run
from tests.bench.generator import Shape
from tests.bench.measuring import Line, Options, main, timed
from tests.bench.peers import Found, shown, tried
from tests.bench.truth import compared

EVALUATIONS = 10_000


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    name = "training_1e5" if options.quick else "training_1e7"
    source = options.reference(name) or Shape(size=1e5 if options.quick else 1e7).source
    found = run(Case(source, warm=True, runs=options.times(9)))
    options.details[f"warm {name}"] = {
        "seconds": found.seconds,
        "cpu": found.cpu,
        "boxes": found.boxes,
        "peak": found.peak,
    }
    peer = tried("pymoo", source, EVALUATIONS)
    known = options.reference(name) is not None
    yield timed(
        f"warm, {name if known else source}: front of {found.front}",
        found.seconds,
        0.3 if known and not options.quick else None,
        peer=shown(peer, "pymoo NSGA-II", found.vectors),
        ratio=peer.seconds / min(found.seconds) if isinstance(peer, Found) else None,
        wrong=compared(name, found) if known else "",
        note=f"{found.boxes:,} boxes, CPU {min(found.cpu):.2f} s, peak {found.peak:.0f} MB; ratio of times",
    )


if __name__ == "__main__":
    main(__doc__, lines)
