"""What a certificate costs a search, and what checking it takes.

python -m tests.bench.certificate --data ../shared
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.cases import child
from tests.bench.generator import Shape
from tests.bench.measuring import Line, Missing, Options, main, timed

NAMES = ("training_1e8", "training_1e9")


def here(source: str, runs: int) -> dict[str, Any]:
    """In this process: seconds of searches in a folder without and with a certificate, and of its verification."""
    import dse
    from dse.study.verify import verify
    from tests.bench.sources import problem_of

    settings: dict[str, Any] = {"solver": "pareto", "ties": True, "workers": 2}
    dse.search("camera", **settings)
    answer: dict[str, Any] = {"never": [], "always": [], "verify": [], "checks": [], "boxes": 0, "bytes": 0}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(runs):
            for wanted in ("never", "always") if number % 2 else ("always", "never"):
                problem = problem_of(source)
                folder = Path(scratch) / f"{wanted}{number}"
                began = time.perf_counter()
                result = dse.search(problem, folder=folder, certificate=wanted, **settings)
                answer[wanted].append(time.perf_counter() - began)
                if wanted == "never":
                    continue
                answer["boxes"] = (result.certificate or {}).get("boxes", 0)
                answer["bytes"] = (folder / "certificate.bin").stat().st_size
                began = time.perf_counter()
                checked = verify(folder, problem=problem)
                answer["verify"].append(time.perf_counter() - began)
                answer["checks"] = list(checked.checks)
    return answer


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    names = ("training_1e5",) if options.quick else NAMES
    sources = {name: source for name in names if (source := options.reference(name))}
    for name, source in (sources or {"generated": Shape(size=1e5 if options.quick else 1e7).source}).items():
        try:
            found = child("certificate", {"source": source, "runs": options.times(3)})
        except Missing as missing:
            yield Line(f"certificate, {name}", None, note=str(missing))
            continue
        options.details[name] = found
        cost = min(found["always"]) / min(found["never"]) - 1.0
        size = found["bytes"] / found["boxes"] if found["boxes"] else 0.0
        proved = [check for check in found["checks"] if "proved" in check or "certificate" in check]
        yield timed(
            f"search in a folder with a certificate, {name}",
            found["always"],
            note=f"{cost:+.0%} to {min(found['never']):.2f} s without; {found['boxes']:,} boxes, {size:.2g} bytes each",
        )
        yield timed(
            f"verify, {name}, with 10,000 boxes proved again", found["verify"], note="; ".join(proved)
        )


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1].startswith("{"):
        print(json.dumps(here(**json.loads(sys.argv[1]))))
    else:
        main(__doc__, lines)
