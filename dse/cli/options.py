"""Options that several commands share, and the kinds of values they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = [
    "DURATION",
    "FILE",
    "FOLDER",
    "PAIR",
    "code_option",
    "format_option",
    "results_options",
    "search_options",
    "space_argument",
    "fix_option",
    "restricted",
    "team_option",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])


class _Pair(click.ParamType):  # type: ignore[type-arg] # generic in newer versions of click only
    """``name=value``."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        name, sign, text = str(value).partition("=")
        if not sign or not name.strip():
            self.fail(f"expected name=value, but got {value!r}", param, ctx)
        return name.strip(), text.strip()


class _Duration(click.ParamType):  # type: ignore[type-arg]
    """Seconds, or a quantity of time; the result is in seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        from dse.units import UnitError, parse_quantity

        try:
            quantity = parse_quantity(str(value))
        except UnitError as error:
            self.fail(str(error), param, ctx)
        if quantity.unit is not None and quantity.unit.dims != (("s", 1),):
            self.fail(f"expected seconds or a duration such as '2 min', but got {value!r}", param, ctx)
        if quantity.value <= 0:
            self.fail(f"expected a duration above 0, but got {value!r}", param, ctx)
        return quantity.value


class _Place(click.ParamType):  # type: ignore[type-arg]
    """A path that something is written to; ``folder`` says that it cannot be a file."""

    def __init__(self, *, folder: bool) -> None:
        self.name = "folder" if folder else "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        text = str(value)
        if not text.strip():
            self.fail(f"the name of the {self.name} is empty", param, ctx)
        if self.name == "folder" and Path(text).is_file():
            self.fail(f"{text!r} is a file, but a folder is needed", param, ctx)
        return Path(text)


PAIR = _Pair()
DURATION = _Duration()
FILE = _Place(folder=False)
FOLDER = _Place(folder=True)


def _chained(*decorators: Callable[[Any], Any]) -> Callable[[_Command], _Command]:
    """Decorators as one, in the order in which ``--help`` lists them."""

    def apply(command: _Command) -> _Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


def space_argument(*, settings: bool = True) -> Callable[[_Command], _Command]:
    """SPACE, and ``--set``."""
    argument = click.argument("space")
    option = click.option(
        "--set",
        "settings",
        multiple=True,
        type=PAIR,
        metavar="NAME=VALUE",
        help="Set an input, leave a dimension one value or a list of them (tp=[1,2]), or set anything in the file by its path, such as "
        "tables.rates.npu.fp16='1000 Gop/s'. Repeatable.",
    )
    return _chained(argument, option) if settings else _chained(argument)


def code_option(*, default: bool | None = True) -> Callable[[_Command], _Command]:
    """``--code/--no-code``; ``default`` None does not import code, and is told apart from refusing it."""
    told = "Import Python code that the space names" + (" (default)" if default else "")
    return click.option("--code/--no-code", "code", default=default, help=f"{told}, or refuse such a space.")


def format_option(command: _Command) -> _Command:
    """``--format``."""
    option = click.option(
        "--format",
        "form",
        type=click.Choice(["table", "csv", "json"]),
        default="table",
        help="A table for people (default), or data; notes then go to standard error.",
    )
    return option(command)


def fix_option() -> Callable[[_Command], _Command]:
    """``--fix``."""
    told = (
        "Only designs with this value of a dimension, or one of several: --fix tp=8 --fix pp=4,8. Repeatable."
    )
    return click.option("--fix", "fixed", multiple=True, type=PAIR, metavar="DIMENSION=VALUE", help=told)


def restricted(team: str | None, fixed: Sequence[tuple[str, str]]) -> str | None:
    """The text of a team with dimensions fixed besides, as :meth:`dse.problem.Problem.team` reads it."""
    if not fixed:
        return team
    also = " & ".join(f"{name}={value}" for name, value in fixed)
    return also if team is None else " | ".join(f"{part.strip()} & {also}" for part in team.split("|"))


def team_option(*, multiple: bool = False) -> Callable[[_Command], _Command]:
    """``--team``."""
    if multiple:
        told = "Only this team, or a combination such as 'ml | systems'. Repeatable; default: all teams."
        return click.option("--team", "teams", multiple=True, metavar="TEAM", help=told)
    told = "Search only what this team may choose: a name, or a combination such as 'ml | systems'."
    return click.option("--team", metavar="TEAM", help=told)


def results_options(told: str) -> Callable[[_Command], _Command]:
    """``--out`` of a command that writes tables, and ``--force``."""
    return _chained(
        click.option("--out", type=FOLDER, metavar="FOLDER", help=told),
        click.option("--force", is_flag=True, help="With --out: write even where other files are."),
    )


def search_options(*, out: bool = True) -> Callable[[_Command], _Command]:
    """What steers a search: solver, its options, seed, budget, processes, and the folder it is kept in."""
    steering = (
        click.option("--solver", default="auto", metavar="NAME", help="See dse solvers; default auto."),
        click.option(
            "--sampler",
            metavar="NAME",
            help="The sampler of the optuna solver, which it asks for: tpe, nsga2 or random.",
        ),
        click.option(
            "--option",
            "extra",
            multiple=True,
            type=PAIR,
            metavar="KEY=VALUE",
            help="An option of the solver. Repeatable.",
        ),
        click.option("--seed", type=click.IntRange(min=0), default=0, metavar="N", help="Default 0."),
        click.option("--n-trials", type=click.IntRange(min=1), metavar="N", help="Stop after N trials."),
        click.option("--timeout", type=DURATION, help="Stop after this time: seconds, or '2 min'."),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            default=1,
            metavar="N",
            help="Processes to use; default 1.",
        ),
    )
    folder = click.option(
        "--out",
        type=FOLDER,
        metavar="FOLDER",
        help="Keep the run in this folder.",
    )
    return _chained(*steering, folder) if out else _chained(*steering)
