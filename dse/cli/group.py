"""The command group: a static list of sub-commands, loaded on use, and what each kind of ending exits with."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, TextIO

import click
from click.exceptions import Exit

from dse import __version__
from dse.cli.blame import culprit
from dse.cli.signals import like_ctrl_c
from dse.errors import DseError, Interrupted, SpaceError, nearest

__all__ = ["COMMANDS", "Commands", "main"]

COMMANDS = {
    "list": "The spaces that come with dse, with title and size.",
    "new": "Write a commented starter space file.",
    "import": "Turn another format's file into a space file.",
    "check": "Read a space file and report everything wrong with it.",
    "show": "What a space consists of; --count for exact legal counts.",
    "search": "Find the best designs and account for all others.",
    "compare": "Teams side by side: what each can reach, and why not.",
    "sweep": "One search for each value of a setting.",
    "explain": "The cost of one design, term by term; or of a launch line.",
    "export": "A design in the form of the program that runs it.",
    "plot": "Draw the Pareto front as PNG, SVG and HTML.",
    "resume": "Continue a search that was stopped.",
    "verify": "Check a stored result against its problem.",
    "validate": "A space's predictions against measurements.",
    "calibrate": "Fit a space's efficiencies to measurements.",
    "measure": "This machine's own roofline, as a row of a space.",
    "solvers": "The installed solvers, what they promise and need.",
    "schema": "The JSON Schema of space files, for editors.",
}
"""Every sub-command with its line in ``dse --help``; the module ``dse.cli.commands.NAME`` has the rest."""

EPILOG = """\b
Exit codes:
  0   found: a feasible design, or the command did what was asked
  1   no feasible design; the explanation is the output
  2   bad input: a space file, an option or a value cannot be used
  3   interrupted by Ctrl-C or SIGTERM; what was found so far is kept in the run's folder
  4   verification failed: a stored result does not hold
  70  an error of dse itself or of a plugin; --debug or DSE_DEBUG=1 shows where
  141 the output was closed, before or while it was written

SPACE is the name of a shipped space (see dse list) or the path of a space file."""

OWN_ERROR, BROKEN_PIPE = 70, 141


class Commands(click.Group):
    """The sub-commands. A command returns its exit code; None is 0."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names, in the order of use."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Loads the module of one command."""
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f"dse.cli.commands.{cmd_name}").command
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Finds the command, or suggests the nearest one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"unknown command {args[0]!r}{nearest(args[0], COMMANDS)}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list for ``--help`` without loading any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Reads the words up to the sub-command, or prints the help; a reader that went away ends it quietly."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except BrokenPipeError:
            _abandon(sys.stdout)
            raise Exit(BROKEN_PIPE) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the sub-command; a reader that went away ends it quietly."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _abandon(sys.stdout)
            ctx.exit(BROKEN_PIPE)
        return code

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Runs the command line and exits, or with ``standalone_mode=False`` returns and lets errors pass."""
        words = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in words or bool(os.environ.get("DSE_DEBUG"))
        words = [word for word in words if word != "--debug"]  # it may stand anywhere
        prog_name = prog_name or "dse"
        cause: BaseException
        if not standalone_mode:
            return super().main(words, prog_name, complete_var, standalone_mode=False, **extra)
        closed = _open_closed()
        try:
            with like_ctrl_c():
                code = super().main(words, prog_name, complete_var, standalone_mode=False, **extra)
        except click.ClickException as error:
            with suppress(OSError):
                error.show()
            sys.exit(2)
        except (click.Abort, KeyboardInterrupt, DseError, OSError) as error:
            (exit_code, message), cause = _ending(error), error
        except Exception as error:  # noqa: BLE001 - the last resort: one line for people instead of a traceback
            exit_code, message, cause = OWN_ERROR, _own_error(error), error
        else:
            sys.exit(BROKEN_PIPE if closed else code if isinstance(code, int) else 0)
        with suppress(OSError):
            click.echo(message, err=True)
            if debug:
                traceback.print_exception(cause)
        sys.exit(exit_code)


def _ending(error: BaseException) -> tuple[int, str]:
    """The exit code of an error that the user can do something about, and what is said of it."""
    if isinstance(error, DseError):
        plain = isinstance(error, SpaceError | Interrupted)  # says by itself what it is
        return error.exit_code, str(error) if plain else f"error: {error}"
    if isinstance(error, OSError):
        if error.strerror is None:
            return OWN_ERROR, _own_error(error)
        where = f"{error.filename}: " if error.filename else "standard output: " if _of_output(error) else ""
        return 2, f"error: {where}{error.strerror}"
    return Interrupted.exit_code, "interrupted"


def _own_error(error: BaseException) -> str:
    what = f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0]
    plugin = culprit(error)
    if plugin:
        return f"error: {plugin} raised {what}. It is not part of dse; --debug shows where."
    return f"error in dse itself: {what}. Please report it with the command and what --debug adds."


def _open_closed() -> bool:
    """Opens standard streams that were closed, so that no other file takes their number; whether the output was."""
    closed = sys.stdout is None
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nothing = os.open(os.devnull, os.O_RDWR)
            if nothing != number:
                os.dup2(nothing, number)
                os.close(nothing)
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w", closefd=False))
    return closed


def _of_output(error: OSError) -> bool:
    """Whether it is standard output that cannot be written; what is left of it is then dropped."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    if place.name != "echo" and place.filename != __file__:
        return False
    _abandon(sys.stdout)
    return True


def _abandon(output: TextIO) -> None:
    """Points an output at nothing, so that Python's last flush does not fail as well."""
    try:
        descriptor = output.fileno()
    except (OSError, ValueError):  # not a file: nothing will be flushed
        return
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)


@click.group(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
)
@click.version_option(__version__, prog_name="dse")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
def main() -> None:
    """Explore a design space: declare it once, get its best designs and an account of every other.

    Start with: dse list, dse compare camera, dse new mine.
    """
