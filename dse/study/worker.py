"""Measuring with a Python function: in a process of its own, so that nothing it does can end or confuse the study.

The child (``python -m dse.study.worker function folder``) imports the function and says in one line of JSON whether it
could; then it reads one design per line as JSON and answers with one line of JSON. Before the first it may be told the
inputs alone, as ``["check", inputs]``: a function with an attribute ``check`` then looks at these. It ends when its
parent does, with all that it started. What the user's function prints goes to standard error.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from dse.errors import InputError
from dse.problem.code import import_function
from dse.study.metrics import Failed, quote
from dse.study.processes import LIMIT, end, ending, kill, kill_group_at_exit, start

__all__ = ["ProcessRunner", "serve"]


class ProcessRunner:
    """Calls a Python function in another process, which is started when first needed and after it died."""

    def __init__(self, function: str, folder: str, timeout: float | None = None) -> None:
        self.function = function
        self.folder = folder
        self.timeout = timeout
        self.remark = ""
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closed = False

    def check(self, inputs: Mapping[str, Any] | None = None) -> None:
        """Start the process, make sure that it has the function, and have its ``check`` look at the inputs.

        Raises:
            InputError: there is none, importing it failed, or with these inputs no design can be measured.
        """
        try:
            self._asked(["check", dict(inputs or {})])
        except Failed as failed:
            raise InputError(str(failed)) from None

    def _started(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._closed:
                raise Failed("the measurement was stopped")
            if self._process is not None:
                return self._process
            path = os.pathsep.join(part or os.getcwd() for part in sys.path)  # noqa: PTH109 - one text
            process = self._process = start(
                [sys.executable, "-m", "dse.study.worker", self.function, self.folder],
                environment=os.environ | {"PYTHONPATH": path},
                errors=False,
            )
            kill_group_at_exit(process)
        self._answer(process, f"importing {self.function}")
        return process

    def run(self, design: Mapping[str, Any]) -> object:
        """What the function returns for a design, as JSON would have it."""
        return self._asked(design)

    def _asked(self, message: object) -> object:
        process = self._started()
        with _limited(process, self.timeout) as late:
            try:
                found = self._told(process, message)
            except Failed:
                if late.is_set():
                    self._end()
                    took = f"took longer than {self.timeout:g} s and was killed"
                    raise Failed(f"the measurement {took}") from None
                raise
        if late.is_set():  # it answered at the last moment, and is gone
            self._end()
        return found

    def _told(self, process: subprocess.Popen[bytes], message: object) -> object:
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
        except (OSError, ValueError):  # it died; what it answers says how
            pass
        return self._answer(process, "measuring")

    def _answer(self, process: subprocess.Popen[bytes], doing: str) -> object:
        """One line of the process, which is ended when that cannot be had."""
        assert process.stdout is not None
        try:
            line = process.stdout.readline(LIMIT)
        except (OSError, ValueError):
            line = b""
        if not line:
            self._end()
            raise Failed(f"the measuring process {ending(process.returncode)} while {doing}")
        try:
            if not line.endswith(b"\n"):
                raise ValueError(f"more than {LIMIT // 2**20} MB")
            kind, value = json.loads(line)
        except (ValueError, TypeError, RecursionError) as error:
            self._end()
            raise Failed(f"the measurement returned what cannot be read: {error}") from None
        if kind == "refused":
            self._end()
            raise Failed(value)
        if kind == "failed":
            raise Failed(value)
        return value

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            end(process)

    def close(self) -> None:
        """End the process."""
        self._closed = True
        self._end()


@contextlib.contextmanager
def _limited(process: subprocess.Popen[bytes], timeout: float | None) -> Iterator[threading.Event]:
    """Kill a process, with all that it started, when it takes too long; the event says that it was."""
    late = threading.Event()

    def stop() -> None:
        late.set()
        kill(process)

    timer = threading.Timer(timeout, stop) if timeout is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield late
    finally:
        if timer is not None:
            timer.cancel()


def serve(function: str, folder: str) -> None:
    """Answer designs on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    designs = os.fdopen(os.dup(0), encoding="utf-8")
    with open(os.devnull) as nothing:  # noqa: PTH123 - the user's function has nothing to read
        os.dup2(nothing.fileno(), 0)

    def say(kind: str, value: object) -> None:
        answers.write(_as_json(kind, value) + "\n")
        answers.flush()

    try:
        found = import_function(function, folder)
    except InputError as error:
        say("refused", str(error))
        return
    say("ready", None)
    for line in designs:
        try:
            message = json.loads(line)
            if isinstance(message, list):
                check(found, message[1])
                say("ok", None)
            else:
                say("ok", call(found, message))
        except Failed as failed:
            say("failed", str(failed))


def check(function: Callable[[dict[str, Any]], object], inputs: dict[str, Any]) -> None:
    """Have the function's own ``check`` look at the inputs, where it has one.

    Raises:
        Failed: it raised something, which for an InputError is all that is told.
    """
    own = getattr(function, "check", None)
    if own is None:
        return
    try:
        own(inputs)
    except InputError as error:
        raise Failed(str(error)) from error
    except Exception as error:  # the user's code may raise anything
        raise Failed(f"checking the inputs raised {type(error).__name__}: {_said(error)}") from error


def call(function: Callable[[dict[str, Any]], object], design: dict[str, Any]) -> object:
    """What the user's function returns for a design.

    Raises:
        Failed: it raised something; what it raised as one is passed on.
    """
    try:
        return function(design)
    except Failed:  # it says by itself what went wrong
        raise
    except (
        Exception,
        SystemExit,
        KeyboardInterrupt,
    ) as error:  # the user's code may raise anything; the trial says what
        raise Failed(f"the measurement raised {type(error).__name__}: {_said(error)}") from error


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a broken __str__
        return "(which cannot be shown)"


def _as_json(kind: str, value: object) -> str:
    try:
        if isinstance(value, Mapping):
            value = {str(name): item for name, item in value.items()}
        return json.dumps((kind, value), default=_plain)
    except Exception:  # noqa: BLE001 - whatever the user's function returned
        return json.dumps(("failed", f"the measurement must return numbers or texts, but got {quote(value)}"))


def _plain(value: Any) -> object:
    """A number of any library as JSON has it; raises what it likes where there is none."""
    return value.item() if hasattr(value, "item") else float(value)


if __name__ == "__main__":
    serve(sys.argv[1], sys.argv[2])
