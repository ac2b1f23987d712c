"""Legal designs: their number, and draws that are uniform, unseen and legal."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dse.evaluation import broken_rule, member
from dse.problem import Interval, Problem
from dse.study import legal as module
from dse.study.identity import Coder, Key
from dse.study.legal import LegalDesigns
from tests.study.problems import Build, camera, legal_verdicts, tiny


def draw(legal: LegalDesigns, rng: np.random.Generator, taken: set[Key]) -> Key | None:
    drawn = legal.draw(rng, taken)
    return None if drawn is None else drawn.key


def conditional() -> Problem:
    """Pipelines: ``chunks`` matters only when pp > 1; half of the product is inactive."""
    build = Build().dimension("pp", [1, 2, 4]).dimension("chunks", [1, 2, 4, 8], when="pp > 1")
    build.rule("few", "pp * chunks <= 8")
    return build.metric("time", "1 / pp + chunks").minimize("time").problem("conditional")


@pytest.mark.parametrize(("team", "count"), [(None, 312), ("ml", 120), ("systems", 7), ("ml | systems", 124)])
def test_the_census_of_a_team_is_exact(team: str | None, count: int) -> None:
    problem = camera()
    legal = LegalDesigns(problem, problem.team(team))
    census = legal.census()
    assert legal.count == count == len(legal_verdicts(problem, team))
    assert census is not None
    assert census.complete
    assert census.total - census.outside - census.illegal == count


def test_every_legal_design_is_drawn_once_and_then_none() -> None:
    problem = camera()
    legal = LegalDesigns(problem, problem.team("ml"))
    rng = np.random.default_rng(0)
    taken: set[Key] = set()
    while (key := draw(legal, rng, taken)) is not None:
        assert key not in taken
        taken.add(key)
    assert taken == set(legal_verdicts(problem, "ml"))


@pytest.mark.parametrize(("listed", "counted"), [(True, True), (False, True), (False, False)])
def test_draws_are_uniform(listed: bool, counted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTED", 2**20 if listed else 0)
    monkeypatch.setattr(module, "WORK", 2**20 if counted else 0)
    problem = conditional()
    legal = LegalDesigns(problem, problem.everything)
    rng = np.random.default_rng(1)
    seen = Counter(draw(legal, rng, set()) for _ in range(2000 if counted else 600))
    expected = set(legal_verdicts(problem))
    assert set(seen) == expected
    mean = seen.total() / len(expected)
    assert all(0.6 * mean < count < 1.4 * mean for count in seen.values())


@pytest.mark.parametrize("team", [None, "ml", "systems", "ml | systems"])
def test_counting_gives_the_census_that_listing_gives(
    team: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = camera()
    listed = LegalDesigns(problem, problem.team(team)).census()
    monkeypatch.setattr(module, "LISTED", 0)
    counted = LegalDesigns(problem, problem.team(team))
    assert counted.census() == listed
    rng = np.random.default_rng(4)
    taken: set[Key] = set()
    while (key := draw(counted, rng, taken)) is not None:
        assert key not in taken
        taken.add(key)
    assert taken == set(legal_verdicts(problem, team))


def test_designs_that_cannot_be_listed_or_counted_are_drawn_by_rejection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "LISTED", 0)
    monkeypatch.setattr(module, "WORK", 0)
    problem = camera()
    team = problem.team("systems")
    legal = LegalDesigns(problem, team)
    assert legal.count is None
    census = legal.census()
    assert census is not None
    assert not census.complete
    assert census.illegal == 0
    rng = np.random.default_rng(2)
    taken: set[Key] = set()
    while (key := draw(legal, rng, taken)) is not None:
        taken.add(key)
    assert taken == set(legal_verdicts(problem, "systems"))


@pytest.mark.parametrize("counted", [True, False])
def test_rare_legal_designs_are_found_by_setting_inactive_dimensions_right(
    counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WORK", 2**20 if counted else 0)
    build = Build().dimension("on", [0, 1])
    for at in range(12):
        build.dimension(f"d{at}", [float(v) for v in range(64)], when="on > 0.5")
    build.rule("off", "on < 0.5")
    problem = build.metric("cost", "on").minimize("cost").problem()
    legal = LegalDesigns(problem, problem.everything)
    key = draw(legal, np.random.default_rng(0), set())
    assert key == (0,) * 13
    assert draw(legal, np.random.default_rng(0), {key}) is None


def test_continuous_dimensions_are_drawn_from_their_interval() -> None:
    build = Build().dimension("rate", Interval(1e-4, 1.0, log=True)).dimension("depth", [1, 2, 3])
    problem = build.rule("deep", "depth > 1").metric("loss", "rate / depth").minimize("loss").problem()
    legal = LegalDesigns(problem, problem.everything)
    rng = np.random.default_rng(3)
    drawn = [draw(legal, rng, set()) for _ in range(200)]
    rates = [key[0] for key in drawn if key is not None]
    assert len(rates) == 200
    assert all(1e-4 <= rate <= 1.0 for rate in rates)
    assert 60 < sum(rate < 1e-2 for rate in rates) < 140
    assert {key[1] for key in drawn if key is not None} == {1, 2}
    assert legal.census() is None


def test_membership_by_key_is_membership_by_design() -> None:
    problem = camera()
    for name in ("ml", "systems", "mlsys", "ml & systems", "ml | systems"):
        team = problem.team(name)
        legal = LegalDesigns(problem, team)
        for index in range(0, problem.size, 7):
            key = problem.digits_of(index)
            design = problem.design_at(key)
            assert legal.member(key, design) == member(problem, team, design)


def test_a_key_is_made_from_values_of_any_number_type_and_refuses_others() -> None:
    coder = Coder(tiny())
    assert coder.key({"a": 2, "b": True}) == coder.key({"a": 2.0, "b": True}) == (1, 1)
    wrong: list[tuple[dict[str, object], str]] = [
        ({"a": 3.0, "b": True}, "has no value"),
        ({"a": 1.0, "b": 1.0}, "has no value"),
        ({"a": True, "b": True}, "has no value"),
        ({"a": 1.0}, "no value for b"),
        ({"a": 1.0, "bb": True}, "no value for b; did you mean 'bb'"),
        ({"a": 1.0, "b": True, "c": 1.0}, "unknown dimension 'c'"),
    ]
    for design, message in wrong:
        with pytest.raises(Exception, match=message):
            coder.key(design)


def test_draws_are_legal() -> None:
    problem = conditional()
    legal = LegalDesigns(problem, problem.everything)
    rng = np.random.default_rng(5)
    for _ in range(50):
        key = draw(legal, rng, set())
        assert key is not None
        assert broken_rule(problem, legal.coder.design(key)) is None
