"""Time of a search in a program that is running already: a space of 10^5 legal designs, evaluated one and all.

python tests/bench/small.py --runs 30 --json small.json

The first search of a problem prepares it; later ones are what a program waits for that asks again and again.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from pathlib import Path

import dse

SPACE = Path(__file__).with_name("small.yaml")
LEGAL, FRONT = 100_692, 35
BAR = 0.010


def seconds(problem: dse.Problem) -> tuple[float, float]:
    """Wall and CPU time of one search in memory.

    Raises:
        SystemExit: it found something else than it should.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    result = dse.search(problem)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if (result.funnel.legal, len(result.front)) != (LEGAL, FRONT):
        raise SystemExit(f"found {result.funnel.legal:,} legal designs and a front of {len(result.front)}")
    return wall, cpu


def main() -> None:
    """Prints the times and, when asked, writes them as JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=50, help="searches after the first (default 50)")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()

    problem = dse.load(SPACE)
    first, _ = seconds(problem)
    times = [seconds(problem) for _ in range(options.runs)]
    wall, cpu = ([pair[at] for pair in times] for at in (0, 1))
    print(f"search of {LEGAL:,} legal designs, {options.runs} runs, Python {platform.python_version()}")
    print(f"{'':<8}{'min ms':>9}{'median ms':>11}{'bar ms':>8}  within")
    for name, found in (("wall", wall), ("CPU", cpu)):
        median = statistics.median(found)
        within = "yes" if median <= BAR else "NO"
        print(f"{name:<8}{min(found) * 1e3:>9.2f}{median * 1e3:>11.2f}{BAR * 1e3:>8.0f}  {within}")
    print(f"the first search took {first * 1e3:.0f} ms")
    if options.json:
        document = {
            "python": platform.python_version(),
            "legal": LEGAL,
            "bar": BAR,
            "first": first,
            "wall": {"min": min(wall), "median": statistics.median(wall)},
            "cpu": {"min": min(cpu), "median": statistics.median(cpu)},
        }
        options.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
