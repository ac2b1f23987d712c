"""``dse resume``: go on with a search that was stopped."""

from __future__ import annotations

from pathlib import Path

import click

from dse.cli.options import DURATION, code_option, format_option

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
    from dse.study.manifest import Manifest
    from dse.study.study import Study

    check_run(run)
    result = finish(
        Study.open(run, workers=workers, code=code), run, n_trials=n_trials, timeout=timeout, label="resuming"
    )
    report(result, form, run, Manifest.read(run).objective)
    return 0 if result.feasible else 1
