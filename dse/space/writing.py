"""Writing plain data as the text of a space file that people can read on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from math import isinf
from typing import Any

from dse.space.scalars import read_plain

__all__ = ["as_yaml"]

_WIDTH = 110
_PLAIN = re.compile(r"[A-Za-z_][\w.-]*")


def as_yaml(data: Mapping[str, Any]) -> str:
    """Mappings, lists, texts, numbers, flags and None as YAML that reads back as the same.

    Sections stand one below the other; what has no mapping inside and fits a line stands on one.
    """
    return "\n".join(_block(data, 0)) + "\n"


def _block(data: Mapping[str, Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for key, value in data.items():
        lead = f"{indent}{_text(key)}:"
        if not isinstance(value, Mapping | list | tuple):
            yield f"{lead} {_scalar(value)}"
            continue
        flow = _flow(value)
        if not value or (depth and len(lead) + len(flow) < _WIDTH):
            yield f"{lead} {flow}"
        elif isinstance(value, Mapping):
            yield lead
            yield from _block(value, depth + 1)
        else:
            yield from _filled(f"{lead} [", [_flow(item) for item in value], indent + "  ")


def _filled(lead: str, items: list[str], indent: str) -> Iterator[str]:
    """A list over several lines."""
    line = lead
    for at, item in enumerate(items):
        piece = item + ("," if at + 1 < len(items) else "]")
        if len(line) + len(piece) + 1 > _WIDTH and line.strip():
            yield line
            line = indent
        line += piece if line.endswith("[") or not line.strip() else f" {piece}"
    yield line


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, float) and isinf(value):
        return ".inf" if value > 0 else "-.inf"
    return _text(value) if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> str:
    """A text, in quotes unless it reads back as itself without them."""
    plain = _PLAIN.fullmatch(text) and read_plain(text) == text
    return text if plain else json.dumps(text, ensure_ascii=False)
