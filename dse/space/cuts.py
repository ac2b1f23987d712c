"""Find unquoted expressions that a comma of a flow collection has cut: ``{expr: max(a, b), unit: ms}``."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Items
from dataclasses import replace

from dse.space.nodes import Node, Scalar

__all__ = ["balance", "join_cut_entries", "join_cut_items"]

_MOST_PARTS = 100


def balance(text: str) -> int:
    """Opening minus closing brackets."""
    return sum(text.count(c) for c in "([{") - sum(text.count(c) for c in ")]}")


def join_cut_items(items: Items[Node]) -> tuple[list[Node], list[int]]:
    """The items with cut expressions joined again, and the new positions of the joined ones.

    ``[max(a, b), 3]`` has the items ``max(a``, ``b)`` and ``3``; they become ``max(a, b)`` and ``3``.
    """
    _, values, cuts = _join(items, lambda position: _unquoted(items[position]))
    return values, cuts


def join_cut_entries(
    names: Items[tuple[str, bool]], items: Items[Node]
) -> tuple[list[int], list[Node], list[int]]:
    """The positions of the entries to keep, their values with cut expressions joined, and which of these were cut.

    ``names`` are the keys with whether each was quoted. ``{expr: max(a, b), unit: ms}`` has the keys ``expr``,
    ``b)`` (without a value) and ``unit``.
    """

    def bare_key(position: int) -> str | None:
        (name, quoted), value = names[position], items[position]
        bare = not quoted and isinstance(value, Scalar) and value.value is None and not value.text
        return name if bare else None

    return _join(items, bare_key)


def _join(items: Items[Node], part: Callable[[int], str | None]) -> tuple[list[int], list[Node], list[int]]:
    """Join each value that has open brackets with the parts after it that close them.

    ``part`` gives the text at a position when it can be the rest of an expression.
    """
    parts = [part(position) for position in range(len(items))]
    closing = [None if text is None else balance(text) for text in parts]
    kept: list[int] = []
    values: list[Node] = []
    cuts: list[int] = []
    position = 0
    while position < len(items):
        value = items[position]
        end = _end(value, position + 1, closing)
        if end > position + 1 and isinstance(value, Scalar):
            text = ", ".join([value.text, *(parts[k] or "" for k in range(position + 1, end))])
            value = replace(value, value=text, text=text, verbatim=False)
            cuts.append(len(kept))
        kept.append(position)
        values.append(value)
        position = end
    return kept, values, cuts


def _end(first: Node, start: int, closing: Items[int | None]) -> int:
    """Where the parts end that complete the first text; ``start`` when it is whole or cannot be completed."""
    text = _unquoted(first)
    open_brackets = balance(text) if text else 0
    if open_brackets <= 0:
        return start
    for position in range(start, min(len(closing), start + _MOST_PARTS)):
        change = closing[position]
        if change is None:
            return start
        open_brackets += change
        if open_brackets <= 0:
            return position + 1
    return start


def _unquoted(node: Node) -> str | None:
    return node.text if isinstance(node, Scalar) and not node.quoted else None
