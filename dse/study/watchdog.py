"""Nothing that a study started outlives it, even when it is killed without a chance to clean up.

A measuring program runs in a process group of its own, so that a timeout ends all of it. One small process (this file,
run as a script) is told of every group, and kills those that are left when its standard input closes, which it does
when the study's process ends in whatever way. Worker processes of a pool watch their parent themselves.
"""

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

__all__ = ["before_it_starts", "end_with_parent", "forget", "watch"]


class _Watchdog:
    """The watching process of this process; started when it is first needed, and anew in a fork."""

    def __init__(self) -> None:
        self.groups: set[int] = set()
        self.lock = threading.Lock()
        self.process: subprocess.Popen[bytes] | None = None
        self.owner = 0

    def tell(self, sign: str, group: int) -> None:
        """``+``: watch a group; ``-``: forget it."""
        with self.lock:
            if self.owner != os.getpid():
                self._start(set())
            (self.groups.add if sign == "+" else self.groups.discard)(group)
            try:
                self._write(f"{sign}{group}\n")
            except OSError:  # somebody killed it
                self._start(self.groups)

    def _start(self, groups: set[int]) -> None:
        if self.process is not None:
            if self.owner != os.getpid():
                self.process.returncode = 0  # it is our parent's; not ours to wait for
            self.close()
        self.groups, self.owner = groups, os.getpid()
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._write("".join(f"+{group}\n" for group in groups))

    def _write(self, text: str) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def pipe(self) -> int:
        """The number of the pipe that the watching process reads; it is started if need be."""
        with self.lock:
            if self.owner != os.getpid() or self.process is None:
                self._start(set())
            assert self.process is not None
            assert self.process.stdin is not None
            return self.process.stdin.fileno()

    def close(self) -> None:
        """Let it end."""
        if self.process is not None:
            assert self.process.stdin is not None
            with contextlib.suppress(OSError):
                self.process.stdin.close()
            self.process.wait()
            self.process = None


_watchdog = _Watchdog()


def before_it_starts() -> Callable[[], None] | None:
    """What a new process runs before its program: it has itself watched, so that no kill can come in between."""
    if not hasattr(os, "killpg"):
        return None
    pipe = _watchdog.pipe()

    def register() -> None:
        with contextlib.suppress(OSError):
            os.write(pipe, b"+%d\n" % os.getpid())

    return register


def watch(group: int) -> None:
    """Have a process group killed when this process ends; where there are no process groups, do nothing."""
    if hasattr(os, "killpg"):
        _watchdog.tell("+", group)


def forget(group: int) -> None:
    """The group is gone, or about to be waited for: its number may become another's."""
    if hasattr(os, "killpg"):
        _watchdog.tell("-", group)


@atexit.register
def _close() -> None:
    if _watchdog.owner == os.getpid():
        _watchdog.close()


def end_with_parent() -> None:
    """In a worker process of :mod:`multiprocessing`: end when the parent does, and leave Ctrl-C to it."""
    from multiprocessing import connection, parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is None:
        return

    def wait() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=wait, name="end with parent", daemon=True).start()


def _main() -> None:
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        with contextlib.suppress(OSError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    _main()
