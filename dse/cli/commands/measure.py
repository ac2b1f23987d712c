"""``dse measure``: this machine's own roofline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dse.cli import emit
from dse.cli.options import FILE

if TYPE_CHECKING:
    from dse.study.machine.roofline import Machine

__all__ = ["command", "machine_data", "machine_lines"]

WORDS = {
    "copy": ("memory, copy", "GB/s"),
    "triad": ("memory, triad", "GB/s"),
    "fp32": ("matrix multiplication, fp32", "Gflop/s"),
    "fp64": ("matrix multiplication, fp64", "Gflop/s"),
    "call": ("one call", "us"),
}
"""What each reading is called, and its unit."""


@click.command("measure")
@click.option(
    "--quick",
    is_flag=True,
    help="Smaller arrays and fewer repeats: some ten seconds on an idle machine, more on a busy one.",
)
@click.option("--out", type=FILE, help="Write a space file with this machine as the row this-machine.")
@click.option("--space", default="kernel", show_default=True, help="The space that the file extends.")
@click.option("--force", is_flag=True, help="With --out: write over a file that this command did not write.")
@click.option("--json", "as_json", is_flag=True, help="As data instead of text.")
def command(*, quick: bool, out: Path | None, space: str, force: bool, as_json: bool) -> None:
    """Measure what this machine can do at most: memory bandwidth, matrix multiplication, the cost of a call.

    All with NumPy, on one thread and on all that this process may use, medians of repeats. The better of both is the
    machine's figure, and the table says which it is. The machine should have nothing else to do. At most a quarter of the available memory is taken.

    With --out FILE.yaml, `dse search FILE.yaml --fix hardware=this-machine` uses it.
    """
    from dse.cli.overwriting import check_overwrites
    from dse.errors import InputError
    from dse.study.machine.entry import ROW, check_space, extends, space_file
    from dse.study.machine.roofline import measure

    problem = base = None
    if out is not None:  # said before the measuring, not after it
        check_overwrites({out: (ROW, "dse measure")}, (), force=force)
        if not out.parent.is_dir():
            raise InputError(f"--out: there is no folder {out.parent}")
        problem, base = check_space(space), extends(space, out)
    machine = measure(quick=quick, note=emit.note)
    if as_json:
        emit.as_json(machine_data(machine))
    else:
        emit.as_lines(machine_lines(machine))
    if out is not None:
        from dse.study.files import write_atomic

        assert problem is not None
        assert base is not None
        write_atomic(out, space_file(machine, problem, base, out.stem))
        emit.note(f"wrote {out}; next: dse search {out} --fix hardware={ROW}")


def machine_data(machine: Machine) -> dict[str, Any]:
    """The machine as data, numbers in base units."""
    from dataclasses import asdict

    told = asdict(machine)
    ridge = machine.best("fp32") / machine.bandwidth
    return {**told, "bandwidth": machine.bandwidth, "ridge": ridge}


def machine_lines(machine: Machine) -> list[str]:
    """The machine as a table: a row for each quantity and number of threads."""
    from dse.cli.text import aligned, paragraph, plural
    from dse.units import format_value, parse_unit

    def shown(value: float, unit: str) -> str:
        return format_value(value, parse_unit(unit), digits=4)

    memory = machine.widest("copy", "triad")
    used = {memory: "bandwidth", machine.launch: "launch"}
    used |= {machine.widest(kind): f"peak {kind}" for kind in ("fp32", "fp64")}
    rows = [["quantity", "threads", "median", "least", "most", "with", "taken as"]]
    for reading in machine.readings:
        what, unit = WORDS[reading.name]
        values = [shown(value, unit) for value in (reading.median, reading.low, reading.high)]
        rows.append([what, str(reading.threads), *values, reading.done_with, used.get(reading, "")])
    order = {what: at for at, (what, _) in enumerate(WORDS.values())}
    rows[1:] = sorted(rows[1:], key=lambda row: (order[row[0]], int(row[1])))
    lines = [
        f"{machine.title}, {machine.cpus} CPU{'s' * (machine.cpus > 1)}, {shown(machine.memory, 'GiB')}",
        "",
        *(line.rstrip() for line in aligned(rows, right={1, 2, 3, 4})),
        "",
    ]
    for kind in ("fp32", "fp64"):
        peak = machine.widest(kind)
        lines += paragraph(
            f"ridge point {kind}: {shown(peak.median, 'Gflop/s')} ({plural(peak.threads, 'thread')})"
            f" / {shown(memory.median, 'GB/s')} ({plural(memory.threads, 'thread')})"
            f" = {peak.median / memory.median:.4g} flop/B"
        )
    for remark in machine.remarks:
        lines += paragraph(f"note: {remark}")
    return lines
