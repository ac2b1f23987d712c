"""Find unquoted expressions that a comma of a flow collection has cut: ``{expr: max(a, b), unit: ms}``."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import replace

from dse.space.nodes import Node, Scalar

__all__ = ["balance", "join_cut_entries", "join_cut_items"]


def balance(text: str) -> int:
    """Opening minus closing brackets."""
    return sum(text.count(c) for c in "([{") - sum(text.count(c) for c in ")]}")


def join_cut_items(items: Items[Node]) -> tuple[list[Node], list[int]]:
    """The items with cut expressions joined again, and the positions of the joined ones.

    ``[max(a, b), 3]`` has the items ``max(a``, ``b)`` and ``3``; they become ``max(a, b)`` and ``3``.
    """
    joined: list[Node] = []
    cuts: list[int] = []
    rest = list(items)
    while rest:
        first, *rest = rest
        length = _cut_length(first, [_unquoted_text(item) for item in rest])
        if length:
            assert isinstance(first, Scalar)
            cuts.append(len(joined))
            first = _join(first, [str(_unquoted_text(item)) for item in rest[:length]])
            rest = rest[length:]
        joined.append(first)
    return joined, cuts


def join_cut_entries(
    names: Items[tuple[str, bool]], items: Items[Node]
) -> tuple[list[int], list[Node], list[int]]:
    """Which entries to keep, their values with cut expressions joined again, and which of them were cut.

    ``names`` are the keys with whether each was quoted. ``{expr: max(a, b), unit: ms}`` has the keys ``expr``,
    ``b)`` (without a value) and ``unit``.
    """
    kept: list[int] = []
    values: list[Node] = []
    cuts: list[int] = []
    position = 0
    while position < len(items):
        later = range(position + 1, len(items))
        length = _cut_length(
            items[position], [names[k][0] if _is_bare(names[k], items[k]) else None for k in later]
        )
        value = items[position]
        if length:
            assert isinstance(value, Scalar)
            value = _join(value, [names[k][0] for k in later[:length]])
            cuts.append(position)
        kept.append(position)
        values.append(value)
        position += length + 1
    return kept, values, cuts


def _cut_length(first: Node, later: Items[str | None]) -> int:
    """How many of the later texts complete the first; 0 when it is whole or cannot be completed."""
    text = _unquoted_text(first)
    open_brackets = balance(text) if text else 0
    if open_brackets <= 0:
        return 0
    for length, part in enumerate(later, 1):
        if part is None:
            return 0
        open_brackets += balance(part)
        if open_brackets <= 0:
            return length
    return 0


def _is_bare(name: tuple[str, bool], value: Node) -> bool:
    """Whether an entry is an unquoted key without a value."""
    return not name[1] and isinstance(value, Scalar) and value.value is None and not value.text


def _unquoted_text(node: Node) -> str | None:
    return node.text if isinstance(node, Scalar) and not node.quoted else None


def _join(first: Scalar, parts: list[str]) -> Scalar:
    text = ", ".join([first.text, *parts])
    return replace(first, value=text, text=text, verbatim=False)
