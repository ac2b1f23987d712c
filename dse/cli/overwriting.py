"""Files that a command is about to write: never its own inputs, and others' files only when that is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from dse.errors import InputError

__all__ = ["check_overwrites"]


def check_overwrites(
    marks: Mapping[Path, tuple[str, ...]],
    inputs: Iterable[Path | None],
    *,
    option: str = "--out",
    force: bool = False,
) -> None:
    """Makes sure that nothing is lost by writing some files.

    Args:
        marks: the files, each with texts one of which the first kilobyte has of a file that was written so before.
        inputs: files that the command reads.
        option: what names the files.
        force: whether files of others may be written over.

    Raises:
        InputError: a file is an input, or is there and has none of its texts.
    """
    read = {path.resolve() for path in inputs if path is not None}
    for path, texts in marks.items():
        if path.resolve() in read:
            raise InputError(
                f"{option}: {path} is read by this command, and writing it would lose it; give another file"
            )
        if force or not path.exists():
            continue
        if path.is_dir():
            raise InputError(f"{option}: {path} is a folder, but a file is needed")
        with path.open("rb") as file:
            start = file.read(1024).decode("utf-8", "replace")
        if not any(text in start for text in texts):
            raise InputError(
                f"{option}: {path} is there and was not written by this command; give another file, "
                "or --force to write over it"
            )
