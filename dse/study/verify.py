"""Checking a stored result against its problem: nothing in the folder is taken on trust."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import DseError, StudyError, VerificationFailed
from dse.evaluation import State, judge
from dse.problem import Design, Problem, Team
from dse.study.certified import BOXES, check_certificate
from dse.study.dominance import nondominated
from dse.study.evaluating import is_measured
from dse.study.files import csv_text
from dse.study.identity import Coder, Membership
from dse.study.manifest import Manifest
from dse.study.metrics import needed_metrics
from dse.study.outputs import design_text, trial_columns, trial_rows
from dse.study.proofs import Findings, check_result, read_result
from dse.study.result import FrontPoint, Kept, Result, columns, point_row
from dse.study.sampled import evaluated, measured_of
from dse.study.stated import Stated
from dse.study.study import Study
from dse.study.trial import Trial
from dse.study.within import wrong_near

__all__ = ["Verification", "verify"]

_LISTED = 20  # findings that are listed; the rest are counted


@dataclass(frozen=True)
class Verification:
    """What was checked and holds, a sentence each."""

    folder: Path
    problem: Problem
    checks: tuple[str, ...]


def verify(
    folder: str | Path,
    *,
    problem: Problem | None = None,
    designs: int = 1000,
    boxes: int = BOXES,
    seed: int = 0,
    code: bool = True,
) -> Verification:
    """Check the result in ``folder``: problem, accounting, front, tables, trials, and the certificate if it has one.

    Every point of the front is evaluated again by the scalar reference, and up to ``designs`` trials or kept designs
    (beyond that, a sample drawn with ``seed``). What was measured is not measured again; what follows from it is checked.
    Of a certificate, up to ``boxes`` discarded boxes are proved again, or a sample.

    Args:
        problem: the study's problem, if it cannot be loaded from its source again.
        code: whether a Python cost function that the space names may be imported; what measures is never run.

    Raises:
        VerificationFailed: lists everything that does not hold.
        StudyError: there is no finished study in the folder: none at all, or one whose last run was killed.
        InputError: the problem needs code that may not be imported.
    """
    folder = Path(folder)
    manifest = Manifest.read(folder)
    try:
        study = Study.open(folder, problem, code=code)
    except StudyError as error:
        raise VerificationFailed(f"{folder}: {error}") from error
    if _unfinished(study):
        told = is_measured(study.problem) and study.problem.measurement is None
        how = "a program asks and tells this study; finish it there" if told else f"dse resume {folder}"
        raise StudyError(f"{folder} is unfinished: its result is older than its record; {how}")
    found = Findings()
    found.check(f"the problem is unchanged (digest {manifest.digest[:12]})", [])
    stored = read_result(folder)
    rebuilt: Result | None = None
    trials: Sequence[Trial] = ()
    try:
        trials = study.finished
        rebuilt = study.result
    except DseError as error:
        found.check("", [f"the record cannot be read: {error}"])
    points = check_result(study.problem, study.team, manifest, stored, trials=trials, found=found)
    if rebuilt is not None:
        found.check("result.json is what the record gives", _differences(rebuilt.to_dict(), stored))
        for name, text in _tables(points, rebuilt, trials).items():
            found.check(f"{name} agrees", _wrong_table(folder / name, text))
        if rebuilt.near is not None and rebuilt.feasible:
            found.check("the designs near the best are", wrong_near(rebuilt, study.team))
        if rebuilt.promise == "sampling":
            _check_trials(study, trials, designs, seed, found)
        elif rebuilt.kept is not None:
            _check_kept(study, rebuilt.kept, designs, seed, found)
    if not found.broken:  # what a certificate bears out is a result that holds by itself
        check_certificate(folder, _stated(study, manifest, stored, points), boxes, seed, found)
    if found.broken:
        listed = found.broken[:_LISTED]
        more = len(found.broken) - len(listed)
        listed += [f"and {more} more"] if more else []
        raise VerificationFailed(f"{folder} does not hold:\n" + "\n".join(f"- {line}" for line in listed))
    return Verification(folder, study.problem, tuple(found.held))


def _stated(
    study: Study, manifest: Manifest, stored: Mapping[str, Any], points: Sequence[FrontPoint]
) -> Stated:
    """What the study's certificate must bear out."""
    names = [o.name for o in study.problem.objectives]
    return Stated(
        study.problem,
        study.team,
        stored,
        points,
        epsilon=float(manifest.options.get("epsilon", 0.0)),
        top=manifest.top,
        objective=0 if manifest.objective is None else names.index(manifest.objective),
    )


def _unfinished(study: Study) -> bool:
    try:
        return study.unfinished
    except DseError:  # a record that cannot be read is a finding
        return False


# -- the result against the record -----------------------------------------------------------------


def _differences(rebuilt: Mapping[str, object], stored: Mapping[str, object]) -> list[str]:
    expected = json.loads(json.dumps(rebuilt))
    return [
        f"result.json: {key} is not what the record gives"
        for key in {**expected, **stored}
        if key != "run" and expected.get(key) != stored.get(key)
    ]


def _tables(points: Sequence[FrontPoint], result: Result, trials: Sequence[Trial]) -> dict[str, str]:
    """What the tables must hold: the front as stored, the rest by the record."""
    problem = result.problem
    tables = {"front.csv": csv_text(columns(problem), [point_row(problem, point) for point in points])}
    if result.promise == "sampling":
        tables["trials.csv"] = csv_text(trial_columns(problem), trial_rows(problem, trials))
    elif result.kept is not None:
        tables["designs.csv"] = design_text(problem, result.kept)
    return tables


def _wrong_table(path: Path, text: str) -> list[str]:
    try:
        same = path.read_bytes() == text.encode()
    except OSError as error:
        return [f"{path.name} cannot be read: {error.strerror or error}"]
    return [] if same else [f"{path.name} is not what result.json and the record give"]


def _sample(count: int, limit: int, seed: int) -> list[int]:
    return list(range(count)) if count <= limit else sorted(random.Random(seed).sample(range(count), limit))


def _check_trials(study: Study, trials: Sequence[Trial], limit: int, seed: int, found: Findings) -> None:
    """Trials follow from their designs, and from what was measured."""
    problem, coder = study.problem, Coder(study.problem)
    member = Membership(problem, study.team)
    keys = [coder.key(trial.design) for trial in trials]
    found.check(
        "no design was tried twice", ["a design was tried twice"] if len(set(keys)) < len(keys) else []
    )
    chosen = _sample(len(trials), limit, seed)
    wrong = []
    again = 0
    needed = needed_metrics(problem)
    for at in chosen:
        trial = trials[at]
        if not member(keys[at], trial.design):
            wrong.append(f"trial {trial.number}: the team may not choose its design")
        measured = measured_of(problem, trial)
        if any(name not in (measured or {}) for name in needed):
            continue  # it failed to be measured
        again += 1
        now = evaluated(problem, trial, measured)
        wrong += [
            f"trial {trial.number}: {part} must be {getattr(now, part)}, but {getattr(trial, part)} is logged"
            for part in ("state", "objectives", "violations", "reason")
            if getattr(now, part) != getattr(trial, part)
        ]
    found.check(f"{again:,} of {len(trials):,} trials evaluated again", wrong)


def _check_kept(study: Study, kept: Kept, limit: int, seed: int, found: Findings) -> None:
    """Kept designs are what the scalar reference says, and none beats the front."""
    problem = study.problem
    wrong = []
    chosen = _sample(len(kept.digits), limit, seed)
    for at in chosen:
        design: Design = problem.design_at(kept.digits[at].tolist())
        verdict = judge(problem, design)
        state = {(True, False): State.FEASIBLE, (False, False): State.INFEASIBLE}.get(
            (bool(kept.feasible[at]), bool(kept.failed[at])), State.FAILED
        )
        same = verdict.state is state
        if same and state is not State.FAILED:
            same = verdict.objectives == tuple(kept.objectives[at].tolist())
            same = same and verdict.violations == tuple(kept.violations[at].tolist())
        if not same:
            wrong.append(f"design {problem.index_of(kept.digits[at].tolist())} is not as it was kept")
    found.check(f"{len(chosen):,} of {len(kept.digits):,} kept designs evaluated again", wrong)
    found.check("no kept design dominates the front", _beaten(problem, study.pareto_front, kept, study.team))


def _beaten(problem: Problem, front: Sequence[FrontPoint], kept: Kept, team: Team) -> list[str]:
    signs = np.array([o.sign for o in problem.objectives])
    values = kept.objectives[kept.feasible] * signs
    points = np.array([list(point.objectives.values()) for point in front]).reshape(-1, len(signs)) * signs
    if not len(values):
        return []
    mask = nondominated(np.concatenate([points, values]))
    wrong = [
        f"front point {front[int(at)].index} is dominated by a kept design"
        for at in np.flatnonzero(~mask[: len(points)])
    ]
    known = {tuple(row) for row in points.tolist()}
    if any(tuple(row) not in known for row in values[mask[len(points) :]].tolist()):
        wrong.append(f"a design that {team.name} may choose belongs on the front and is not there")
    return wrong
