"""Measuring functions in processes of their own, for more than one worker.

The child (``python -m dse.study.worker function folder``) reads one design per line as JSON and answers with one line
of JSON. It ends when its parent does, with all that it started. What the user's function prints goes to standard error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any

from dse.errors import InputError
from dse.problem.code import import_function
from dse.study import watchdog
from dse.study.measure import Failed, FunctionRunner, end_process

__all__ = ["ProcessRunner", "serve"]


class ProcessRunner:
    """Calls a Python function in another process, which is started when first needed and after it died."""

    def __init__(self, function: str, folder: str) -> None:
        self.function = function
        self.folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def _started(self) -> subprocess.Popen[str]:
        with self._lock:
            if self._closed:
                raise Failed("the measurement was stopped")
            if self._process is None:
                path = os.pathsep.join(part or os.getcwd() for part in sys.path)  # noqa: PTH109 - one text
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "dse.study.worker", self.function, self.folder],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=os.environ | {"PYTHONPATH": path},
                    start_new_session=True,
                )
                watchdog.watch(self._process.pid)
            return self._process

    def run(self, design: Mapping[str, Any]) -> object:
        """What the function returns for a design, as JSON would have it."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(design) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except OSError:
            answer = ""
        if not answer:
            self._end()
            raise Failed(f"the measuring process ended with code {process.returncode}")
        kind, value = json.loads(answer)
        if kind == "failed":
            raise Failed(value)
        return value

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            end_process(process)

    def close(self) -> None:
        """End the process."""
        self._closed = True
        self._end()


def serve(function: str, folder: str) -> None:
    """Answer designs on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        runner = FunctionRunner(import_function(function, folder))
        problem = ""
    except InputError as error:
        problem = str(error)
    for line in sys.stdin:
        try:
            if problem:
                raise Failed(problem)
            answer = ("ok", runner.run(json.loads(line)))
        except Failed as failed:
            answer = ("failed", str(failed))
        answers.write(_as_json(answer) + "\n")
        answers.flush()


def _as_json(answer: tuple[str, object]) -> str:
    try:
        return json.dumps(answer, default=float)
    except (TypeError, ValueError):
        return json.dumps(
            ("failed", f"the measurement must return numbers or texts, but got {answer[1]!r}"[:500])
        )


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
