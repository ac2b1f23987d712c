"""A measured search: the fastest matrix multiplication in C that some trials find, against three plain loops.

python -m tests.bench.kernels --runs 60

The runs are trials of one search with seed 0. Loops and best design are compiled with the same flags, have the same
number format, and their products were checked. It needs a C compiler and an idle machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import dse
from tests.bench.measuring import Line, Options, main

BAR = 5.0


def lines(options: Options) -> Iterator[Line]:
    """The line of the table."""
    what = "measured C matrix multiplication, best of a search: times over plain loops"
    if not any(map(shutil.which, ("cc", "gcc", "clang"))):
        yield Line(what, None, "x", BAR, more=True, note="there is no C compiler")
        return
    trials = options.times(60)
    problem = dse.load("kernel-matmul")
    result = dse.search(problem, solver="optuna", seed=0, n_trials=trials)
    options.details.update(trials=trials, failed=result.funnel.failed)
    if not result.front:
        yield Line(what, None, "x", BAR, more=True, wrong="no trial gave a time")
        return
    best = result.front[0]
    told = {name: value for name, value in best.metrics.items() if isinstance(value, float)}
    options.details.update(design={name: str(value) for name, value in best.design.items()}, metrics=told)
    yield Line(
        what,
        told["speedup"],
        "x",
        BAR,
        more=True,
        wrong=f"{result.funnel.failed} trials failed" if result.funnel.failed else "",
        note=f"{trials} trials; {told['time'] * 1e3:.3g} ms against {told['naive_time'] * 1e3:.3g} ms",
    )


if __name__ == "__main__":
    main(__doc__, lines)
