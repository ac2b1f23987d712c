"""Comments in written plans: what a user or a downloaded file may have named stays within its line, and is read back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

__all__ = ["one_line", "read_remark", "remark_line"]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_BETWEEN = re.compile(r"[%\s\x00-\x1f\x7f-\x9f]")
_OURS = re.compile(r"#\s*dse:\s*(.*)")


def one_line(text: str) -> str:
    """A text without line ends and other control characters, which become ``%0A`` and the like."""
    return _CONTROL.sub(_escaped, text)


def remark_line(values: Mapping[str, str]) -> str:
    """The comment ``# dse: name=value ...``; blanks within values become ``%20``, as in addresses."""
    pairs = (f"{name}={_BETWEEN.sub(_escaped, value)}" for name, value in values.items())
    return f"# dse: {' '.join(pairs)}"


def read_remark(comment: str) -> dict[str, str]:
    """The values in such a comment; none where it is another."""
    found = _OURS.match(comment)
    values: dict[str, str] = {}
    for pair in found.group(1).split() if found else ():
        name, sign, value = pair.partition("=")
        if sign and name.isidentifier():
            values.setdefault(name, unquote(value))
    return values


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found.group().encode())
