"""Sentences with ``{name}`` and ``{name.column}`` in them, filled in from a design. Never ``str.format``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dse.errors import ExpressionError
from dse.expressions import Scope

__all__ = ["Template", "parse_template", "places"]

_PLACE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_NAME = re.compile(r"\s*([^\W\d]\w*)(?:\.([^\W\d]\w*))?\s*")


@dataclass(frozen=True, slots=True)
class Template:
    """Pieces of text and the nodes whose values stand between them."""

    parts: tuple[str | int, ...] = ()

    @property
    def nodes(self) -> list[int]:
        """The nodes that the sentence mentions."""
        return [part for part in self.parts if isinstance(part, int)]

    def fill(self, texts: Mapping[int, str] | Callable[[int], str]) -> str:
        """The sentence, with a text for every node."""
        lookup = texts if callable(texts) else texts.__getitem__
        return "".join(part if isinstance(part, str) else lookup(part) for part in self.parts)

    def __bool__(self) -> bool:
        return bool(self.parts)


def places(text: str) -> list[str]:
    """What stands in braces in ``text``, such as ``name`` or ``name.column``; ``{{`` and ``}}`` are braces."""
    return [match[1].strip() for match in _PLACE.finditer(text) if match[1] is not None]


def parse_template(text: str, scope: Scope) -> Template:
    """Read a sentence; ``{{`` and ``}}`` are braces.

    Raises:
        ExpressionError: a place that names nothing declared.
    """
    parts: list[str | int] = []
    at = 0
    for match in _PLACE.finditer(text):
        if match.start() > at:
            parts.append(text[at : match.start()])
        at = match.end()
        if match[0] in ("{{", "}}"):
            parts.append(match[0][0])
            continue
        inner = match[1]
        name = _NAME.fullmatch(inner) if inner is not None else None
        if name is None:
            raise ExpressionError(
                f"expected {{name}} or {{name.column}}, but found {match[0]!r}", match.start()
            )
        try:
            parts.append(scope.column(name[1], name[2]) if name[2] else scope.value(name[1]))
        except ExpressionError as error:
            error.offset = match.start()
            raise
    if at < len(text):
        parts.append(text[at:])
    return Template(tuple(parts))
