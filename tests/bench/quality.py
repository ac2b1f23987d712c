"""What samplers find of the truth at equal numbers of evaluations, on all shipped spaces (and small reference problems).

python -m tests.bench.quality --data ../shared

The hypervolume is a share of the exact front's, from its ideal point to its worst values; `unique` are different designs.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from tests.bench.cases import Case, child, run
from tests.bench.measuring import Line, Missing, Options, main
from tests.bench.peers import Found, tried

EVALUATIONS = 200
SEEDS = 3
OURS = ("tpe", "nsga2", "random")
PEERS = {"tpe": "Optuna TPE", "nsga2": "Optuna NSGA-II", "pymoo": "pymoo NSGA-II"}


def shipped() -> list[str]:
    """The spaces that come with the product and can be searched by formula."""
    from dse.problem.library import library, load

    return [name for name in library() if not load(name, code=False).measured]


def share(vectors: Sequence[Sequence[float]], front: Sequence[Sequence[float]]) -> float:
    """The hypervolume of ``vectors`` as a share of that of the true front."""
    import numpy as np

    from dse.study.hypervolume import normalized_hypervolume

    true = np.array(front)
    ideal, worst = true.min(axis=0), true.max(axis=0)
    worst = worst + np.where(worst > ideal, 0.05 * (worst - ideal), np.maximum(np.abs(worst), 1.0))
    whole = normalized_hypervolume(true, ideal, worst)
    reached = [v for v in vectors if all(a < b for a, b in zip(v, worst, strict=True))]
    return normalized_hypervolume(np.array(reached), ideal, worst) / whole if reached else 0.0


def own(source: str, evaluations: int, seed: int, sampler: str) -> dict[str, Any]:
    """The optuna solver in this process."""
    import dse
    from tests.bench.sources import problem_of

    problem = problem_of(source)
    settings: dict[str, Any] = {"solver": "optuna", "options": {"sampler": sampler}, "seed": seed}
    study = dse.Study(problem, **settings)
    began = time.perf_counter()
    result = study.run(evaluations)
    seconds = time.perf_counter() - began
    front = [[point.objectives[o.name] * o.sign for o in problem.objectives] for point in result.front]
    designs = {tuple(sorted(trial.design.items())) for trial in study.finished}
    return {"vectors": front, "unique": len(designs), "seconds": seconds, "trials": len(study.finished)}


def compared(source: str, name: str, options: Options) -> Iterator[Line]:
    """Every sampler on one space, medians over several seeds."""
    evaluations = 40 if options.quick else EVALUATIONS
    seeds = range(1 if options.quick else SEEDS)
    truth = run(Case(source, ties=False)).vectors
    others: dict[str, tuple[float, str]] = {}
    for peer, title in PEERS.items():
        answers = [tried(peer, source, evaluations, seed=seed + 1, population=20) for seed in seeds]
        done = [a for a in answers if isinstance(a, Found)]
        if not done:
            others[peer] = (0.0, f"{title}: {answers[0]}")
            continue
        reached = statistics.median(share(a.vectors, truth) for a in done)
        unique = statistics.median(a.unique for a in done)
        text = f"{title}: hypervolume {reached:.1%}, {unique:.0f} unique, "
        text += f"{statistics.median(a.seconds for a in done):.2f} s"
        others[peer] = (reached, text)
    for sampler in OURS:
        request = {"source": source, "evaluations": evaluations, "sampler": sampler}
        found = [child("quality", request | {"seed": seed}) for seed in seeds]
        shares = [share(answer["vectors"], truth) for answer in found]
        options.details[f"{name} {sampler}"] = {"shares": shares, "unique": [a["unique"] for a in found]}
        peer_share, text = others.get(sampler, (0.0, ""))
        texts = [text] if text else []
        texts += [others["pymoo"][1]] if sampler == OURS[0] else []
        median = statistics.median(shares)
        yield Line(
            f"quality, {name}, optuna solver ({sampler}), {evaluations} evaluations: hypervolume",
            max(shares),
            "of truth",
            more=True,
            median=median,
            runs=len(shares),
            peer="\n".join(texts),
            ratio=median / peer_share if peer_share else None,
            note=f"{statistics.median(a['unique'] for a in found):.0f} unique designs, "
            f"{statistics.median(a['seconds'] for a in found):.2f} s; the true front has {len(truth)} vectors",
        )


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    sources = {name: name for name in shipped()}
    if not options.quick:
        for name in ("camera_480", "training_1e7"):
            if source := options.reference(name):
                sources[name] = source
    for name, source in sources.items():
        try:
            yield from compared(source, name, options)
        except Missing as missing:
            yield Line(f"quality, {name}", None, note=str(missing))


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        print(json.dumps(own(**json.loads(sys.argv[1]))))
    else:
        main(__doc__, lines)
