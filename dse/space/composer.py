"""Compose ruamel's events into nodes, without recursion and within limits.

Scalars are typed here by the YAML 1.2 core schema; tags, merge keys and duplicate keys are refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf
from typing import Any

from ruamel.yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    MappingStartEvent,
    ScalarEvent,
)

from dse.errors import Diagnostic, Location, SpaceError
from dse.space.cuts import balance, join_cut_entries, join_cut_items
from dse.space.nodes import Mapping, Node, Scalar, Sequence, describe, show_path
from dse.space.scalars import Plain, read_plain

__all__ = ["ALIAS_LIMIT", "NESTING_LIMIT", "NODE_LIMIT", "Composer"]

NESTING_LIMIT = 64
ALIAS_LIMIT = 1_000  # counting those inside what an alias stands for
NODE_LIMIT = 200_000  # more than a file of the largest size holds without aliases

_CUT = "expected the whole expression; quote this expression: a comma ended it"


@dataclass(slots=True)
class _Size:
    """What a subtree counts against the limits."""

    nodes: int = 1
    aliases: int = 0
    height: int = 0

    def add(self, child: _Size) -> None:
        self.nodes += child.nodes
        self.aliases += child.aliases
        self.height = max(self.height, child.height + 1)


@dataclass(slots=True)
class _Frame:
    """A list or mapping that is being read: finished children, and a mapping's keys (text, place, quoted)."""

    start: Location
    mapping: bool
    flow: bool
    anchor: str | None
    items: list[Node] = field(default_factory=list)
    names: list[tuple[str, Location, bool]] = field(default_factory=list)
    size: _Size = field(default_factory=lambda: _Size(height=1))

    @property
    def wants_key(self) -> bool:
        return self.mapping and len(self.names) == len(self.items)


class Composer:
    """Builds a tree from events, one at a time. ``root`` is the result, ``found`` what is wrong with it."""

    def __init__(self, file: str) -> None:
        self.root: Node | None = None
        self.found: list[Diagnostic] = []
        self._file = file
        self._stack: list[_Frame] = []
        self._anchors: dict[str, tuple[Node, _Size]] = {}
        self._total = _Size(0)
        self._documents = 0

    def take(self, event: Any) -> None:
        """Add one event of ruamel's parser (ruamel gives them no common type).

        Raises:
            SpaceError: a limit is passed, or the tree makes no sense beyond this event.
        """
        match event:
            case ScalarEvent() if self._wants_key:
                self._key(event)
            case ScalarEvent():
                self._scalar(event)
            case CollectionStartEvent():
                self._open(event)
            case CollectionEndEvent():
                self._close()
            case AliasEvent():
                self._alias(event)
            case DocumentStartEvent():
                self._start_document(event)

    def stop(self, where: Location, message: str) -> SpaceError:
        """The error to raise when reading cannot go on: everything found so far, and this."""
        self._report(where, message)
        return SpaceError(self.found)

    @property
    def _wants_key(self) -> bool:
        return bool(self._stack) and self._stack[-1].wants_key

    def _report(self, where: Location, message: str, *more: str | int) -> None:
        self.found.append(Diagnostic(where, show_path((*self._path(), *more)), message))

    def _path(self) -> Iterator[str | int]:
        for frame in self._stack:
            if not frame.mapping:
                yield len(frame.items)
            elif frame.names and not frame.wants_key:
                yield frame.names[-1][0]

    def _where(self, mark: Any) -> Location:
        return Location(self._file, mark.line + 1, mark.column + 1)

    def _start_document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise self.stop(self._where(event.start_mark), "found a second document, expected one")
        if event.tags or (event.version and tuple(event.version) != (1, 2)):
            where = Location(self._file, 1, 1)
            raise self.stop(where, "found a YAML directive, expected none (files are read as YAML 1.2)")

    # ------------------------------------------------------------------------------------------ one event

    def _key(self, event: Any) -> None:
        where, quoted, text = self._where(event.start_mark), bool(event.style), str(event.value)
        self._refuse_tag(event)
        if text == "<<" and not quoted:
            self._report(
                where, "found the merge key '<<', expected a name; write the keys out or use 'extends'"
            )
        elif not text:
            self._report(where, "found an empty key, expected a name")
        if event.anchor:
            self._anchors[event.anchor] = (Scalar(where, text, text, quoted), _Size())
        self._stack[-1].names.append((text, where, quoted))

    def _scalar(self, event: Any) -> None:
        self._refuse_tag(event)
        text, quoted, inline = str(event.value), bool(event.style), event.style not in {"|", ">"}
        start, end = event.start_mark, event.end_mark
        where = self._where(start).shifted(1 if quoted and inline else 0)
        length = end.index - start.index - (2 if quoted else 0)
        value: Plain = text
        if not quoted:
            try:
                value = read_plain(text)
            except ValueError as error:
                self._report(where, f"found {error}")
                value = inf  # reported; later checks take it for a number
        self._count(where, 1, 0)
        verbatim = inline and start.line == end.line and length == len(text)
        self._place(Scalar(where, value, text, quoted, verbatim), _Size(), event.anchor)

    def _open(self, event: Any) -> None:
        where, mapping = self._where(event.start_mark), isinstance(event, MappingStartEvent)
        if self._wants_key:
            raise self.stop(where, f"found a {'mapping' if mapping else 'list'} as a key, expected a name")
        self._refuse_tag(event)
        if len(self._stack) >= NESTING_LIMIT:
            raise self.stop(
                where, f"found more than {NESTING_LIMIT} levels of nesting, expected at most that"
            )
        self._count(where, 1, 0)
        self._stack.append(_Frame(where, mapping, bool(event.flow_style), event.anchor))

    def _close(self) -> None:
        frame = self._stack.pop()
        node = self._mapping(frame) if frame.mapping else self._sequence(frame)
        self._place(node, frame.size, frame.anchor)

    def _alias(self, event: Any) -> None:
        where, name = self._where(event.start_mark), f"the alias '*{event.anchor}'"
        if self._wants_key:
            raise self.stop(where, f"found {name} as a key, expected a name")
        if any(frame.anchor == event.anchor for frame in self._stack):
            raise self.stop(where, f"found {name} inside what it stands for, expected no cycle")
        if event.anchor not in self._anchors:
            raise self.stop(
                where, f"found {name}, expected an anchor before it; quote a text that starts with '*'"
            )
        node, size = self._anchors[event.anchor]
        if len(self._stack) + size.height > NESTING_LIMIT:
            raise self.stop(
                where, f"found more than {NESTING_LIMIT} levels of nesting, expected at most that"
            )
        self._count(where, size.nodes, size.aliases + 1)
        self._place(node, _Size(size.nodes, size.aliases + 1, size.height), None)

    def _refuse_tag(self, event: Any) -> None:
        if event.tag is not None:
            where = self._where(event.start_mark)
            tag = str(event.tag).replace("tag:yaml.org,2002:", "!!")
            self._report(where, f"found the tag {tag!r}, expected none; quote a text that starts with '!'")

    def _count(self, where: Location, nodes: int, aliases: int) -> None:
        self._total.nodes += nodes
        self._total.aliases += aliases
        if self._total.aliases > ALIAS_LIMIT:
            raise self.stop(where, f"found more than {ALIAS_LIMIT:,} aliases, expected at most that")
        if self._total.nodes > NODE_LIMIT:
            raise self.stop(where, f"found more than {NODE_LIMIT:,} values, expected at most that")

    def _place(self, node: Node, size: _Size, anchor: str | None) -> None:
        """Put a finished node into its parent, or make it the root."""
        if anchor:
            self._anchors[anchor] = (node, size)
        if self._stack:
            self._stack[-1].items.append(node)
            self._stack[-1].size.add(size)
        else:
            self.root = node

    # -------------------------------------------------------------------------------- finished collections

    def _sequence(self, frame: _Frame) -> Sequence:
        if not frame.flow:
            return Sequence(frame.start, tuple(frame.items))
        items, cuts = join_cut_items(frame.items)
        for index in cuts:
            self._report(items[index].location, f"found a part of {describe(items[index])}, {_CUT}", index)
        return Sequence(frame.start, tuple(items))

    def _mapping(self, frame: _Frame) -> Mapping:
        kept, values = list(range(len(frame.items))), list(frame.items)
        if frame.flow:
            kept, values, cuts = join_cut_entries([(text, quoted) for text, _, quoted in frame.names], values)
            for index in cuts:
                value, key = values[index], frame.names[kept[index]][0]
                self._report(value.location, f"found a part of {describe(value)}, {_CUT}", key)
        entries: dict[str, Node] = {}
        keys: dict[str, Location] = {}
        for index, value in zip(kept, values, strict=True):
            text, where, quoted = frame.names[index]
            if text == "<<" and not quoted:
                continue
            if text in entries:
                old = keys[text]
                first = f"column {old.column}" if old.line == where.line else f"line {old.line}"
                message = f"found the key {text!r} again (first on {first}), expected it once"
                self._report(where, message, text)
                continue
            if frame.flow and not quoted and balance(text):
                self._report(where, f"found the key {text!r}, {_CUT}", text)
                continue
            entries[text], keys[text] = value, where
        return Mapping(frame.start, entries, keys)
