"""``dse resume``: go on with a search that was stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dse.cli import emit
from dse.cli.options import DURATION, code_option, format_option
from dse.cli.text import plural

if TYPE_CHECKING:
    from dse.study.result import Result

__all__ = ["command"]


@click.command("resume")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--n-trials", type=click.IntRange(min=1), metavar="N", help="Stop when the run has N trials in all."
)
@click.option("--timeout", type=DURATION, help="Stop after this time: seconds, or '2 min'.")
@click.option("--workers", type=click.IntRange(min=1), default=1, metavar="N", help="Processes; default 1.")
@format_option
@code_option()
def command(
    run: Path, *, n_trials: int | None, timeout: float | None, workers: int, form: str, code: bool
) -> int:
    """Continue the search in the folder RUN, which dse search --out wrote.

    Nothing that was finished is done again, and the result is that of a search that was never stopped.
    """
    from dse.cli.commands.search import report
    from dse.cli.loading import check_run
    from dse.cli.running import finish
    from dse.errors import StudyError
    from dse.study.manifest import Manifest
    from dse.study.study import Study

    check_run(run)
    study = Study.open(run, workers=workers, code=code)
    try:
        before = study.result
    except StudyError:  # stopped before there was any
        before = None
    result = finish(study, run, n_trials=n_trials, timeout=timeout, label="resuming")
    if before is not None and (why := _idle(before, result)):
        emit.note(why)
    settled = Manifest.read(run)
    report(result, form, run, settled.objective, ranked=settled.ranked)
    return 0 if result.feasible else 1


def _idle(before: Result, after: Result) -> str:
    """Why there was nothing to do; empty if something was done."""
    if before.status != "stopped":
        return "nothing was left to do: " + (
            "every design was accounted for"
            if before.status == "complete"
            else "every legal design was evaluated"
        )
    if after.promise == "sampling" and after.n_trials == before.n_trials and after.status == "stopped":
        trials = plural(after.n_trials, "trial")
        return f"already at {trials}; use --n-trials M, with M above {after.n_trials:,}, to go on"
    return ""
