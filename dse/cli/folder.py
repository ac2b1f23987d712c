"""The place that tables and plots are written to, made sure of before a search is run for them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dse.errors import InputError

__all__ = ["writable"]

_NAMED = 3
"""Foreign files that a refusal names."""


@contextmanager
def writable(folder: Path, marker: str = "", problem: str = "", *, force: bool = False) -> Iterator[None]:
    """A block at whose end files are written to ``folder``, which is made; nothing of it stays if the block fails.

    Args:
        marker: the JSON file that says by ``problem.name`` that an earlier run of the command filled the folder. With
            it, other files in the folder are a reason to refuse; without, they are none.
        problem: the name that the marker must have.
        force: whether to write beside and over whatever is there.

    Raises:
        InputError: the folder holds what is not ours, or cannot be written to.
    """
    if marker and not force:
        _check_ours(folder, marker, problem)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            why = "it is a file" if isinstance(error, FileExistsError) else error.strerror or error
            raise InputError(f"cannot write to {folder}: {why}") from None
        yield
    except BaseException:
        for path in made:
            with suppress(OSError):  # something was written
                path.rmdir()
        raise


def _check_ours(folder: Path, marker: str, problem: str) -> None:
    if not folder.is_dir():
        return
    there = sorted(path.name for path in folder.iterdir())
    if not there:
        return
    instead = "give another folder, or --force to write there all the same"
    try:
        earlier = json.loads((folder / marker).read_text(encoding="utf-8"))["problem"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        named = ", ".join(there[:_NAMED]) + (", ..." if len(there) > _NAMED else "")
        raise InputError(f"{folder} holds other files ({named}); {instead}") from None
    if earlier != problem:
        raise InputError(f"{folder} holds the results of {earlier!r}, not of {problem!r}; {instead}")
