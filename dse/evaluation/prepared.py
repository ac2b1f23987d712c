"""What is made of a problem once and used again: it lives at most as long as the problem object does.

What is large is kept for the last few uses only: of the entries whose keys begin alike, ``most``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dse.problem import Problem

__all__ = ["borrowed", "prepared"]

_LENT = 4  # entries of a kind that change in use, at most; they are large

T = TypeVar("T")


def _kept(problem: Problem) -> dict[Hashable, Any]:
    # A problem is pickled, copied and compared by its fields, so this goes nowhere with it.
    kept: dict[Hashable, Any] = problem.__dict__.setdefault("_prepared", {})
    return kept


def prepared(problem: Problem, key: Hashable, make: Callable[[], T], *, most: int | None = None) -> T:
    """What ``make`` returned when it was first asked for under ``key``; must not change in use.

    With ``most``, only so many are kept of those whose keys begin alike, and the one used longest ago goes first.
    """
    kept = _kept(problem)
    try:
        found: T = kept[key]
    except KeyError:
        found = kept[key] = make()
    if most is not None:
        _use(kept, key, found, most)
    return found


@contextmanager
def borrowed(problem: Problem, key: Hashable, make: Callable[[], T]) -> Iterator[T]:
    """The same for what changes in use, such as buffers: whoever holds it holds it alone. A few are kept of a kind."""
    kept, lent = _kept(problem), ("idle", _kind(key), key)
    idle: list[T] = kept.get(lent, [])
    try:
        own = idle.pop()
    except IndexError:
        own = make()
    yield own
    _use(kept, lent, [own], _LENT)  # not after an error, which may have left it anyhow; one is enough


def _kind(key: Hashable) -> Hashable:
    """What keys of like entries begin with."""
    if not isinstance(key, tuple):
        return key
    return key[:2] if key[0] == "idle" else key[0]


def _use(kept: dict[Hashable, Any], key: Hashable, value: Any, most: int) -> None:
    """Put an entry behind all others, and drop the first ones of its kind beyond ``most``."""
    kept.pop(key, None)
    kept[key] = value
    kind = _kind(key)
    alike = [other for other in list(kept) if _kind(other) == kind]
    for other in alike[: max(0, len(alike) - most)]:
        kept.pop(other, None)
