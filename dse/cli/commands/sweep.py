"""``dse sweep``: one search for each value of a setting."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dse.cli import emit
from dse.cli.options import (
    code_option,
    format_option,
    results_options,
    search_options,
    space_argument,
    team_option,
)

if TYPE_CHECKING:
    from dse.study.result import Result

__all__ = ["combinations", "command"]

_MARKER = "sweep.json"

Settings = tuple[tuple[str, str], ...]


@click.command("sweep")
@space_argument()
@team_option()
@search_options(out=False)
@results_options("Write sweep.csv and sweep.json to this folder.")
@format_option
@code_option()
def command(
    space: str,
    *,
    settings: Settings,
    out: Path | None,
    force: bool,
    form: str,
    code: bool,
    **options: Any,
) -> int:
    """Search SPACE once for each value of a setting, one row each.

    A setting with several values, separated by commas, is swept: --set n_gpus=8,16,32 or
    --set "max_latency=5 ms,10 ms". Several swept settings give every combination. Exits with 1 when no value has a
    feasible design.
    """
    from dse.cli.folder import writable
    from dse.cli.loading import load_space, tell_warnings
    from dse.cli.running import run_search
    from dse.cli.sweeping import sweep_data, sweep_lines, sweep_rows

    swept, choices = combinations(settings)
    first = load_space(space, choices[0], code=code)
    tell_warnings(first)
    results: list[tuple[Settings, Result]] = []
    with nullcontext() if out is None else writable(out, _MARKER, first.name, force=force):
        for at, chosen in enumerate(choices):
            problem = load_space(space, chosen, code=code) if at else first
            own = tuple((name, text) for name, text in chosen if name in swept)
            label = ", ".join(f"{name}={text}" for name, text in own)
            results.append((own, run_search(problem, label=label, **options)))
        emit.in_form(
            form,
            lines=lambda: sweep_lines(results),
            rows=lambda: sweep_rows(results),
            data=lambda: sweep_data(results),
        )
        if out is not None:
            for path in _write(out, results):
                emit.note(f"wrote {path}")
    return 0 if any(result.feasible for _, result in results) else 1


def _write(folder: Path, results: list[tuple[Settings, Result]]) -> list[Path]:
    """Writes the table and the data of a sweep; returns the files."""
    from dse.cli.sweeping import sweep_data, sweep_rows
    from dse.study.files import csv_text, write_atomic

    rows = sweep_rows(results)
    data = {"problem": {"name": results[0][1].problem.name}, "values": sweep_data(results)}
    texts = {"sweep.csv": csv_text(list(rows[0]), rows), _MARKER: emit.json_text(data)}
    for name, text in texts.items():
        write_atomic(folder / name, text)
    return [folder / name for name in texts]


def combinations(settings: Settings) -> tuple[list[str], list[Settings]]:
    """The swept names, and every combination of values as settings.

    Raises:
        click.UsageError: nothing is swept, a value is empty, or a setting is given twice.
    """
    from itertools import product

    names = [name for name, _ in settings]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise click.UsageError(f"{twice[0]} is set twice; give all its values at once: --set {twice[0]}=A,B")
    values = [[text.strip() for text in texts.split(",")] for _, texts in settings]
    swept = [name for name, texts in zip(names, values, strict=True) if len(texts) > 1]
    if not swept:
        raise click.UsageError(
            "nothing to sweep: give one setting several values, as in --set n_gpus=8,16,32"
        )
    empty = [name for name, texts in zip(names, values, strict=True) if "" in texts]
    if empty:
        raise click.UsageError(f"--set {empty[0]}: a value between commas is empty")
    return swept, [tuple(zip(names, chosen, strict=True)) for chosen in product(*values)]
