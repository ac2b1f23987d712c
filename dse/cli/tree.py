"""An explanation as an indented tree for people, and as plain data."""

from __future__ import annotations

from typing import Any

from dse.cli.breakdown import beyond_lines, breakdown_lines
from dse.cli.designs import assignments
from dse.cli.misses import STRICT
from dse.cli.text import paragraph, width
from dse.evaluation.explain import Explanation, Margin, Step
from dse.evaluation.verdict import State
from dse.problem import Problem
from dse.study.breakdown import Beyond, beyond_record, breakdowns
from dse.study.result import FrontPoint, number

__all__ = ["explanation_data", "explanation_lines"]


def explanation_lines(problem: Problem, explanation: Explanation, *, formulas: bool = True) -> list[str]:
    """The design, its cost trees with units, how each constraint stands, and the verdict.

    Without ``formulas``, metrics have their values only, and lets are left out.
    """
    index = "" if explanation.index is None else f"design {explanation.index:,}: "
    lines = paragraph(f"{index}{assignments(problem, explanation.design)}")
    seen: set[int] = set()
    if formulas:
        for step in explanation.metrics:
            lines += ["", *_tree(step, seen)]
    elif explanation.metrics:
        inner = {part for metric in problem.metrics.values() for part in metric.parts}
        lines += [
            "",
            *(f"{step.name} = {step.shown}" for step in explanation.metrics if step.name not in inner),
        ]
    if explanation.lets and formulas:
        lines += ["", "other lets"]
        for step in explanation.lets:
            lines += _tree(step, seen, depth=1)
    for share in breakdowns(problem, _values(explanation)):
        lines += ["", *breakdown_lines(problem, [share], indent=0)]
    for broken in explanation.broken:
        lines += ["", *_tree(broken.step, seen)]
    if explanation.margins:
        lines += ["", "constraints"]
        for margin in explanation.margins:
            lines += paragraph(_margin(margin), indent=2)
    doubts = [line for beyond in _beyond(problem, explanation) for line in beyond_lines(problem, beyond)]
    return [*lines, "", *doubts, *_verdict(explanation)]


def _values(explanation: Explanation) -> dict[str, float | bool | str | None]:
    return {
        step.name: step.value if isinstance(step.value, float | bool | str) else None
        for step in explanation.metrics
    }


def _beyond(problem: Problem, explanation: Explanation) -> tuple[Beyond, ...]:
    point = FrontPoint(explanation.index, explanation.design, {}, _values(explanation))
    return beyond_record(problem, [point])


def _tree(root: Step, seen: set[int], depth: int = 0) -> list[str]:
    """The lines of a step and its parts; what was taken apart before is named only."""
    lines: list[str] = []
    stack = [(root, depth)]
    while stack:
        step, at = stack.pop()
        again = id(step) in seen and bool(step.parts)
        lines += _step_lines(step, at, again)
        if not again:
            seen.add(id(step))
            stack += [(part, at + 1) for part in reversed(step.parts)]
    return lines


def _step_lines(step: Step, depth: int, again: bool) -> list[str]:
    indent = min(2 * depth, width() // 2)
    if step.kind == "choice":
        text = f"{step.name}: {step.text}" + (
            f"  ({step.winner} {'taken' if step.name == 'if' else 'wins'})" if step.winner else ""
        )
        return paragraph(text, indent=indent, hanging=4)
    if step.text == "measured":
        text = (
            f"{step.name}: not measured" if step.value is None else f"{step.name} = {step.shown}  (measured)"
        )
        return paragraph(text, indent=indent, hanging=4)
    text = f"{step.name} = {step.shown}"
    if again:
        return paragraph(f"{text}  (see above)", indent=indent, hanging=4)
    if step.text:
        text += f" = {step.text}" if step.kind != "rule" else f": {step.text}"
    if step.winner:
        text += f"  ({step.winner} {'taken' if ' if ' in step.text else 'wins'})"
    return paragraph(text, indent=indent, hanging=4)


def _margin(margin: Margin) -> str:
    because = f": {margin.because}" if margin.because and not margin.met else ""
    if margin.met is None:
        absent = [side for side in (margin.lhs, margin.rhs) if side.startswith("no value")]
        return f"{margin.text}: {' and '.join(absent)}"
    if not margin.by_text:
        return f"{margin.text}: {'holds' if margin.met else 'does not hold'}{because}"
    if margin.met and margin.op == "==":
        return f"{margin.text}: {margin.lhs}, holds"
    if margin.met:
        return f"{margin.text}: {margin.lhs} {margin.op} {margin.rhs}, {margin.by_text} to spare"
    side = {"<": "over", ">": "under"}.get(margin.op[0], "away from")
    if margin.by < STRICT:
        return f"{margin.text}: {margin.lhs} equals the bound, which is strict, NOT met{because}"
    return f"{margin.text}: {margin.lhs} is {margin.by_text} {side} {margin.rhs}, NOT met{because}"


def _verdict(explanation: Explanation) -> list[str]:
    if explanation.broken:
        reasons = "; ".join(broken.because for broken in explanation.broken)
        return paragraph(f"illegal: {reasons}")
    if explanation.verdict is None:
        return paragraph(f"undecided: {', '.join(explanation.unmeasured)} must be measured")
    state = explanation.verdict.state
    if state is State.FAILED:
        return paragraph(f"failed: {explanation.verdict.reason}")
    if state is State.FEASIBLE:
        return ["feasible"]
    missed = [margin.name for margin in explanation.margins if margin.met is False]
    missed += [f"{name} finite" for name in explanation.verdict.infinite]
    return paragraph(f"infeasible: misses {', '.join(missed)}")


def explanation_data(problem: Problem, explanation: Explanation) -> dict[str, Any]:
    """An explanation as JSON values: numbers in base units, and beside them texts with units."""
    verdict = explanation.verdict
    state = "UNDECIDED" if verdict is None else verdict.state.value
    return {
        "problem": problem.name,
        "index": explanation.index,
        "design": {
            name: number(value) if isinstance(value, float) else value
            for name, value in explanation.design.items()
        },
        "state": state,
        "reason": "" if verdict is None else verdict.reason,
        "broken": [
            {"rule": broken.name, "because": broken.because, "check": _data(broken.step)}
            for broken in explanation.broken
        ],
        "metrics": [_data(step) for step in explanation.metrics],
        "lets": [_data(step) for step in explanation.lets],
        "constraints": [
            {
                "name": margin.name,
                "text": margin.text,
                "value": margin.lhs,
                "bound": margin.rhs,
                "met": margin.met,
                "by": number(margin.by),
                "by_text": margin.by_text,
            }
            for margin in explanation.margins
        ],
        "breakdown": [share.to_dict() for share in breakdowns(problem, _values(explanation))],
        "beyond_record": [beyond.to_dict() for beyond in _beyond(problem, explanation)],
        "unmeasured": list(explanation.unmeasured),
    }


def _data(step: Step) -> dict[str, Any]:
    value = step.value
    data: dict[str, Any] = {
        "kind": step.kind,
        "name": step.name,
        "text": step.text,
        "value": number(value)
        if isinstance(value, float)
        else list(value)
        if isinstance(value, tuple)
        else value,
        "shown": step.shown,
    }
    if step.winner:
        data["winner"] = step.winner
    if step.parts:
        data["parts"] = [_data(part) for part in step.parts]
    return data
