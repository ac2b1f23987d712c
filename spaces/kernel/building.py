"""Compiling C programs and running them, each in a process group of its own that a timeout ends."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from subprocess import Popen

from dse.study.metrics import Failed
from dse.study.processes import Answer, end, ending, exchange, last_line, start

__all__ = [
    "COMPILERS",
    "ProgramFailed",
    "check_compiler",
    "compiled",
    "compiler",
    "folder_prefix",
    "run_program",
    "work_folder",
]

COMPILERS = ("cc", "gcc", "clang")
FLAGS = ("-O3", "-std=c11", "-pthread")
NATIVE = ("-march=native", "-mcpu=native", "")
"""How compilers are told to use all of this processor; what one does not know, the next may."""

PREFIX = "dse-matmul-"
TRIVIAL = "int main(void) { return 0; }\n"
_COMPILE_TIMEOUT = 120.0
_TRIVIAL_TIMEOUT = 15.0
_OLD = 86_400.0
"""Seconds after which a folder is left behind for sure, whoever made it."""


class ProgramFailed(Failed):
    """A program ended with an exit code that is not 0, or by a signal: then ``code`` is its negative number."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def compiler(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The C compiler with arguments of its own: what ``CC`` names, or the first of :data:`COMPILERS`.

    As make has it, ``CC`` may be a command line, such as ``ccache cc -m64``, in the quoting of a shell.

    Raises:
        Failed: there is none.
    """
    given = environment.get("CC", "").strip()
    try:
        named = shlex.split(given)
    except ValueError as error:
        raise Failed(f"CC is {given!r}, which is no command line: {error}") from None
    path = environment.get("PATH")
    for name, *arguments in [named] if named else [[name] for name in COMPILERS]:
        found = shutil.which(name, path=path)
        if found:
            return (found, *arguments)
    asked = (
        f"CC names {named[0]!r}, which is not there" if named else f"none of {', '.join(COMPILERS)} is there"
    )
    raise Failed(f"no C compiler: {asked}; install one, or name one by the environment variable CC")


def check_compiler(timeout: float = _TRIVIAL_TIMEOUT) -> None:
    """Compile and run a program that does nothing.

    Args:
        timeout: seconds for either.

    Raises:
        Failed: there is no compiler, it fails or hangs, or what it makes does not run here.
    """
    program = compiled(TRIVIAL, compiler(), timeout)
    with work_folder() as folder:
        run_program(program, [], folder, timeout)


@lru_cache(maxsize=4)
def compiled(source: str, command: tuple[str, ...], timeout: float = _COMPILE_TIMEOUT) -> bytes:
    """The program of a C text, as the bytes of its file. Repeats of a design are compiled once.

    Args:
        source: the text.
        command: the compiler, see :func:`compiler`.
        timeout: seconds, after which the compiler is killed.

    Raises:
        Failed: it does not compile; the first error is told.
    """
    with work_folder() as folder:
        text, program = folder / "program.c", folder / "program"
        text.write_text(source, encoding="utf-8")
        said = ""
        for native in NATIVE:
            flags = [*FLAGS, *([native] if native else [])]
            code, said = _finished([*command, *flags, str(text), "-o", str(program), "-lm"], timeout)
            if not code and program.is_file():
                return program.read_bytes()
            if not re.search(r"-m(arch|cpu)", said):
                break
        name = Path(command[0]).name
        if not code:
            raise Failed(f"{name} ends well but writes no program")
        raise Failed(f"{name} refuses the program{_first_error(said)}")


def _answered(process: Popen[bytes], what: str, timeout: float) -> Answer:
    """What a process prints that is given nothing and ends by itself; ``what`` is its name for people.

    Raises:
        Failed: it took longer than ``timeout`` seconds or printed too much, and was killed.
    """
    try:
        answer = exchange(process, b"", timeout)
    finally:
        end(process)
    if answer.stopped:
        raise Failed(f"{what} {answer.stopped}")
    return answer


def _finished(command: Sequence[str], timeout: float) -> tuple[int, str]:
    """Exit code and standard error of a compiler."""
    try:
        process = start(command, environment=dict(os.environ) | {"LC_ALL": "C"})
    except OSError as error:
        raise Failed(f"cannot run {command[0]}: {error}") from None
    answer = _answered(process, Path(command[0]).name, timeout)
    return process.returncode, answer.err.decode(errors="replace")


def _first_error(said: str) -> str:
    """``: `` and the first error of a compiler, without the folder that the text was in; or that there is none."""
    said = said.strip()
    if not said:
        return " and does not say why"
    lines = [line for line in said.splitlines() if "error" in line.lower()] or said.splitlines()
    return ": " + re.sub(r"\S*/(program\.c)", r"\1", lines[0])[:300]


def run_program(program: bytes, arguments: Sequence[str], folder: Path, timeout: float) -> str:
    """What a program prints that ends by itself and well.

    Args:
        program: the bytes of its file.
        arguments: of its command line.
        folder: where it is put and runs.
        timeout: seconds, after which it is killed with all that it started.

    Raises:
        Failed: it did not.
    """
    path = folder / "program"
    path.write_bytes(program)
    path.chmod(0o700)
    try:
        process = start([str(path), *arguments], folder=str(folder))
    except OSError as error:
        raise Failed(f"cannot run the program: {error}") from None
    answer = _answered(process, "the program", timeout)
    if process.returncode:
        raise ProgramFailed(
            f"the program {ending(process.returncode)}{last_line(answer.err)}", process.returncode
        )
    return answer.out.decode(errors="replace")


@contextmanager
def work_folder() -> Iterator[Path]:
    """A temporary folder that is removed; so are those that killed processes left behind."""
    _remove_left()
    with tempfile.TemporaryDirectory(prefix=folder_prefix(os.getpid()), ignore_cleanup_errors=True) as name:
        yield Path(name)


def folder_prefix(process: int) -> str:
    """How the names of a process's folders begin."""
    return f"{PREFIX}{_place()}-{process}-"


@cache
def _place() -> str:
    """Tells where numbers of processes are: a temporary folder may be shared with other containers and machines."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        told = f"{boot}{Path('/proc/self/ns/pid').readlink()}"
    except OSError:  # no Linux
        told = platform.node()
    return hashlib.blake2b(told.encode(), digest_size=4).hexdigest()


def _remove_left() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        place, _, rest = folder.name.removeprefix(PREFIX).partition("-")
        owner = rest.partition("-")[0]
        ours = place == _place() and owner.isdigit()
        if not _alive(int(owner)) if ours else _age(folder) > _OLD:
            shutil.rmtree(folder, ignore_errors=True)


def _age(folder: Path) -> float:
    """Seconds since a folder changed; none where it is gone."""
    try:
        return time.time() - folder.stat().st_mtime
    except OSError:
        return 0.0


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
