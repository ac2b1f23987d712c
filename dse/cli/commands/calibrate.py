"""``dse calibrate``: fit a space's efficiencies to measurements."""

from __future__ import annotations

from pathlib import Path

import click

from dse.cli.options import FILE

__all__ = ["command"]

_WRITTEN = {".csv": ("generation,", "engine,"), ".json": ('"command"',)}
"""What the files begin with that this command writes."""


@click.command("calibrate")
@click.argument("space")
@click.option("--data", type=FILE, required=True, help="The measurements, a CSV file.")
@click.option("--gemm", type=FILE, help="Measured matrix multiplications, a CSV file.")
@click.option("--comm", type=FILE, help="Measured collectives, a CSV file.")
@click.option("--out", type=FILE, required=True, help="Write the fitted efficiencies to this CSV file.")
@click.option(
    "--leave-out", type=click.Choice(["source"]), help="Also fit without each source and predict it."
)
@click.option("--force", is_flag=True, help="Write over files that this command did not write.")
@click.option("--json", "as_json", is_flag=True, help="As data instead of text.")
def command(
    space: str,
    *,
    data: Path,
    gemm: Path | None,
    comm: Path | None,
    out: Path,
    leave_out: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Fit the efficiencies of SPACE to measurements and print the errors before and after.

    The file has one row for each hardware generation; a copy of the space that names it uses it. How it was made
    and its errors are written beside it, as JSON, and for serving the numbers of engines, as a second CSV file.

    The measurements have the columns that `dse validate --help` names.
    """
    from dse.cli.agreement import find_validation, tell, write
    from dse.cli.overwriting import check_overwrites
    from dse.errors import InputError
    from dse.study.agreement import Calibration

    if not out.parent.is_dir():  # said before the fit, not after it
        raise InputError(f"--out: {out.parent} is no folder")
    inputs = (data, gemm, comm)
    marks = {out: _WRITTEN[".csv"], out.with_suffix(".json"): _WRITTEN[".json"]}
    check_overwrites(marks, inputs, force=force)
    request = Calibration(data, out, gemm, comm, leave_out is not None)
    report = find_validation(space).calibrate(request)
    check_overwrites(
        {path: _WRITTEN[".json" if path.suffix == ".json" else ".csv"] for path in report.files},
        inputs,
        force=force,
    )
    tell(report, "json" if as_json else "table")
    for path, text in report.files.items():
        write(path, text)
