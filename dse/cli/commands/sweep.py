"""``dse sweep``: one search for each value of a setting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dse.cli import emit
from dse.cli.options import code_option, format_option, search_options, space_argument, team_option

if TYPE_CHECKING:
    from dse.study.result import Result

__all__ = ["combinations", "command"]

Settings = tuple[tuple[str, str], ...]


@click.command("sweep")
@space_argument()
@team_option()
@search_options(out=False)
@format_option
@code_option()
def command(space: str, *, settings: Settings, form: str, code: bool, **options: Any) -> int:
    """Search SPACE once for each value of a setting, one row each.

    A setting with several values, separated by commas, is swept: --set n_gpus=8,16,32 or
    --set "max_latency=5 ms,10 ms". Several swept settings give every combination. Exits with 1 when no value has a
    feasible design.
    """
    from dse.cli.loading import load_space, tell_warnings
    from dse.cli.running import run_search
    from dse.cli.sweeping import sweep_data, sweep_lines, sweep_rows

    swept, choices = combinations(settings)
    results: list[tuple[Settings, Result]] = []
    for at, chosen in enumerate(choices):
        problem = load_space(space, chosen, code=code)
        if not at:
            tell_warnings(problem)
        own = tuple((name, text) for name, text in chosen if name in swept)
        label = ", ".join(f"{name}={text}" for name, text in own)
        results.append((own, run_search(problem, label=label, **options)))
    emit.in_form(
        form,
        lines=lambda: sweep_lines(results),
        rows=lambda: sweep_rows(results),
        data=lambda: sweep_data(results),
    )
    return 0 if any(result.feasible for _, result in results) else 1


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
