"""Files that a user names, read whole: none is read without a limit, and what is no regular file is not opened."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dse.errors import InputError

__all__ = ["read_file"]


def read_file(path: Path, limit: int, expected: str) -> str:
    """The text of a file of at most ``limit`` bytes of UTF-8; ``expected`` says what should be in it.

    Raises:
        InputError: there is no such file, or it is a folder, a device, a pipe, empty, too large, or no text.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path}: found a folder, expected {expected}{_inside(path)}")
        if path.samefile(os.devnull):
            raise InputError(f"{path}: found an empty file, expected {expected}")
        if not stat.S_ISREG(mode):
            raise InputError(f"{path}: found a device or a pipe, expected a regular file: {expected}")
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a null character in the name
        raise InputError(f"{path}: found no file, expected {expected}") from None
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read: {error.strerror}") from None
    if len(data) > limit:
        raise InputError(f"{path}: found more than {limit:,} bytes, expected {expected} of at most that")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: found byte {error.start} that is not UTF-8, expected {expected} as text"
        ) from None
    if not text.strip():
        raise InputError(f"{path}: found an empty file, expected {expected}")
    return text


def _inside(path: Path) -> str:
    """The file in a folder that was probably meant."""
    inside = path / "config.json"
    return f"; did you mean {inside}?" if inside.is_file() else ""
