"""Training and serving: how fast training's cost model evaluates legal plans, and whole searches for the best plans.

python -m tests.bench.plans --runs 3

The rate is of one core, in NumPy, over the first three million legal plans of Llama-3.1-405B on 16,384 H100, of any framework
and of Megatron's alone, which have less in common. A search is the command, from nothing to the printed plan or front; it proves
its optimum and counts what ties within the model's error.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.bench.measuring import Line, Options, main, timed
from tests.bench.startup import dse_command, seconds

LLAMA = {
    "model": "llama-3.1-405b",
    "hardware": "h100-sxm",
    "n_gpus": "16384",
    "global_batch": "2048",
    "seq_len": "8192",
}
GPT3 = {
    "model": "gpt-3-175b",
    "hardware": "a100-sxm-80",
    "n_gpus": "1024",
    "global_batch": "1536",
    "seq_len": "2048",
}
SERVING = {"model": "llama-3.1-70b", "hardware": "h100-sxm", "max_ttft": "1 s", "max_tpot": "40 ms"}
RATE = 1e6
SEARCHES = (
    ("training", "Llama-3.1-405B on 16,384 H100", LLAMA, 10.0),
    ("training", "GPT-3 175B on 1,024 A100", GPT3, 10.0),
    ("serving", "Llama-3.1-70B on up to 8 H100", SERVING, 5.0),
)
BLOCK = 2**16
MOST = 3_000_000


def rates(runs: int, framework: str) -> tuple[int, list[float]]:
    """The number of legal plans, and plans evaluated a second in each run: iteration time and peak memory."""
    from dse.evaluation.counting import legal_designs
    from dse.evaluation.listed import Listed
    from dse.problem.library import load

    problem = load("training", LLAMA | {"framework": framework})
    blocks: list[Any] = []
    for block in legal_designs(problem):
        blocks.append(block)
        if sum(map(len, blocks)) > MOST:
            break
    designs = np.concatenate(blocks)
    listed = Listed(problem, [problem.metrics[name].node for name in ("iteration_time", "peak_memory")])
    columns = [np.ascontiguousarray(designs[:, at]) for at in range(designs.shape[1])]
    found = []
    for _ in range(runs):
        began = time.process_time()
        for start in range(0, len(designs), BLOCK):
            listed.evaluate([column[start : start + BLOCK] for column in columns])
        found.append(len(designs) / (time.process_time() - began))
    return len(designs), found


def lines(options: Options) -> Iterator[Line]:
    """The lines of the table."""
    for framework, bar in (("any", RATE), ("megatron", None)):
        plans, found = rates(options.times(5), framework)
        yield Line(
            f"training: legal plans evaluated, NumPy, one core, framework {framework}",
            max(found),
            "plans/s",
            bar,
            more=True,
            median=sorted(found)[len(found) // 2],
            runs=len(found),
            note=f"{plans:,} legal plans",
        )
    for space, name, inputs, bar in SEARCHES:
        command = [*dse_command(), "search", space]
        for key, value in inputs.items():
            command += ["--set", f"{key}={value}"]
        times = [seconds(command) for _ in range(options.times(3))]
        cpu = min(spent for _, spent in times)
        walls = [wall for wall, _ in times]
        yield timed(f"dse search {space}, {name}", walls, bar, note=f"CPU {cpu:.1f} s")


if __name__ == "__main__":
    main(__doc__, lines)
