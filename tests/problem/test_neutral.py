"""Spaces from neutral JSON mean what their Python says: values and verdicts are compared with Python's own ``eval``."""

from __future__ import annotations

import itertools
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.errors import SpaceError
from dse.evaluation import State, broken_rule, judge
from dse.expressions import Value
from dse.problem import Problem
from dse.problem.library import load
from dse.problem.neutral import read_neutral, to_space
from dse.space.writing import as_yaml
from dse.study.study import search

NEUTRAL = Path(__file__).parents[1] / "neutral"
FILES = sorted(NEUTRAL.glob("*.json"))
MATH: dict[str, Any] = {f.__name__: f for f in (min, max, abs, pow, int, float, bool, sum, all, any)}
MATH |= {"math": math, "ceil": math.ceil, "floor": math.floor, "where": lambda c, a, b: a if c else b}


def python(text: str, names: dict[str, Any]) -> Any:
    return eval(text, {"__builtins__": {}}, MATH | names)  # our own texts


def space(parameters: dict[str, list[Any]], *restrictions: str) -> dict[str, Any]:
    return {"name": "made", "parameters": parameters, "restrictions": list(restrictions)}


def check(data: dict[str, Any], designs: list[dict[str, Any]] | None = None) -> None:
    """Every design (or those given) is legal exactly where Python finds all restrictions true."""
    found = load(to_space(data))
    parameters = data["parameters"]
    if designs is None:
        designs = [dict(zip(parameters, v, strict=True)) for v in itertools.product(*parameters.values())]
    for design in designs:
        right = all(python(text, design) for text in data["restrictions"])
        digits = [parameters[name].index(value) for name, value in design.items()]
        assert (broken_rule(found, found.design_at(digits)) is None) == right, design


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_loads_and_its_yaml_is_the_same_problem(path: Path, tmp_path: Path) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    content = read_neutral(path.read_text(encoding="utf-8"))
    written = tmp_path / "space.yaml"
    written.write_text(as_yaml(content), encoding="utf-8")
    problem = load(content)
    assert load(written) == problem
    assert problem.size == data.get("cartesian", data.get("points"))
    for dimension, values in zip(
        problem.dimensions, data.get("parameters", data.get("dims")).values(), strict=True
    ):
        assert list(dimension.values) == values


@pytest.mark.parametrize("name", ["hotspot", "ytopt_conv2d", "cs_minisat_hack", "kt_gpu_layers"])
def test_restrictions_of_real_spaces(name: str) -> None:
    data = json.loads((NEUTRAL / f"{name}.json").read_text(encoding="utf-8"))
    draw = random.Random(0)
    check(data, [{n: draw.choice(v) for n, v in data["parameters"].items()} for _ in range(1500)])


A, B = [1, 2, 3, 4, 6, 8], [0.5, 1, 2, 3, 16]
RESTRICTIONS = [
    "a % b == 0", "a // b >= 2", "(a / b) % 1 == 0", "1 < a <= 4 != b", "a ** 2 > b ** 0.5", "pow(a, 2) == b",
    "not a % 2", "a % 2 and b > 1", "a - 1 or b == 2", "not (a == 3 or b < 1)", "-a + 5 > +b", "a in [1, 2, 8]",
    "a not in (1, 2)", "a in {2}", "a == 2 if b > 1 else a > 3", "min(a, b) >= 2 and max([a, b, 3]) < 8",
    "int(a / b) == 3", "int(-a / b) == -3", "abs(a - b) <= 1", "sum([a, b, 1]) == 10", "all([a > 1, b > 1])",
    "any((a > 7, b < 1))", "math.ceil(a / b) == math.floor(a / b)", "where(a > 2, b, a) > 2", "True", "a != a",
    "a * (b > 1) >= 3", "(a > 2) == (b > 2)", "(a > 2) + (b > 2) == 1", "(a > 2) & (b > 2)",
    "(a > 2) | (b > 2)", "1e3 > a * 1_00", "3 in [a, b]", "(a > 2) in [b > 2]", "-a in [-1, -3]", "not a in [b, -a]", "float(a) == 2.0",
    "a > 1 > b", "bool(a - 1)",
]  # fmt: skip


@pytest.mark.parametrize("text", RESTRICTIONS)
def test_numbers(text: str) -> None:
    check(space({"a": A, "b": B}, text))


@pytest.mark.parametrize(
    "text",
    [
        "flag", "not flag", "flag == True", "flag != 1", "flag * 3 + n == 4", "flag and n > 1", "n if flag else n > 2",
        "flag in [True]", "(n > 1) == flag", "flag + flag == n", "max(flag, n) == 1", "flag < n",
    ],
)  # fmt: skip
def test_truth_values_count_as_numbers(text: str) -> None:
    check(space({"flag": [True, False], "n": [0, 1, 2, 3]}, text))


@pytest.mark.parametrize(
    "text",
    [
        "word == 'x'", "word != 'y y'", "word == 'never'", "word != 'never'", "word in ['x', 'never']", "word == other",
        "word not in ('z', 'w')", "'x' == word", "word == 1", "not (word == 'x' or other == 'x')", "word != other or word == 1",
    ],
)  # fmt: skip
def test_texts(text: str) -> None:
    check(space({"word": ["x", "y y", "z"], "other": ["y y", "x"]}, text))


@pytest.mark.parametrize("values", [[1, "one"], [True, 2, 3], [False, "no"], [1, "a", True]])
def test_values_of_several_kinds_are_refused(values: list[Any]) -> None:
    """Python compares them by value, which values held as texts could not do."""
    with pytest.raises(SpaceError, match="expected values of one kind"):
        to_space(space({"x": values, "y": [1, 2]}, "x == y"))


def test_random_restrictions() -> None:
    draw = random.Random(4)

    def number(depth: int) -> str:
        if depth == 0 or draw.random() < 0.2:
            return draw.choice(["a", "b", "c", "2", "3", "0.5"])
        x, y = number(depth - 1), number(depth - 1)
        whole = draw.choice(["a", "b", "3"])
        return draw.choice(
            [f"({x} + {y})", f"{x} - ({y})", f"{x} * ({y})", f"({x}) / b", f"({x}) // {whole}", f"({x}) % {whole}",
             f"min({x}, {y})", f"max({x}, {y}, 1)", f"-({x})", f"({x} if {condition(depth - 1)} else {y})"]
        )  # fmt: skip

    def condition(depth: int) -> str:
        if depth == 0 or draw.random() < 0.3:
            sign = draw.choice(["<", "<=", ">", ">=", "==", "!="])
            return f"{number(depth)} {sign} {number(depth)}"
        x, y = condition(depth - 1), condition(depth - 1)
        return draw.choice(
            [f"({x} and {y})", f"({x} or {y})", f"not ({x})", f"1 <= {number(1)} < {number(1)}", f"{number(1)}",
             f"c in [{number(1)}, {number(1)}]", f"({x}) * 2 > {number(1)}"]
        )  # fmt: skip

    for _ in range(150):
        check(space({"a": [1, 2, 5], "b": [1, 2, 4], "c": [0, 1, 3]}, condition(3)))


# -- cost models -----------------------------------------------------------------------------------


def costs(data: dict[str, Any], digits: tuple[int, ...]) -> tuple[bool, list[float]]:
    """Whether a design meets all constraints, and its objectives: the formulas, by Python."""
    dims = {name: values[at] for (name, values), at in zip(data["dims"].items(), digits, strict=True)}

    class Lookup:
        def __init__(self, table: dict[str, Any]) -> None:
            self.table = table

        def __getitem__(self, keys: Any) -> Any:
            keys = keys if isinstance(keys, tuple) else (keys,)
            found = self.table["values"]
            for axis, key in zip(self.table["axes"], keys, strict=True):
                found = found[data["dims"][axis].index(key)]
            return found

    names: dict[str, Any] = dims | {name: Lookup(table) for name, table in data["tables"].items()}
    for name, text in data["formulas"].items():
        names[name] = python(text, names)
    met = all(python(text, names) for text in data["constraints"])
    return met, [python(text, names) for text in data["objectives"]]


@pytest.mark.parametrize(("name", "step"), [("camera_480", 1), ("training_1e5", 97)])
def test_cost_models_are_computed_to_the_bit(name: str, step: int) -> None:
    data = json.loads((NEUTRAL / f"{name}.json").read_text(encoding="utf-8"))
    problem = load(to_space(data))
    feasible = 0
    for index in range(0, problem.size, step):
        digits = problem.digits_of(index)
        verdict = judge(problem, problem.design_at(digits))
        met, objectives = costs(data, digits)
        assert (verdict.state is State.FEASIBLE) == met
        feasible += met
        if met:
            assert list(verdict.objectives) == objectives
    assert feasible


@pytest.mark.parametrize("name", ["camera_480", "training_1e5"])
def test_fronts_are_those_that_were_stated(name: str) -> None:
    data = json.loads((NEUTRAL / f"{name}.json").read_text(encoding="utf-8"))
    result = search(load(to_space(data)), solver="exhaustive")
    assert len(result.front) == data["expected"]["front"]
    assert sum(point.ties for point in result.front) == data["expected"]["designs"]


def test_conditions_become_rules_and_bounds_constraints() -> None:
    data = {
        "name": "split",
        "dims": {"a": [1.0, 2.0, 4.0], "b": [1.0, 3.0]},
        "tables": {"cap": {"axes": ["b"], "values": [5.0, 9.0]}},
        "formulas": {"q": "a/b", "use": "a + q", "time": "use * 2", "never": "time + 1"},
        "constraints": ["q == floor(q)", "use <= cap[b]", "use >= 1", "a * b > 2", "time - use < 99"],
        "objectives": ["time", "0-a", "b"],
    }
    made = to_space(data)
    assert {name: rule["check"] for name, rule in made["rules"].items()} == {
        "condition_1": "q == floor(q)",
        "condition_4": "a * b > 2",
    }
    assert made["lets"] == {"q": "a / b"}
    assert made["constraints"] == {
        "use": ["<= cap[b]", ">= 1"],
        "constraints_4": {"check": "time - use < 99"},
    }
    assert made["objectives"] == {"time": "minimize", "objective_2": "minimize", "b_objective": "minimize"}
    assert list(made["metrics"]) == ["use", "time", "never", "objective_2", "b_objective"]
    assert made["tables"]["cap"]["rows"] == {"1": 5.0, "3": 9.0}
    load(made)


def test_names_that_expressions_cannot_use_are_changed() -> None:
    data = space(
        {"min": [1, 2], "about": [1, 2], "cost": [3, 4], "x": [1]}, "min < cost and about == x", "k > x"
    )
    problem: Problem = load(to_space(data | {"constants": {"k": 7, "unused": 1}}))
    assert problem.names == ("min_", "about_", "cost", "x")
    assert {name: known.value for name, known in problem.inputs.items()} == {"k": 7.0}
    assert [o.name for o in problem.objectives] == ["cost_"]
    legal = [
        d
        for i in range(problem.size)
        if broken_rule(problem, d := problem.design_at(problem.digits_of(i))) is None
    ]
    assert len(legal) == 4


# -- what cannot be read ---------------------------------------------------------------------------


def refused(text: str) -> str:
    with pytest.raises(SpaceError) as error:
        read_neutral(text, "f.json")
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "f.json:1:1: the text is not JSON"),
        ('{"parameters": {"a": [1,]}}', "f.json:1:"),
        ('{"parameters": {"a": [NaN]}}', "NaN is no number of JSON"),
        ('{"parameters": {"a": [1], "a": [2]}}', "the key 'a' stands twice"),
        ("[" * 100_000, "the text is not JSON: the nesting is too deep"),
        ("[1]", "found a list, expected an object"),
        ('{"parametres": {}}', "did you mean 'parameters'?"),
        ('{"parameters": {}}', "parameters: found nothing"),
        ('{"parameters": [1]}', "parameters: found a list, expected an object"),
        ('{"parameters": {"a": []}}', "parameters.a: found an empty list"),
        ('{"parameters": {"a": 3}}', "parameters.a: found a number, expected a list of values"),
        ('{"parameters": {"a": [1, null]}}', "parameters.a: found nothing, expected values"),
        ('{"parameters": {"a b": [1]}}', "found the name 'a b'"),
        ('{"parameters": {"a": [1]}, "restrictions": "a"}', "restrictions: expected a list of texts"),
        ('{"dims": {"a": [1]}, "objectives": []}', "found no objective"),
        ('{"dims": {"a": [1]}, "objectives": ["a", 1]}', "objectives: expected a list of texts"),
        ('{"dims": {"a": [1]}, "objectives": ["aa"]}', "unknown name 'aa'; did you mean 'a'?"),
        ('{"dims": {"a": [1]}, "objectives": ["a"], "formulas": {"a": "1"}}', "'a' stands for something else"),
        ('{"dims": {"a": [1]}, "objectives": ["a"], "tables": {"t": {"axes": ["b"]}}}', "found 'b', no dimension"),
        ('{"dims": {"a": [1]}, "objectives": ["a"], "tables": {"t": {"axes": ["a"], "values": [1, 2]}}}',
         "tables.t: found 2 values, expected one for each of the 1 values"),
        ('{"dims": {"a": [1]}, "objectives": ["a"], "tables": {"t": {"axes": ["a"], "values": ["x"]}}}',
         "tables.t: found a text, expected a number"),
        ('{"dims": {"a": [1]}, "objectives": ["t[b]"], "tables": {"t": {"axes": ["a"], "values": [1]}}}',
         "table 't' is read as t[a]"),
    ],
)  # fmt: skip
def test_bad_files(text: str, message: str) -> None:
    assert message in refused(text)


@pytest.mark.parametrize(
    ("restriction", "message"),
    [
        ("a = 1", "no Python expression"),
        ("a +", "no Python expression"),
        ("(" * 500 + "a" + ")" * 500, "no Python expression"),
        ("-" * 5000 + "a", "nested too deeply"),
        ("a" * 30_000, "at most 20,000 characters"),
        ("lambda: a", "has no counterpart"),
        ("a & 6 == 2", "has no counterpart"),
        ("~a", "write 'not'"),
        ("a is 1", "write '=='"),
        ("round(a) == 1", "round of 1 argument(s) has no counterpart"),
        ("open('x')", "open of 1 argument(s) has no counterpart"),
        ("a.b > 1", "has no counterpart"),
        ("a[0] > 1", "'a' is no table"),
        ("w > 'x'", "'w' is a text, expected a number"),
        ("w + 1 > 2", "'w' is a text, expected a number"),
        ("w", "'w' is a text, expected a condition"),
        ("(a and 2) > 1", "expected a number"),
        ("w == 'it\\'s \"so\"'", "cannot be written"),
        ("a in w", "'in' needs a list"),
        ("1j > a", "is no number"),
        ("aa > 1", "unknown name 'aa'; did you mean 'a'?"),
    ],
)
def test_bad_restrictions(restriction: str, message: str) -> None:
    found = refused(
        json.dumps(space({"a": [1, 2], "w": ["x", 'it\'s "so"']}, "a > 1", restriction), indent=1)
    )
    assert message in found
    assert found.startswith("f.json:")
    assert ": restrictions[1]: " in found


def test_a_mistake_is_found_where_it_stands() -> None:
    text = json.dumps(space({"a": [1]}, "a > 1", "a > bb"), indent=1)
    line = next(n for n, line in enumerate(text.split("\n"), 1) if "bb" in line)
    assert refused(text).startswith(f"f.json:{line}:8: restrictions[1]: unknown name 'bb'")


def test_values_are_kept_to_the_bit() -> None:
    values = [0.1, 0.1 + 0.2, 1e-300, 1e300, 2**53, -0.5, 1 / 3, 5e-324]
    problem = load(as_mapping(space({"x": values})))
    kept: list[Value] = list(problem.dimensions[0].values)
    assert np.array_equal(np.array(kept), np.array(values, dtype=float))


def as_mapping(data: dict[str, Any]) -> dict[str, Any]:
    return read_neutral(json.dumps(data))
