"""Checking a stored result by itself: its accounting, and its front by the scalar reference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import DseError, StudyError, VerificationFailed
from dse.evaluation import State, judge
from dse.expressions import Kind
from dse.problem import Problem, Team
from dse.study.diagnosis import design_metrics
from dse.study.dominance import nondominated
from dse.study.identity import Coder, Membership
from dse.study.manifest import Manifest
from dse.study.result import FrontPoint, design_text
from dse.study.sampled import measured_of
from dse.study.trial import Trial

__all__ = ["Findings", "check_result", "read_result"]


@dataclass
class Findings:
    """What holds and what does not, so far."""

    held: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)

    def check(self, sentence: str, problems: Sequence[str]) -> None:
        """``sentence`` holds unless there are ``problems``."""
        if problems:
            self.broken.extend(problems)
        else:
            self.held.append(sentence)


def read_result(folder: Path) -> dict[str, Any]:
    """The content of ``result.json``.

    Raises:
        StudyError: there is none yet.
        VerificationFailed: it is damaged; says where.
    """
    path = folder / "result.json"
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StudyError(f"{folder} has no result yet; finish it with dse resume {folder}") from None
    except json.JSONDecodeError as error:
        raise VerificationFailed(f"{path}:{error.lineno}:{error.colno}: damaged: {error.msg}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise VerificationFailed(f"{path}: cannot be read: {error}") from None
    if not isinstance(stored, dict):
        raise VerificationFailed(f"{path}:1:1: damaged: expected an object")
    return stored


def check_result(
    problem: Problem,
    team: Team,
    manifest: Manifest,
    stored: Mapping[str, Any],
    *,
    trials: Sequence[Trial],
    found: Findings,
) -> list[FrontPoint]:
    """Check ``result.json``; of the record only what was measured is used. Returns the front."""
    expected = {
        "problem": {"name": problem.name, "digest": problem.digest},
        "team": manifest.team,
        "solver": manifest.solver,
        "seed": manifest.seed,
    }
    wrong = [
        f"result.json: {key} is {stored.get(key)!r}, but the manifest says {value!r}"
        for key, value in expected.items()
        if stored.get(key) != value
    ]
    found.check("problem, team, solver and seed are the manifest's", wrong)
    found.check("the accounting sums to the size of the space", _wrong_accounting(problem, stored))
    try:
        points = [_point(problem, data) for data in stored["front"]]
    except (KeyError, TypeError, ValueError, AttributeError, DseError) as error:
        found.check("", [f"result.json: the front is damaged: {type(error).__name__}: {error}"])
        return []
    coder = Coder(problem)
    member = Membership(problem, team)
    tried = {coder.key(trial.design): trial for trial in trials}
    wrong = []
    for point in points:
        trial = tried.get(coder.key(point.design))
        wrong += _wrong_point(coder, member, point, measured_of(problem, trial) if trial else None)
    found.check(f"{len(points)} of {len(points)} front points evaluated again", wrong)
    found.check("no front point dominates or equals another", _dominated(problem, points))
    return points


def _wrong_accounting(problem: Problem, stored: Mapping[str, Any]) -> list[str]:
    accounting = stored.get("accounting")
    names = ("outside", "illegal", "evaluated", "pruned", "unvisited")
    if not isinstance(accounting, dict) or not all(
        type(accounting.get(n)) is int and accounting[n] >= 0 for n in ("total", *names)
    ):
        return ["result.json: the accounting is damaged"]
    wrong = []
    parts = sum(accounting[name] for name in names)
    if parts != accounting["total"]:
        wrong.append(f"the accounting sums to {parts:,}, but its total is {accounting['total']:,}")
    if not problem.continuous and accounting["total"] != problem.size:
        wrong.append(
            f"the accounting's total is {accounting['total']:,}, but the space has {problem.size:,} designs"
        )
    for by, whole in (("illegal_by", "illegal"), ("pruned_by", "pruned")):
        parts_of = accounting.get(by, {})
        if not isinstance(parts_of, dict) or not all(type(n) is int and n >= 0 for n in parts_of.values()):
            wrong.append(f"result.json: the accounting's {by} is damaged")
            continue
        split = sum(parts_of.values())
        if parts_of and split != accounting[whole]:
            wrong.append(f"the accounting's {by} sums to {split:,}, but {whole} is {accounting[whole]:,}")
    if stored.get("status") == "complete" and accounting["unvisited"]:
        wrong.append(f"the search is complete, but {accounting['unvisited']:,} designs were not visited")
    return wrong


def _point(problem: Problem, data: Mapping[str, Any]) -> FrontPoint:
    coder = Coder(problem)
    design = coder.design(coder.key(data["design"]))
    objectives = {o.name: float(data["objectives"][o.name]) for o in problem.objectives}
    metrics = {}
    for name, metric in problem.metrics.items():
        value = data["metrics"][name]
        numeric = isinstance(value, str) and problem.graph[metric.node].type.kind is Kind.NUMBER
        metrics[name] = float(value) if numeric else value
    return FrontPoint(data["index"], design, objectives, metrics, data["ties"], tuple(data.get("tied", ())))


def _wrong_point(
    coder: Coder, member: Membership, point: FrontPoint, measured: Mapping[str, float] | None
) -> list[str]:
    problem = coder.problem
    name = f"front point {point.index if point.index is not None else design_text(problem, point.design)}"
    key = coder.key(point.design)
    wrong = []
    if coder.index(key) != point.index:
        wrong.append(f"{name}: its design has index {coder.index(key)}")
    if not member(key, point.design):
        wrong.append(f"{name}: the team may not choose it")
    verdict = judge(problem, point.design, measured)
    if verdict.state is not State.FEASIBLE:
        wrong.append(f"{name}: it is {verdict.state.name.lower()} {verdict.reason}".rstrip())
    objectives = {o.name: v for o, v in zip(problem.objectives, verdict.objectives, strict=False)}
    if objectives != dict(point.objectives):
        wrong.append(f"{name}: its objectives are {objectives}, but {dict(point.objectives)} is stored")
    metrics = design_metrics(problem, point.design, measured)
    wrong += [
        f"{name}: {metric} is {value}, but {point.metrics[metric]} is stored"
        for metric, value in metrics.items()
        if value != point.metrics[metric]
        and not (value != value and point.metrics[metric] != point.metrics[metric])
    ]
    return wrong


def _dominated(problem: Problem, points: Sequence[FrontPoint]) -> list[str]:
    if len(points) < 2:
        return []
    signs = [o.sign for o in problem.objectives]
    values = np.array([[v * s for v, s in zip(p.objectives.values(), signs, strict=True)] for p in points])
    if np.isnan(values).any():
        return ["an objective on the front is NaN"]
    wrong = [
        f"front point {point.index} is dominated by another"
        for point, good in zip(points, nondominated(values), strict=True)
        if not good
    ]
    if len(np.unique(values, axis=0)) < len(values):
        wrong.append("two front points have the same objectives")
    return wrong
