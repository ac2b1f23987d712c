"""The one import surface of solver authors: a sampling solver needs nothing else, and cannot hang the driver."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from dse.problem import Interval
from dse.study import plugin
from dse.study.driver import TrialRun
from dse.study.identity import Coder
from dse.study.legal import LegalDesigns
from dse.study.storage import Storage
from tests.study.problems import Build, camera, tiny


def documented() -> Any:
    """The solver in the module's documentation, run as it stands there."""
    assert plugin.__doc__ is not None
    found = re.search(r"::\n\n((?:    .*\n|\n)+)", plugin.__doc__)
    assert found is not None
    names: dict[str, Any] = {"random": random}
    exec(found[1].replace("\n    ", "\n").removeprefix("    "), names)
    return names["Uniform"]


@pytest.mark.parametrize("team", [None, "ml | systems"])
def test_the_documented_solver_works(team: str | None) -> None:
    problem = camera()
    coder = Coder(problem)
    chosen = problem.team(team)
    legal = LegalDesigns(problem, chosen, coder)
    trials = TrialRun(problem, chosen, documented()(), Storage(coder), legal, seed=0, batch=10, options={})
    trials.run(1000)
    assert trials.exhausted
    assert trials.done == legal.count


def test_drawn_designs_have_inactive_dimensions_at_their_fixed_value() -> None:
    build = Build().dimension("on", [0, 1]).dimension("x", [5, 6, 7], when="on > 0.5", otherwise=1)
    build.dimension("rate", Interval(0.1, 10.0, log=True)).dimension("share", Interval(0.0, 1.0))
    problem = build.metric("cost", "x").minimize("cost").problem()
    proposals = plugin.Proposals(
        problem, problem.everything, (), 1, 0, lambda _: plugin.Admission(accepted=True)
    )
    rng = random.Random(0)
    designs = [plugin.draw_design(proposals, rng) for _ in range(100)]
    assert {d["x"] for d in designs if d["on"] == 0} == {6.0}
    assert {d["x"] for d in designs if d["on"] == 1} == {5.0, 6.0, 7.0}
    assert all(0.1 <= float(d["rate"]) <= 10 and 0 <= float(d["share"]) <= 1 for d in designs)
    assert plugin.is_active(tiny(), tiny().dimensions[0], {})


def test_every_name_is_there() -> None:
    assert all(hasattr(plugin, name) for name in plugin.__all__)
