"""The file of a study: one SQLite database in WAL mode, synchronized at every commit.

A kill at any instant loses nothing that was committed. One process writes, guarded by a lock; others may read, and
change nothing by it: a folder that cannot be written to can be read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dse.errors import StudyError
from dse.study.certificate import CERTIFICATE_DRAFT
from dse.study.files import Lock
from dse.study.manifest import MANIFEST

__all__ = ["DATABASE", "DRAFT", "LOCK", "SET_FACT", "Database"]

DATABASE = "study.sqlite"
DRAFT = f".{DATABASE}.tmp"
LOCK = ".lock"

_TABLES = """
CREATE TABLE IF NOT EXISTS trials (
    number INTEGER PRIMARY KEY,
    batch INTEGER NOT NULL,
    design TEXT NOT NULL,
    state TEXT NOT NULL,
    objectives TEXT NOT NULL DEFAULT '[]',
    violations TEXT NOT NULL DEFAULT '[]',
    metrics TEXT NOT NULL DEFAULT '{}',
    reason TEXT NOT NULL DEFAULT '',
    owner TEXT NOT NULL DEFAULT '',
    since REAL NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB NOT NULL);
"""

SET_FACT = "INSERT OR REPLACE INTO facts VALUES (?, ?)"

_SETTINGS = "settings"
"""The fact that keeps what the study was begun with."""

_UNWRITTEN = "unwritten"
"""The fact that the record changed since the outputs were written."""


class Database:
    """The tables of one study, and its facts.

    Args:
        folder: where the study is kept; None keeps it in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._lock = None if folder is None else Lock(folder / LOCK)
        self._database: sqlite3.Connection | None = None

    # -- opening ----------------------------------------------------------------------------------

    @property
    def writable(self) -> bool:
        """Whether this process may write to the study now."""
        return self._lock is None or self._lock.held

    @property
    def exists(self) -> bool:
        """Whether there is anything to read."""
        if self.folder is None:
            return self._database is not None
        return (self.folder / DATABASE).is_file()

    def acquire(self) -> None:
        """Become the one writer; the folder is made if need be, and nothing is put into it but the lock.

        Raises:
            StudyError: another process is writing, or the folder cannot be written to.
        """
        if self.writable or self.folder is None or self._lock is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StudyError(f"cannot make the folder {self.folder}: {error.strerror or error}") from error
        self._lock.acquire()

    def prepare(self) -> None:
        """Make the tables, if they are not there; in memory, they are made when something is written.

        Raises:
            StudyError: the file is damaged.
        """
        if self.folder is None:
            return
        try:
            self._open().executescript(_TABLES)
        except sqlite3.Error as error:
            raise self._damaged(error) from error

    def release(self) -> None:
        """Let others write."""
        if self.folder is not None:
            self._close()
            if self._lock is not None:
                self._lock.release()

    def create(self, settings: Mapping[str, Any]) -> None:
        """Make the file of a new study, whole or not at all; it keeps the settings, so that nobody changes them unseen.

        Raises:
            StudyError: it cannot be made.
        """
        assert self.folder is not None
        self._close()
        draft = self.folder / DRAFT
        try:
            for path in (draft, *self._beside):
                path.unlink(missing_ok=True)
            with closing(_connect(str(draft))) as database:
                database.execute("PRAGMA journal_mode=MEMORY")  # a kill leaves no more than the draft
                database.executescript(_TABLES)
                with database:
                    database.execute(SET_FACT, (_SETTINGS, json.dumps(settings)))
            draft.replace(self.folder / DATABASE)
        except OSError as error:
            raise StudyError(f"cannot write {self._place}: {error.strerror or error}") from error
        except sqlite3.Error as error:
            raise self._damaged(error) from error

    @property
    def settings(self) -> dict[str, Any] | None:
        """What the study was begun with; None when the file does not say so."""
        found = self.fact(_SETTINGS)
        return found if isinstance(found, dict) else None

    @property
    def empty(self) -> bool:
        """Whether nothing was recorded: no design proposed, no checkpoint saved."""
        rows = self._read("SELECT count(*) FROM trials")
        return not (rows and rows[0][0]) and self.checkpoint() is None

    @property
    def _beside(self) -> tuple[Path, ...]:
        """The files that SQLite keeps beside its own."""
        assert self.folder is not None
        return self.folder / f"{DATABASE}-wal", self.folder / f"{DATABASE}-shm"

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def discard(self) -> None:
        """Remove what an empty study left in its folder, and the folder if nothing else is in it."""
        assert self.folder is not None
        self._close()
        ours = (MANIFEST, DATABASE, CERTIFICATE_DRAFT, LOCK)
        for path in (*(self.folder / name for name in ours), *self._beside):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()
        self.release()

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            try:
                if self.folder is None:
                    self._database = _connect(":memory:")
                    self._database.executescript(_TABLES)
                elif self.writable:
                    self._database = _connect(str(self.folder / DATABASE))
                    self._database.execute("PRAGMA journal_mode=WAL")
                    self._database.execute("PRAGMA synchronous=FULL")
                else:
                    self._database = self._reader()
            except sqlite3.Error as error:
                self._close()
                raise self._damaged(error) from error
        return self._database

    def _reader(self) -> sqlite3.Connection:
        """A connection that changes nothing, and leaves no file behind in a folder that nobody writes to."""
        assert self.folder is not None
        place = f"file:{quote(str((self.folder / DATABASE).absolute()))}"
        if not (self.folder / f"{DATABASE}-wal").exists():
            return _connect(f"{place}?immutable=1")
        database = _connect(f"{place}?mode=ro")
        try:
            database.execute("SELECT count(*) FROM sqlite_master").fetchall()
        except sqlite3.OperationalError:
            if (self.folder / f"{DATABASE}-wal").stat().st_size:
                return database  # which says again what is wrong
            database.close()
            return _connect(f"{place}?immutable=1")
        return database

    def _damaged(self, error: Exception) -> StudyError:
        return StudyError(f"{self._place}: the trial log cannot be used: {error}")

    @property
    def _place(self) -> str:
        return "the study in memory" if self.folder is None else str(self.folder / DATABASE)

    def _read(self, statement: str, values: tuple[Any, ...] = ()) -> list[Any]:
        if not self.exists:
            return []
        try:
            with closing(self._open().execute(statement, values)) as rows:
                return rows.fetchall()
        except sqlite3.Error as error:
            if not self.writable and "no such table" in str(error):  # its writer was killed while making them
                return []
            raise self._damaged(error) from error
        finally:
            if not self.writable:
                self._close()

    def _write(self, *steps: tuple[str, Iterable[tuple[Any, ...]]]) -> None:
        """Do all steps or none. If they change anything, the outputs are out of date from then on."""
        if not self.writable:
            raise StudyError(f"{self._place} must be acquired before it is written to")
        try:
            with self._open() as transaction:
                counts = [transaction.executemany(statement, rows).rowcount for statement, rows in steps]
                if any(count > 0 for count in counts):
                    transaction.execute("INSERT OR REPLACE INTO facts VALUES (?, 'true')", (_UNWRITTEN,))
        except sqlite3.Error as error:
            raise self._damaged(error) from error

    # -- facts ------------------------------------------------------------------------------------

    def fact(self, name: str) -> Any:
        """A JSON value stored under ``name``; None when there is none."""
        rows = self._read("SELECT value FROM facts WHERE name = ?", (name,))
        return json.loads(rows[0][0]) if rows else None

    def set_facts(self, values: Mapping[str, Any]) -> None:
        """Store JSON values; those that are stored already are no change."""
        rows = [(name, json.dumps(value)) for name, value in values.items() if self.fact(name) != value]
        self._write((SET_FACT, rows))

    @property
    def unwritten(self) -> bool:
        """Whether the record changed since the outputs were last written."""
        return bool(self.fact(_UNWRITTEN))

    def outputs_written(self) -> None:
        """The outputs in the folder say what the record says."""
        try:
            with self._open() as transaction:
                transaction.execute("DELETE FROM facts WHERE name = ?", (_UNWRITTEN,))
        except sqlite3.Error as error:
            raise self._damaged(error) from error

    def checkpoint(self) -> bytes | None:
        """What an exact search last saved."""
        rows = self._read("SELECT value FROM facts WHERE name = 'checkpoint'")
        return bytes(rows[0][0]) if rows else None

    def save_checkpoint(self, data: bytes) -> None:
        """Keep what an exact search needs to go on; nothing changes if it is what was kept."""
        changed = "INSERT INTO facts VALUES ('checkpoint', ?1) ON CONFLICT (name) DO UPDATE SET value = ?1 WHERE value != ?1"
        self._write((changed, [(data,)]))

    def __del__(self) -> None:
        with suppress(Exception):
            if self._database is not None:
                self._database.close()


def _connect(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=30.0, check_same_thread=False, uri=path.startswith("file:"))
