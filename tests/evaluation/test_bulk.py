"""The bulk evaluator against the scalar reference, to the bit, in every way that designs are handed to it."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from dse.evaluation import (
    Blocks,
    Bulk,
    BulkEvaluator,
    State,
    Undefined,
    Verdict,
    broken_rule,
    evaluate_nodes,
    judge,
    member,
)
from dse.evaluation.blocks import _Hoisted
from dse.evaluation.bulk import MISSING, NAN_READ
from dse.expressions import Kind
from dse.problem import Problem, Team
from dse.problem.library import load
from tests.randomspaces import problem, spaces

Digits = dict[str, NDArray[np.intp]]


def all_digits(found: Problem) -> list[tuple[int, ...]]:
    return [found.digits_of(index) for index in range(found.size)]


def flat(found: Problem, rows: Sequence[tuple[int, ...]]) -> Digits:
    return {name: np.array([row[at] for row in rows], dtype=np.intp) for at, name in enumerate(found.names)}


def grid(found: Problem) -> Digits:
    axes = np.meshgrid(*(np.arange(n, dtype=np.intp) for n in found.sizes), indexing="ij", sparse=True)
    return dict(zip(found.names, axes, strict=True))


def readable(evaluator: BulkEvaluator, node: int, bulk: Bulk, shape: tuple[int, ...]) -> list[Any]:
    """The values as the scalar evaluator writes them."""
    kind = evaluator.graph[node].type.kind
    texts = {code: text for text, code in evaluator.codes.items()}
    values = np.broadcast_to(bulk.values, shape).reshape(-1).tolist()
    why = [0] * len(values)
    if bulk.undefined is not None:
        why = np.broadcast_to(bulk.undefined, shape).reshape(-1).tolist()
    written: list[Any] = []
    for value, bad in zip(values, why, strict=True):
        if bad:
            written.append(bad)
        elif kind is Kind.STRING:
            written.append(texts[value])
        elif kind is Kind.TEXTS:
            written.append(evaluator._sets[value])
        else:
            written.append(exact(value))
    return written


def exact(value: Any) -> Any:
    """Numbers by their bits; every NaN is the same one."""
    if isinstance(value, Undefined):
        return MISSING if value.missing else NAN_READ
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value.hex()
    return value


def roots_of(found: Problem) -> list[int]:
    return list(range(len(found.graph.nodes)))


def by_scalar(found: Problem, rows: Sequence[tuple[int, ...]]) -> dict[int, list[Any]]:
    columns: dict[int, list[Any]] = {node: [] for node in roots_of(found)}
    for row in rows:
        for node, value in evaluate_nodes(found, found.design_at(row), roots_of(found)).items():
            columns[node].append(exact(value))
    return columns


def assert_equal_nodes(
    found: Problem,
    evaluator: BulkEvaluator,
    digits: Digits,
    shape: tuple[int, ...],
    expected: dict[int, list[Any]],
) -> None:
    values = evaluator.evaluate(digits)
    for node in roots_of(found):
        assert readable(evaluator, node, values[node], shape) == expected[node], (node, found.graph[node])


def assert_every_node_agrees(found: Problem) -> None:
    rows = all_digits(found)
    expected = by_scalar(found, rows)
    evaluator = BulkEvaluator(found, roots_of(found))
    assert_equal_nodes(found, evaluator, flat(found, rows), (len(rows),), expected)
    assert_equal_nodes(found, evaluator, grid(found), found.sizes, expected)
    # A list of another order, with repeats, through the same evaluator.
    order = random.Random(0).choices(range(len(rows)), k=min(50, len(rows)))
    again = {node: [column[at] for at in order] for node, column in expected.items()}
    assert_equal_nodes(found, evaluator, flat(found, [rows[at] for at in order]), (len(order),), again)


class _Watched(Blocks):
    """Blocks that also keep the value of every node of every block, hoisted as the metrics are."""

    def __init__(self, found: Problem, team: Team, block: int) -> None:
        super().__init__(found, team, block)
        self.hoisted = _Hoisted(found, roots_of(found))
        self.seen: dict[int, list[Any]] = {node: [] for node in roots_of(found)}

    def _judge(self, digits: Any, varying: Any, shape: tuple[int, ...], base: int) -> Any:
        values = self.hoisted.evaluate(digits, varying)
        for node, column in self.seen.items():
            column.extend(readable(self.hoisted.evaluator, node, values[node], shape))
        return super()._judge(digits, varying, shape, base)


def assert_blocks_agree(found: Problem, team: Team, block: int) -> None:
    """Every value, state, violation and nearness, block by block."""
    blocks = _Watched(found, team, block)
    judged = [blocks.judge(number) for number in range(len(blocks))]
    rows = [blocks.digits_of(position) for position in range(blocks.total)]
    assert blocks.seen == by_scalar(found, rows)
    assert sum(part.size for part in judged) == blocks.total
    legal: list[int] = []
    illegal: Counter[str] = Counter()
    outside = 0
    for position, row in enumerate(rows):
        design = found.design_at(row)
        if not member(found, team, design):
            outside += 1
        elif rule := broken_rule(found, design):
            illegal[rule.name] += 1
        else:
            legal.append(position)
    assert [int(p) for part in judged for p in part.positions] == legal
    assert sum(part.outside for part in judged) == outside
    counts: Counter[str] = Counter()
    for part in judged:
        counts.update(dict.fromkeys([r.name for r in found.rules], 0))
        for rule, count in zip(found.rules, part.illegal, strict=True):
            counts[rule.name] += int(count)
    assert +counts == illegal
    verdicts = {position: judge(found, found.design_at(rows[position])) for position in legal}
    for part in judged:
        if part.outcomes is not None:
            for at, position in enumerate(part.positions):
                assert_same(found, part.outcomes, at, verdicts[int(position)])


def assert_same(found: Problem, outcomes: Any, at: int, verdict: Verdict) -> None:
    assert outcomes.failed[at] == (verdict.state is State.FAILED)
    if verdict.state is State.FAILED:
        return
    assert outcomes.feasible[at] == (verdict.state is State.FEASIBLE)
    minimized = [v * o.sign + 0.0 for v, o in zip(verdict.objectives, found.objectives, strict=True)]
    assert [v.hex() for v in outcomes.objectives[at].tolist()] == [v.hex() for v in minimized]
    assert [v.hex() for v in outcomes.violations[at].tolist()] == [v.hex() for v in verdict.violations]
    infinite = [o.name for o, bad in zip(found.objectives, outcomes.infinite[at], strict=True) if bad]
    assert tuple(infinite) == verdict.infinite
    assert outcomes.nearness[at].item().hex() == verdict.nearness.hex()


@settings(max_examples=150)
@given(spaces(designs=24))
def test_every_node_of_a_drawn_space(data: dict[str, Any]) -> None:
    found = load(data)
    assert_every_node_agrees(found)
    assert_blocks_agree(found, found.everything, 7)


@pytest.mark.parametrize("seed", range(0, 300, 50))
def test_every_node_of_many_spaces(seed: int) -> None:
    for own in range(seed, seed + 50):
        assert_every_node_agrees(problem(own, 40))


@pytest.mark.parametrize("block", [1, 2, 7, 31])
def test_blocks_of_any_size(block: int) -> None:
    for seed in range(30):
        found = problem(seed, 40)
        for team in (found.everything, *found.teams.values()):
            assert_blocks_agree(found, team, block)


def test_larger_spaces() -> None:
    for seed in range(1000, 1004):
        found = problem(seed, 2000)
        assert_blocks_agree(found, found.everything, 100)


def test_few_legal_designs_are_evaluated_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Below one legal design in 16 a block's metrics are computed for the legal ones only."""
    data: dict[str, Any] = {
        "dse": 1, "name": "sparse", "dimensions": {"a": {"range": [1, 40]}, "b": {"range": [1, 5]}},
        "rules": {"few": {"check": "a % 20 == 3 and b > 1", "because": "too many"}},
        "metrics": {"x": {"expr": "log(a) / b + a ** b", "unit": 1}}, "objectives": {"x": "minimize"},
        "constraints": {"x": "<= 100"},
    }  # fmt: skip
    found = load(data)
    called: list[int] = []
    blocks = Blocks(found, found.everything, 200)

    def spy(digits: Any, varying: Any) -> Any:
        called.append(1)

    monkeypatch.setattr(blocks._metrics, "evaluate", spy)
    judged = blocks.judge(0)
    assert not called
    assert judged.outcomes is not None
    assert len(judged.positions) == 8
    for at, position in enumerate(judged.positions):
        assert_same(
            found, judged.outcomes, at, judge(found, found.design_at(blocks.digits_of(int(position))))
        )


def test_hoisted_values_are_not_computed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What depends on slow dimensions alone is computed once for each of their values."""
    data: dict[str, Any] = {
        "dse": 1, "name": "hoist",
        "dimensions": {"slow": {"range": [1, 3]}, "mid": {"range": [1, 4]}, "fast": {"range": [1, 7]}},
        "metrics": {"x": {"expr": "exp(slow) + fast * mid", "unit": 1}}, "objectives": {"x": "minimize"},
    }  # fmt: skip
    found = load(data)
    blocks = Blocks(found, found.everything, 7)
    assert len(blocks) == 12
    calls: list[list[int]] = []
    evaluate = blocks._metrics.evaluator.evaluate

    def spy(digits: Any, nodes: Any, known: Any) -> Any:
        calls.append([n for n in nodes if found.graph[n].op == "exp"])
        return evaluate(digits, nodes, known)

    monkeypatch.setattr(blocks._metrics.evaluator, "evaluate", spy)
    for number in range(len(blocks)):
        blocks.judge(number)
    assert sum(map(len, calls)) == 3
