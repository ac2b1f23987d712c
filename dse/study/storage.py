"""The record of a study: trials and the checkpoint of an exact search, in a folder or in memory.

On disk it is one SQLite file in WAL mode, synchronized at every commit, so that a kill at any instant loses nothing
that was committed. One process writes, guarded by a lock; others may read, and change nothing by it: a folder that
cannot be written to can be read.

A trial that is RUNNING has a lease: who runs it, and since when. Here all owners but the one writer are dead, so their
trials are given back; the lease is what several machines would go by.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import sqlite3
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dse.errors import StudyError
from dse.problem import Design
from dse.study.files import Lock
from dse.study.identity import Coder
from dse.study.manifest import MANIFEST
from dse.study.trial import Trial, TrialState

__all__ = ["DATABASE", "Lease", "Storage", "new_owner"]

DATABASE = "study.sqlite"
_LOCK = ".lock"

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

_TRIAL = "SELECT number, batch, design, state, objectives, violations, metrics, reason FROM trials"

_FINISH = (
    "UPDATE trials SET state = ?, objectives = ?, violations = ?, metrics = ?, reason = ?, owner = '', since = 0 "
    "WHERE number = ?"
)
_SET_FACT = "INSERT OR REPLACE INTO facts VALUES (?, ?)"

WAITING = "WAITING"
"""The state of a design that was proposed and not begun; it is no trial yet."""

_UNWRITTEN = "unwritten"
"""The fact that the record changed since the outputs were written."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who runs a trial (``host:process:nonce``), and since when: seconds of :func:`time.time`."""

    owner: str
    since: float


def new_owner() -> str:
    """A name under which trials are run, of this process and of nobody else."""
    return f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"


class Storage:
    """The trials and facts of one study.

    Args:
        coder: tells the index of designs that are read back.
        folder: where the study is kept; None keeps it in memory.
    """

    def __init__(self, coder: Coder, folder: Path | None = None) -> None:
        self.coder = coder
        self.folder = folder
        self._lock = None if folder is None else Lock(folder / _LOCK)
        self._database: sqlite3.Connection | None = None
        if folder is None:
            self._database = _connect(":memory:")
            self.prepare()

    # -- opening ----------------------------------------------------------------------------------

    @property
    def writable(self) -> bool:
        """Whether this process may write to the study now."""
        return self._lock is None or self._lock.held

    @property
    def exists(self) -> bool:
        """Whether there is anything to read."""
        return self.folder is None or (self.folder / DATABASE).is_file()

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
        """Make the tables, if they are not there.

        Raises:
            StudyError: the file is damaged.
        """
        try:
            self._open().executescript(_TABLES)
        except sqlite3.Error as error:
            raise self._damaged(error) from error

    def release(self) -> None:
        """Let others write."""
        if self.folder is not None:
            if self._database is not None:
                self._database.close()
                self._database = None
            if self._lock is not None:
                self._lock.release()

    @property
    def empty(self) -> bool:
        """Whether nothing was recorded: no design proposed, no checkpoint saved."""
        rows = self._read("SELECT count(*) FROM trials")
        return not (rows and rows[0][0]) and self.checkpoint() is None

    def discard(self) -> None:
        """Remove what an empty study left in its folder, and the folder if nothing else is in it."""
        assert self.folder is not None
        if self._database is not None:
            self._database.close()
            self._database = None
        for name in (MANIFEST, DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", _LOCK):
            (self.folder / name).unlink(missing_ok=True)
        with suppress(OSError):
            self.folder.rmdir()
        self.release()

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            assert self.folder is not None
            try:
                if self.writable:
                    self._database = _connect(str(self.folder / DATABASE))
                    self._database.execute("PRAGMA journal_mode=WAL")
                    self._database.execute("PRAGMA synchronous=FULL")
                else:
                    self._database = self._reader()
            except sqlite3.Error as error:
                if self._database is not None:
                    self._database.close()
                    self._database = None
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
            if not self.writable and self._database is not None:
                self._database.close()
                self._database = None

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

    # -- trials -----------------------------------------------------------------------------------

    def trials(self) -> list[Trial]:
        """All trials that were begun, in order of their numbers.

        Raises:
            StudyError: the log is damaged; says where.
        """
        rows = self._read(f"{_TRIAL} WHERE state != ? ORDER BY number", (WAITING,))
        return [self._trial(row) for row in rows]

    def proposed(self) -> list[Trial]:
        """All designs that were proposed, as trials; those not begun are RUNNING."""
        return [self._trial(row) for row in self._read(f"{_TRIAL} ORDER BY number")]

    def leases(self) -> dict[int, Lease]:
        """The leases of the trials that are RUNNING, by their numbers."""
        rows = self._read(
            "SELECT number, owner, since FROM trials WHERE state = ?", (TrialState.RUNNING.value,)
        )
        return {number: Lease(owner, since) for number, owner, since in rows}

    def _trial(self, row: tuple[Any, ...]) -> Trial:
        number, batch, design, state, objectives, violations, metrics, reason = row
        try:
            key = self.coder.key(json.loads(design))
            return Trial(
                number,
                self.coder.design(key),
                self.coder.index(key),
                TrialState.RUNNING if state == WAITING else TrialState(state),
                batch,
                tuple(json.loads(objectives)),
                tuple(json.loads(violations)),
                json.loads(metrics),
                reason,
            )
        except Exception as error:  # whatever a damaged row holds, it is named
            raise StudyError(f"{self._place}: trial {number} is damaged: {error}") from error

    def propose(
        self, batch: int, first: int, designs: list[Design], facts: Mapping[str, Any] | None = None
    ) -> None:
        """Record a batch of designs, numbered from ``first``, and facts that come with it, all or none."""
        rows = [(first + at, batch, json.dumps(design), WAITING) for at, design in enumerate(designs)]
        self._write(
            ("INSERT INTO trials (number, batch, design, state) VALUES (?, ?, ?, ?)", rows),
            (_SET_FACT, [(name, json.dumps(value)) for name, value in (facts or {}).items()]),
        )

    def begin(self, number: int, owner: str = "") -> None:
        """A proposed design becomes a trial that ``owner`` runs."""
        row = (TrialState.RUNNING.value, owner, time.time(), number)
        self._write(("UPDATE trials SET state = ?, owner = ?, since = ? WHERE number = ?", [row]))

    def finish(self, trials: Iterable[Trial]) -> None:
        """Record the outcome of trials, all or none."""
        rows = [
            (
                trial.state.value,
                json.dumps(trial.objectives),
                json.dumps(trial.violations),
                json.dumps(dict(trial.metrics)),
                trial.reason,
                trial.number,
            )
            for trial in trials
        ]
        self._write((_FINISH, rows))

    def give_back(self, keeper: str | None = None) -> None:
        """Trials that are RUNNING are to be run again, but for those of ``keeper``."""
        row = (WAITING, TrialState.RUNNING.value, keeper)
        self._write(
            ("UPDATE trials SET state = ?, owner = '', since = 0 WHERE state = ? AND owner IS NOT ?", [row])
        )

    # -- facts ------------------------------------------------------------------------------------

    def fact(self, name: str) -> Any:
        """A JSON value stored under ``name``; None when there is none."""
        rows = self._read("SELECT value FROM facts WHERE name = ?", (name,))
        return json.loads(rows[0][0]) if rows else None

    def set_facts(self, values: Mapping[str, Any]) -> None:
        """Store JSON values; those that are stored already are no change."""
        rows = [(name, json.dumps(value)) for name, value in values.items() if self.fact(name) != value]
        self._write((_SET_FACT, rows))

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
