"""Exhaustive search of the listed legal designs against the one that looks at every combination."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dse.evaluation.bulk import BulkEvaluator
from dse.evaluation.counting import legal_designs
from dse.evaluation.listed import Listed
from dse.evaluation.verdict import Judge, spread
from dse.problem import Problem, Team
from dse.solvers import exhaustive
from dse.solvers.auto import Auto
from dse.solvers.exhaustive import Exhaustive
from dse.study import listing
from dse.study.diagnosis import exact_result
from dse.study.exact import run_exact
from tests.randomspaces import problem

SEEDS = range(80)


def left(found: Problem, team: Team, **options: Any) -> tuple[Any, ...]:
    """All that a run leaves, in a form that can be compared."""
    run = run_exact(found, team, Exhaustive(), options={"jit": "off"}, keep=9, seed=3, **options)
    tally, result = run.tally, exact_result(found, team, "exhaustive", run, seed=3)
    assert result.kept is not None
    return (
        result.to_json(run=False),
        [point.tied for point in result.front],
        len(result.kept.digits),  # which ones a sample holds depends on the way of searching
        [seen.tolist() for seen in tally.present] if tally.feasible else [],
        [tally.outside, tally.illegal, tally.evaluated, tally.failed, tally.feasible, tally.alone, tally.in_order],
        tally.failures.positions.tolist(),
        sorted(tally.relaxed.items()),
    )  # fmt: skip


@pytest.mark.parametrize("piece", [3, 2**16])
def test_listing_leaves_what_looking_at_everything_leaves(
    piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = 0
    for seed in SEEDS:
        found = problem(seed)
        if not found.objectives:
            continue
        for team in (found.everything, *found.teams.values()):
            monkeypatch.setattr(exhaustive, "COMPILED_FROM", 10**9)
            expected = left(found, team, top=3, ties=True)
            monkeypatch.setattr(exhaustive, "COMPILED_FROM", 0)
            monkeypatch.setattr(exhaustive, "SPARSE", 1)
            monkeypatch.setattr(listing, "PIECE", piece)
            if team.boxes and exhaustive.listed(found, team) is not None:
                listed += 1
                assert left(found, team, top=3, ties=True) == expected, seed
    assert listed > 80


def test_listed_values_are_those_of_each_design_to_the_bit() -> None:
    compared = 0
    for seed in SEEDS:
        found = problem(seed)
        designs = np.concatenate([*legal_designs(found), np.zeros((0, len(found.sizes)), dtype=np.uint8)])
        if not len(designs):
            continue
        roots = Judge(found).roots
        columns = [designs[:, at] for at in range(designs.shape[1])]
        each = BulkEvaluator(found, roots).evaluate(dict(zip(found.names, columns, strict=True)))
        for root, value in Listed(found, roots).evaluate(columns).items():
            one, other = spread(value, len(designs)), spread(each[root], len(designs))
            assert one.values.tobytes() == other.values.tobytes()
            assert (one.undefined is None) == (other.undefined is None) or not np.any(
                one.undefined if other.undefined is None else other.undefined
            )
            compared += len(designs)
    assert compared > 1500


def test_auto_lists_the_few_legal_designs_of_a_large_space() -> None:
    from dse.problem.library import load

    sizes = list(range(1, 101))
    found = load(
        {
            "dse": 1,
            "name": "sparse",
            "dimensions": dict.fromkeys("abcdef", sizes),
            "rules": {
                f"{a}{b}": {"check": f"{a} == {b}", "because": "they differ"}
                for a, b in zip("abcde", "bcdef", strict=True)
            },
            "metrics": {"x": {"expr": "(a - 40) * (a - 40)", "unit": "1"}},
            "objectives": {"x": "minimize"},
        }
    )
    name, why = Auto().choose(found, found.everything)
    assert (name, "100 are legal" in why) == ("exhaustive", True)
    run = run_exact(found, found.everything, Exhaustive())
    assert (run.tally.evaluated, sum(run.tally.illegal)) == (100, 10**12 - 100)
    result = exact_result(found, found.everything, "exhaustive", run, seed=0)
    assert [dict(point.design) for point in result.front] == [dict.fromkeys("abcdef", 40.0)]
