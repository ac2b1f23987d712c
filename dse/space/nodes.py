"""The tree of a space file. Every node knows its place; scalars keep the text they were written as."""

from __future__ import annotations

from dataclasses import dataclass

from dse.errors import Location
from dse.space.scalars import Plain

__all__ = [
    "Mapping",
    "Node",
    "Path",
    "Scalar",
    "Sequence",
    "describe",
    "find",
    "locate",
    "locate_key",
    "number_text",
    "plain",
    "show_path",
]

Path = tuple[str | int, ...]
"""Keys and list positions from the root to a node, such as ``("dimensions", "batch", "range", 0)``."""

_SHORTHANDS = frozenset({"default", "choices", "check", "expr", "restrict"})


@dataclass(frozen=True, slots=True)
class Node:
    """Any node. ``location`` is where its value starts; inside the quotes for a quoted scalar."""

    location: Location


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """One value. ``text`` is its source (without quotes), from which numbers can be read exactly.

    ``verbatim`` means that one character of ``text`` is one character of the file, on one line.
    """

    value: Plain
    text: str
    quoted: bool = False
    verbatim: bool = True

    def at(self, offset: int) -> Location:
        """The place of the ``offset``-th character of the text; the start where lines were folded."""
        return self.location.shifted(offset) if self.verbatim else self.location


@dataclass(frozen=True, slots=True)
class Sequence(Node):
    """A list."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Mapping(Node):
    """A mapping in file order; ``keys`` holds the place of every key."""

    entries: dict[str, Node]
    keys: dict[str, Location]


def plain(node: Node) -> object:
    """The node as Python data: dict, list and scalars."""
    match node:
        case Scalar(value=value):
            return value
        case Sequence(items=items):
            return [plain(item) for item in items]
        case Mapping(entries=entries):
            return {key: plain(value) for key, value in entries.items()}
    raise TypeError(f"not a node: {node!r}")


def find(node: Node, path: Path) -> Node | None:
    """The node at ``path``, or None.

    A shorthand stands for its own single field: ``("inputs", "n", "default")`` finds the value of ``n: 8``,
    ``("dimensions", "d", "choices", 0)`` the first item of ``d: [1, 2]``.
    """
    last, depth = _descend(node, path)
    return last if depth == len(path) else None


def locate(node: Node, path: Path, offset: int = 0) -> Location:
    """Where the value at ``path`` starts, or its nearest ancestor that exists.

    ``offset`` counts characters of a scalar's text, for a place inside an expression.
    """
    last, depth = _descend(node, path)
    return last.at(offset) if isinstance(last, Scalar) and depth == len(path) else last.location


def locate_key(node: Node, path: Path) -> Location:
    """Where the key that ends ``path`` stands; for a list item or a missing key, the nearest ancestor's key."""
    for length in range(len(path), 0, -1):
        parent, step = find(node, path[: length - 1]), path[length - 1]
        if isinstance(parent, Mapping) and step in parent.keys:
            return parent.keys[str(step)]
    return node.location


def number_text(node: Scalar) -> str:
    """A scalar's source text; ``0x1F`` and ``0o17`` in decimal, truth values in lower case."""
    if isinstance(node.value, bool):
        return str(node.value).lower()
    return str(node.value) if isinstance(node.value, int) and node.text[:2] in {"0x", "0o"} else node.text


def show_path(path: Path) -> str:
    """The path as users write it: ``dimensions.batch.range``."""
    steps = [str(step) for step in path]
    return ".".join([*steps[:6], "...", *steps[-2:]] if len(steps) > 9 else steps)


def describe(node: Node | None) -> str:
    """What was found, for messages: ``'on' (text)``, ``3``, ``nothing``, ``a list``."""
    match node:
        case Scalar(value=None):
            return "nothing"
        case Scalar(value=str(value)):
            return f"{_shortened(value)!r}"
        case Scalar(text=text):
            return _shortened(text)
        case Sequence(items=items):
            return f"a list of {len(items)}" if items else "an empty list"
        case Mapping(entries=entries):
            return f"a mapping ({_shortened(', '.join(entries))})" if entries else "an empty mapping"
    return "nothing"


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def _descend(node: Node, path: Path) -> tuple[Node, int]:
    """The deepest node on the path and how many steps lead to it."""
    for depth, step in enumerate(path):
        child = _child(node, step)
        if child is None:
            return node, depth
        node = child
    return node, len(path)


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(node, Mapping):
        if step == "restrict" and step not in node.entries:
            return node
        return node.entries.get(str(step))
    if isinstance(node, Sequence) and isinstance(step, int):
        return node.items[step] if 0 <= step < len(node.items) else None
    return node if step in _SHORTHANDS else None
