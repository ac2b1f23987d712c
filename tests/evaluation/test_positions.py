"""Numbers of designs past 64 bits: they decode to what they were made of, and sort like the integers."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dse import Study
from dse.evaluation.hull import Hull
from dse.evaluation.positions import Numbering, as_integer, hashable, packed, unpacked
from dse.problem.library import load
from dse.study.front import Archive


@given(
    st.lists(st.sampled_from([1, 2, 3, 10, 256, 1000, 10**7]), min_size=1, max_size=40), st.integers(0, 2**32)
)
def test_places_come_back_and_order_is_kept(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbering = Numbering(sizes)
    assert numbering.wide == (math.prod(sizes) > 2**62)
    places = [rng.integers(size, size=50) for size in sizes]
    for at in range(len(sizes)):  # many equal prefixes, zeros and last values
        places[at][: 10 * (at % 5)] = 0
        places[at][45:] = sizes[at] - 1
    positions = numbering.positions(places)
    for own, back in zip(places, numbering.places(positions), strict=True):
        assert own.tolist() == back.tolist()
    integers = []
    for row in zip(*(own.tolist() for own in places), strict=True):
        integer = 0
        for place, size in zip(row, sizes, strict=True):
            integer = integer * size + place
        integers.append(integer)
    by_integer = sorted(range(50), key=lambda at: integers[at])
    by_position = np.argsort(positions, kind="stable").tolist()
    assert [integers[at] for at in by_position] == [integers[at] for at in by_integer]
    assert [len(own) for own in numbering.places(positions[:0])] == [0] * len(sizes)
    assert [len(own) for own in numbering.places(np.zeros(0, dtype=np.int64))] == [0] * len(sizes)
    assert [unpacked(packed(as_integer(p))) for p in positions] == [as_integer(p) for p in positions]
    distinct = len(set(integers))
    assert len(np.unique(hashable(positions))) == distinct


def test_an_archive_of_wide_positions_keeps_the_lowest() -> None:
    numbering = Numbering([2] * 70)
    rows = np.zeros((4, 70), dtype=np.int64)
    rows[0, 0] = rows[1, 69] = rows[2, 35] = rows[3, 1] = 1
    positions = numbering.positions(list(rows.T))
    archive = Archive(1, keep_ties=True)
    archive.add(np.array([[1.0], [1.0], [1.0], [2.0]]), positions)
    archive = Archive.from_state(archive.state())
    _, lowest, ties = archive.to_arrays()
    assert [place[0] for place in numbering.places(lowest)] == rows[1].tolist()
    assert ties.tolist() == [3]
    (tied,) = archive.tied_positions()
    assert tied.tolist() == [positions[at].item() for at in (1, 2, 0)]


def test_a_space_past_two_to_the_two_hundredth_is_searched_exactly() -> None:
    """The largest value of each of 210 switches is best, but one rule forbids the first two together."""
    n = 210
    names = [f"x{at}" for at in range(n)]
    found = load(
        {
            "dse": 1,
            "name": "wide",
            "dimensions": {name: [0, 1] for name in names},
            "rules": {"apart": {"check": "x0 + x1 <= 1", "because": "x0 and x1 exclude each other"}},
            "metrics": {
                "first": {"expr": " + ".join(names[:100]), "unit": 1},
                "rest": {"expr": " + ".join(f"{at} * x{at}" for at in range(100, 200)), "unit": 1},
            },
            "objectives": {"first": "maximize", "rest": "maximize"},
        }
    )
    result = Study(found, solver="pareto", top=3).run()
    assert result.status == "complete"
    (point,) = result.front
    assert point.objectives == {"first": 99.0, "rest": float(sum(range(100, 200)))}
    assert point.ties == 2 * 2**10  # x0 or x1, and ten switches that change nothing
    lowest = [0.0] + [1.0] * 199 + [0.0] * 10
    assert [point.design[name] for name in names] == lowest
    assert point.index is not None
    first = found.index_of([0] + [1] * 99 + [0] * 110)  # the best of the first objective alone
    assert [best.index for best in result.best] == [first, first + 1, first + 2]
    accounting = result.accounting
    assert accounting.total == 2**n
    assert accounting.illegal == 2 ** (n - 2)
    assert accounting.evaluated + accounting.pruned == 3 * 2 ** (n - 2)
    assert Hull(found, found.everything).total == 2**n
