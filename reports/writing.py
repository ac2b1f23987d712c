"""The files of a report: which formats are wanted, and writing them whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from dse.errors import InputError, nearest

__all__ = ["wanted_formats", "write"]


def wanted_formats(stem: Path, formats: Sequence[str] | None, known: Sequence[str]) -> tuple[Path, list[str]]:
    """The files' path without suffix, and the formats asked for, each once.

    A suffix of ``stem`` that is a format asks for that format alone, unless ``formats`` says otherwise; without either,
    the first three of ``known`` are wanted.

    Raises:
        InputError: a format is unknown.
    """
    stem = Path(stem)
    suffix = stem.suffix.lower().lstrip(".")
    if suffix in known:
        stem = stem.with_suffix("")
    wanted = formats if formats is not None else (suffix,) if suffix in known else known[:3]
    for form in wanted:
        if form not in known:
            listed = f"{', '.join(known[:-1])} or {known[-1]}"
            raise InputError(f"a plot must be {listed}, but got {form!r}{nearest(form, known)}")
    return stem, list(dict.fromkeys(wanted))


def write(path: Path, data: bytes) -> Path:
    """Write a file whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial.write_bytes(data)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    return path
