"""Writing files whole or not at all, and letting one process at a time write to a folder."""

from __future__ import annotations

import contextlib
import csv
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dse.errors import StudyError

__all__ = ["Lock", "csv_columns", "csv_lines", "csv_text", "write_atomic"]


def write_atomic(path: Path, text: str) -> None:
    """Put ``text`` (UTF-8) in the place of ``path``: a reader, or a kill, finds the old content or the new.

    Raises:
        StudyError: the file cannot be written.
    """
    draft = path.with_name(f".{path.name}.tmp")
    try:
        with draft.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise StudyError(f"cannot write {path}: {error.strerror or error}") from error


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    """Rows as CSV with a header; truth values as ``true`` and ``false``, None as nothing."""
    return csv_lines(columns, ([row.get(column) for column in columns] for row in rows))


def csv_lines(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """The same of rows that are in the order of the columns."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(map(_cell, row) for row in rows)
    return buffer.getvalue()


def csv_columns(columns: Mapping[str, Sequence[Any]]) -> str:
    """The same of columns, each of values of one kind or None; much quicker where values repeat."""
    header = csv_lines(columns, ())
    if len(columns) < 2:  # a row of one empty value is quoted
        return csv_lines(columns, zip(*columns.values(), strict=True))
    rows = zip(*map(_texts, columns.values()), strict=True)
    return header + "".join([",".join(row) + "\n" for row in rows])


def _texts(column: Sequence[Any]) -> list[str]:
    """The values of a column as CSV has them."""
    known: dict[Any, str] = {value: _text(value) for value in set(column)}
    return [known[value] for value in column]


def _text(value: object) -> str:
    if isinstance(value, str):
        return csv_lines((value, ""), ())[:-2]  # quoted if need be
    return repr(value) if isinstance(value, float) else str(_cell(value))


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else value


class Lock:
    """Held by the one process that writes to a study's folder; the system frees it when the process ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._file is not None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            StudyError: another process, or another study object, is writing to the folder.
        """
        if self._file is not None:
            return
        try:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise StudyError(f"cannot write to {self.path.parent}: {error.strerror or error}") from error
        try:
            _lock(file)
        except OSError:
            os.close(file)
            raise StudyError(
                f"{self.path.parent} is in use: another search is writing to it; wait for it to end, or stop it"
            ) from None
        self._file = file

    def release(self) -> None:
        """Let others write."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        self.release()


try:
    import fcntl

    def _lock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

except ImportError:  # pragma: no cover - Windows
    import msvcrt

    def _lock(file: int) -> None:
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
