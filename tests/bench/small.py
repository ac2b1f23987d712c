"""A search in a program that is running already: a space of 10^5 legal designs, evaluated one and all.

python -m tests.bench.small --runs 50

The first search of a problem prepares it; later ones are what a program waits for that asks again and again.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from tests.bench.cases import child
from tests.bench.measuring import Line, Options, main, timed
from tests.bench.peers import Found, shown, tried
from tests.bench.sources import SMALL

LEGAL, FRONT = 100_692, 35
BAR = 0.010
EVALUATIONS = 1000


def here(runs: int) -> dict[str, Any]:
    """In this process: seconds of wall and CPU by run, of the first search, and what was found."""
    import dse

    problem = dse.load(SMALL)
    wall, cpu = [], []
    result = None
    for _ in range(runs + 1):
        study = dse.Study(problem)
        gc.collect()
        began, spent = time.perf_counter(), time.process_time()
        result = study.run()
        cpu.append(time.process_time() - spent)
        wall.append(time.perf_counter() - began)
    assert result is not None
    return {
        "first": wall[0],
        "wall": wall[1:],
        "cpu": cpu[1:],
        "legal": result.funnel.legal,
        "front": len(result.front),
        "solver": result.solver,
    }


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    found = child("small", {"runs": options.times(50)})
    options.details.update(found)
    peers = [tried(peer, SMALL, EVALUATIONS // (10 if peer == "tpe" else 1)) for peer in ("pymoo", "tpe")]
    right = (found["legal"], found["front"]) == (LEGAL, FRONT)
    first = peers[0]
    yield timed(
        f"small problem, warm: study.run, {LEGAL:,} legal designs",
        found["wall"],
        BAR,
        peer="\n".join(shown(p, t) for p, t in zip(peers, ("pymoo NSGA-II", "Optuna TPE"), strict=True)),
        ratio=first.seconds / min(found["wall"]) if isinstance(first, Found) else None,
        wrong="" if right else f"{found['legal']:,} legal designs and a front of {found['front']}",
        note=f"solver {found['solver']}; the first search took {found['first'] * 1e3:.0f} ms; "
        f"CPU {min(found['cpu']) * 1e3:.1f} ms; ratio of times",
    )


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        print(json.dumps(here(**json.loads(sys.argv[1]))))
    else:
        main(__doc__, lines)
