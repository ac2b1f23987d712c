"""``dse export``: a plan in the form of the program that runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dse.cli import emit
from dse.cli.options import FILE, PAIR, code_option

if TYPE_CHECKING:
    from dse.problem import Design, Problem
    from dse.study.exports import Written

__all__ = ["command"]


@click.command("export")
@click.argument("source", metavar="RUN|SPACE")
@click.argument("values", nargs=-1, type=PAIR, metavar="[DIMENSION=VALUE]...")
@click.option(
    "--to",
    "target",
    required=True,
    metavar="TARGET",
    help="The program, such as megatron or vllm; a wrong name is answered with what the space can write.",
)
@click.option(
    "--point",
    type=click.IntRange(min=1),
    metavar="N",
    help="Which design of the run's front, counted in its order; of a search with --top, which of the best. Default: 1.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    type=PAIR,
    metavar="NAME=VALUE",
    help="With a space: set an input, or anything in the file by its path. Repeatable.",
)
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Where to; default: standard output.")
@code_option()
def command(
    source: str,
    *,
    values: tuple[tuple[str, str], ...],
    target: str,
    point: int | None,
    settings: tuple[tuple[str, str], ...],
    output: Path | None,
    code: bool,
) -> None:
    """Write a design of RUN, a folder that dse search --out kept, for the program that is to run it.

    Instead of a run, a space and a design may be given as dse explain takes them: dimensions that are not active need
    no value. What the program cannot express is an error that names the dimension and its value. With --output, what
    starts the program is written beside FILE, as FILE with the ending .sh, where FILE cannot have it.
    """
    from dse.cli.loading import is_run, load_space
    from dse.study.exports import Plan, exporter

    if is_run(source):
        if settings or values:
            raise click.UsageError("a run is written as it is; --set and values need a space")
        problem, design = _of_run(Path(source), point, code=code)
    else:
        if point is not None:
            raise click.UsageError(
                "--point chooses from the front of a run; give a folder that dse search --out kept"
            )
        problem = load_space(source, settings, code=code)
        exporter(problem, target)  # a wrong target is told before missing values
        design = _checked(problem, dict(values))
    written = exporter(problem, target)(Plan.of(problem, design))
    if output is None:
        emit.as_lines([written.text.removesuffix("\n")])
        if written.starter is not None:
            emit.note("note: with --output FILE, a script that starts it is written beside FILE")
    else:
        _write(written, output)
    for note in written.notes:
        emit.note(f"note: {note}")


def _write(written: Written, output: Path) -> None:
    """Writes the text, and beside it what starts it.

    Raises:
        UsageError: there is no such folder, or both would be one file.
    """
    from dse.study.files import write_atomic

    if not output.parent.is_dir():
        raise click.UsageError(f"cannot write to {output}: there is no folder {str(output.parent)!r}")
    files = {output: written.text}
    if written.starter is not None:
        beside = output.with_suffix(".sh")
        if beside == output:
            raise click.UsageError(
                f"{output} would be both the configuration and the script that starts it; take another ending, such "
                f"as {output.with_suffix('.json').name}"
            )
        files[beside] = written.starter(output.name)
    for path, text in files.items():
        write_atomic(path, text)
        emit.note(f"wrote {path}")


def _of_run(folder: Path, point: int | None, *, code: bool) -> tuple[Problem, Design]:
    """The design of a run's front, and what it is a design of.

    Raises:
        NoFeasibleDesign: the front is empty.
        InputError: it has not as many designs.
    """
    from dse.cli.text import plural
    from dse.errors import InputError
    from dse.study.claim import read_manifest
    from dse.study.result import NoFeasibleDesign
    from dse.study.study import Study

    study = Study.open(folder, code=code)
    manifest = read_manifest(folder)
    ranked = bool(study.result.best) and manifest.ranked
    points = (
        study.result.best if ranked else study.result.front
    )  # others are kept to count what is near the best
    if not points:
        raise NoFeasibleDesign(f"{folder} has no feasible design to export")
    of = "among its best" if ranked else "on its front"
    if point is not None and point > len(points):
        raise InputError(
            f"{folder} has {plural(len(points), 'design')} {of}, so --point is from 1 to {len(points)}, but got {point}"
            + ("" if ranked else "; of one objective, dse search --top K --out FOLDER keeps the K best")
        )
    if point is None and len(points) > 1:
        emit.note(f"note: design 1 of the {len(points)} {of}; --point N takes the Nth of them")
    return study.problem, points[(point or 1) - 1].design


def _checked(problem: Problem, given: dict[str, str]) -> Design:
    """A design from the command line, which must be legal; that it is infeasible is said only.

    Raises:
        InputError: a value is missing or unknown, or the design is illegal.
    """
    from dse.cli.designing import complete
    from dse.errors import InputError
    from dse.evaluation.explain import explain

    design = complete(problem, given, None)
    found = explain(problem, design)
    if found.broken:
        raise InputError(f"the design is illegal: {'; '.join(broken.because for broken in found.broken)}")
    if not found.feasible and found.verdict is not None:
        emit.note("note: the design is not feasible; dse explain says why")
    return design
