"""The command group: loading on use, exit codes, and what is said when something goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from dse import __version__
from dse.cli.group import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
DSE = [sys.executable, "-m", "dse"]


def process(*words: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A real run of the command line, in a pipe."""
    return subprocess.run([*DSE, *words], cwd=ROOT, capture_output=True, text=True, check=False, **options)


def test_help_names_every_command_and_exit_code(dse: Callable[..., Any]) -> None:
    ran = dse("--help")
    assert ran.code == 0
    assert all(f"  {name} " in ran.out for name in COMMANDS)
    assert all(f"  {code} " in ran.out for code in (0, 1, 2, 3, 4, 70))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(dse: Callable[..., Any], name: str) -> None:
    assert isinstance(import_module(f"dse.cli.commands.{name}").command, click.Command)
    ran = dse(name, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: dse {name}")


def test_help_loads_no_command_and_nothing_heavy() -> None:
    program = (
        "import json, sys\nfrom dse.cli import main\nmain(['--help'], standalone_mode=False)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert {name for name in loaded if name.startswith("dse.cli.commands.")} == set()
    assert not loaded & {"numpy", "pydantic", "rich", "ruamel.yaml", "dse.problem", "dse.units"}


def test_version(dse: Callable[..., Any]) -> None:
    assert dse("--version").out == f"dse, version {__version__}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["serach"], "unknown command 'serach'; did you mean 'search'?"),
        (["show", "camera", "--cuont"], "'--count'"),
        (["show"], "Missing argument 'SPACE'"),
        (["show", "camera", "--set", "max_latency"], "expected name=value"),
        (["show", "camera", "--set", "=5 ms"], "expected name=value"),
        (["search", "camera", "--timeout", "5 GB"], "expected seconds or a duration"),
        (["search", "camera", "--timeout", "0"], "above 0"),
        (["search", "camera", "--timeout", "soon"], "is not a quantity"),
        (["search", "camera", "--seed", "-1"], "--seed"),
        (["search", "camera", "--workers", "0"], "--workers"),
        (["search", "camera", "--format", "xml"], "'table', 'csv', 'json'"),
    ],
)
def test_usage_errors(dse: Callable[..., Any], words: list[str], said: str) -> None:
    ran = dse(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "camrea"], "error: there is no space 'camrea'; did you mean 'camera'?\n"),
        (
            ["show", "tests"],
            "error: 'tests' is a folder, but a space is a YAML file or the name of a shipped space\n",
        ),
        (
            ["show", "missing/x.yaml"],
            "error: there is no file 'missing/x.yaml': the folder 'missing' does not exist\n",
        ),
        (["show", "camera", "--set", "max_latncy=5 ms"], "did you mean 'max_latency'?\n"),
        (["show", "camera", "--set", "max_latency=5"], "write 5 ms\n"),
    ],
)
def test_a_users_mistake_is_one_line(
    dse: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(ROOT)
    ran = dse(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(said)
    assert ran.err.count("\n") == 1


def raising(error: BaseException) -> click.Command:
    """A command that fails."""

    @click.command("list")
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (
            ZeroDivisionError("division by zero"),
            70,
            "error in dse itself: ZeroDivisionError: division by zero. Please report",
        ),
        (KeyboardInterrupt(), 3, "interrupted"),
        (PermissionError(13, "Permission denied", "/x/y"), 2, "error: /x/y: Permission denied"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
    ],
)
def test_endings(
    dse: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, said: str
) -> None:
    monkeypatch.setattr(import_module("dse.cli.commands.list"), "command", raising(error))
    ran = dse("list")
    assert ran.code == code
    assert said in ran.err


@pytest.mark.parametrize("words", [["--debug", "list"], ["list", "--debug"]])
def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    from click.testing import CliRunner

    from dse.cli import main

    monkeypatch.setattr(import_module("dse.cli.commands.list"), "command", raising(ZeroDivisionError("x")))
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 70
    assert "Traceback (most recent call last)" in done.stderr
    assert "ZeroDivisionError: x" in done.stderr


def test_no_colour_and_no_boxes_in_a_pipe() -> None:
    done = process("show", "camera")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert "\x1b" not in done.stdout
    assert done.stderr == ""


def test_a_reader_that_goes_away_is_no_error() -> None:
    program = f"{sys.executable} -m dse schema | head -c 10 >/dev/null; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) in {("141\n", ""), ("0\n", "")}  # 0: the pipe held all of it


@pytest.mark.parametrize("words", ["--help", "search --help", "--version", "show camera", "search camera"])
def test_output_that_cannot_be_written(words: str) -> None:
    def code_of(shell: str) -> tuple[str, str]:
        program = f"{sys.executable} -m dse {words} {shell}"
        done = subprocess.run(["bash", "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout or str(done.returncode), done.stderr

    assert code_of(">&-") == ("141", "")
    assert code_of("| true; echo ${PIPESTATUS[0]}") == ("141\n", "")
    assert code_of(">/dev/full") == ("2", "error: standard output: No space left on device\n")


def test_notes_that_nobody_can_read_stop_nothing(tmp_path: Path) -> None:
    program = f"{sys.executable} -m dse compare camera --out {tmp_path} --format json"
    for shell in ("2>&-", "2>/dev/full", "<&- 2>&-"):
        done = subprocess.run(
            ["bash", "-c", f"{program} {shell}"], cwd=ROOT, capture_output=True, check=False
        )
        assert done.returncode == 0
        assert json.loads(done.stdout)["problem"]["name"] == "camera"


def test_a_closed_stream_gives_its_number_to_no_file() -> None:
    program = (
        "import os; from dse.cli.group import _open_closed; assert _open_closed(); print('lost'); os.fstat(1)"
    )
    done = subprocess.run(
        ["bash", "-c", f'{sys.executable} -c "{program}" >&- 2>&-'],
        cwd=ROOT,
        check=False,
        capture_output=True,
    )
    assert done.returncode == 0
