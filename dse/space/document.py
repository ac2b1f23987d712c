"""Read YAML text into a tree of nodes, within limits that no hostile file can get around."""

from __future__ import annotations

import re
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from dse.errors import Diagnostic, Location, SpaceError
from dse.space.composer import Composer
from dse.space.nodes import Node
from dse.space.syntax import explain_syntax

__all__ = ["SIZE_LIMIT", "parse", "read_text"]

SIZE_LIMIT = 256 * 1024
"""Bytes of one file."""

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_text(path: Path, limit: int = SIZE_LIMIT, advice: str = "put large tables into CSV") -> str:
    """The text of a file of at most ``limit`` bytes of UTF-8; ``advice`` is given when it is larger.

    Raises:
        SpaceError: no such file, too large, or not UTF-8 text; located where the reading stopped.
    """
    where = Location(str(path))
    try:
        if path.is_dir():
            raise _error(where, "found a folder, expected a file")
        if not path.is_file():
            raise _error(where, "no such file")
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except OSError as error:
        raise _error(where, f"the file cannot be read: {error.strerror}") from None
    except ValueError:  # a null character in the name
        raise _error(where, "no such file") from None
    if len(data) > limit:
        raise _error(where, f"found more than {limit:,} bytes, expected at most that; {advice}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8-sig", errors="replace")
        place = _place(str(path), before, len(before))
        raise _error(place, f"found byte 0x{data[error.start]:02x}, expected UTF-8 text") from None


def parse(text: str, file: str = "<text>") -> tuple[Node, tuple[Diagnostic, ...]]:
    """The tree of one YAML document, and what is wrong with it that does not stop the reading.

    Raises:
        SpaceError: the text breaks YAML's syntax or a limit on size, nesting (64 levels) or aliases (1,000).
    """
    if len(text) > SIZE_LIMIT:
        message = (
            f"found {len(text):,} characters, expected at most {SIZE_LIMIT:,}; put large tables into CSV"
        )
        raise _error(Location(file), message)
    bad = _UNPRINTABLE.search(text)
    if bad:
        where = _place(file, text, bad.start())
        raise _error(where, f"found the control character U+{ord(bad[0]):04X}, expected printable text")
    composer = Composer(file)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            composer.take(event)
    except MarkedYAMLError as error:
        line, column, message = explain_syntax(error, text)
        raise composer.stop(Location(file, line, column), message) from None
    except (YAMLError, ValueError) as error:
        raise _error(Location(file), f"the text is not YAML: {error}") from None
    if composer.root is None:
        raise _error(
            Location(file, 1, 1), "found an empty file, expected a mapping that starts with 'dse: 1'"
        )
    return composer.root, tuple(composer.found)


def _error(where: Location, message: str) -> SpaceError:
    return SpaceError([Diagnostic(where, "", message)])


def _place(file: str, text: str, index: int) -> Location:
    line_start = text.rfind("\n", 0, index) + 1
    return Location(file, text.count("\n", 0, index) + 1, index - line_start + 1)
