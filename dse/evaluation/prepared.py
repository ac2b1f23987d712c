"""What is made of a problem once and used again: it lives as long as the problem object does, and no longer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dse.problem import Problem

__all__ = ["borrowed", "prepared"]

T = TypeVar("T")


def _kept(problem: Problem) -> dict[Hashable, Any]:
    # A problem is pickled, copied and compared by its fields, so this goes nowhere with it.
    kept: dict[Hashable, Any] = problem.__dict__.setdefault("_prepared", {})
    return kept


def prepared(problem: Problem, key: Hashable, make: Callable[[], T]) -> T:
    """What ``make`` returned when it was first asked for under ``key``; must not change in use."""
    kept = _kept(problem)
    if key not in kept:
        kept[key] = make()
    found: T = kept[key]
    return found


@contextmanager
def borrowed(problem: Problem, key: Hashable, make: Callable[[], T]) -> Iterator[T]:
    """The same for what changes in use, such as buffers: whoever holds it holds it alone."""
    idle: list[T] = _kept(problem).setdefault(("idle", key), [])
    try:
        own = idle.pop()
    except IndexError:
        own = make()
    yield own
    idle[:] = [own]  # not after an error, which may have left it anyhow; one is enough
