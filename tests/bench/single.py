"""The best of 10^12 designs in one objective, proven, against Optuna's TPE.

python -m tests.bench.single --data ../shared
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.cases import Case, run
from tests.bench.measuring import Line, Options, main, timed
from tests.bench.peers import Found, best, shown, tried
from tests.bench.truth import compared

OBJECTIVE = "tps"
TRIALS = 200


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    name = "training_1e7" if options.quick else "training_1e12"
    source = options.reference(name)
    if source is None:
        return
    found = run(Case(source, objectives=(OBJECTIVE,), runs=options.times(5)))
    options.details[f"{name} 1"] = {
        "seconds": found.seconds,
        "cpu": found.cpu,
        "boxes": found.boxes,
        "peak": found.peak,
    }
    optimum = best(found.vectors)
    texts, ratio = [], None
    for peer, title in (("tpe", "Optuna TPE"), ("nsga2", "Optuna NSGA-II"), ("pymoo", "pymoo NSGA-II")):
        trials = 10_000 if peer == "pymoo" else 50 if options.quick else TRIALS
        other = tried(peer, source, trials, objectives=(OBJECTIVE,))
        text = shown(other, title)
        if isinstance(other, Found):
            text += f", best {best(other.vectors) / optimum:.3g} times the optimum"
            ratio = ratio or other.seconds / min(found.seconds)
        texts.append(text)
    yield timed(
        f"exact single objective, {name}: {found.tied} designs attain the optimum",
        found.seconds,
        None if options.quick else 1.0,
        peer="\n".join(texts),
        ratio=ratio,
        wrong=compared(name, found, 1),
        note=f"{found.boxes:,} boxes, CPU {min(found.cpu):.2f} s, peak {found.peak:.0f} MB; ratio of times to the first peer",
    )


if __name__ == "__main__":
    main(__doc__, lines)
