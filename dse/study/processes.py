"""Processes that run the user's code: each in a group of its own, which ends with it and with us.

What leaves the group and its session on purpose (``setsid``, a daemon such as a build server) is not followed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from dse.study import watchdog

__all__ = ["LIMIT", "Answer", "end", "ending", "exchange", "kill", "kill_group_at_exit", "last_line", "start"]

LIMIT = 16 * 2**20
"""Most bytes that a process may print for one design, on both its outputs."""

_GRACE = 0.3  # seconds that whoever a program left behind has to finish its output
_CHUNK = 2**16
_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What a process printed. ``stopped`` says why it had to be ended, if it had to."""

    out: bytes
    err: bytes
    stopped: str = ""


def start(
    arguments: Sequence[str],
    *,
    folder: str | None = None,
    environment: Mapping[str, str] | None = None,
    errors: bool = True,
) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own, watched, with pipes to it.

    Args:
        errors: whether its standard error comes to us too; if not, it goes where ours goes.
    """
    process = subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if errors else None,
        cwd=folder or None,
        env=environment,
        start_new_session=True,
        preexec_fn=watchdog.before_it_starts(),  # noqa: PLW1509 - one write to a pipe, safe after a fork
    )
    watchdog.watch(process.pid)
    return process


def exchange(process: subprocess.Popen[bytes], given: bytes, timeout: float | None) -> Answer:
    """Give a process its input and wait until it ends: the process itself, whoever else holds its outputs.

    It is left running when it took too long or printed too much. What it left behind has a moment to finish printing.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    over = threading.Event()
    room = _Room(LIMIT, over)
    out, err = _Reader(process.stdout, room), _Reader(process.stderr, room)
    _in_background(_feed, process.stdin, given)
    _in_background(_wait_for, process, over)
    ended = over.wait(timeout)
    if ended and not room.full:
        out.thread.join(_GRACE)
        err.thread.join(_GRACE if not out.thread.is_alive() else 0.0)
    stopped = ""
    if room.full:
        stopped = f"printed more than {LIMIT // 2**20} MB and was killed"
    elif not ended:
        stopped = f"took longer than {timeout:g} s and was killed"
    return Answer(bytes(out.data), bytes(err.data), stopped)


class _Room:
    """The bytes that two readers may still take; ``over`` is set when there are none left."""

    def __init__(self, left: int, over: threading.Event) -> None:
        self.left = left
        self.over = over
        self.full = False
        self.lock = threading.Lock()

    def take(self, size: int) -> bool:
        with self.lock:
            self.left -= size
            if self.left < 0:
                self.full = True
                self.over.set()
            return not self.full


class _Reader:
    """Reads a pipe to its end, in a thread of its own, as long as there is room."""

    def __init__(self, pipe: IO[bytes], room: _Room) -> None:
        self.data = bytearray()
        self.pipe = os.dup(pipe.fileno())  # stays open until the thread ends, whoever closes the pipe
        self.room = room
        self.thread = _in_background(self._read)

    def _read(self) -> None:
        try:
            while (chunk := os.read(self.pipe, _CHUNK)) and self.room.take(len(chunk)):
                self.data += chunk
        finally:
            os.close(self.pipe)


def _feed(pipe: IO[bytes], given: bytes) -> None:
    try:
        pipe.write(given)
        pipe.close()
    except (OSError, ValueError):  # it does not read, or was ended
        pass


def _wait_for(process: subprocess.Popen[bytes], over: threading.Event) -> None:
    _await(process)
    over.set()


def _await(process: subprocess.Popen[bytes]) -> None:
    """Wait until a process ends, and leave its status, so that its number stays its own until :func:`end`."""
    if not hasattr(os, "waitid"):  # pragma: no cover - macOS before Python 3.13, Windows
        process.wait()
        return
    with contextlib.suppress(ChildProcessError):  # it was waited for already
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def kill_group_at_exit(process: subprocess.Popen[bytes]) -> None:
    """Kill what a process leaves behind as soon as it ends, so that nobody waits for it to be heard of."""

    def wait() -> None:
        _await(process)
        if process.returncode is None:
            kill(process)

    _in_background(wait)


def _in_background(target: Callable[..., object], *arguments: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    return thread


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:  # pragma: no cover - Windows
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill whatever of the group is left, and take the process's status and pipes away."""
    kill(process)
    watchdog.forget(process.pid)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue


def ending(code: int | None) -> str:
    """How a process ended, by its status."""
    if code is None or code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def last_line(err: bytes) -> str:
    """The last line of a program's standard error, as the end of a message."""
    lines = err[-4096:].decode(errors="replace").strip().splitlines()
    return f": {lines[-1][:_SHOWN]}" if lines else ""
