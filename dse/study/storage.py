"""The trials of a study, in its database.

A trial that is RUNNING has a lease: who runs it, and since when. Here all owners but the one writer are dead, so their
trials are given back; the lease is what several machines would go by.
"""

from __future__ import annotations

import json
import os
import platform
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dse.errors import StudyError
from dse.problem import Design
from dse.study.database import DATABASE, SET_FACT, Database
from dse.study.identity import Coder
from dse.study.trial import Trial, TrialState

__all__ = ["DATABASE", "Lease", "Storage", "new_owner"]

_TRIAL = "SELECT number, batch, design, state, objectives, violations, metrics, reason FROM trials"

_FINISH = (
    "UPDATE trials SET state = ?, objectives = ?, violations = ?, metrics = ?, reason = ?, owner = '', since = 0 "
    "WHERE number = ?"
)

WAITING = "WAITING"
"""The state of a design that was proposed and not begun; it is no trial yet."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who runs a trial (``host:process:nonce``), and since when: seconds of :func:`time.time`."""

    owner: str
    since: float


def new_owner() -> str:
    """A name under which trials are run, of this process and of nobody else."""
    return f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"


class Storage(Database):
    """The trials and facts of one study.

    Args:
        coder: tells the index of designs that are read back.
        folder: where the study is kept; None keeps it in memory.
    """

    def __init__(self, coder: Coder, folder: Path | None = None) -> None:
        self.coder = coder
        super().__init__(folder)

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
            (SET_FACT, [(name, json.dumps(value)) for name, value in (facts or {}).items()]),
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
