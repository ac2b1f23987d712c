"""Nodes of the graph as LLVM instructions, each in the outermost loop that determines it.

Every instruction is the IEEE operation that the scalar reference does, without permission to contract or reorder, so
results agree to the bit. A value that some design lacks has a second operand, the reason (0: it is defined); ranges
say which values need none.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dse.evaluation.bulk import MISSING, NAN_READ, Array
from dse.evaluation.compiled.facts import Declined, Facts
from dse.expressions import Kind, Node

__all__ = ["Coder", "Operand", "double"]

_NAN = "0x7FF8000000000000"
_KEYS = 64  # numbers on a table's axis that are compared one by one
_OPERATIONS = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_FUNCTIONS = {"abs": "fabs", "floor": "floor", "ceil": "ceil", "sqrt": "sqrt"}
_COSTS = {"div": 3.0, "sqrt": 4.0, "alias": 0.0, "where": 1.5, "floor": 1.5, "ceil": 1.5}
_LOAD = 2.0  # operations that reading a table may cost
_NEVER = frozenset({"cell", "position", "contains", "exp", "log", "log2", "pow"})


class Operand(NamedTuple):
    """A value in the code, and (i8) why it is undefined; None: it is always defined."""

    text: str
    undefined: str | None = None


def double(value: float) -> str:
    """A number as LLVM reads it, exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


def address(array: Array) -> str:
    """The memory of an array, which must outlive the code."""
    return f"inttoptr (i64 {array.ctypes.data} to ptr)"


class Coder:
    """Writes instructions into ``lines``, one list a level: 0 outside all loops, then the loops from the outermost.

    Args:
        order: the dimensions of the loops, as numbers among those of ``facts``, from the outermost.
        arrays: what the code reads; the caller keeps it as long as the code.
    """

    def __init__(self, facts: Facts, order: Sequence[int], arrays: list[Array]) -> None:
        self.facts = facts
        self.graph = facts.graph
        self.order = list(order)
        self.arrays = arrays
        self.lines: list[list[str]] = [[] for _ in range(len(order) + 1)]
        self._level = {d: at + 1 for at, d in enumerate(order)}
        self._values: dict[int, Operand] = {}
        self._indices: dict[int, str] = {}
        self._count = 0

    def level(self, mask: int) -> int:
        """The outermost level at which all dimensions of a support are known."""
        return max((level for d, level in self._level.items() if mask >> d & 1), default=0)

    def name(self) -> str:
        """A number for a value or block that no other has."""
        self._count += 1
        return str(self._count)

    def put(self, level: int, instruction: str) -> str:
        """Compute something at a level; the name of the result."""
        name = f"%v{self.name()}"
        self.lines[level].append(f"{name} = {instruction}")
        return name

    def value(self, n: int) -> Operand:
        """The operand of a node; writes what is missing to compute it."""
        pending, seen = [n], set()  # no recursion: an expression may be thousands of operations deep
        while pending:
            top = pending[-1]
            found = self._values.get(top)
            if found is None and top not in seen:
                found = self._constant(top) or self._table(top)
                seen.add(top)
                if found is None:
                    pending += self.graph[top].args
                    continue
            self._values[top] = found or self._computed(top)
            pending.pop()
        return self._values[n]

    # -- tables -----------------------------------------------------------------------------------

    def _constant(self, n: int) -> Operand | None:
        if self.facts.supports[n]:
            return None
        values, undefined = self.facts.tables[n]
        reason = 0 if undefined is None else int(undefined.reshape(-1)[0])
        return Operand(_literal(values.reshape(-1)[0]), str(reason) if reason else None)

    def _table(self, n: int) -> Operand | None:
        """A read of the node's table, if there is one and computing it costs more."""
        if n not in self.facts.tables:
            return None
        level = self.level(self.facts.supports[n])
        if self._cost(n, level, _LOAD) <= _LOAD:
            return None
        values, undefined = self.facts.tables[n]
        reasons = None
        if undefined is not None and undefined.any():
            reasons = self.load(self._laid_out(undefined, n), self.facts.supports[n])
        return Operand(self.load(self._laid_out(values, n), self.facts.supports[n]), reasons)

    def _laid_out(self, values: Array, n: int) -> Array:
        """A table with the axes of the node's dimensions alone, in the order of the loops."""
        mask = self.facts.supports[n]
        dims = [d for d in self.order if mask >> d & 1]
        shape = [size if mask >> d & 1 else 1 for d, size in enumerate(self.facts.sizes)]
        own = [d for d in range(len(shape)) if mask >> d & 1]
        compact = np.broadcast_to(values, shape).reshape([shape[d] for d in own])
        return np.ascontiguousarray(compact.transpose([own.index(d) for d in dims])).reshape(-1)

    def _cost(self, n: int, level: int, limit: float) -> float:
        """Operations to compute a node at its own level, as far as they matter: up to ``limit`` and a bit."""
        if n in self._values or self.level(self.facts.supports[n]) < level:
            return 0.0
        node = self.graph[n]
        if node.op in _NEVER:
            return limit + 1.0
        cost = 1.0 if node.op == "dimension" else _COSTS.get(node.op, 1.0)
        for arg in node.args:
            if cost > limit:
                break
            cost += self._cost(arg, level, limit)
        return cost

    def load(self, array: Array, mask: int) -> str:
        """The element of an array that is laid out over the dimensions of ``mask``."""
        return self._load(array, self.index(mask), self.level(mask))

    def _load(self, array: Array, index: str, level: int) -> str:
        self.arrays.append(array)
        kind = {"f": "double", "i": "i64", "u": "i8", "b": "i8"}[array.dtype.kind]
        where = self.put(level, f"getelementptr {kind}, ptr {address(array)}, i64 {index}")
        loaded = self.put(level, f"load {kind}, ptr {where}, align {array.itemsize}, !invariant.load !0")
        return self.put(level, f"icmp ne i8 {loaded}, 0") if array.dtype.kind == "b" else loaded

    def index(self, mask: int) -> str:
        """The place in a table over the dimensions of ``mask``, the outermost slowest."""
        found = self._indices.get(mask)
        if found is None:
            level = self.level(mask)
            last = self.order[level - 1]
            rest = mask & ~(1 << last)
            found = f"%i{level}"
            if rest:
                before = self.index(rest)
                start = self.put(self.level(rest), f"mul i64 {before}, {self.facts.sizes[last]}")
                found = self.put(level, f"add i64 {start}, %i{level}")
            self._indices[mask] = found
        return found

    # -- operations -------------------------------------------------------------------------------

    def _computed(self, n: int) -> Operand:
        node, mask = self.graph[n], self.facts.supports[n]
        level = self.level(mask)
        if node.op == "dimension":
            return Operand(self.load(self.facts.dimension(node.data), mask))
        args = [self._values[a] for a in node.args]
        if node.op == "alias":
            return args[0]
        if node.op == "position":
            return self._position(level, node, args[0])
        if node.op == "cell":
            return self._cell(level, node, args)
        if node.op == "where":
            return self._where(level, node, *args)
        if node.op in ("and", "or"):
            return self._and(level, node.op == "or", *args)
        if node.op == "not":
            return Operand(self.put(level, f"xor i1 {args[0].text}, true"), args[0].undefined)
        if node.op in _COMPARISONS:
            return self._comparison(level, node, args)
        undefined = self._joined(level, *(arg.undefined for arg in args))
        return Operand(self._arithmetic(level, node, [arg.text for arg in args]), undefined)

    def _arithmetic(self, level: int, node: Node, args: list[str]) -> str:
        if node.op in _OPERATIONS:
            return self.put(level, f"{_OPERATIONS[node.op]} double {args[0]}, {args[1]}")
        if node.op == "neg":
            return self.put(level, f"fneg double {args[0]}")
        if node.op in _FUNCTIONS:
            return self.put(level, f"call double @llvm.{_FUNCTIONS[node.op]}.f64(double {args[0]})")
        if node.op not in ("min", "max"):
            raise Declined(f"{node.op} is not compiled")
        a, b = args
        # On equality the first argument; the second only where it is beyond it, or is NaN.
        beyond = self.put(level, f"fcmp {'olt' if node.op == 'min' else 'ogt'} double {b}, {a}")
        if self.facts.ranges[node.args[1]].nan:
            # and b NaN: not (a <= b or a is NaN)
            ordered = self.put(level, f"fcmp ord double {a}, {a}")
            nan = self.put(level, f"fcmp uno double {b}, {b}")
            beyond = self.put(level, f"or i1 {beyond}, {self.put(level, f'and i1 {ordered}, {nan}')}")
        return self.put(level, f"select i1 {beyond}, double {b}, double {a}")

    def _joined(self, level: int, *reasons: str | None) -> str | None:
        """The reason of an operation: that of the first argument that has one."""
        found: str | None = None
        for reason in reasons:
            if found is None:
                found = reason
            elif reason is not None:
                first = self.put(level, f"icmp ne i8 {found}, 0")
                found = self.put(level, f"select i1 {first}, i8 {found}, i8 {reason}")
        return found

    def _comparison(self, level: int, node: Node, args: list[Operand]) -> Operand:
        (a, bad_a), (b, bad_b) = args
        if self.graph[node.args[0]].type.kind is not Kind.NUMBER:
            kind = _type(self.graph[node.args[0]])
            found = self.put(level, f"icmp {node.op} {kind} {a}, {b}")
            return Operand(found, self._joined(level, bad_a, bad_b))
        reasons = []
        for operand, arg in zip(args, node.args, strict=True):
            own = operand.undefined
            if self.facts.ranges[arg].nan:
                nan = self.put(level, f"fcmp uno double {operand.text}, {operand.text}")
                own = self._joined(level, own, self.put(level, f"select i1 {nan}, i8 {NAN_READ}, i8 0"))
            reasons.append(own)
        found = self.put(level, f"fcmp {_COMPARISONS[node.op]} double {a}, {b}")
        return Operand(found, self._joined(level, *reasons))

    def _and(self, level: int, deciding: bool, left: Operand, right: Operand) -> Operand:
        """``and``, or ``or`` when true is ``deciding``: a deciding first operand hides what the second lacks."""
        found = self.put(level, f"{'or' if deciding else 'and'} i1 {left.text}, {right.text}")
        second = right.undefined
        if second is not None:
            pair = ("0", second) if deciding else (second, "0")
            second = self.put(level, f"select i1 {left.text}, i8 {pair[0]}, i8 {pair[1]}")
        return Operand(found, self._joined(level, left.undefined, second))

    def _where(self, level: int, node: Node, condition: Operand, yes: Operand, no: Operand) -> Operand:
        kind = _type(node)
        found = self.put(level, f"select i1 {condition.text}, {kind} {yes.text}, {kind} {no.text}")
        undefined: str | None = None
        if yes.undefined is not None or no.undefined is not None:
            undefined = self.put(
                level, f"select i1 {condition.text}, i8 {yes.undefined or 0}, i8 {no.undefined or 0}"
            )
        if condition.undefined is not None:
            own = condition.undefined
            bad = self.put(level, f"icmp ne i8 {own}, 0")
            if node.type.kind is Kind.NUMBER:
                # A number chosen by a condition that read NaN is NaN, like any other result of NaN.
                found = self.put(level, f"select i1 {bad}, double {_NAN}, double {found}")
                read = self.put(level, f"icmp eq i8 {own}, {NAN_READ}")
                own = self.put(level, f"select i1 {read}, i8 0, i8 {own}")
            undefined = self.put(level, f"select i1 {bad}, i8 {own}, i8 {undefined or 0}")
        return Operand(found, undefined)

    # -- tables with computed keys ------------------------------------------------------------------

    def _position(self, level: int, node: Node, key: Operand) -> Operand:
        table, axis = node.data
        positions: dict[Any, int] = self.graph.tables[table].positions[axis]
        kind = self.graph[node.args[0]].type.kind
        if kind is Kind.STRING:
            codes = self.facts.evaluator.codes
            by_code = np.full(len(codes) + 1, -1, dtype=np.int64)
            for text, code in codes.items():
                by_code[code + 1] = positions.get(text, -1)
            place = self.put(level, f"add i64 {key.text}, 1")  # a missing text has the code -1
            found = self._load(by_code, place, level)
        elif kind is Kind.BOOL:
            true, false = positions.get(True, -1), positions.get(False, -1)
            found = self.put(level, f"select i1 {key.text}, i64 {true}, i64 {false}")
        else:
            if len(positions) > _KEYS:
                raise Declined(
                    f"{table} has more than {_KEYS} numbers as keys, and is read at a computed one"
                )
            found = "-1"
            for number, at in positions.items():
                same = self.put(level, f"fcmp oeq double {key.text}, {double(float(number))}")
                found = self.put(level, f"select i1 {same}, i64 {at}, i64 {found}")
        absent = self.put(level, f"icmp slt i64 {found}, 0")
        reason = self.put(level, f"select i1 {absent}, i8 {MISSING}, i8 0")
        return Operand(found, self._joined(level, key.undefined, reason))

    def _cell(self, level: int, node: Node, places: list[Operand]) -> Operand:
        table = self.graph.tables[node.data[0]]
        cells = table.columns[node.data[1]].cells
        index = "0"
        for place, size in zip(places, table.shape, strict=True):
            known = self.put(level, f"call i64 @llvm.smax.i64(i64 {place.text}, i64 0)")
            index = self.put(level, f"mul i64 {index}, {size}")
            index = self.put(level, f"add i64 {index}, {known}")
        blank: dict[Kind, tuple[Any, type]] = {
            Kind.NUMBER: (np.nan, np.float64),
            Kind.BOOL: (False, np.bool_),
        }
        empty, dtype = blank.get(node.type.kind, (-1, np.int64))
        codes = self.facts.evaluator.codes
        values = [empty if c is None else codes[c] if isinstance(c, str) else c for c in cells]
        found = self._load(np.array(values, dtype=dtype), index, level)
        reasons = [place.undefined for place in places]
        if any(c is None for c in cells):
            missing = np.array([MISSING if c is None else 0 for c in cells], dtype=np.uint8)
            reasons.append(self._load(missing, index, level))
        return Operand(found, self._joined(level, *reasons))


_COMPARISONS = {"lt": "olt", "le": "ole", "eq": "oeq", "ne": "une"}


def _type(node: Node) -> str:
    if node.op == "position":
        return "i64"
    return {Kind.NUMBER: "double", Kind.BOOL: "i1"}.get(node.type.kind, "i64")


def _literal(value: Any) -> str:
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    return double(float(value)) if isinstance(value, np.floating) else str(int(value))
