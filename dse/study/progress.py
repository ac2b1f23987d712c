"""How far a run is, how long it took, and Ctrl-C."""

from __future__ import annotations

import platform
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType
from typing import Any, Literal

from dse import __version__

__all__ = ["Clock", "Interrupts", "Progress", "interruptible"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. ``total`` is None when it runs until a timeout; ``elapsed`` is in seconds.

    ``done`` counts all that is accounted for, ``evaluated`` those that were computed or measured; None where that is not
    counted.
    """

    done: int
    total: int | None
    share: float
    unit: Literal["designs", "trials", "combinations"]
    elapsed: float
    evaluated: int | None = None


class Clock:
    """When a run began, and what its ``run`` section says."""

    def __init__(self, workers: int) -> None:
        self.began = time.monotonic()
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.workers = workers

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return time.monotonic() - self.began

    def facts(self, done: int, unit: str) -> dict[str, Any]:
        """The ``run`` section of a result."""
        seconds = self.elapsed
        return {
            "started": self.started,
            "seconds": round(seconds, 3),
            f"{unit}_per_second": round(done / seconds, 1) if seconds > 0 else None,
            "workers": self.workers,
            "host": platform.node(),
            "python": platform.python_version(),
            "dse": __version__,
        }


class Interrupts:
    """Whether Ctrl-C was pressed. It breaks off nothing but what is under :meth:`breakable`."""

    def __init__(self) -> None:
        self.asked = False
        self._breakable = False

    @contextmanager
    def breakable(self) -> Iterator[None]:
        """A block that Ctrl-C breaks off with KeyboardInterrupt: it may take long, and it changes nothing."""
        try:
            self._breakable = True
            if self.asked:
                raise KeyboardInterrupt
            yield
        finally:
            self._breakable = False

    def ask(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-C was pressed; the second time, nothing holds it back."""
        again, broken = self.asked, self._breakable
        self.asked, self._breakable = True, False
        if again or broken:
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Holds Ctrl-C back, so that a block is not broken off in its middle.

    Outside the main thread, where Python delivers no signals, nothing is ever asked.
    """
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    before = signal.signal(signal.SIGINT, interrupts.ask)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
