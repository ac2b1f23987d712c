"""Progress on a terminal: share done, rate and time left. Nothing at all in a pipe.

The rate is that of designs that are evaluated; what is discarded or never legal is done, but at no speed of its own.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

    from dse.study.progress import Progress

__all__ = ["progress_bar"]

_PATIENCE = 0.5
"""Seconds before the bar appears, so that short searches show none."""


@contextmanager
def progress_bar(label: str = "searching") -> Iterator[Callable[[Progress], None] | None]:
    """Yields what to call with how far a run is; None when standard error is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(label)
    try:
        yield bar.update
    finally:
        bar.close()


class _Bar:
    def __init__(self, label: str) -> None:
        self.label = label
        self.started = time.monotonic()
        self.shown: RichProgress | None = None
        self.before: int | None = None  # what was evaluated when the bar began: a resumed search has a past

    def update(self, reported: Progress) -> None:
        elapsed = time.monotonic() - self.started
        self.before = reported.evaluated if self.before is None else self.before
        if self.shown is None:
            if elapsed < _PATIENCE:
                return
            self._open()
        assert self.shown is not None
        rate = ""
        if reported.evaluated is not None and self.before is not None:
            rate = f"{(reported.evaluated - self.before) / elapsed:,.0f} {reported.unit} evaluated/s"
        self.shown.update(self.shown.task_ids[0], completed=reported.share, rate=rate)

    def _open(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self.shown = Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=4)
        self.shown.add_task(self.label, total=1.0, rate="")
        self.shown.start()

    def close(self) -> None:
        if self.shown is not None:
            self.shown.stop()
