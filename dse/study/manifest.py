"""What a study is: the problem, solver, seed and settings that every run of it must share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dse import __version__
from dse.errors import DseError, InputError, StudyError
from dse.evaluation.prepared import prepared
from dse.problem import Box, Conjunct, Problem, Team, shown
from dse.problem.library import library, load
from dse.study.certificate import Wanted
from dse.study.files import write_atomic
from dse.study.solver import Solver
from dse.units import Quantity

__all__ = ["FORMAT", "MANIFEST", "Manifest"]

FORMAT = 1
MANIFEST = "manifest.json"

_COMPARED = {
    "team": "team",
    "requested": "solver",
    "seed": "seed",
    "batch": "batch size",
    "options": "options",
    "keep": "keep",
    "top": "top",
    "objective": "objective",
    "ties": "ties",
    "certificate": "certificate",
    "within": "within",
}

_KEPT = 5000
"""Best designs that are kept where those near the best are counted, unless a number was asked for."""

_LATER: dict[str, Any] = {"within": 0.0, "listed": 0}
"""What manifests did not have at first, and what it was then."""


@dataclass(frozen=True)
class Manifest:
    """The content of ``manifest.json``.

    ``source`` is the space's file, or ``name`` of a shipped space; ``inputs`` the values in base units. ``team`` is the
    team's name and ``boxes`` what it may choose: value numbers and nodes, which mean the same as long as the digest is
    the same. ``requested`` is the solver asked for, ``solver`` the one that ``auto`` chose and ``note`` why.
    ``certificate`` is ``auto``, ``always`` or ``never``. ``within`` is the share by which designs may be worse than the best
    to be counted, and ``listed`` how many of them are named; 0: none are.
    """

    problem: str
    source: str
    overrides: tuple[tuple[str, str], ...]
    inputs: Mapping[str, Any]
    digest: str
    team: str
    boxes: tuple[Mapping[str, Any], ...]
    requested: str
    solver: str
    seed: int
    batch: int
    options: Mapping[str, Any] = field(default_factory=dict)
    keep: int = 100_000
    top: int = 0
    objective: str | None = None
    ties: bool = False
    certificate: Wanted = "auto"
    within: float = 0.0
    listed: int = 0
    note: str = ""
    version: str = ""
    format: int = FORMAT

    @classmethod
    def of(cls, problem: Problem, team: Team, **settings: Any) -> Manifest:
        """The manifest of a study of ``problem``."""
        return cls(
            problem=problem.name,
            source=prepared(problem, "source", lambda: _source(problem)),
            overrides=problem.overrides,
            inputs={name: known.value for name, known in problem.inputs.items()},
            digest=problem.digest,
            team=team.name,
            boxes=tuple(_of_box(box) for box in team.boxes),
            version=__version__,
            **settings,
        )

    # -- on disk ----------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write ``manifest.json``, whole or not at all."""
        write_atomic(folder / MANIFEST, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read ``manifest.json``.

        Raises:
            StudyError: there is none, it is damaged, or of another format.
        """
        path = folder / MANIFEST
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise StudyError(f"{folder} holds no study: there is no {MANIFEST}") from None
        except json.JSONDecodeError as error:
            raise StudyError(
                f"{path}:{error.lineno}:{error.colno}: the manifest is damaged: {error.msg}"
            ) from None
        except (OSError, ValueError, RecursionError) as error:
            raise StudyError(f"{path}: the manifest cannot be read: {error}") from None
        if not isinstance(data, dict):
            raise StudyError(f"{path}:1:1: the manifest is damaged: expected an object")
        if data.get("format") != FORMAT:
            raise StudyError(
                f"{path}: this version reads studies of format {FORMAT}, but found {data.get('format')!r}"
            )
        data = {**_LATER, **data}
        problems = _wrong_fields(data)
        if problems:
            raise StudyError(f"{path}: the manifest is damaged: {'; '.join(problems)}")
        data["boxes"] = tuple(data["boxes"])
        data["overrides"] = tuple((str(name), str(text)) for name, text in data["overrides"])
        return cls(**data)

    @property
    def ranked(self) -> bool:
        """Whether a list of the best designs was asked for, not only kept to count those near the best."""
        return self.top > 0 and (not self.within or self.listed == self.top)

    def settled(self, solver: Solver) -> Manifest:
        """The settings that a solver can keep: only an exact one counts what is near the best."""
        if not self.within:
            return self
        if solver.promise == "exact" and not self.options.get("epsilon"):
            return replace(self, top=self.top or _KEPT)
        return replace(self, within=0.0, listed=0)

    # -- the problem ------------------------------------------------------------------------------

    def load_problem(self, folder: Path, *, code: bool = True) -> Problem:
        """The study's problem, loaded again from its source.

        Args:
            code: whether the Python cost function that the space names may be imported.

        Raises:
            StudyError: the source is gone, or is no longer what the study was made of.
            InputError: it needs code that may not be imported.
        """
        if not self.source:
            raise StudyError(
                f"the problem of {folder} was built in a program, not read from a file; "
                "open it with Study(problem, folder=...) from the same program"
            )
        try:
            problem = load(self.source, self.overrides, code=code)
        except DseError as error:
            raise StudyError(f"the problem of {folder} cannot be loaded again: {error}") from error
        if problem.cost and not code:
            raise InputError(f"{self.source} needs code ({problem.cost}), which may not be imported")
        changed = {
            name: Quantity(value, problem.inputs[name].unit) if isinstance(value, float) else value
            for name, value in self.inputs.items()
            if name in problem.inputs and problem.inputs[name].value != value
        }
        if changed:
            problem = problem.with_inputs(changed, code=code)
        if problem.digest != self.digest:
            raise StudyError(
                f"{self.source} is no longer what {folder} was made of "
                f"(digest {problem.digest[:12]}, was {self.digest[:12]}); start a new study"
            )
        return problem

    def team_of(self, problem: Problem, folder: Path) -> Team:
        """The study's team, whether or not the problem declares it.

        Raises:
            StudyError: the manifest's boxes do not fit the problem.
        """
        try:
            return Team(self.team, tuple(_to_box(problem, data) for data in self.boxes))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise StudyError(
                f"{folder / MANIFEST}: the manifest is damaged: the boxes of team {self.team} do not fit the space "
                f"({type(error).__name__}: {error})"
            ) from None

    @property
    def settings(self) -> dict[str, Any]:
        """What the record keeps of the manifest: all but where the space's file is, which may move."""
        data: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        del data["source"]
        return data

    def check_recorded(self, recorded: Mapping[str, Any], folder: Path) -> None:
        """Make sure that this, read from ``folder``, is what the study was begun with by its record.

        Raises:
            StudyError: says everything that differs.
        """
        here, recorded = self.settings, {**_LATER, **recorded}
        changed = []
        for name in {**here, **recorded}:
            if here.get(name) == recorded.get(name):
                continue
            if name in ("boxes", "overrides", "inputs", "digest"):
                changed.append(f"{name} is not what it was")
            else:
                changed.append(
                    f"{name} is {_shown(here.get(name))}, but the study was begun with {_shown(recorded.get(name))}"
                )
        if changed:
            raise StudyError(
                f"{folder / MANIFEST} was changed since the study was begun: {'; '.join(changed)}"
            )

    def check_same(self, asked: Manifest, folder: Path) -> None:
        """Make sure that ``asked`` describes the study that is in ``folder``.

        Raises:
            StudyError: says everything that differs.
        """
        differences = self._problem_differences(asked)
        for name, word in _COMPARED.items():
            here, there = getattr(self, name), getattr(asked, name)
            if here != there:
                differences.append(f"{word} is {_shown(here)} there, but {_shown(there)} was asked for")
        if not differences and self.boxes != asked.boxes:
            differences.append(f"team {self.team} may choose other designs there")
        if differences:
            raise StudyError(
                f"{folder} holds another study: {'; '.join(differences)}. Give another folder, or the same settings"
            )

    def _problem_differences(self, asked: Manifest) -> list[str]:
        if self.problem != asked.problem:
            return [f"the problem is {self.problem} there, but {asked.problem} was asked for"]
        if self.digest == asked.digest:
            return []
        inputs = [
            f"input {name} is {_shown(self.inputs.get(name))} there, but {_shown(asked.inputs.get(name))} was asked for"
            for name in {**self.inputs, **asked.inputs}
            if self.inputs.get(name) != asked.inputs.get(name)
        ]
        if inputs:
            return inputs
        if self.overrides != asked.overrides:
            there = " ".join(f"{name}={text}" for name, text in self.overrides) or "nothing"
            here = " ".join(f"{name}={text}" for name, text in asked.overrides) or "nothing"
            return [f"{there} was set there, but {here} was asked for"]
        return [
            f"the space {self.problem} has changed since (digest {self.digest[:12]}, now {asked.digest[:12]})"
        ]


def _of_box(box: Box) -> dict[str, Any]:
    """A box as JSON has it."""
    return {
        "allowed": [None if values is None else list(values) for values in box.allowed],
        "where": [
            {"node": conjunct.node, "text": conjunct.text, "names": sorted(conjunct.names)}
            for conjunct in box.where
        ],
    }


def _to_box(problem: Problem, data: Mapping[str, Any]) -> Box:
    """A box from JSON; raises one of several errors when it does not fit the problem."""
    allowed = tuple(None if values is None else tuple(values) for values in data["allowed"])
    for dimension, values in zip(problem.dimensions, allowed, strict=True):
        if any(type(value) is not int or not 0 <= value < len(dimension.values) for value in values or ()):
            raise ValueError(f"{dimension.name} has no such value number")
    conjuncts = []
    for part in data["where"]:
        names = problem.graph[part["node"]].support
        if names != frozenset(part["names"]):
            raise ValueError(f"{part['text']} is not at node {part['node']}")
        conjuncts.append(Conjunct(part["node"], str(part["text"]), names))
    return Box(allowed, tuple(conjuncts))


def _source(problem: Problem) -> str:
    """The name of a shipped space, or the whole path of a file; empty for a problem built in a program."""
    if not problem.source:
        return ""
    path = Path(problem.source)
    for name, known in library().items():
        if known == path:
            return name
    return str(path.resolve()) if path.is_file() else ""


def _wrong_fields(data: dict[str, Any]) -> list[str]:
    """What keeps ``data`` from being a manifest."""
    wrong = []
    kinds: dict[str, Any] = {
        "str": str,
        "int": int,
        "float": float,
        "bool": bool,
        "Mapping[str, Any]": dict,
        "str | None": str | None,
        "Wanted": str,
    }
    kinds["tuple[tuple[str, str], ...]"] = list
    kinds["tuple[Mapping[str, Any], ...]"] = list
    for known in fields(Manifest):
        if known.name not in data:
            wrong.append(f"{known.name} is missing")
        elif not isinstance(data[known.name], kinds[str(known.type)]):
            wrong.append(f"{known.name} cannot be {data[known.name]!r}")
    wrong += [
        f"unknown key {name!r}" for name in data if name not in {known.name for known in fields(Manifest)}
    ]
    pairs = data.get("overrides")
    if isinstance(pairs, list) and not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        wrong.append("overrides must be pairs")
    return wrong


def _shown(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}={item}" for name, item in value.items()) or "none"
    return shown(value) if isinstance(value, (bool, float, str)) else str(value)
