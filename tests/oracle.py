"""What a space means, worked out a second time from its plain data.

Python's own parser reads the expressions, plain floats compute them, exceptions stand for what is undefined. Nothing
of the product is used, so precedence, units, tables, short circuits and verdicts are all checked against it.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

SCALE = {
    "s": Fraction(1), "ms": Fraction(1, 1000), "us": Fraction(1, 10**6), "percent": Fraction(1, 100), "1": Fraction(1),
}  # fmt: skip
QUANTITY = re.compile(r"(?<![\w.])((?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?) (ms|us|s|percent)\b")


class Missing(Exception):
    """A cell that is not there."""


class ReadNaN(Exception):
    """A truth value that depends on NaN."""


def base(number: Any, unit: str = "1") -> float:
    """A written number in base units: exact, then rounded once."""
    return float(Fraction(str(number)) * SCALE[unit])


def quantity(text: Any) -> Any:
    """``"5 us"`` as a number; anything else as it is."""
    if isinstance(text, str) and " " in text:
        number, unit = text.split(" ")
        return base(number, unit)
    return text if isinstance(text, bool | str) else float(text)


class Oracle:
    """The verdicts of one space."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.inputs = {
            name: given["default"] if isinstance(given, dict) else quantity(given)
            for name, given in data["inputs"].items()
        }
        self.dimensions = {name: self._values(d) for name, d in data["dimensions"].items()}
        self.rules = [
            (name, f"{name} == {self._written(name, d)} or ({d['when']})")
            for name, d in data["dimensions"].items()
            if "when" in d
        ]
        self.rules += [(name, rule["check"]) for name, rule in data["rules"].items()]
        self.bounds = list(self._bounds())
        self.trees: dict[str, ast.expr] = {}
        self.design: dict[str, Any] = {}
        self.known: dict[str, Any] = {}

    def _values(self, declared: dict[str, Any]) -> list[Any]:
        if "table" in declared:
            return list(self.data["tables"][declared["table"]]["rows"])
        if "range" in declared:
            low, high = declared["range"]
            return [float(value) for value in range(low, high + 1)]
        unit = declared.get("unit", "1")
        return [v if isinstance(v, bool | str) else base(v, unit) for v in declared["choices"]]

    def _written(self, name: str, declared: dict[str, Any]) -> str:
        """The inactive value of a dimension as an expression."""
        first = self.data["dimensions"][name].get("choices", [None])[0]
        if "table" in declared:
            first = self.dimensions[name][0]
        if "range" in declared:
            first = declared["range"][0]
        value = declared.get("otherwise", first)
        if isinstance(value, str):
            return f"'{value}'"
        return str(value) + (f" {declared['unit']}" if "unit" in declared else "")

    def _bounds(self) -> Iterator[tuple[str, str, str]]:
        """(left, operator, right) of every constraint; a condition has the operator ``holds``."""
        for name, declared in self.data["constraints"].items():
            if isinstance(declared, dict):
                tree = ast.parse(python(declared["check"]), mode="eval").body
                if self.is_bound(tree):
                    assert isinstance(tree, ast.Compare)
                    yield ast.unparse(tree.left), SIGNS[type(tree.ops[0])], ast.unparse(tree.comparators[0])
                    continue
                yield declared["check"], "holds", ""
                continue
            for bound in declared if isinstance(declared, list) else [declared]:
                op, right = bound.split(" ", 1)
                yield name, op, right

    def is_bound(self, tree: ast.expr) -> bool:
        """Whether a condition is one comparison of numbers, whose violation is their distance."""
        match tree:
            case ast.Compare(left=left, ops=[op]):
                return type(op) in SIGNS and self.is_number(left)
        return False

    def designs(self) -> Iterator[dict[str, Any]]:
        for values in product(*self.dimensions.values()):
            yield dict(zip(self.dimensions, values, strict=True))

    # -- verdicts -----------------------------------------------------------------------------------

    def judge(self, design: dict[str, Any]) -> tuple[Any, ...]:
        """("ILLEGAL", rule), ("FAILED",), or (state, objectives, violations)."""
        self.design, self.known = design, {}
        for name, check in self.rules:
            try:
                legal = self.text(check)
            except (Missing, ReadNaN):
                legal = False
            if not legal:
                return "ILLEGAL", "inactive" if name in self.dimensions else name
        try:
            objectives = [(direction, self.name(name)) for name, direction in self.data["objectives"].items()]
            sides = [(self.text(a), op, self.text(b) if b else 0.0) for a, op, b in self.bounds]
        except (Missing, ReadNaN):
            return ("FAILED",)
        numbers = [value for _, value in objectives] + [x for a, _, b in sides for x in (a, b)]
        if any(value != value for value in numbers):
            return ("FAILED",)
        costs = [value if direction == "minimize" else -value for direction, value in objectives]
        if -math.inf in costs:
            return ("FAILED",)
        violations = tuple(violation(*side) for side in sides)
        met = not any(violations) and math.inf not in costs
        return "FEASIBLE" if met else "INFEASIBLE", tuple(value for _, value in objectives), violations

    # -- values -------------------------------------------------------------------------------------

    def text(self, expression: Any) -> Any:
        text = str(expression)
        if text not in self.trees:
            self.trees[text] = ast.parse(python(text), mode="eval").body
        return self.value(self.trees[text])

    def name(self, name: str) -> Any:
        """The value of a name, whether that is a number or an exception, once per design."""
        if name not in self.known:
            try:
                self.known[name] = self._name(name)
            except (Missing, ReadNaN) as error:
                self.known[name] = error
        if isinstance(self.known[name], Exception):
            raise type(self.known[name])
        return self.known[name]

    def _name(self, name: str) -> Any:
        if name in ("true", "false"):
            return name == "true"
        if name in self.design:
            return self.design[name]
        if name in self.inputs:
            return self.inputs[name]
        if name in self.data["lets"]:
            return self.text(self.data["lets"][name])
        return self.text(self.data["metrics"][name]["expr"])

    def column(self, dimension: str, column: str) -> Any:
        table = self.data["tables"][self.data["dimensions"][dimension]["table"]]
        at = list(table["columns"]).index(column)
        cell = table["rows"][self.design[dimension]][at]
        if cell is None:
            raise Missing
        return cell if isinstance(cell, bool | str | list) else base(cell, table["columns"][column])

    def cell(self, name: str, keys: list[Any]) -> float:
        table = self.data["tables"][name]
        rows = table["rows"]
        for dimension, key in zip(table["keys"], keys, strict=True):
            values = self.dimensions[dimension]
            labels = [value if isinstance(value, str) else str(value).lower() for value in values]
            if isinstance(values[0], float):
                labels = [str(v) for v in self._labels(dimension)]
            label = next((text for text, value in zip(labels, values, strict=True) if value == key), None)
            if label is None or label not in rows:
                raise Missing
            rows = rows[label]
        if rows is None:
            raise Missing
        return base(rows, table["unit"])

    def _labels(self, dimension: str) -> list[Any]:
        declared = self.data["dimensions"][dimension]
        if "range" in declared:
            return list(range(declared["range"][0], declared["range"][1] + 1))
        return list(declared["choices"])

    def value(self, node: ast.expr) -> Any:  # noqa: PLR0912 - one case for each form of expression
        match node:
            case ast.Constant(value=bool() | str()):
                return node.value
            case ast.Constant():
                return float(node.value)  # type: ignore[arg-type]
            case ast.Name(id=name):
                return self.name(name)
            case ast.Attribute(value=ast.Name(id=dimension), attr=column):
                return self.column(dimension, column)
            case ast.Subscript(value=ast.Name(id=table), slice=keys):
                parts = keys.elts if isinstance(keys, ast.Tuple) else [keys]
                return self.cell(table, [self.value(part) for part in parts])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.value(operand)
            case ast.UnaryOp(op=op, operand=operand):
                value = self.value(operand)
                return -value if isinstance(op, ast.USub) else value
            case ast.BoolOp(op=op, values=parts):
                deciding = isinstance(op, ast.Or)
                return next((deciding for part in parts if self.value(part) is deciding), not deciding)
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self.power(left, right)
            case ast.BinOp(left=left, op=op, right=right):
                return BINARY[type(op)](self.value(left), self.value(right))
            case ast.Compare(left=left, ops=ops, comparators=rights):
                return self.compare(left, ops, rights)
            case ast.IfExp(test=test, body=yes, orelse=no):
                return self.choose(test, yes, no)
            case ast.Call(func=ast.Name(id="where"), args=[test, yes, no]):
                return self.choose(test, yes, no)
            case ast.Call(func=ast.Name(id=name), args=args):
                return CALLS[name](*[self.value(arg) for arg in args])
        raise AssertionError(ast.dump(node))

    def choose(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> Any:
        try:
            condition = self.value(test)
        except ReadNaN:
            if self.is_number(yes):
                return math.nan
            raise
        return self.value(yes if condition else no)

    def compare(self, left: ast.expr, ops: list[ast.cmpop], rights: list[ast.expr]) -> bool:
        for op, right in zip(ops, rights, strict=True):
            if isinstance(op, ast.In | ast.NotIn):
                found = self.contains(left, right)
                held = found if isinstance(op, ast.In) else not found
            elif isinstance(op, ast.Gt | ast.GtE):  # a > b reads b first, as b < a
                b, a = self.read(right), self.read(left)
                held = a > b if isinstance(op, ast.Gt) else a >= b
            else:
                a, b = self.read(left), self.read(right)
                held = (
                    {ast.Lt: a < b, ast.LtE: a <= b}[type(op)] if isinstance(op, ast.Lt | ast.LtE) else a == b
                )
                held = not held if isinstance(op, ast.NotEq) else held
            if not held:
                return False
            left = right
        return True

    def contains(self, left: ast.expr, right: ast.expr) -> bool:
        if isinstance(right, ast.List):
            return any(self.read(left) == self.read(item) for item in right.elts)
        texts = self.value(right)
        return self.value(left) in texts

    def read(self, node: ast.expr) -> Any:
        value = self.value(node)
        if value != value:
            raise ReadNaN
        return value

    def power(self, left: ast.expr, right: ast.expr) -> float:
        exponent = self.constant(right)
        if exponent == 0.5:
            return sqrt(self.value(left))
        if exponent is not None and exponent == int(exponent) and abs(exponent) <= 8:
            if exponent == 0:
                return 1.0
            a = chain = self.value(left)
            for _ in range(int(abs(exponent)) - 1):
                chain = chain * a
            return chain if exponent > 0 else divide(1.0, chain)
        return vectorized(np.power)(self.value(left), self.value(right))

    def constant(self, node: ast.expr) -> float | None:
        """The number that an expression is whatever the design; a let or metric may stand for one."""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return float(value)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                below = self.constant(operand)
                return None if below is None else -below
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.constant(operand)
            case ast.BinOp(op=ast.Pow(), right=right) if self.constant(right) == 0:
                return 1.0
            case ast.Name(id=name) if name in self.data["lets"] or name in self.data["metrics"]:
                text = self.data["lets"].get(name) or self.data["metrics"][name]["expr"]
                return self.constant(ast.parse(python(text), mode="eval").body)
        return None

    def is_number(self, node: ast.expr) -> bool:
        """Whether an expression is a number, by its form alone."""
        match node:
            case ast.Constant(value=value):
                return not isinstance(value, bool | str)
            case ast.Attribute(value=ast.Name(id=dimension), attr=column):
                table = self.data["tables"][self.data["dimensions"][dimension]["table"]]
                return table["columns"][column] not in ("flag", "text", "texts")
            case ast.IfExp(body=yes):
                return self.is_number(yes)
            case ast.Call(func=ast.Name(id="where"), args=args):
                return self.is_number(args[1])
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return False
            case ast.Name(id=name):
                if name in ("true", "false"):
                    return False
                if name in self.data["lets"]:
                    return self.is_number(ast.parse(python(self.data["lets"][name]), mode="eval").body)
                given = self.dimensions.get(name, [self.inputs.get(name, 0.0)])[0]
                return not isinstance(given, bool | str)
        return True


def python(text: str) -> str:
    """An expression with its quantities as plain numbers, which Python can read."""
    return QUANTITY.sub(lambda found: f"({base(found[1], found[2])!r})", text).strip()


def violation(left: Any, op: str, right: Any) -> float:
    if op == "holds":
        return 0.0 if left else 1.0
    held = {
        "<=": left <= right,
        "<": left < right,
        ">=": left >= right,
        ">": left > right,
        "==": left == right,
    }[op]
    if held:
        return 0.0
    return math.ulp(0.0) if left == right else abs(left - right)


def divide(a: float, b: float) -> float:
    if b != 0:
        return a / b
    if a == 0 or a != a:
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def floor(a: float) -> float:
    return a if not math.isfinite(a) else math.copysign(float(math.floor(a)), a)


def ceil(a: float) -> float:
    return -floor(-a)


def sqrt(a: float) -> float:
    return math.sqrt(a) if a >= 0 else math.nan


def vectorized(function: np.ufunc) -> Callable[..., float]:
    def call(*args: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*(np.array([arg]) for arg in args))[0])

    return call


def extreme(better: Callable[[float, float], bool]) -> Callable[..., float]:
    def call(*args: float) -> float:
        best = args[0]
        for arg in args[1:]:
            if best == best and (arg != arg or better(arg, best)):
                best = arg
        return best

    return call


SIGNS: dict[type, str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=="}
BINARY: dict[type, Callable[[float, float], float]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: divide,
    ast.FloorDiv: lambda a, b: floor(divide(a, b)),
    ast.Mod: lambda a, b: a - b * floor(divide(a, b)),
}
CALLS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": ceil,
    "floor": floor,
    "sqrt": sqrt,
    "exp": vectorized(np.exp),
    "log": vectorized(np.log),
    "log2": vectorized(np.log2),
    "min": extreme(lambda a, b: a < b),
    "max": extreme(lambda a, b: a > b),
}
