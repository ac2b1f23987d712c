"""Plain text for terminals and pipes alike: aligned columns without boxes or colour, wrapped at 80 columns."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Collection, Sequence

__all__ = ["aligned", "blocks", "count", "paragraph", "plural", "whose", "width", "widths", "wrapped"]

GAP = 2
"""Blanks between columns."""

_GLUE = "\N{NO-BREAK SPACE}"
_BETWEEN = re.compile(r"(?<![\w=.])(-?\d(?:[\d.,]*\d)?(?:e[+-]?\d+)?) (?=[A-Za-z%])|(?<=[<>=]) (?=\d)")
"""``57 ms`` and ``<= 10``, up to their blank; but not ``batch=32 chip=old``, which may be broken anywhere."""


def width() -> int:
    """Columns to write in: the terminal's, 80 in a pipe, and within 60 to 120."""
    return max(60, min(120, shutil.get_terminal_size((80, 24)).columns))


def count(number: int) -> str:
    """A count with separators; a very long one is also given as a power of ten."""
    text = f"{number:,}"
    return text if number < 10**21 else f"{text} (about 10^{len(str(number)) - 1})"


def plural(number: int, word: str) -> str:
    """``1 design``, ``480 designs``."""
    return f"{count(number)} {word}{'' if number == 1 else 's'}"


def whose(team: str) -> str:
    """``team ml``; of designs that are told by their values, ``only hardware=h100-sxm``."""
    return f"{'only' if '=' in team else 'team'} {team}"


def widths(rows: Sequence[Sequence[str]]) -> list[int]:
    """The width of each column of ``rows``, all equally long."""
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def aligned(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), indent: int = 0, header: bool = True
) -> list[str]:
    """``rows`` as lines of aligned columns, those in ``right`` to the right. ``header`` rules off the first row."""
    if not rows:
        return []
    sizes = widths(rows)
    lines = []
    for row in rows:
        cells = [
            cell.rjust(size) if at in right else cell.ljust(size)
            for at, (cell, size) in enumerate(zip(row, sizes, strict=True))
        ]
        lines.append((" " * indent + (" " * GAP).join(cells)).rstrip())
    if header:
        lines.insert(1, " " * indent + (" " * GAP).join("-" * size for size in sizes))
    return lines


def blocks(rows: Sequence[Sequence[str]], *, fixed: int, left: int = 0) -> list[str]:
    """``rows`` like :func:`aligned`, in blocks of columns that fit the width; all but ``left`` columns to the right.

    The first ``fixed`` columns stand in every block.
    """
    sizes = widths(rows)
    room = width() - sum(size + GAP for size in sizes[:fixed]) + GAP
    lines: list[str] = []
    at = fixed
    while at < len(sizes):
        end = at + 1
        while end < len(sizes) and sum(size + GAP for size in sizes[at : end + 1]) <= room:
            end += 1
        chosen = [[*row[:fixed], *row[at:end]] for row in rows]
        lines += [*([""] if lines else []), *aligned(chosen, right=set(range(left, len(chosen[0]))))]
        at = end
    return lines


def wrapped(
    rows: Sequence[Sequence[str]], *, right: Collection[int] = (), indent: int = 0, header: bool = False
) -> list[str]:
    """``rows`` like :func:`aligned`, with the last column wrapped under itself."""
    if not rows:
        return []
    heads = aligned([[*row[:-1], "|"] for row in rows], right=right, indent=indent, header=False)
    lines: list[str] = []
    for head, row in zip(heads, rows, strict=True):
        start = head.removesuffix("|")
        room = max(width() - len(start), 20)
        texts = _fill(row[-1], room) or [""]
        lines += [(start + texts[0]).rstrip(), *(" " * len(start) + text for text in texts[1:])]
        if header and row is rows[0]:
            sizes = widths([row[:-1] for row in rows])
            lines.append(" " * indent + (" " * GAP).join("-" * size for size in [*sizes, len(row[-1])]))
    return lines


def paragraph(text: str, *, indent: int = 0, hanging: int = 2) -> list[str]:
    """``text`` wrapped to the width; continued lines stand ``hanging`` further in. A number keeps its unit."""
    return _fill(text, width(), " " * indent, " " * (indent + hanging))


def _fill(text: str, room: int, first: str = "", later: str = "") -> list[str]:
    lines = textwrap.wrap(
        _BETWEEN.sub(lambda found: f"{found[1] or ''}{_GLUE}", text),
        room,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_GLUE, " ") for line in lines]
