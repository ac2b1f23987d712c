"""Reading the text of an expression into graph nodes.

The grammar is Python's, cut down to a whitelist (a precedence-climbing parser, so that nothing else can be
said), plus quantities: a number followed by a unit, such as ``15 us`` or ``3.35 TB/s``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from dse.errors import ExpressionError, nearest
from dse.expressions.graph import Graph
from dse.expressions.table import Table
from dse.expressions.tokens import KEYWORDS, Token, tokenize
from dse.expressions.types import Flavor, Kind, Type
from dse.units import Unit, UnitError, parse_unit, to_base

__all__ = ["DEPTH_LIMIT", "FUNCTIONS", "LENGTH_LIMIT", "Scope", "parse", "parse_condition"]

DEPTH_LIMIT = 60
LENGTH_LIMIT = 20_000
INTEGER_LIMIT = 2**53

FUNCTIONS: dict[str, tuple[int, int]] = {
    "where": (3, 3),
    "min": (2, 64),
    "max": (2, 64),
    "ceil": (1, 1),
    "floor": (1, 1),
    "abs": (1, 1),
    "sqrt": (1, 1),
    "log2": (1, 1),
    "log": (1, 1),
    "exp": (1, 1),
}
"""Function name -> least and most number of arguments."""

_COMPARISONS = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}
_LOGIC = {"or": ("or", 1), "and": ("and", 2)}
_ARITHMETIC = {
    "+": ("add", 1), "-": ("sub", 1),
    "*": ("mul", 2), "/": ("div", 2), "//": ("floordiv", 2), "%": ("mod", 2),
}  # fmt: skip


class Scope(Protocol):
    """The names that an expression may use. Every method raises :class:`ExpressionError` on a miss."""

    @property
    def graph(self) -> Graph:
        """The graph that nodes are added to."""
        ...

    def value(self, name: str) -> int:
        """The node of a dimension, input, let or metric."""
        ...

    def column(self, name: str, column: str) -> int:
        """The node of ``name.column``."""
        ...

    def table(self, name: str) -> Table:
        """The keyed table called ``name``."""
        ...

    def declares(self, name: str) -> bool:
        """Whether ``name`` is declared, which hides a unit of the same spelling."""
        ...


def parse(text: str, scope: Scope) -> int:
    """The node of the expression ``text``.

    Raises:
        ExpressionError: with the offset of the first character that does not fit.
    """
    return parse_condition(text, scope)[0]


def parse_condition(text: str, scope: Scope) -> tuple[int, tuple[int, str, int] | None]:
    """Like :func:`parse`, but of a comparison ``a op b`` also says ``(a, op, b)`` as they were written."""
    if len(text) > LENGTH_LIMIT:
        raise ExpressionError(
            f"an expression has at most {LENGTH_LIMIT:,} characters, but this has {len(text):,}"
        )
    parser = _Parser(tokenize(text), scope, text)
    node = parser.ternary()
    parser.expect_end()
    return node, parser.comparisons.get(node)


class _Parser:
    """One pass over the tokens; each method reads one level of precedence and returns a node."""

    def __init__(self, tokens: list[Token], scope: Scope, text: str) -> None:
        self.tokens = tokens
        self.scope = scope
        self.graph = scope.graph
        self.text = text
        self.at = 0
        self.depth = 0
        self.comparisons: dict[int, tuple[int, str, int]] = {}

    # -- tokens -----------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.tokens[self.at]
        self.at += 1
        return token

    def sees(self, *texts: str) -> bool:
        return self.token.kind in ("op", "name") and self.token.text in texts

    def take(self, text: str) -> bool:
        if self.sees(text):
            self.at += 1
            return True
        return False

    def expect(self, text: str, after: str) -> None:
        if not self.take(text):
            raise ExpressionError(f"expected {text!r} after {after}, but found {self.found()}", self.token.at)

    def found(self) -> str:
        return "the end" if self.token.kind == "end" else repr(self.token.text)

    def expect_end(self) -> None:
        token = self.token
        if token.kind == "end":
            return
        before = self.tokens[self.at - 1]
        if before.kind == "number" and token.kind == "name":
            if self.scope.declares(token.text):
                message = f"{token.text!r} is declared here and hides the unit"
            else:
                try:
                    parse_unit(token.text)
                    message = f"unexpected {token.text!r}"
                except UnitError as error:
                    message = str(error)
            raise ExpressionError(message, token.at)
        raise ExpressionError(f"unexpected {token.text!r} after {before.text!r}", token.at)

    def apply(self, token: Token, op: str, *args: int) -> int:
        """The node of an operation; a type error points at the operator."""
        try:
            return self.graph.apply(op, *args)
        except ExpressionError as error:
            raise ExpressionError(self._with_percent_hint(error.message, args), token.at) from None

    def _with_percent_hint(self, message: str, args: tuple[int, ...]) -> str:
        if message.endswith("write the number as a percentage"):
            for arg in args:
                node = self.graph[arg]
                if node.op == "const" and node.type.flavor is Flavor.BARE:
                    return message.replace(
                        "write the number as a percentage", f"{node.data:g}: write {node.data:g} percent"
                    )
        return message

    # -- precedence levels, loosest first ----------------------------------------------------------

    def ternary(self) -> int:
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise ExpressionError(f"the expression is nested deeper than {DEPTH_LIMIT} levels", self.token.at)
        arms: list[tuple[Token, int, int]] = []
        node = self.climb(self.negation, _LOGIC)
        while self.sees("if"):
            token = self.next()
            condition = self.climb(self.negation, _LOGIC)
            self.expect("else", "the condition")
            arms.append((token, condition, node))
            node = self.climb(self.negation, _LOGIC)
        for token, condition, taken in reversed(arms):
            node = self.apply(token, "where", condition, taken, node)
        self.depth -= 1
        return node

    def climb(
        self, operand: Callable[[], int], operators: Mapping[str, tuple[str, int]], least: int = 1
    ) -> int:
        """Operands joined by left-associative operators that bind at least as tightly as level ``least``."""
        node = operand()
        while self.sees(*operators) and operators[self.token.text][1] >= least:
            token = self.next()
            op, level = operators[token.text]
            node = self.apply(token, op, node, self.climb(operand, operators, level + 1))
        return node

    def negation(self) -> int:
        negations = []
        while self.sees("not"):
            negations.append(self.next())
        node = self.comparison()
        for token in reversed(negations):
            node = self.apply(token, "not", node)
        return node

    def comparison(self) -> int:
        left = self.sum()
        result: int | None = None
        while self.sees(*_COMPARISONS, "in", "not"):
            token = self.next()
            negated = token.text == "not"
            if negated:
                self.expect("in", "'not'")
            if negated or token.text == "in":
                link = self.membership(left, token)
                if negated:
                    link = self.apply(token, "not", link)
            else:
                right = self.sum()
                link = self.apply(token, _COMPARISONS[token.text], left, right)
                self.comparisons.setdefault(link, (left, token.text, right))
                left = right
            result = link if result is None else self.apply(token, "and", result, link)
            if negated or token.text == "in":
                break
        return left if result is None else result

    def membership(self, left: int, token: Token) -> int:
        """``left in [a, b]``, or in a cell that holds a list of texts."""
        if not self.take("["):
            return self.apply(token, "contains", self.sum(), left)
        if self.sees("]"):
            raise ExpressionError("the list after 'in' is empty", self.token.at)
        result: int | None = None
        while True:
            item_token = self.token
            link = self.apply(item_token, "eq", left, self.sum())
            result = link if result is None else self.apply(token, "or", result, link)
            if not self.take(","):
                break
            if self.sees("]"):
                break
        self.expect("]", "the list")
        return result

    def sum(self) -> int:
        return self.climb(self.signed, _ARITHMETIC)

    def signed(self) -> int:
        signs = []
        while self.sees("-", "+"):
            signs.append(self.next())
        if not signs:
            return self.power()
        node = self.power()
        for token in reversed(signs):
            if token.text == "-":
                node = self.negated(token, node)
        return node

    def negated(self, token: Token, node: int) -> int:
        """A minus before a literal makes a negative literal; else it is an operation."""
        found = self.graph[node]
        if found.op == "const" and found.type.kind is Kind.NUMBER:
            return self.graph.number(-float(found.data), found.type)
        return self.apply(token, "neg", node)

    def power(self) -> int:
        base = self.postfix()
        if not self.sees("**"):
            return base
        token = self.next()
        self.depth += 1
        if self.depth > DEPTH_LIMIT:
            raise ExpressionError(f"the expression is nested deeper than {DEPTH_LIMIT} levels", token.at)
        exponent = self.signed()
        self.depth -= 1
        return self.apply(token, "pow", base, exponent)

    # -- atoms ------------------------------------------------------------------------------------

    def postfix(self) -> int:
        token = self.next()
        if token.kind == "number":
            return self.quantity(token)
        if token.kind == "string":
            return self.graph.string(token.text[1:-1])
        if token.kind == "op" and token.text == "(":
            node = self.ternary()
            self.expect(")", "the expression in parentheses")
            return node
        if token.kind == "op" and token.text == "[":
            raise ExpressionError("a list may only stand after 'in'", token.at)
        if token.kind == "name" and token.text not in KEYWORDS:
            return self.name(token)
        if token.kind == "name" and token.text in ("true", "false", "True", "False"):
            return self.graph.boolean(token.text.lower() == "true")
        self.at -= 1
        raise ExpressionError(f"expected a value, but found {self.found()}", token.at)

    def name(self, token: Token) -> int:
        if self.sees("("):
            return self.call(token)
        try:
            if self.take("."):
                column = self.next()
                if column.kind != "name":
                    raise ExpressionError("expected a column name after '.'", column.at)
                return self.scope.column(token.text, column.text)
            if self.sees("["):
                return self.cell(token)
            if not self.scope.declares(token.text):
                unit = self.unit_at(self.at - 1)
                if unit is not None:
                    return self.graph.number(to_base("1", unit), Type.of_unit(unit))
            return self.scope.value(token.text)
        except ExpressionError as error:
            error.offset = error.offset or token.at
            raise

    def call(self, token: Token) -> int:
        if token.text not in FUNCTIONS:
            raise ExpressionError(
                f"unknown function {token.text!r}{nearest(token.text, FUNCTIONS)}", token.at
            )
        self.next()
        args = [] if self.sees(")") else self.arguments()
        self.expect(")", f"the arguments of {token.text}")
        least, most = FUNCTIONS[token.text]
        if not least <= len(args) <= most:
            wanted = str(least) if least == most else f"at least {least}"
            raise ExpressionError(f"{token.text} takes {wanted} argument(s), but got {len(args)}", token.at)
        if token.text in ("min", "max"):
            node = args[0]
            for arg in args[1:]:
                node = self.apply(token, token.text, node, arg)
            return node
        return self.apply(token, token.text, *args)

    def arguments(self) -> list[int]:
        args = [self.ternary()]
        while self.take(","):
            args.append(self.ternary())
        return args

    def cell(self, token: Token) -> int:
        """``table[key, ...]``; a quoted key must be one of the table's."""
        table = self.scope.table(token.text)
        self.next()
        starts = [self.token]
        keys = [self.ternary()]
        while self.take(","):
            starts.append(self.token)
            keys.append(self.ternary())
        self.expect("]", "the keys of the table")
        if len(keys) != len(table.axes):
            wanted = ", ".join(table.keys)
            raise ExpressionError(
                f"table {table.name!r} is read as {table.name}[{wanted}], but got {len(keys)} key(s)",
                token.at,
            )
        for start, key, axis in zip(starts, keys, table.axes, strict=True):
            node = self.graph[key]
            if node.op == "const" and isinstance(node.data, str) and node.data not in axis:
                known = nearest(node.data, [str(value) for value in axis])
                raise ExpressionError(f"table {table.name!r} has no key {node.data!r}{known}", start.at)
        return self.graph.cell(table.name, "", keys)

    # -- quantities -------------------------------------------------------------------------------

    def quantity(self, token: Token) -> int:
        unit = (
            self.unit_at(self.at)
            if self.token.kind == "name" and not self.scope.declares(self.token.text)
            else None
        )
        value = float(token.text)
        if token.text.isdigit() and (value > INTEGER_LIMIT or int(token.text) > INTEGER_LIMIT):
            raise ExpressionError(
                f"the integer {_shortened(token.text)} is past 2^53 and would lose digits; "
                "write it with a point",
                token.at,
            )
        if value == float("inf"):
            raise ExpressionError(f"the number {_shortened(token.text)} is too large", token.at)
        if unit is None:
            return self.graph.number(value)
        try:
            return self.graph.number(to_base(token.text, unit), Type.of_unit(unit))
        except UnitError as error:
            raise ExpressionError(str(error), token.at) from None

    def unit_at(self, index: int) -> Unit | None:
        """The longest unit written without spaces from token ``index`` on; consumes its tokens.

        A name before ``(`` is a function, never a unit.
        """
        first = self.tokens[index]
        best: tuple[int, Unit] | None = None
        stop = index
        while True:
            token = self.tokens[stop]
            if token.kind != "name" or token.text in KEYWORDS or self.tokens[stop + 1].text == "(":
                break
            if stop > index and self.scope.declares(token.text):
                break
            try:
                best = (stop + 1, parse_unit(self.text[first.at : token.stop]))
            except UnitError:
                break
            link = self.tokens[stop + 1]
            if link.text not in ("/", "*") or link.at != token.stop or self.tokens[stop + 2].at != link.stop:
                break
            stop += 2
        if best is None:
            return None
        self.at = best[0]
        return best[1]


def _shortened(digits: str) -> str:
    return digits if len(digits) <= 40 else f"{digits[:20]}... ({len(digits):,} characters)"
