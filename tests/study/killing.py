"""Runs a study in a child process again and again, killing it at given points, until it is left alone.

``python -m tests.study.killing FOLDER KIND T1 T2 ...``: one life per number, then one without end. The whole part is
how many steps of progress (trials begun, checkpoints saved) are waited for, the fraction how many seconds then pass
until the child is killed with SIGKILL, if it is still running. An exact search waits for that one step later, so that it
does not end while the parent has no processor. The children are forked, so a life costs no start-up. Prints, as JSON, per life how it ended, how long it took and the
trials finished before it (of an exact search, the number of designs evaluated).
"""

from __future__ import annotations

import json
import os
import select
import signal
import sqlite3
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import optuna  # noqa: F401 - loaded once for all lives

from dse.evaluation.compiled import loops
from dse.evaluation.sweep import Sweep
from dse.problem import Problem
from dse.problem.library import load
from dse.solvers import compiled as loops_solver
from dse.solvers import working
from dse.solvers.branching import searching
from dse.study import running, sweeping
from dse.study.identity import Coder
from dse.study.storage import Storage
from dse.study.study import Study
from dse.study.tally import Tally
from tests.study.problems import Build

N_TRIALS = 120


def sampling(folder: Path) -> None:
    """A search by sampling over the function beside the space file."""
    Study(load(folder.parent / "space.yaml"), solver="optuna", folder=folder, batch=6, workers=1).run(
        N_TRIALS
    )


def pair(folder: Path) -> None:
    """The same with two workers."""
    Study(load(folder.parent / "space.yaml"), solver="optuna", folder=folder, batch=6, workers=2).run(
        N_TRIALS
    )


def exact(folder: Path, name: str = "exhaustive") -> None:
    """An exact search that saves its state often, in pieces small enough for all lives."""
    running.SAVED_EVERY = 0.0
    sweeping.Sweep = partial(Sweep, piece=100_000)  # type: ignore[attr-defined,assignment]
    Study(large(), solver=name, folder=folder, keep=200, top=5).run()


def pareto(folder: Path) -> None:
    """The same by branch and bound, in small steps with a pause after each round."""
    searching.CHILDREN = 1024
    take = searching.Search._take

    def slowly(self: searching.Search, *parts: Any) -> None:
        time.sleep(0.002)
        take(self, *parts)

    searching.Search._take = slowly
    exact(folder, "pareto")


def compiled(folder: Path) -> None:
    """The same by compiled loops, in small pieces with a pause after each."""
    whole = working.Searching.counted

    def counted(self: working.Searching) -> Callable[[Tally], None]:
        time.sleep(0.01)
        found: Callable[[Tally], None] = whole(self)
        return found

    working.Searching.counted = counted
    loops_solver._SECONDS = 0.0
    loops.PIECE = 2**16
    running.SAVED_EVERY = 0.0
    options = {"jit": "on"}
    Study(large(), solver="exhaustive", folder=folder, keep=200, top=5, options=options).run()


def large() -> Problem:
    """Five million designs, in 21 blocks."""
    build = Build()
    for name in "abcdefg":
        build.dimension(name, [float(v) for v in range(9)])
    build.rule("odd", "a + b + g > 3")
    build.metric("cost", "abs(a * b - c * d) + (e - f) * g / 3 + sqrt(a)").metric(
        "other", "b * d - a + e / (c + 0.5)"
    )
    build.metric("third", "a + b + c + d + e")
    build.minimize("cost").maximize("other").constrain("cost", "cost >= 2").constrain("third", "third <= 33")
    return build.problem("large")


KINDS: dict[str, Callable[[Path], None]] = {
    "sampling": sampling,
    "pair": pair,
    "exact": exact,
    "pareto": pareto,
    "compiled": compiled,
}


def finished(folder: Path) -> list[int]:
    """The numbers of the trials that are logged as finished."""
    if not (folder / "study.sqlite").exists():
        return []
    try:
        with closing(sqlite3.connect(folder / "study.sqlite")) as database:
            rows = database.execute("SELECT number FROM trials WHERE state NOT IN ('WAITING', 'RUNNING')")
            return sorted(number for (number,) in rows)
    except sqlite3.OperationalError:  # killed before the tables were made
        return []


def evaluated(folder: Path) -> int:
    """How many designs the checkpoint of an exact search says were evaluated or discarded."""
    if not (folder / "manifest.json").exists():
        return 0
    checkpoint = Storage(Coder(large()), folder).checkpoint()
    if checkpoint is None:
        return 0
    tally = Tally.unpack(large(), checkpoint)[0]
    return tally.evaluated + sum(tally.pruned.values())


def main(folder: Path, kind: str, times: list[float]) -> list[dict[str, object]]:
    """All lives."""
    lives: list[dict[str, object]] = []
    for life in [*times, None]:
        before = finished(folder) if kind in ("sampling", "pair") else [evaluated(folder)]
        began, steps = time.monotonic(), _steps(folder)
        pid = os.fork()
        if not pid:
            try:
                os.environ["LIFE"] = str(len(lives))
                if life is not None:
                    _log_checkpoints(folder, int(life) + 1)
                KINDS[kind](folder)
                os._exit(0)
            except BaseException:  # noqa: BLE001 - whatever it is, the parent must hear of it
                traceback.print_exc()
                os._exit(1)
        status = _wait(pid, life, lambda before=steps: _steps(folder) - before)  # type: ignore[misc]
        ended = "killed" if os.WIFSIGNALED(status) else "done" if os.WEXITSTATUS(status) == 0 else "failed"
        lives.append({"ended": ended, "before": before, "seconds": time.monotonic() - began})
        if ended == "failed":
            break
    return lives


def _log_checkpoints(folder: Path, most: int) -> None:
    """Make this process log each checkpoint it saves, and after so many wait for its end."""
    save: Callable[[Any, bytes], None] = Storage.save_checkpoint
    left = iter(range(1, most))

    def logged(self: Any, checkpoint: bytes) -> None:
        save(self, checkpoint)
        with _log(folder).open("a") as file:
            file.write("saved\n")
        if next(left, None) is None:
            signal.pause()

    Storage.save_checkpoint = logged  # type: ignore[method-assign,assignment]


def _log(folder: Path) -> Path:
    return folder.parent / "log.txt"


def _steps(folder: Path) -> int:
    """How many trials were begun, or checkpoints saved, by all lives."""
    return _log(folder).read_bytes().count(b"\n") if _log(folder).exists() else 0


def _wait(pid: int, life: float | None, steps: Callable[[], int]) -> int:
    """The status of a child, which is killed after ``life``: so many steps of progress, and a fraction of a second."""
    if life is None:
        return os.waitpid(pid, 0)[1]
    watched = os.pidfd_open(pid)
    while steps() < int(life) and not select.select([watched], [], [], 0.002)[0]:
        pass
    select.select([watched], [], [], life % 1)
    os.close(watched)
    os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), sys.argv[2], [float(t) for t in sys.argv[3:]])))  # noqa: T201
