"""Brute force over all designs of a space at once, from its plain data: NumPy reads the expressions, nothing of the product.

:class:`Everything` says what each design is, in arrays over the whole space, one axis per dimension; :func:`front` sorts
out what nothing dominates. Undefined truth values and missing cells are NaN here, and NaN is a number that is none.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.oracle import Oracle, base, python

__all__ = ["Everything", "Unclear", "front"]

Array = NDArray[Any]
Point = tuple[tuple[float, ...], tuple[int, ...]]


class Unclear(Exception):
    """NaN and missing cells would have to be told apart."""


def front(indices: Array, costs: Array) -> list[Point]:
    """(costs, indices of all designs that have them) of what nothing dominates, best first objective first."""
    order = np.lexsort(costs.T[::-1])  # nothing that comes later dominates what comes first
    indices, costs = indices[order], costs[order]
    found = []
    while len(costs):
        best = costs[0]
        worse = (costs >= best).all(axis=1)
        tied = indices[(costs == best).all(axis=1)]
        found.append((tuple(best.tolist()), tuple(np.sort(tied).tolist())))
        indices, costs = indices[~worse], costs[~worse]
    return found


class Everything:
    """What every design is. ``illegal`` numbers the first broken rule from 1 on, 0 where all hold.

    ``names`` are those of the rules, ``costs`` (designs, objectives) minimized; all arrays are over the designs in order.
    """

    def __init__(self, data: dict[str, Any], team: str | None = None) -> None:
        self.oracle = Oracle(data)
        self.data = data
        self.dimensions = list(self.oracle.dimensions)
        self.shape = tuple(len(values) for values in self.oracle.dimensions.values())
        self.known: dict[str, Array] = {}
        with np.errstate(all="ignore"):
            self._judge(team)

    def _judge(self, team: str | None) -> None:
        member = self._flat(self.member(team)) == 1.0
        self.names = [name for name, _ in self.oracle.rules]
        self.illegal = np.zeros(member.size, dtype=int)
        for at, (_, check) in reversed(list(enumerate(self.oracle.rules))):
            self.illegal[self._flat(self.text(check)) != 1.0] = at + 1
        signs = [1.0 if way == "minimize" else -1.0 for way in self.data["objectives"].values()]
        values = [self._flat(self.name(name)) for name in self.data["objectives"]]
        self.costs = np.stack([sign * own for sign, own in zip(signs, values, strict=True)], axis=1) + 0.0
        failed = np.isnan(self.costs).any(axis=1) | (self.costs == -np.inf).any(axis=1)
        met = np.ones(member.size, dtype=np.bool_)
        for left, op, right in self.oracle.bounds:
            a, b = self._flat(self.text(left)), self._flat(self.text(right) if right else np.array(0.0))
            failed |= np.isnan(a) | np.isnan(b)
            met &= a == 1.0 if op == "holds" else COMPARE[op](a, b) == 1.0
        legal = member & (self.illegal == 0)
        self.outside, self.failed = ~member, legal & failed
        self.feasible = legal & ~failed & met & (self.costs < np.inf).all(axis=1)
        self.infinite = legal & ~failed & (self.costs == np.inf).any(axis=1)
        self.illegal[~member] = 0
        self.legal = legal

    def _flat(self, values: Array) -> Array:
        return np.asarray(np.broadcast_to(values, self.shape).reshape(-1))

    @property
    def front(self) -> list[Point]:
        """The true front, with all tied designs."""
        return front(np.flatnonzero(self.feasible), self.costs[self.feasible])

    @property
    def illegal_by(self) -> dict[str, int]:
        """How many designs each rule is the first to forbid; ``when`` counts under one name."""
        found: dict[str, int] = {}
        for at, name in enumerate(self.names):
            count = int(np.count_nonzero(self.illegal == at + 1))
            own = "inactive" if name in self.dimensions else name
            found[own] = found.get(own, 0) + count
        return {name: count for name, count in found.items() if count}

    def member(self, team: str | None) -> Array:
        """Which designs a team may choose."""
        if team is None:
            return np.array(1.0)
        declared = self.data["teams"][team]
        if isinstance(declared, str):
            (a, op, b) = declared.split()
            both = [self.member(name) == 1.0 for name in (a, b)]
            return np.asarray(1.0 * (both[0] & both[1] if op == "&" else both[0] | both[1]))
        held = np.array(True)
        for name, given in declared.items():
            if name == "where":
                held = held & (self.text(given) == 1.0)
            elif name != "about":
                values = [self._plain(name, v) for v in (given if isinstance(given, list) else [given])]
                allowed = [self.oracle.dimensions[name].index(value) for value in values]
                held = held & self._along(name, np.isin(np.arange(self._size(name)), allowed))
        return np.asarray(1.0 * held)

    def _plain(self, name: str, value: Any) -> Any:
        unit = self.data["dimensions"][name].get("unit", "1")
        return value if isinstance(value, bool | str) else base(value, unit)

    # -- values -------------------------------------------------------------------------------------

    def _size(self, name: str) -> int:
        return self.shape[self.dimensions.index(name)]

    def _along(self, name: str, values: Array) -> Array:
        shape = [1] * len(self.shape)
        shape[self.dimensions.index(name)] = -1
        return values.reshape(shape)

    def text(self, expression: Any) -> Array:
        return self.value(ast.parse(python(str(expression)), mode="eval").body)

    def name(self, name: str) -> Array:
        if name not in self.known:
            self.known[name] = self._name(name)
        return self.known[name]

    def _name(self, name: str) -> Array:
        if name in ("true", "false"):
            return np.array(float(name == "true"))
        if name in self.oracle.dimensions:
            return self._along(name, array(self.oracle.dimensions[name]))
        if name in self.oracle.inputs:
            return array([self.oracle.inputs[name]])[0:1].reshape(())
        if name in self.data["lets"]:
            return self.text(self.data["lets"][name])
        return self.text(self.data["metrics"][name]["expr"])

    def column(self, dimension: str, column: str) -> Array:
        self.oracle.design = {}
        cells = []
        table = self.data["tables"][self.data["dimensions"][dimension]["table"]]
        at = list(table["columns"]).index(column)
        for row in table["rows"].values():
            cell = row[at]
            number = not isinstance(cell, bool | str | list) and cell is not None
            cells.append(base(cell, table["columns"][column]) if number else cell)
        return self._along(dimension, array(cells, texts=table["columns"][column] in ("text", "texts")))

    def _holes(self) -> bool:
        """Whether a table lacks a cell."""
        for table in self.data["tables"].values():
            full = math.prod(self._size(name) for name in table.get("keys", []))
            rows = list(table["rows"].values()) if "columns" in table else [cells(table["rows"])]
            if any(None in row for row in rows) or ("keys" in table and len(rows[0]) < full):
                return True
        return False

    def cell(self, name: str, keys: list[Array]) -> Array:
        def one(*values: Any) -> float:
            try:
                given = [bool(v) if isinstance(self.oracle.dimensions[d][0], bool) else v
                         for d, v in zip(self.data["tables"][name]["keys"], values, strict=True)]  # fmt: skip
                return self.oracle.cell(name, given)
            except Exception as error:
                if type(error).__name__ != "Missing":
                    raise
                return math.nan

        return elementwise(one, keys, float)

    def value(self, node: ast.expr) -> Array:  # noqa: PLR0912 - one case for each form of expression
        match node:
            case ast.Constant(value=value):
                return array([value])[0:1].reshape(())
            case ast.Name(id=name):
                return self.name(name)
            case ast.Attribute(value=ast.Name(id=dimension), attr=column):
                return self.column(dimension, column)
            case ast.Subscript(value=ast.Name(id=table), slice=keys):
                parts = keys.elts if isinstance(keys, ast.Tuple) else [keys]
                return self.cell(table, [self.value(part) for part in parts])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return 1.0 - self.value(operand)
            case ast.UnaryOp(op=op, operand=operand):
                return -self.value(operand) if isinstance(op, ast.USub) else self.value(operand)
            case ast.BoolOp(op=op, values=parts):
                return fold(0.0 if isinstance(op, ast.And) else 1.0, (self.value(part) for part in parts))
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return self.power(left, right)
            case ast.BinOp(left=left, op=op, right=right):
                return BINARY[type(op)](self.value(left), self.value(right))
            case ast.Compare(left=left, ops=ops, comparators=rights):
                lefts = [left, *rights[:-1]]
                return fold(
                    0.0, (self.compare(a, op, b) for a, op, b in zip(lefts, ops, rights, strict=True))
                )
            case ast.IfExp(test=test, body=yes, orelse=no):
                return choose(self.value(test), self.value(yes), self.value(no))
            case ast.Call(func=ast.Name(id="where"), args=[test, yes, no]):
                return choose(self.value(test), self.value(yes), self.value(no))
            case ast.Call(func=ast.Name(id=name), args=args):
                return CALLS[name](*[self.value(arg) for arg in args])
        raise AssertionError(ast.dump(node))

    def compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Array:
        if isinstance(op, ast.In | ast.NotIn):
            a = self.value(left)
            if isinstance(right, ast.List):
                found = fold(1.0, (equal(a, self.value(item)) for item in right.elts))
            else:
                one = lambda x, y: math.nan if x is None or y is None else float(x in y)  # noqa: E731
                found = elementwise(one, [a, self.value(right)], float)
            return found if isinstance(op, ast.In) else 1.0 - found
        a, b = self.value(left), self.value(right)
        if isinstance(op, ast.Eq | ast.NotEq):
            return equal(a, b) if isinstance(op, ast.Eq) else 1.0 - equal(a, b)
        return COMPARE[{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}[type(op)]](a, b)

    def power(self, left: ast.expr, right: ast.expr) -> Array:
        exponent = self.oracle.constant(right)
        if exponent == 0.5:
            return CALLS["sqrt"](self.value(left))
        if exponent is not None and exponent == int(exponent) and abs(exponent) <= 8:
            if exponent == 0:
                return np.array(1.0)
            a = chain = self.value(left)
            for _ in range(int(abs(exponent)) - 1):
                chain = chain * a
            return chain if exponent > 0 else np.asarray(1.0 / chain)
        if exponent is None and self._holes():
            raise Unclear
        a, b = np.broadcast_arrays(self.value(left), self.value(right))
        return np.asarray(np.power(np.ascontiguousarray(a), np.ascontiguousarray(b))).reshape(a.shape)


def cells(rows: Any) -> list[Any]:
    """The cells of a keyed table."""
    return [cell for row in rows.values() for cell in cells(row)] if isinstance(rows, dict) else [rows]


def array(values: list[Any], *, texts: bool = False) -> Array:
    """Numbers and truth values as floats, missing ones NaN; texts and lists of them as objects, missing ones None."""
    if not texts and not any(isinstance(value, str) for value in values):
        return np.array([math.nan if value is None else float(value) for value in values])
    found = np.empty(len(values), dtype=object)
    for at, value in enumerate(values):
        found[at] = tuple(value) if isinstance(value, list) else value
    return found


def elementwise(function: Callable[..., Any], args: list[Array], kind: type) -> Array:
    return np.asarray(np.frompyfunc(function, len(args), 1)(*args)).astype(kind)


def undefined(a: Array) -> Array:
    if a.dtype == object:
        return elementwise(lambda value: value is None, [a], bool)
    return np.isnan(a)


def equal(a: Array, b: Array) -> Array:
    return np.where(undefined(a) | undefined(b), np.nan, np.asarray(a == b).astype(float))


def compared(function: Callable[..., Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, function(a, b))


def fold(deciding: float, parts: Iterable[Array]) -> Array:
    """``and`` (0 decides) and ``or`` (1 decides), left to right: what follows what decides is not looked at."""
    found = np.array(1.0 - deciding)
    for part in parts:
        found = np.where(found == 1.0 - deciding, part, found)
    return found


def choose(test: Array, yes: Array, no: Array) -> Array:
    found = np.where(test == 1.0, yes, no)
    nothing: Any = None if found.dtype == object else np.nan
    return np.where(np.isnan(test), nothing, found)


def remainder(a: Array, b: Array) -> Array:
    return np.asarray(a - b * np.floor(a / b))


def extreme(better: Callable[[Array, Array], Array]) -> Callable[..., Array]:
    def call(*args: Array) -> Array:
        best = args[0]
        for arg in args[1:]:
            best = np.where(~np.isnan(best) & (np.isnan(arg) | better(arg, best)), arg, best)
        return best

    return call


def contiguous(function: np.ufunc) -> Callable[[Array], Array]:
    return lambda a: function(np.ascontiguousarray(a)).reshape(a.shape)


COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "<": compared(np.less), "<=": compared(np.less_equal), ">": compared(np.greater),
    ">=": compared(np.greater_equal), "==": compared(np.equal),
}  # fmt: skip
BINARY: dict[type, Callable[[Array, Array], Array]] = {
    ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide,
    ast.FloorDiv: lambda a, b: np.floor(a / b), ast.Mod: remainder,
}  # fmt: skip
CALLS: dict[str, Callable[..., Array]] = {
    "abs": np.abs, "ceil": np.ceil, "floor": np.floor, "sqrt": np.sqrt, "exp": contiguous(np.exp),
    "log": contiguous(np.log), "log2": contiguous(np.log2),
    "min": extreme(np.less), "max": extreme(np.greater),
}  # fmt: skip
