"""``dse verify``: does a stored result hold?"""

from __future__ import annotations

from pathlib import Path

import click

from dse.cli import emit
from dse.cli.options import code_option
from dse.cli.text import paragraph, plural

__all__ = ["command"]


@click.command("verify")
@click.argument("run", type=click.Path(path_type=Path))
@click.option(
    "--designs",
    type=click.IntRange(min=0),
    default=1000,
    metavar="N",
    help="Evaluate up to N trials or kept designs again; default 1000.",
)
@click.option(
    "--boxes",
    type=click.IntRange(min=0),
    default=10_000,
    metavar="N",
    help="Prove up to N boxes of a certificate again; default 10,000.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Of the samples, when there are more; default 0.",
)
@click.option(
    "--format", "form", type=click.Choice(["table", "json"]), default="table", help="For people, or as data."
)
@code_option()
def command(run: Path, *, designs: int, boxes: int, seed: int, form: str, code: bool) -> None:
    """Check the result in the folder RUN against its problem; nothing in the folder is taken on trust.

    The problem is loaded again, every design of the front is evaluated again, and the account of all designs must sum
    up. If the search left a certificate, its boxes must cover every design once, and are proved again. Exits with 4 when
    something does not hold.
    """
    from dse.cli.loading import check_run
    from dse.study.manifest import Manifest
    from dse.study.verify import verify

    check_run(run)
    problem = None if code else Manifest.read(run).load_problem(run, code=code)
    verified = verify(run, problem=problem, designs=designs, boxes=boxes, seed=seed)
    if form == "json":
        emit.as_json({"folder": str(run), "problem": verified.problem.name, "checks": list(verified.checks)})
        return
    lines = [f"verified: {run} ({verified.problem.name}), {plural(len(verified.checks), 'check')}"]
    for check in verified.checks:
        lines += paragraph(check, indent=2)
    emit.as_lines(lines)
