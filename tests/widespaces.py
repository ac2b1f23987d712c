"""Random spaces of a wanted size whose objectives pull against each other, so that fronts are long and have ties.

Where :mod:`tests.randomspaces` writes any expression at all, mostly of small spaces, these are sums over all dimensions of
terms with opposite signs: negative values, zeros, ``where``, ``//``, ``%``, powers, tables, dimensions that exist only
under a condition, infinite corners, rules and bounds.
"""

from __future__ import annotations

import math
import random
from functools import cache
from typing import Any

from dse.problem import Problem
from dse.problem.library import load

__all__ = ["wide", "wide_problem"]

Data = dict[str, Any]

WORDS = ["red", "green", "blue", "grey", "black", "white"]


@cache
def wide_problem(seed: int, designs: int, objectives: int = 2, widest: int = 9) -> Problem:
    """The problem of :func:`wide` for a seed."""
    return load(wide(random.Random(seed), designs, objectives, widest))


def wide(draw: random.Random, designs: int, objectives: int = 2, widest: int = 9) -> Data:
    """A space of about ``designs`` designs, in dimensions of at most ``widest`` values."""
    data: Data = {
        "dse": 1, "name": "wide", "inputs": {"scale": draw.choice([1, 2, 0.5])}, "tables": {}, "dimensions": {},
        "lets": {}, "rules": {}, "teams": {}, "metrics": {}, "objectives": {}, "constraints": {},
    }  # fmt: skip
    reads = _dimensions(draw, data, designs, widest)
    data["lets"]["mixed"] = f"{draw.choice(reads)} * {draw.choice(reads)} - {draw.choice(reads)}"
    for at in range(draw.randint(0, 2)):
        check = f"{_term(draw, reads)} {draw.choice(['<=', '>', '!='])} {draw.choice([0, 1, 2])}"
        data["rules"][f"r{at}"] = {"check": f"{check} or {_condition(draw, reads)}", "because": "it is so"}
    _metrics(draw, data, reads, objectives)
    if draw.random() < 0.7:
        data["constraints"]["m0"] = f"<= {draw.choice([3, 10, 30])}"
    if draw.random() < 0.4:
        data["constraints"]["c"] = {"check": f"{_condition(draw, reads)} or mixed {draw.choice('<>')} 1"}
    first = next(iter(data["dimensions"]))
    data["teams"]["half"] = {"where": f"{reads[0]} >= 1 or not ({_condition(draw, reads)})"}
    data["teams"]["about"] = {first: _values(data, first)[: 1 + len(_values(data, first)) // 2]}
    data["teams"]["either"] = "half | about"
    return data


def _values(data: Data, name: str) -> list[Any]:
    """What a dimension can be, as a team names it."""
    declared = data["dimensions"][name]
    if "range" in declared:
        return list(range(declared["range"][0], declared["range"][1] + 1))
    return list(declared.get("choices") or data["tables"][declared["table"]]["rows"])


def _dimensions(draw: random.Random, data: Data, designs: int, widest: int) -> list[str]:
    """Declares dimensions, and returns how each is read as a number."""
    reads: list[str] = []
    left = designs
    while left > 1 and len(reads) < 40:
        size = min(left, draw.randint(2, widest))
        if size > 1 and left // size == 1:
            size = left if left <= widest else size
        left = math.ceil(left / size) if size < left else 1
        name = f"d{len(reads)}"
        kind = draw.choice(["range", "range", "numbers", "texts", "flag", "table"])
        if kind in ("numbers", "texts", "flag") and size > 6:
            kind = "range"
        if kind == "flag" and size != 2:
            kind = "table"
        reads.append(_dimension(draw, data, name, kind, size))
    return reads


def _dimension(draw: random.Random, data: Data, name: str, kind: str, size: int) -> str:
    declared: Data = {}
    if kind == "range":
        low = draw.choice([-3, -1, 0, 1])
        declared["range"] = [low, low + size - 1]
        read = name
    elif kind == "numbers":
        declared["choices"] = draw.sample([0, 1, 2, 4, 0.5, -1.5, -3, 8], size)
        read = name
    elif kind == "flag":
        declared["choices"] = [False, True]
        read = f"where({name}, 2, -1)"
    elif kind == "texts":
        declared["choices"] = draw.sample(WORDS, size)
        cells = {word: draw.choice([0, 1, -2, 3.5, 5]) for word in declared["choices"]}
        data["tables"][f"k{name}"] = {"keys": [name], "unit": "1", "rows": cells}
        read = f"k{name}[{name}]"
    else:
        declared["table"] = f"t{name}"
        rows = {f"v{at}": [draw.choice([0, 1, 2, -1, 0.25, 6]), draw.random() < 0.5] for at in range(size)}
        data["tables"][f"t{name}"] = {"columns": {"x": "1", "flag": "flag"}, "rows": rows}
        read = f"{name}.x"
    numbers = [other for other, d in data["dimensions"].items() if "range" in d]
    if numbers and draw.random() < 0.25:
        declared["when"] = f"{draw.choice(numbers)} > 0"
    data["dimensions"][name] = declared
    return read


def _condition(draw: random.Random, reads: list[str]) -> str:
    a, b = draw.choice(reads), draw.choice(reads)
    return draw.choice([f"{a} > 1", f"{a} < {b}", f"{a} == {b}", f"{a} + {b} <= 2", f"{a} % 2 == 0"])


def _term(draw: random.Random, reads: list[str]) -> str:
    a, b = draw.choice(reads), draw.choice(reads)
    return draw.choice(
        [
            a,
            a,
            f"{a} ** 2",
            f"{a} // 2",
            f"{a} % 3",
            f"abs({a} - 2)",
            f"{a} * {b}",
            f"where({a} > {b}, {a}, -{b})",
            f"{a} / ({b} + 4)",
            f"max({a}, {b})",
            f"min({a}, 1) * scale",
            f"({a} if {b} >= 1 else 0)",
        ]
    )


def _metrics(draw: random.Random, data: Data, reads: list[str], objectives: int) -> None:
    for at in range(objectives):
        terms = []
        for number, read in enumerate(reads):
            if draw.random() < 0.6 or number % objectives == at:
                sign = 1 if (number + at) % 2 else -1
                weight = draw.choice([1, 1, 2, 3])
                term = read if draw.random() < 0.5 else _term(draw, [read, draw.choice(reads)])
                terms.append(f"{sign * weight} * {term if term[0] != '-' else f'({term})'}")
        expression = " + ".join(terms or ["mixed"])
        if draw.random() < 0.3:
            expression = f"floor(({expression}) / 2)"
        if draw.random() < 0.25:
            expression = (
                f"({expression}) / where({_condition(draw, reads)} and {_condition(draw, reads)}, 0, 1)"
            )
        if draw.random() < 0.2:
            expression = f"{expression} if {_condition(draw, reads)} else {draw.choice(['1 / 0', '0', '5'])}"
        data["metrics"][f"m{at}"] = {"expr": expression, "unit": "1"}
        data["objectives"][f"m{at}"] = draw.choice(["minimize", "maximize"])
