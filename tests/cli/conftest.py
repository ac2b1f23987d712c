"""Running the command line inside the test process."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from dse.cli import main


@dataclass(frozen=True)
class Ran:
    """How a command ended: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


Dse = Callable[..., Ran]


@pytest.fixture
def dse(monkeypatch: pytest.MonkeyPatch) -> Dse:
    """Runs ``dse WORDS...`` 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("DSE_DEBUG", raising=False)

    def run(*words: str | Path) -> Ran:
        done = CliRunner().invoke(main, list(map(str, words)), prog_name="dse")
        assert "Traceback" not in done.output
        return Ran(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], Path]:
    """Writes a space file."""

    def write(text: str, name: str = "space.yaml") -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture
def snapshot() -> Callable[[str, str], None]:
    """Compares an output with the stored one; ``DSE_UPDATE_SNAPSHOTS=1`` stores it instead."""

    def check(name: str, text: str) -> None:
        path = SNAPSHOTS / f"{name}.txt"
        if os.environ.get("DSE_UPDATE_SNAPSHOTS"):
            SNAPSHOTS.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")
        assert [line for line in text.splitlines() if len(line) > 80] == []

    return check
