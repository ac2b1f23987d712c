"""``dse validate``: a space's predictions against measurements."""

from __future__ import annotations

from pathlib import Path

import click

from dse.cli.options import FILE

__all__ = ["command"]


@click.command("validate")
@click.argument("space")
@click.option(
    "--data", type=FILE, help="The measurements, a CSV file; default: published ones that dse ships."
)
@click.option("--memory", type=FILE, help="Measured memory, a CSV file. --data takes such a file too.")
@click.option(
    "--by", default="source", metavar="COLUMNS", help="Group errors by these, such as source,model,system."
)
@click.option("--out", type=FILE, help="Write the rows with a column `predicted` to this CSV file.")
@click.option("--force", is_flag=True, help="With --out: write over a file that this command did not write.")
@click.option("--json", "as_json", is_flag=True, help="As data instead of text.")
def command(
    space: str,
    *,
    data: Path | None,
    memory: Path | None,
    by: str,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Compare the predictions of SPACE with measurements, by group and inside sweeps.

    Every row is used, told apart (what it leaves open, or why it is doubtful), or skipped with a reason. Exits with 1
    when no row could be predicted.

    For training, a row is one run, and the columns that a table needs are model, system, n_gpus, tp, pp, micro_batch,
    global_batch, seq_len, sharding, recompute, precision, metric (such as iter_s) and value. Others may state more, such as
    overlap_dp: the README of the space (spaces/training) lists all with their values.

    For serving, they are gpu, model, weights_precision, batch, input_len, output_len, metric (such as tokens_s_user) and
    value, and n_gpus or tp; the README of spaces/serving lists the others.
    """
    from dse.cli.agreement import find_validation, tell, write
    from dse.cli.overwriting import check_overwrites
    from dse.errors import InputError
    from dse.study.agreement import Validation
    from dse.study.files import csv_text

    columns = tuple(name.strip() for name in by.split(",") if name.strip())
    if not columns:
        raise InputError(f"--by: expected names of columns, but got {by!r}")
    if out is not None:
        check_overwrites({out: ("predicted",)}, (data, memory), force=force)
    report = find_validation(space).validate(Validation(data, memory, columns))
    tell(report, "json" if as_json else "table")
    if report.predictions is None:
        return 1
    names, rows = report.predictions
    if out is not None:
        write(out, csv_text(names, rows))
    return 0 if any(row["predicted"] is not None for row in rows) else 1
