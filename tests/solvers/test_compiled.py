"""Compiled exhaustive search against the NumPy one: everything that a tally holds, on random problems and by hand."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings

from dse.errors import DseError, InputError
from dse.evaluation.compiled import engine, facts, loops, nest
from dse.problem import Problem, Team
from dse.problem.library import load
from dse.solvers import compiled, exhaustive, working
from dse.solvers.exhaustive import Exhaustive
from dse.study.diagnosis import exact_result
from dse.study.exact import ExactRun, run_exact
from dse.study.front import Archive
from tests.randomspaces import problem, spaces

pytest.importorskip("llvmlite")

SIZES = random.Random(7)
NUMPY, COMPILED = {"jit": "off"}, {"jit": "on"}


def run(found: Problem, team: Team, options: dict[str, Any], **more: Any) -> ExactRun:
    return run_exact(found, team, Exhaustive(), options=options, **more)


def everything(found: Problem, team: Team, run: ExactRun) -> dict[str, Any]:
    """All that a run leaves, in a form that can be compared."""
    result = exact_result(found, team, "exhaustive", run, seed=3)
    kept = result.kept
    assert kept is not None
    tally = run.tally
    return {
        "result": result.to_json(run=False),
        "tied": [point.tied for point in result.front],
        "kept": [kept.digits.tolist(), repr(kept.objectives.tolist()), kept.feasible.tolist(), kept.complete],
        "present": [seen.tolist() for seen in tally.present] if tally.feasible else [],
        "counts": [tally.outside, tally.illegal, tally.evaluated, tally.failed, tally.feasible, tally.pruned],
        "funnel": [tally.alone, tally.in_order],
        "failures": tally.failures.positions.tolist(),
        "nearest": [] if tally.feasible else tally.nearest.positions.tolist(),
        "relaxed": sorted(tally.relaxed.items()),
    }


def teams(found: Problem) -> Iterator[Team]:
    yield found.everything
    yield from found.teams.values()


def assert_same(found: Problem, team: Team, room: int = 0, **options: Any) -> bool:
    """That NumPy and compiled loops leave the same; whether the problem could be compiled."""
    expected = everything(found, team, run(found, team, NUMPY, keep=9, seed=3, **options))
    with pytest.MonkeyPatch.context() as patch:  # buffers that fill again and again, pieces of one turn
        patch.setattr(working, "_ROOM", room or SIZES.choice([1, 2, 7, 64, 8192]))
        patch.setattr(compiled, "_SECONDS", SIZES.choice([0.0, 0.03]))
        try:
            made = run(found, team, COMPILED, keep=9, seed=3, **options)
        except InputError:
            return False
    assert everything(found, team, made) == expected
    return True


def compute_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is read from a table that can be computed."""
    monkeypatch.setattr(facts, "_TABULATED", 1)
    monkeypatch.setattr(facts, "_READ", frozenset())


@settings(max_examples=100)
@given(spaces(designs=60))
def test_drawn_problems(data: dict[str, Any]) -> None:
    found = load(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "LEVEL", 0)
        if len(found.rules) != 1:
            compute_all(patch)
        assert_same(found, list(teams(found))[-1], top=3, ties=len(found.constraints) == 1)


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_three_hundred_random_problems(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if first % 100:
        compute_all(monkeypatch)
        monkeypatch.setattr(engine, "LEVEL", 0)
    if first % 150:
        monkeypatch.setattr(loops, "PIECE", 8)
    done = 0
    for seed in range(first, first + 50):
        found = problem(seed, 60)
        several = list(teams(found))
        done += assert_same(found, several[0], top=seed % 3, ties=seed % 2 == 0)
        if len(several) > 1:
            done += assert_same(found, several[1 + seed % (len(several) - 1)], workers=1 + seed % 2)
    assert done > 60


def test_larger_random_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(2000, 2006):
        found = problem(seed, 20_000)
        assert_same(found, found.everything, top=5, workers=2)
    compute_all(monkeypatch)
    for seed in range(2006, 2012):
        assert_same(problem(seed, 20_000), problem(seed, 20_000).everything, ties=True)


# -- by hand --------------------------------------------------------------------------------------------


def made(objectives: dict[str, str], n: int = 12, **more: Any) -> Problem:
    """Four dimensions of ``n`` values; ``objectives`` by their expressions, minimized."""
    return load(
        {
            "dse": 1, "name": "made", "dimensions": {name: {"range": [1, n]} for name in "abcd"},
            "metrics": {name: {"expr": expr, "unit": 1} for name, expr in objectives.items()},
            "objectives": dict.fromkeys(objectives, "minimize"), **more,
        }
    )  # fmt: skip


LONG_TURNS = {
    "one objective": {"x": "(a - 3) ** 2 + floor(b / 3) + c % 2 + d % 3"},
    "constant": {"x": "a - a"},
    "last objective alone inside": {"x": "a", "y": "(b * c * d) % 17 - a"},
    "both inside": {"x": "(a * b + c) % 23", "y": "(b * c + d) % 19"},
    "three": {"x": "a % 5", "y": "(a + b) % 7", "z": "(c * d) % 11 - b"},
    "four": {"w": "a % 5", "x": "b % 5 - a % 3", "y": "(a + c) % 5", "z": "(c * d + a) % 13"},
    "five": {"u": "a % 3", "v": "b % 3", "w": "c % 3", "x": "(a + b) % 4", "y": "(c * d + a) % 7"},
    "negative and tiny": {"x": "-a * b / 1e300 / 1e20", "y": "0 - 1e300 * c", "z": "(d - 6.5) / (a - 4.25)"},
}


@pytest.mark.parametrize("name", LONG_TURNS)
@pytest.mark.parametrize("ties", [False, True])
def test_buffers_that_fill_within_a_turn(name: str, ties: bool) -> None:
    """A full buffer may change the guards in the middle of a turn that has looked at them."""
    found = made(LONG_TURNS[name])
    for room in (1, 3, 50):
        assert assert_same(found, found.everything, room, ties=ties, top=4)


@pytest.mark.parametrize("lead", ["d < 0", "a + b < 0 and c > 0", "a * d > 143.5"])
def test_near_misses(lead: str) -> None:
    constraints = {"x": "<= 3", "y": [">= 40", "<= 41"], "one": {"check": lead}, "two": {"check": "c == 2.5"}}
    found = made({"x": "a * b", "y": "b + c * d"}, constraints=constraints)
    assert assert_same(found, found.everything, workers=2)


def test_idle_dimensions_are_not_looped_over() -> None:
    """Designs that differ in them alone are counted, listed and found all the same."""
    for ties in (False, True):
        found = made({"x": "(c - 4) ** 2", "y": "1 / (c - 3)"}, 7, constraints={"x": "< 12"})
        assert assert_same(found, found.everything, ties=ties, top=60)
    failing = made({"x": "sqrt(b - 3)"}, 7)  # the first failures differ in a, c and d alone
    assert assert_same(failing, failing.everything)


def test_unions_narrow_more_than_their_hull() -> None:
    narrowed = {
        "p": {"a": [1, 3], "where": "b > 4"}, "q": {"d": [2, 5], "c": [7]},
        "either": "p | q", "neither": {"a": 2, "where": "b > 20"},
    }  # fmt: skip
    rules = {"odd": {"check": "(a + b) % 2 == 1 and c != 4", "because": "it is even"}}
    found = made({"x": "a * b - c", "y": "d"}, teams=narrowed, rules=rules)
    for team in teams(found):
        assert assert_same(found, team)


# -- stops, threads, and going on ------------------------------------------------------------------------


def constrained(bound: str = "<= 30") -> Problem:
    rules = {"odd": {"check": "(a + b) % 2 == 1", "because": "it is even"}}
    return made({"x": "a * b - c", "y": "d % 5 + b / c"}, 9, rules=rules, constraints={"x": bound})


@pytest.mark.parametrize("bound", ["<= 30", "<= -100"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_stopped_search_goes_on_to_the_same_end(
    bound: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "PIECE", 8)
    found = constrained(bound)
    team = found.everything
    undisturbed = everything(found, team, run(found, team, NUMPY, keep=9, seed=3))
    monkeypatch.setattr(compiled, "_SECONDS", 0.0)
    saved: list[bytes] = []
    checkpoint, stops = None, 0
    while True:
        ticks = iter(range(11))
        going = run(
            found, team, COMPILED, keep=9, seed=3, workers=workers, checkpoint=checkpoint, save=saved.append,
            stop=lambda ticks=ticks: next(ticks, None) is None,
        )  # fmt: skip
        checkpoint = saved[-1]
        if going.status == "complete":
            break
        stops += 1
        stopped = exact_result(found, team, "exhaustive", going, seed=3)
        accounting = stopped.accounting
        assert accounting.total == found.size
        assert stopped.kept is not None
        assert stopped.kept.seen == len(stopped.kept.digits) or len(stopped.kept.digits) == 9
    assert stops > 5
    assert everything(found, team, going) == undisturbed


@pytest.mark.parametrize("order", [(NUMPY, COMPILED), (COMPILED, NUMPY)])
def test_what_one_evaluator_began_the_other_ends(
    order: tuple[dict[str, Any], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loops, "PIECE", 8)
    found = constrained()
    team = found.everything
    saved: list[bytes] = []
    ticks = iter(range(30))
    run(found, team, order[0], keep=9, seed=3, save=saved.append, stop=lambda: next(ticks, None) is None)
    ended = run(found, team, order[1], keep=9, seed=3, checkpoint=saved[-1])
    assert everything(found, team, ended) == everything(found, team, run(found, team, NUMPY, keep=9, seed=3))


def test_any_number_of_threads_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "PIECE", 64)
    found = made({"x": "(a * b + c) % 97", "y": "(b * c + d) % 89", "z": "a + d"}, 16)
    ends = [
        everything(found, found.everything, run(found, found.everything, COMPILED, workers=n))
        for n in (1, 2, 5)
    ]
    assert ends[0] == ends[1] == ends[2]


def test_what_goes_wrong_while_a_buffer_is_taken_over_ends_the_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = made({"x": "a * b", "y": "-a * b + c / 1000 + d / 10000"}, 12)
    whole = Archive.__init__

    def small(self: Archive, k: int, *, limit: int = 20, keep_ties: bool = False) -> None:
        whole(self, k, limit=20, keep_ties=keep_ties)

    monkeypatch.setattr(Archive, "__init__", small)
    for workers in (1, 2):
        with pytest.raises(DseError, match="at most 20 distinct vectors"):
            run(found, found.everything, COMPILED, workers=workers)


# -- the option ------------------------------------------------------------------------------------------


def spied(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    seen: list[Any] = []
    monkeypatch.setattr(compiled, "explore", lambda _, nest: seen.append(nest))
    return seen


def test_large_spaces_are_compiled_unless_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = spied(monkeypatch)
    found = made({"x": "a * b"})
    run(found, found.everything, {})
    assert not seen
    monkeypatch.setattr(exhaustive, "COMPILED_FROM", 12**4)
    run(found, found.everything, {})
    assert len(seen) == 1
    for off in ("off", False):
        run(found, found.everything, {"jit": off})
    assert len(seen) == 1
    run(found, found.everything, {"jit": "auto"})
    assert len(seen) == 2
    assert seen[0] is seen[1]  # compiled once
    run(found, found.everything, {"jit": True})
    assert len(seen) == 3


def test_another_value_of_the_option_is_refused() -> None:
    found = made({"x": "a"})
    with pytest.raises(InputError, match="must be auto, on or off, but got 'yes'"):
        run(found, found.everything, {"jit": "yes"})


def test_what_cannot_be_compiled_is_evaluated_by_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    found = made({"x": "exp(a * b / (c + d)) + a"}, 18)
    seen = spied(monkeypatch)
    with pytest.raises(InputError, match=r"jit=on cannot be kept: exp depends on 104,976 combinations"):
        run(found, found.everything, COMPILED)
    monkeypatch.setattr(exhaustive, "COMPILED_FROM", 1)
    assert run(found, found.everything, {}).tally.evaluated == 18**4
    assert not seen


def test_without_llvmlite_numpy_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = made({"x": "a * b + 1"})
    monkeypatch.setattr(nest, "available", lambda: False)
    monkeypatch.setattr(exhaustive, "COMPILED_FROM", 1)
    seen = spied(monkeypatch)
    assert run(found, found.everything, {}).tally.evaluated == 12**4
    assert not seen
    with pytest.raises(InputError, match="llvmlite is not installed"):
        run(found, found.everything, COMPILED)
