"""A plan that exists, read from a file: what it costs, and what a search would do better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dse.cli.designing import active, complete, value_of
from dse.cli.designs import assignments
from dse.cli.loading import load_space
from dse.cli.running import finish
from dse.cli.text import paragraph, plural
from dse.cli.tree import explanation_data, explanation_lines
from dse.errors import InputError
from dse.evaluation.explain import Explanation, explain
from dse.problem import Box, Design, Dimension, Problem, Team, shown
from dse.problem.files import read_file
from dse.study.exports import KnownPlan, kept, reader
from dse.study.result import FrontPoint, Result, number
from dse.study.study import Study
from dse.units import format_value, from_base

__all__ = ["Checked", "check_plan", "plan_data", "plan_lines", "read_design"]

_LIMIT = 1 << 20
"""Bytes of a plan."""

_NEAR = 2
"""Choices that are named on each side of a value which is none."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A known plan: its cost, and the search for a better one with the same inputs.

    ``same`` are the dimensions that the search left as they are in the plan; ``error`` is the relative error of the
    first objective, when the space gives one.
    """

    problem: Problem
    file: str
    known: KnownPlan
    notes: tuple[str, ...]
    explanation: Explanation
    result: Result
    same: tuple[str, ...]
    error: float | None

    @property
    def best(self) -> FrontPoint | None:
        """The best design of the first objective that was found."""
        objective = self.problem.objectives[0]
        return min(
            self.result.front, key=lambda p: p.objectives[objective.name] * objective.sign, default=None
        )

    @property
    def value(self) -> float | None:
        """The first objective of the plan, in base units; None where it has none."""
        name = self.problem.objectives[0].name
        found = [step.value for step in self.explanation.metrics if step.name == name]
        return found[0] if found and isinstance(found[0], float) else None

    @property
    def ratio(self) -> float | None:
        """By what factor the best design is better; below 1 it is worse."""
        if self.best is None or self.value is None:
            return None
        objective = self.problem.objectives[0]
        best = self.best.objectives[objective.name]
        above, below = (self.value, best) if objective.direction == "minimize" else (best, self.value)
        return above / below if below > 0 else None


def check_plan(
    space: str,
    settings: Sequence[tuple[str, str]],
    path: Path,
    values: Mapping[str, str],
    team: str | None = None,
    *,
    code: bool = True,
) -> Checked:
    """Read the plan at ``path``, predict it and search for a better one. What is given by ``settings`` and ``values``
    stands in place of what the file says.

    Raises:
        InputError: the file cannot be read as a plan, or has a value that the space does not have.
    """
    base = load_space(space, settings, code=code)
    known = reader(base)(read_file(path, _LIMIT, "a plan"), str(path), base)
    given = {name.removeprefix("inputs.") for name, _ in settings}
    open_ = [name for name in known.needs if name not in given]
    if open_:
        wanted = " ".join(f"--set {name}=..." for name in open_)
        beside = path.with_suffix(".sh")
        started = f", or give {beside}, if that starts it" if beside != path and beside.is_file() else ""
        raise InputError(f"{path} does not say {' and '.join(open_)}; add {wanted}{started}")
    kept_inputs = {name: text for name, text in known.inputs.items() if name not in given}
    notes = [
        *known.notes,
        *(
            f"{name} is {_input_text(base, name)}, which the file does not say; --set {name}=... changes it"
            for name in known.assumed
            if name not in given
        ),
        *(
            f"{name} is {_input_text(base, name)} by --set, instead of {text} ({known.places.get(name, path)})"
            for name, text in known.inputs.items()
            if name in given and text != _input_text(base, name)
        ),
    ]
    known = replace(known, inputs=kept_inputs)
    merged = [*kept_inputs.items(), *settings]
    problem = load_space(space, merged, code=code)
    design = read_design(problem, known, dict(values))
    if known.agrees is not None:
        known.agrees(problem, design)
    same = kept(problem)
    searched = _restricted(problem, problem.team(team), design, same)
    result = finish(Study(problem, team=searched, within=0), None, label="searching for a better plan")
    explanation = explain(problem, design)
    error = problem.errors.get(problem.objectives[0].name)
    return Checked(problem, str(path), known, tuple(notes), explanation, result, same, error)


def _input_text(problem: Problem, name: str) -> str:
    known = problem.inputs[name]
    return shown(known.value, known.unit)


def _restricted(problem: Problem, team: Team, design: Design, names: Sequence[str]) -> Team:
    """The team with some dimensions fixed as they are in the design."""
    if not names:
        return team
    fixed = tuple((problem.digit(n, design[n]),) if n in names else None for n in problem.names)
    told = ", ".join(f"{name}={shown(design[name])}" for name in names)
    both = team & Team(told, (Box(fixed),))
    return Team(f"{team.name} with {told}", both.boxes)


# -- the design --------------------------------------------------------------------------------------


def read_design(problem: Problem, known: KnownPlan, given: Mapping[str, str]) -> Design:
    """The design that a file runs; ``given`` values stand in place of the file's.

    Raises:
        InputError: the space has no such value, or a dimension has none.
    """
    for name in given:
        problem.dimension(name)
    texts: dict[str, str] = {}
    design: Design = {}
    for dimension in problem.dimensions:
        name = dimension.name
        if name in given:
            texts[name] = given[name]
        elif name in known.design and active(problem, dimension, design):
            _check_choice(problem, dimension, known.design[name], known.places.get(name, ""))
            texts[name] = known.design[name]
        elif len(dimension.values) == 1:
            texts[name] = dimension.label(0)
        if name in texts:
            design[name] = value_of(problem, name, texts[name])
        elif not active(problem, dimension, design):
            design[name] = dimension.values[dimension.otherwise]
    return complete(problem, texts, None)


def _check_choice(problem: Problem, dimension: Dimension, text: str, place: str) -> None:
    """Makes sure that the space has a value that a file has.

    Raises:
        InputError: it does not; says the nearest ones.
    """
    try:
        problem.digit(dimension.name, text)
    except InputError as error:
        near = _nearest(dimension, text)
        if not near:
            raise InputError(f"{place}: {error}" if place else str(error)) from None
        choices = [dimension.plain(v) for v in dimension.values]
        more = sorted({*(c for c in choices if isinstance(c, (int, float))), float(text)})
        listed = ", ".join(f"{choice:g}" for choice in more)
        raise InputError(
            f"{place}{': ' if place else ''}the space has no {dimension.name}={text}; the nearest are {near}. "
            f"To predict it all the same: --set 'dimensions.{dimension.name}.choices=[{listed}]'"
        ) from None


def _nearest(dimension: Dimension, text: str) -> str:
    """The choices below and above a number; "" where there are no numbers."""
    numbers = sorted(v for v in dimension.values if isinstance(v, float))
    try:
        wanted = float(text)
    except ValueError:
        return ""
    below, above = [v for v in numbers if v < wanted], [v for v in numbers if v > wanted]
    return " and ".join(f"{v:g}" for v in (*below[-1:], *above[:1]))


# -- what is said of it ------------------------------------------------------------------------------


def plan_lines(checked: Checked) -> list[str]:
    """What was read, what it costs, and what a search does better."""
    known = checked.known
    lines = paragraph(f"plan {checked.file}")
    lines += paragraph(
        f"inputs: {' '.join(f'{n}={v}' for n, v in known.inputs.items())}", indent=2, hanging=4
    )
    for note in checked.notes:
        lines += paragraph(f"note: {note}", indent=2, hanging=4)
    if known.ignored:
        lines += paragraph(f"without influence: {', '.join(known.ignored)}", indent=2, hanging=4)
    return [
        *lines,
        "",
        *explanation_lines(checked.problem, checked.explanation, formulas=False),
        "",
        *_better(checked),
    ]


def _better(checked: Checked) -> list[str]:
    problem, best = checked.problem, checked.best
    design = checked.explanation.design
    same = (
        f", with {' '.join(f'{n}={shown(design[n])}' for n in checked.same)} as in the plan"
        if checked.same
        else ""
    )
    sampled = checked.result.promise == "sampling" or checked.result.status == "stopped"
    tried = f" ({plural(checked.result.n_trials, 'trial')}: better designs may exist)" if sampled else ""
    lines = [*paragraph(f"a search with the same inputs{same}{tried}")]
    if best is None:
        return [*lines, *paragraph("no feasible design was found", indent=2)]
    objective = problem.objectives[0]
    differing = {name: value for name, value in best.design.items() if value != design[name]}
    found = format_value(best.objectives[objective.name], objective.unit)
    if not differing:
        return [*lines, *paragraph(f"the plan is the best: {objective.name} {found}", indent=2)]
    ratio = checked.ratio
    if ratio is not None and ratio < 1 and checked.explanation.feasible:
        plan_value = format_value(checked.value or 0.0, objective.unit)
        told = f"nothing better was found: {objective.name} {found} at best, the plan {plan_value}"
        return [*lines, *paragraph(told, indent=2, hanging=4)]
    lines += paragraph(f"best: {objective.name} {found}{_compared(checked)}", indent=2, hanging=4)
    for name, value in differing.items():
        unit = problem.dimension(name).unit
        lines += paragraph(f"{name}: {shown(value, unit)} instead of {shown(design[name], unit)}", indent=4)
    plan = {step.name: step.value for step in checked.explanation.metrics}
    for other in problem.objectives[1:]:
        before, after = plan.get(other.name), best.objectives[other.name]
        if isinstance(before, float):
            told = f"{other.name} {format_value(after, other.unit)}, plan {format_value(before, other.unit)}"
            lines += paragraph(told, indent=2, hanging=4)
    if len(checked.result.front) > 1:
        others = plural(len(checked.result.front) - 1, "more design")
        lines += paragraph(f"{others} on the front: dse search lists them", indent=2)
    return lines


def _compared(checked: Checked) -> str:
    """The plan's value, the factor between the two, and whether the model can tell them apart."""
    ratio, objective = checked.ratio, checked.problem.objectives[0]
    if checked.value is None or ratio is None:
        return "; the plan has no value" + (
            "" if checked.explanation.feasible else ", since it is not feasible"
        )
    value = format_value(checked.value, objective.unit)
    if not checked.explanation.feasible:
        return f"; the plan's {value} cannot be had, since it is not feasible"
    told = (
        f"; the plan's {value} is {ratio:.3f} times that"
        if objective.direction == "minimize"
        else (f"; that is {ratio:.3f} times the plan's {value}")
    )
    if checked.error is None:
        return told
    share = f"{checked.error * 100:.3g} %"
    if ratio - 1 <= checked.error:
        return f"{told}, which is within the model's error of {share}: the two cannot be told apart"
    return f"{told}, more than the model's error of {share}"


def plan_data(checked: Checked) -> dict[str, Any]:
    """The same as JSON values."""
    problem, best = checked.problem, checked.best
    design = checked.explanation.design
    objective = problem.objectives[0]
    search: dict[str, Any] = {"status": checked.result.status, "kept": list(checked.same), "best": None}
    if best is not None:
        found = best.objectives[objective.name]
        search |= {
            "best": {
                name: d.plain(best.design[name])
                for name, d in zip(problem.names, problem.dimensions, strict=True)
            },
            "index": best.index,
            "objective": objective.name,
            "value": number(from_base(found, objective.unit)),
            "unit": objective.unit.text,
            "ratio": None if checked.ratio is None else number(checked.ratio),
            "differs": [name for name, value in best.design.items() if value != design[name]],
            "within_error": (
                None if checked.error is None or checked.ratio is None else checked.ratio - 1 <= checked.error
            ),
            "model_error": checked.error,
        }
    return {
        "file": checked.file,
        "inputs": dict(checked.known.inputs),
        "design": assignments(problem, design),
        "places": dict(checked.known.places),
        "ignored": list(checked.known.ignored),
        "notes": list(checked.notes),
        "explanation": explanation_data(problem, checked.explanation),
        "search": search,
    }
