"""Launch lines of Megatron-LM: their arguments, and the GPUs that their launcher starts."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise, takewhile

from dse.errors import InputError, nearest
from dse.spaces.remarks import read_remark

from .flags import Flag, Flags, spread
from .names import (
    DEEPSPEED_LAUNCHER,
    MEGATRON,
    MEGATRON_COSTLY,
    MEGATRON_GONE,
    MEGATRON_MANY,
    MEGATRON_SWITCHES,
    MEGATRON_VALUES,
    TORCHRUN,
)
from .shell import UNKNOWN, Script, Word, read_script

__all__ = ["LIMIT", "Launch", "read_launch"]

_LAUNCHERS = frozenset(
    "nnodes nproc-per-node num-gpus num-nodes nodes ntasks ntasks-per-node gpus-per-node gpus-per-task".split()
)
_KNOWN = frozenset({name.replace("_", "-") for name in TORCHRUN | DEEPSPEED_LAUNCHER} | _LAUNCHERS)
_SLURM = re.compile(r"#SBATCH\s+--?(nodes|N|ntasks-per-node|gpus-per-node|gres|ntasks|n)[=\s]+(\S+)")
_SHORT = {"N": "nodes", "n": "ntasks"}
_HARMLESS = {
    "optimizer-offload-fraction": "1.0",
    "num-distributed-optimizer-instances": "1",
    "mtp-num-layers": "0",
    "cpu-offloading-num-layers": "0",
    "main-grads-dtype": "fp32",
    "main-params-dtype": "fp32",
    "exp-avg-dtype": "fp32",
    "exp-avg-sq-dtype": "fp32",
    "hybrid-attention-ratio": "0.0",
    "hybrid-mlp-ratio": "0.0",
}
"""Values of costly arguments that ask for nothing unusual."""

LIMIT = 1 << 18
"""Bytes of a launch line, and of a configuration that it names."""
_DIGITS = 7
"""Digits that a number of nodes or GPUs may have."""


@dataclass
class Launch:
    """A launch line. ``others`` are the options of the launcher and of Megatron-DeepSpeed, named with dashes; ``ours``
    are the values in comments ``# dse: name=value``, with their lines. ``gpus_fault`` is why the number of GPUs cannot
    be known, where the file has arguments for it; ``gpus_given`` is whether the user gave it instead.
    """

    flags: Flags
    others: Flags
    gpus: int | None = None
    gpus_place: str = ""
    gpus_fault: str = ""
    gpus_given: bool = False
    ours: dict[str, tuple[str, int]] = field(default_factory=dict)
    ignored: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_launch(text: str, file: str) -> Launch:
    """The launch line in a shell script, or in a file of arguments.

    Raises:
        InputError: it cannot be read, contradicts itself, or has an argument that changes the cost and is not
            understood; each with its place.
    """
    if len(text) > LIMIT:
        raise InputError(
            f"{file}: a launch line has at most {LIMIT // 1024} KB, but this has {len(text) // 1024}"
        )
    batch = _slurm(text)
    nodes = batch.get("nodes", ("", 0))[0]
    known = {"SLURM_NNODES": nodes, "SLURM_JOB_NUM_NODES": nodes} if nodes else {}
    script = read_script(text, file, known)
    launch = Launch(Flags(file), Flags(file))
    started = Flags(file)
    for command in script.commands:
        _short_options(command, started)
        found = list(spread(command))
        before = takewhile(lambda word: not word.text.startswith("--"), command)
        if found and any(word.text == UNKNOWN for word in before):
            launch.notes.append(f"arguments from outside the file, in line {command[0].line}, are not known")
        for head, values in found:
            _take(launch, started, head, [word.text for word in values])
            takes = 0 if head.text[2:] in MEGATRON_SWITCHES else 1
            if any(word.text == UNKNOWN for word in values[takes:]):
                launch.notes.append(f"arguments from outside the file, after line {head.line}, are not known")
    if not launch.flags.named:
        raise InputError(f"{file}: there is no argument of Megatron-LM in it, such as --num-layers")
    _count(launch, started, batch)
    _remarks(launch, script)
    return launch


def _take(launch: Launch, started: Flags, head: Word, values: list[str]) -> None:
    """Sorts one argument: of the launcher, understood, costly, or without influence."""
    name, file = head.text[2:], launch.flags.file
    plain = name.replace("_", "-")
    place = f"{file}:{head.line}: {head.text}"
    if plain in _LAUNCHERS:
        started.named.setdefault(plain, Flag(plain, tuple(values[:1]), head.line))
    elif name in MEGATRON_GONE:
        raise InputError(f"{place}: Megatron-LM takes this no longer; write --{MEGATRON_GONE[name]}")
    elif name in MEGATRON_COSTLY:
        given = values[0] if values else ""
        if not _same(given, _HARMLESS.get(name)):
            raise InputError(
                f"{place}: {MEGATRON_COSTLY[name]}: this changes the cost, and the cost model does not know it; "
                "leave it out of a copy of the file to compare the rest"
            )
    elif name in MEGATRON_SWITCHES:
        _only(place, values, 0)
        launch.flags.add(Flag(name, (), head.line))
    elif name in MEGATRON_VALUES:
        launch.flags.add(Flag(name, _only(place, values, 1), head.line))
    elif name in MEGATRON_MANY:
        if not values:
            raise InputError(f"{place} needs a value")
        launch.flags.add(Flag(name, tuple(values), head.line))
    elif name in MEGATRON or plain in _KNOWN:
        launch.ignored.append(Flag(name, tuple(values[:1]), head.line).text)
        if plain in _KNOWN:
            launch.others.named.setdefault(plain, Flag(plain, tuple(values[:1]), head.line))
    else:
        hint = nearest(name, MEGATRON_SWITCHES | MEGATRON_VALUES | MEGATRON_MANY | MEGATRON)
        if hint.startswith("; did you mean"):
            raise InputError(f"{place}: Megatron-LM has no such argument{hint}")
        launch.ignored.append(f"{head.text} (unknown to Megatron-LM)")


def _same(given: str, default: str | None) -> bool:
    if default is None:
        return False
    try:
        return given == default or float(given) == float(default)
    except ValueError:
        return False


def _only(place: str, values: list[str], count: int) -> tuple[str, ...]:
    """The values of an argument that takes ``count``."""
    extra = [value for value in values[count:] if value != UNKNOWN]
    if len(values) < count:
        raise InputError(f"{place} needs a value")
    if extra:
        takes = "one value" if count else "no value"
        raise InputError(f"{place} takes {takes}, but is followed by {' '.join(values)}")
    return tuple(values[:count])


# -- the number of GPUs ------------------------------------------------------------------------------


def _slurm(text: str) -> dict[str, tuple[str, int]]:
    """What comments for Slurm ask for, with their lines."""
    found: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _SLURM.match(line):
            name, value = match.groups()
            name = _SHORT.get(name, name)
            if name == "gres":
                name, value = "gpus-per-node", value.rpartition(":")[2]
            found.setdefault(name, (value, number))
    return found


def _short_options(command: list[Word], started: Flags) -> None:
    """``srun -N 4 -n 32``, ``mpirun -np 32``."""
    if not command or command[0].text.rpartition("/")[2] not in {"srun", "mpirun", "mpiexec", "sbatch"}:
        return
    for option, value in pairwise(command):
        name = {"-N": "nodes", "-n": "ntasks", "-np": "ntasks"}.get(option.text)
        if name:
            started.named.setdefault(name, Flag(name, (value.text,), option.line))


def _count(launch: Launch, started: Flags, batch: dict[str, tuple[str, int]]) -> None:
    """Finds the number of GPUs: nodes times GPUs a node, or the number of tasks; else why it cannot be known."""
    for name, (value, line) in batch.items():
        started.named.setdefault(name, Flag(name, (value,), line))
    file = launch.flags.file
    try:
        nodes = _size(started, ("nnodes", "num-nodes"), "nodes")
        each = _size(started, ("nproc-per-node", "num-gpus", "ntasks-per-node"), "gpus-per-node")
        tasks = None if each else _size(started, ("ntasks",))
        if each and not nodes and "hostfile" in launch.others:
            raise launch.others.fault("hostfile", "the number of nodes is in another file")
    except InputError as error:
        launch.gpus_fault = f"{error}; add --set n_gpus=N"
        return
    if each:
        launch.gpus = (nodes[0] if nodes else 1) * each[0]
        several = "" if nodes and nodes[0] == 1 else "s"
        told = f"{nodes[0]} node{several} of {each[0]} GPUs" if nodes else f"{each[0]} GPUs on one node"
        launch.gpus_place = f"{file}:{(nodes or each)[1]}: {told}"
    elif tasks:
        launch.gpus = tasks[0]
        launch.gpus_place = f"{file}:{tasks[1]}: {tasks[0]} tasks"


def _size(started: Flags, names: tuple[str, ...], instead: str = "") -> tuple[int, int] | None:
    """The first of some numbers that is given, and its line; where it is not in the file, what Slurm is asked for
    ``instead``.

    Raises:
        InputError: it is no number above 0, or it is not in the file.
    """
    for name in (*names, *([instead] if instead else [])):
        flag = started.named.get(name)
        if flag is None:
            continue
        value = flag.values[0] if flag.values else ""
        if UNKNOWN in value and instead in started:
            flag = started.named[instead]
            value = flag.values[0] if flag.values else ""
        if flag.name == "gpus-per-node":
            value = value.rpartition(":")[2]
        least, sign, most = value.partition(":")
        if sign and flag.name == "nnodes" and least.isdecimal() and most.isdecimal():
            if least != most:
                raise started.fault(flag.name, "a range of nodes, not one number")
            value = least
        if UNKNOWN in value:
            raise started.fault(flag.name, "its value is not in the file")
        if not value:
            raise started.fault(flag.name, "it has no value")
        if not re.fullmatch(rf"0*[1-9][0-9]{{0,{_DIGITS - 1}}}", value):
            raise started.fault(flag.name, f"expected a whole number above 0 of at most {_DIGITS} digits")
        return int(value), flag.line
    return None


def _remarks(launch: Launch, script: Script) -> None:
    """What our own comments say: inputs and choices that no argument tells."""
    for comment in script.comments:
        for name, value in read_remark(comment.text).items():
            launch.ours.setdefault(name, (value, comment.line))
