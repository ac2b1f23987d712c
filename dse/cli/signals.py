"""SIGTERM, by which Slurm and Kubernetes preempt a job, ends a command as Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["like_ctrl_c"]


@contextmanager
def like_ctrl_c() -> Iterator[None]:
    """A block in which SIGTERM does what Ctrl-C does at that moment, unless the process treats it otherwise already."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    held_back = signal.getsignal(signal.SIGINT)  # a search that must not be broken off in its middle
    if callable(held_back):
        held_back(signal.SIGINT, frame)
    else:  # Ctrl-C is ignored, as it is for a job in the background of a script
        raise KeyboardInterrupt
