"""Conditions and formulas in Python's syntax, rewritten as expressions of space files.

Python lets numbers, truth values and texts stand for each other (``not use_padding`` of 0 or 1, ``flag * 4``); the
expressions of a space file do not. The kind of every part is followed, and what Python converts silently is
written out. Values do not change: the operations and their order stay those of the source.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from dse.errors import ExpressionError, nearest
from dse.expressions.parser import LENGTH_LIMIT

__all__ = ["FLAG", "NUMBER", "TEXT", "Labels", "Scope", "names_in", "parse_python", "rewrite"]

NUMBER, FLAG, TEXT = "a number", "true or false", "a text"
_TRUTH = "a truth value made of numbers"  # `a and b` of numbers: Python's value is one of them

Labels: TypeAlias = Mapping[tuple[type, object], str]
"""A value of a parameter and its kind -> the text that stands for it."""

_Typed: TypeAlias = tuple[ast.expr, str]


@dataclass(frozen=True, slots=True)
class Scope:
    """The names of the source: the kind of each, the texts of those that are texts, and the keys of each table."""

    kinds: dict[str, str] = field(default_factory=dict)
    labels: dict[str, Labels] = field(default_factory=dict)
    tables: dict[str, Sequence[str]] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)


def parse_python(text: str) -> ast.expr:
    """The syntax tree of a Python expression.

    Raises:
        ExpressionError: it is none, with the offset of the first character that does not fit.
    """
    if len(text) > LENGTH_LIMIT:
        raise ExpressionError(f"an expression has at most {LENGTH_LIMIT:,} characters, not {len(text):,}")
    try:
        return ast.parse(text.replace("\n", " ").strip(), mode="eval").body
    except SyntaxError as error:
        raise ExpressionError(f"no Python expression: {error.msg}", max((error.offset or 1) - 1, 0)) from None
    except (ValueError, RecursionError, MemoryError):
        raise ExpressionError("no Python expression, or one that is nested too deeply") from None


def names_in(tree: ast.expr) -> set[str]:
    """The names that an expression reads, those of functions included."""
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def rewrite(tree: ast.expr, scope: Scope, *, condition: bool = False) -> tuple[str, str]:
    """The expression of a space file, and its kind; with ``condition``, a truth value.

    Raises:
        ExpressionError: a part that has no counterpart, with its offset.
    """
    try:
        writer = _Rewriting(scope)
        node, kind = writer.condition(tree) if condition else writer.typed(tree)
        return ast.unparse(ast.fix_missing_locations(node)), kind
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply") from None


class _Rewriting:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._known: dict[ast.expr, _Typed] = {}

    # -- kinds ------------------------------------------------------------------------------------

    def typed(self, node: ast.expr) -> _Typed:
        """A part rewritten, and its kind."""
        known = self._known.get(node)
        if known is None:
            method = getattr(self, f"_{type(node).__name__.lower()}", None)
            if method is None:
                raise _refused(node, f"{ast.unparse(node)!r} has no counterpart in a space file")
            found: _Typed = method(node)
            known = self._known[node] = found
        return known

    def number(self, node: ast.expr) -> ast.expr:
        """A part whose value is used as a number; a truth value counts 1 or 0."""
        new, kind = self.typed(node)
        if kind == FLAG:
            return _call("where", new, ast.Constant(1), ast.Constant(0))
        if kind != NUMBER:
            raise _refused(node, f"{ast.unparse(node)!r} is {kind}, expected a number")
        return new

    def condition(self, node: ast.expr) -> _Typed:
        """A part whose value is used as a condition; a number holds unless it is 0."""
        new, kind = self.typed(node)
        if kind == NUMBER:
            return _compared(new, ast.NotEq(), ast.Constant(0)), FLAG
        if kind == TEXT:
            raise _refused(node, f"{ast.unparse(node)!r} is a text, expected a condition")
        return new, FLAG

    # -- leaves -----------------------------------------------------------------------------------

    def _constant(self, node: ast.Constant) -> _Typed:
        value = node.value
        if isinstance(value, bool):
            return node, FLAG
        if isinstance(value, str):
            if "\\" in value or ("'" in value and '"' in value) or not value.isprintable():
                raise _refused(node, f"the text {value!r} cannot be written in a space file")
            return node, TEXT
        if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
            return node, NUMBER
        raise _refused(node, f"{value!r} is no number, text or truth value")

    def _name(self, node: ast.Name) -> _Typed:
        kind = self.scope.kinds.get(node.id)
        if kind is None:
            raise _refused(node, f"unknown name {node.id!r}{nearest(node.id, self.scope.kinds)}")
        return ast.Name(self.scope.renamed.get(node.id, node.id)), kind

    def _subscript(self, node: ast.Subscript) -> _Typed:
        name = node.value.id if isinstance(node.value, ast.Name) else ""
        if name not in self.scope.tables:
            raise _refused(node, f"{ast.unparse(node.value)!r} is no table{nearest(name, self.scope.tables)}")
        keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        axes = self.scope.tables[name]
        if [key.id if isinstance(key, ast.Name) else "" for key in keys] != list(axes):
            raise _refused(node, f"table {name!r} is read as {name}[{', '.join(axes)}]")
        new = [self.typed(key)[0] for key in keys]
        table = ast.Name(self.scope.renamed.get(name, name))
        return ast.Subscript(table, ast.Tuple(new) if len(new) > 1 else new[0]), NUMBER

    # -- logic ------------------------------------------------------------------------------------

    def _boolop(self, node: ast.BoolOp) -> _Typed:
        plain = all(self.typed(value)[1] == FLAG for value in node.values)
        return ast.BoolOp(node.op, [self.condition(v)[0] for v in node.values]), FLAG if plain else _TRUTH

    def _unaryop(self, node: ast.UnaryOp) -> _Typed:
        if isinstance(node.op, ast.Not):
            return ast.UnaryOp(node.op, self.condition(node.operand)[0]), FLAG
        if isinstance(node.op, ast.Invert):
            raise _refused(node, "'~' has no counterpart in a space file; write 'not'")
        return ast.UnaryOp(node.op, self.number(node.operand)), NUMBER

    def _ifexp(self, node: ast.IfExp) -> _Typed:
        kinds = [self.typed(arm)[1] for arm in (node.body, node.orelse)]
        same = kinds[0] == kinds[1]
        arms = [self.typed(arm)[0] if same else self.number(arm) for arm in (node.body, node.orelse)]
        return _call("where", self.condition(node.test)[0], *arms), kinds[0] if same else NUMBER

    def _compare(self, node: ast.Compare) -> _Typed:
        """A chain as one comparison where all links are of numbers, else its links one by one."""
        operands = [node.left, *node.comparators]
        links = [self._link(a, op, b) for a, op, b in zip(operands[:-1], node.ops, operands[1:], strict=True)]
        if len(links) == 1:
            return links[0], FLAG
        if not any(isinstance(op, ast.In | ast.NotIn) for op in node.ops) and all(
            self.typed(operand)[1] == NUMBER for operand in operands
        ):
            numbers = [self.number(operand) for operand in operands]
            return ast.Compare(numbers[0], node.ops, numbers[1:]), FLAG
        return ast.BoolOp(ast.And(), links), FLAG

    def _link(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
        if isinstance(op, ast.In | ast.NotIn):
            return self._member(left, op, right)
        if not isinstance(op, ast.Eq | ast.NotEq):
            if isinstance(op, ast.Is | ast.IsNot):
                raise _refused(right, "'is' has no counterpart in a space file; write '=='")
            return _compared(self.number(left), op, self.number(right))
        sides = self._alike(left, right)
        if sides is None:
            return ast.Constant(isinstance(op, ast.NotEq))
        return _compared(sides[0], op, sides[1])

    def _alike(self, left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """The sides of an equation, of one kind; None when they are never equal.

        A value of a parameter that is held as texts is its text.
        """
        for name, other in ((left, right), (right, left)):
            labels = self.scope.labels.get(name.id) if isinstance(name, ast.Name) else None
            constant = _literal(other)
            if labels is not None and constant is not None:
                text = next((label for (_, v), label in labels.items() if v == constant.value), None)
                return None if text is None else (self.typed(name)[0], self._constant(_like(other, text))[0])
        (a, kind), (b, other_kind) = self.typed(left), self.typed(right)
        if (kind == TEXT) != (other_kind == TEXT):
            return None
        return (a, b) if kind == other_kind else (self.number(left), self.number(right))

    def _member(self, left: ast.expr, op: ast.In | ast.NotIn, right: ast.expr) -> ast.expr:
        if not isinstance(right, ast.List | ast.Tuple | ast.Set):
            raise _refused(right, f"'in' needs a list, but got {ast.unparse(right)!r}")
        links = [self._link(left, ast.Eq(), item) for item in right.elts]
        links = [link for link in links if not (isinstance(link, ast.Constant) and link.value is False)]
        if not links:
            return ast.Constant(isinstance(op, ast.NotIn))
        simple = all(isinstance(link, ast.Compare) for link in links)
        sides = [(link.left, link.comparators[0]) for link in links if isinstance(link, ast.Compare)]
        simple &= not any(isinstance(getattr(item, "op", item), _LOGIC) for _, item in sides)
        if simple and len({ast.unparse(a) for a, _ in sides}) == 1:
            return _compared(sides[0][0], op, ast.List([item for _, item in sides]))
        union = ast.BoolOp(ast.Or(), links) if len(links) > 1 else links[0]
        return ast.UnaryOp(ast.Not(), union) if isinstance(op, ast.NotIn) else union

    # -- arithmetic -------------------------------------------------------------------------------

    def _binop(self, node: ast.BinOp) -> _Typed:
        if isinstance(node.op, ast.BitAnd | ast.BitOr):
            sides = [self.typed(side) for side in (node.left, node.right)]
            if all(kind == FLAG for _, kind in sides):
                op = ast.And() if isinstance(node.op, ast.BitAnd) else ast.Or()
                return ast.BoolOp(op, [side for side, _ in sides]), FLAG
        if not isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow):
            raise _refused(node, f"the operation {ast.unparse(node)!r} has no counterpart in a space file")
        return ast.BinOp(self.number(node.left), node.op, self.number(node.right)), NUMBER

    def _call(self, node: ast.Call) -> _Typed:
        name, args = _function(node), node.args
        if node.keywords or any(isinstance(arg, ast.Starred) for arg in args):
            raise _refused(node, f"{name} takes plain arguments only")
        if len(args) == 1 and isinstance(args[0], ast.List | ast.Tuple) and name in _OF_LISTS:
            args = args[0].elts
        match name, len(args):
            case "min" | "max", n if n > 0:
                return (_call(name, *map(self.number, args)) if n > 1 else self.number(args[0])), NUMBER
            case "sum", n if n > 0:
                total = self.number(args[0])
                for arg in args[1:]:
                    total = ast.BinOp(total, ast.Add(), self.number(arg))
                return total, NUMBER
            case "all" | "any", n if n > 1:
                logic = ast.And() if name == "all" else ast.Or()
                return ast.BoolOp(logic, [self.condition(arg)[0] for arg in args]), FLAG
            case "where", 3:
                return self._ifexp(ast.IfExp(args[0], args[1], args[2]))
            case "pow", 2:
                return ast.BinOp(self.number(args[0]), ast.Pow(), self.number(args[1])), NUMBER
            case "abs" | "ceil" | "floor" | "sqrt" | "log" | "log2" | "exp", 1:
                return _call(name, self.number(args[0])), NUMBER
            case "float", 1:
                return self.number(args[0]), NUMBER
            case "int", 1:
                new = self.number(args[0])
                below = _compared(new, ast.Lt(), ast.Constant(0))
                return _call("where", below, _call("ceil", new), _call("floor", new)), NUMBER
            case "bool", 1:
                return self.condition(args[0])
        raise _refused(node, f"{name} of {len(args)} argument(s) has no counterpart in a space file")


_LOGIC = (ast.Compare, ast.And, ast.Or, ast.Not)
_OF_LISTS = frozenset({"min", "max", "sum", "all", "any"})


def _function(node: ast.Call) -> str:
    """The name of a function: ``ceil`` of ``math.ceil``."""
    if isinstance(node.func, ast.Name):
        return node.func.id
    match node.func:
        case ast.Attribute(ast.Name("math" | "np" | "numpy"), name):
            return name
    raise _refused(node, f"{ast.unparse(node.func)!r} has no counterpart in a space file")


def _literal(node: ast.expr) -> ast.Constant | None:
    """A constant, also one with a minus before it."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = node.operand
        if isinstance(inner, ast.Constant) and type(inner.value) in (int, float):
            return ast.Constant(-inner.value)  # type: ignore[operator] # a number, as just seen
    return node if isinstance(node, ast.Constant) else None


def _like(node: ast.expr, text: str) -> ast.Constant:
    """A text in the place of a node."""
    return ast.copy_location(ast.Constant(text), node)


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name), list(args), [])


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    return ast.Compare(left, [op], [right])


def _refused(node: ast.expr, message: str) -> ExpressionError:
    return ExpressionError(message, getattr(node, "col_offset", 0))
