"""What is said of strict bounds, missing legal designs, ties, many unlocks and unfinished accounts."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dse.cli.misses import failure_lines
from dse.study.study import search
from dse.study.unlock import Unlock

Dse = Callable[..., Any]
Write = Callable[..., Path]

SMALL = """\
dse: 1
name: small
dimensions: {p: [1, 2, 3], q: [1, 2], r: [u, v, w], t: {range: [1, 20]}}
metrics: {m: {expr: p * q, unit: 1}, k: {expr: p + q, unit: 1}}
objectives: {m: minimize, k: maximize}
"""


def said(text: str) -> str:
    return " ".join(text.split())


def test_a_strict_bound_met_with_equality(dse: Dse, write: Write) -> None:
    path = write(SMALL + "constraints: {m: '< 1'}\n")
    out = said(dse("search", path).out)
    assert "nearest miss: m 1, which equals the strict bound < 1" in out
    assert "e-324" not in out
    assert "m < 1: 1 equals the bound, which is strict, NOT met" in said(
        dse("explain", path, "p=1", "q=1", "r=u", "t=1").out
    )


@pytest.mark.parametrize(
    ("rules", "team", "told"),
    [
        ("a: p > 3", (), "every design breaks a rule: so it is"),
        (
            "a: p > 2, b: q == p",
            (),
            "every design breaks a rule; by the first that each breaks: a rejects 240, b rejects 120",
        ),
        ("a: p > 2", ("--team", "one"), "every design of the team breaks a rule: a rejects 120"),
        ("a: p > 0", ("--team", "one & two"), "the team may choose no design"),
    ],
)
def test_no_legal_design(dse: Dse, write: Write, rules: str, team: tuple[str, ...], told: str) -> None:
    declared = ", ".join(
        f"{rule.replace(': ', ': {check: ')}, because: so it is}}" for rule in rules.split(", ")
    )
    path = write(SMALL + f"rules: {{{declared}}}\nteams: {{one: {{p: 1}}, two: {{p: 2}}}}\n")
    out = said(dse("search", path, "--solver", "exhaustive", *team).out)
    assert told in out


LARGE = """\
dse: 1
name: large
dimensions: {p: {range: [0, 99]}, q: {range: [0, 299]}, r: {range: [0, 99]}}
metrics: {cost: {expr: p + q * r + 1, unit: 1}}
objectives: {cost: minimize}
constraints: {cost: "<= 0.5"}
"""


@pytest.mark.parametrize("rule", ["p != q", "p < 50", "p < 0.5 and q + r > 1"])
def test_a_proof_that_nothing_is_feasible_has_the_nearest_miss(dse: Dse, write: Write, rule: str) -> None:
    path = write(LARGE + f"rules: {{a: {{check: {rule}, because: so it is}}}}\n")
    outs = [said(dse("search", path, "--solver", solver).out) for solver in ("pareto", "exhaustive")]
    assert "no feasible design: proven for all 3,000,000 designs" in outs[0]
    assert "evaluated 0 judged one by one" in outs[0]  # so that none is known to be legal
    for out in outs:
        assert "nearest miss: cost 1, 0.5 over <= 0.5 p=0 q=" in out
        assert (
            "smallest relaxations, each of which is enough: cost by 0.5: the lowest cost of a design" in out
        )
        assert "breaks a rule" not in out
        assert "before the search ended" not in out


def test_a_proof_that_nothing_comes_near(dse: Dse, write: Write) -> None:
    path = write(
        LARGE.replace("p + q * r + 1", "p / (q - q) + r") + "rules: {a: {check: p > 9, because: no}}\n"
    )
    out = said(dse("search", path, "--solver", "pareto").out)
    assert "no design comes near: each breaks a rule, is infinitely far off, or fails" in out


def test_what_a_stopped_search_found_is_found_so_far(dse: Dse, write: Write) -> None:
    path = write(LARGE)
    stopped = ["--solver", "exhaustive", "--option", "jit=off", "--timeout", "1e-3"]
    for words in (stopped, ["--solver", "optuna", "--sampler", "random", "--n-trials", "4"]):
        out = said(dse("search", path, *words).out)
        assert "nearest miss so far: cost " in out
        assert "smallest relaxations so far, each of which is enough:" in out
        assert "the lowest cost so far of a design is " in out
        assert "(the nearest miss so far)" in out
    assert "so far" not in dse("search", path, *stopped[:-2]).out


def test_a_stopped_search_that_met_no_legal_design(dse: Dse, write: Write) -> None:
    path = write(
        LARGE.replace("{range: [0, 99]}}", "{range: [0.5, 2.0]}}")
        + "rules: {a: {check: r > 3, because: no}}\n"
    )
    out = said(dse("search", path, "--n-trials", "3").out)
    assert "no legal design was found before the search ended" in out
    assert "may choose" not in out


def test_an_account_says_whether_it_is_of_every_design(dse: Dse, write: Write) -> None:
    every = "every design accounted for"
    assert every in dse("search", "camera").out
    sampled = dse("search", "camera", "--solver", "optuna", "--sampler", "random", "--n-trials", "20").out
    assert every not in sampled
    assert "what became of the designs" in sampled
    path = write(SMALL.replace("t: {range: [1, 20]}", "t: {range: [0.5, 2.0]}"))
    continuous = dse("search", path, "--n-trials", "10").out
    assert every not in continuous
    assert "designs tried, of a continuous space" in continuous


def test_ties_are_explained_and_listed(dse: Dse, write: Write) -> None:
    path = write(SMALL)
    plain = said(dse("search", path).out)
    assert "ties: how many designs have the same objectives;" in plain
    assert "dse search --ties lists them all" in plain
    listed = dse("search", path, "--ties").out
    assert "  1 ties with design 1: t=2\n" in listed
    assert "  1 ties with 51 more; --format json has all\n" in listed
    assert "ties" not in dse("search", path, "--top", "3").out
    rows = csv.DictReader(io.StringIO(dse("search", path, "--top", "3", "--format", "csv").out))
    assert "ties" not in (rows.fieldnames or [])
    refused = dse("search", path, "--ties", "--solver", "optuna")
    assert (refused.code, refused.out) == (2, "")


def test_the_ties_of_a_single_design(dse: Dse, write: Write) -> None:
    path = write(SMALL.replace(", k: maximize", ""))
    assert "60 designs tie; this is the one with the lowest index; dse search --ties" in said(
        dse("search", path).out
    )
    listed = dse("search", path, "--ties").out
    assert "  tied: design 1: t=2\n" in listed


def test_thousands_of_unlocks_are_not_all_told() -> None:
    result = search("camera", team="ml")
    unlocks = tuple(Unlock((f"a{at}", "b"), at + 1) for at in range(3000))
    lines = failure_lines(result, unlocks)
    assert sum("unlocked by freeing" in line for line in lines) == 8
    assert "  and 2,992 more sets of as many dimensions; --format json has all" in lines


def test_a_sampler_asks_for_its_solver(dse: Dse) -> None:
    out = dse("search", "camera", "--sampler", "nsga2", "--n-trials", "10").out
    assert "solver optuna: a sample of 10 trials" in out
    refused = dse("search", "camera", "--solver", "pareto", "--sampler", "nsga2")
    assert (refused.code, refused.out) == (2, "")
    assert "solver pareto has no option 'sampler'; solver optuna has" in refused.err


def test_a_run_that_has_its_trials_says_so(dse: Dse, tmp_path: Path) -> None:
    run = tmp_path / "run"
    assert dse("search", "camera", "--sampler", "random", "--n-trials", "10", "--out", run).code in (0, 1)
    again = dse("resume", run)
    assert again.err.startswith("already at 10 trials; use --n-trials M, with M above 10, to go on\n")
    assert "already" not in dse("resume", run, "--n-trials", "12").err
    whole = tmp_path / "whole"
    assert dse("search", "camera", "--out", whole).code == 0
    assert dse("resume", whole).err.startswith("nothing was left to do: every design was accounted for\n")


def test_a_sweep_of_two_objectives_names_designs(dse: Dse) -> None:
    out = dse("sweep", "camera", "--set", "max_latency=6 ms,10 ms").out
    assert "designs with the best accuracy\n" in out
    assert "  10 ms  pruning=none\n" in out
    assert "designs with the best latency\n" in out
