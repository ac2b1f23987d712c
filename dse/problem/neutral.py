"""Spaces from neutral JSON: parameters with restrictions in Python's syntax, or a cost model of formulas and tables.

Two layouts are read, told apart by their keys.

*Parameters*: ``parameters`` (name -> values) and ``restrictions`` (conditions, all of which must hold). Every
restriction becomes a rule. There is no cost, so every legal design costs the same.

*Dimensions*: ``dims`` (name -> values), ``tables`` (``axes`` and nested ``values``, matched by position),
``formulas`` (in order), ``constraints`` and ``objectives`` (minimized). A divisibility or logic condition becomes a
rule and what it reads lets; a bound on another formula becomes a constraint.
"""

from __future__ import annotations

import ast
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dse.errors import Diagnostic, ExpressionError, Location, SpaceError, nearest
from dse.problem.parts import shown
from dse.problem.python_syntax import FLAG, NUMBER, TEXT, Scope, names_in, parse_python, rewrite
from dse.space.names import name_problem

__all__ = ["read_neutral", "to_space"]

_LAYOUTS = {"parameters": "restrictions", "dims": "objectives"}
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_UNBRACKETED = str.maketrans({"[": "_", "]": None})
_SIGNS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def read_neutral(text: str, file: str = "<json>") -> dict[str, Any]:
    """The content of a space file, from the text of a neutral JSON file.

    Raises:
        SpaceError: the text is no JSON, or of no known layout; each finding with its place.
    """
    try:
        data = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = Location(file, error.lineno, error.colno)
        raise SpaceError([Diagnostic(where, "", f"the text is not JSON: {error.msg}")]) from None
    except (ValueError, RecursionError) as error:
        message = "the nesting is too deep" if isinstance(error, RecursionError) else str(error)
        raise SpaceError([Diagnostic(Location(file), "", f"the text is not JSON: {message}")]) from None

    def locate(source: str) -> Location:
        at = text.find(json.dumps(source))
        at = text.find(json.dumps(source, ensure_ascii=False)) if at < 0 else at
        line = text.rfind("\n", 0, at) + 1
        return Location(file, text.count("\n", 0, at) + 1, at - line + 2) if at >= 0 else Location(file)

    return to_space(data, locate)


def to_space(data: object, locate: Callable[[str], Location] | None = None) -> dict[str, Any]:
    """The content of a space file, for :func:`dse.load`, from the content of a neutral JSON file.

    Args:
        data: the mapping that the JSON holds.
        locate: where a text of the source stands.

    Raises:
        SpaceError: everything that keeps it from being a space.
    """
    importing = _Importing(locate or (lambda _: Location()))
    space = importing.space(data)
    if importing.found:
        raise SpaceError(importing.found)
    return space


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(n for n in names if names.count(n) > 1)!r} stands twice")
    return data


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


class _Importing:
    """One import: what was found wrong, and the names so far."""

    def __init__(self, locate: Callable[[str], Location]) -> None:
        self.locate = locate
        self.found: list[Diagnostic] = []
        self.scope = Scope()
        self.taken: set[str] = set()

    def report(self, key: str, message: str, source: str | None = None, offset: int = 0) -> None:
        where = self.locate(source).shifted(offset) if source is not None else self.locate("")
        self.found.append(Diagnostic(where if source is not None else Location(where.file), key, message))

    # -- the layouts ------------------------------------------------------------------------------

    def space(self, data: object) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            self.report("", f"found {_kind(data)}, expected an object")
            return {}
        axes = next((key for key in _LAYOUTS if key in data), None)
        if axes is None:
            hint = nearest(next(iter(map(str, data)), ""), _LAYOUTS)
            self.report("", f"found neither 'parameters' nor 'dims', one of which has the values{hint}")
            return {}
        head = {"dse": 1, "name": self.text(data, "name") or "imported"}
        if "source" in data:
            head["about"] = f"Source: {self.text(data, 'source')}"
        dimensions = self.dimensions(data, axes)
        body = self.parameters(data) if axes == "parameters" else self.model(data)
        return {**head, **body.pop("before", {}), "dimensions": dimensions, **body}

    def parameters(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The rest of a space of parameters and restrictions."""
        texts = self.texts(data, "restrictions")
        trees = {at: self.tree(f"restrictions[{at}]", text) for at, text in enumerate(texts)}
        inputs = {}
        for name in sorted({name for tree in trees.values() if tree for name in names_in(tree)}):
            value = self.mapping(data, "constants").get(name)
            if name not in self.scope.kinds and isinstance(value, bool | int | float | str):
                inputs[self.name(name)] = value
                self.scope.kinds[name] = _kind_of(value)
        rules = {
            f"restriction_{at + 1}": rule
            for at, text in enumerate(texts)
            if (rule := self.rule(f"restrictions[{at}]", text, trees[at]))
        }
        return {
            "before": {"inputs": inputs} if inputs else {},
            **({"rules": rules} if rules else {}),
            "metrics": {self.name("cost"): {"expr": 1, "unit": "1", "about": "the source has no costs"}},
            "objectives": {self.scope.renamed.get("cost", "cost"): "minimize"},
        }

    def model(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The rest of a space of dimensions, tables, formulas, constraints and objectives."""
        tables = {self.name(n): t for n, t in self.tables(data) if t}
        formulas: dict[str, ast.expr] = {}
        texts: dict[str, str] = {}
        for name, source in self.mapping(data, "formulas").items():
            key = f"formulas.{name}"
            tree = self.tree(key, str(source))
            written = self.written(key, str(source), tree)
            if tree is not None and written is not None:
                if name in self.scope.kinds or name in self.scope.tables:
                    self.report(key, f"the name {name!r} stands for something else already")
                formulas[name], texts[name] = tree, written[0]
                self.scope.kinds[name] = written[1] if written[1] in (NUMBER, TEXT) else FLAG
                self.name(name)
        reads = _closures(formulas)
        conditions = []
        for at, source in enumerate(self.texts(data, "constraints")):
            key = f"constraints[{at}]"
            conditions.append((key, source, self.tree(key, source)))
        logic = {n for _, _, tree in conditions if tree and not _ordered(tree) for n in names_in(tree)}
        lets = {n for name in logic for n in (name, *reads.get(name, ())) if n in formulas}
        bounds = [
            (key, source, tree)
            for key, source, tree in conditions
            if tree and _ordered(tree) and any(n in formulas and n not in lets for n in names_in(tree))
        ]
        shown_names = {side for _, _, tree in bounds if (side := _bounded(tree))}
        objectives = self.texts(data, "objectives")
        shown_names |= set(objectives)
        metrics = {n for n in formulas if n in shown_names - lets and self.scope.kinds[n] == NUMBER}
        metrics |= {n for n in formulas if reads[n] & metrics}
        rename = self.scope.renamed
        outputs = {rename.get(n, n): {"expr": texts[n], "unit": "1"} for n in formulas if n in metrics}
        goals = {}
        for at, source in enumerate(objectives):
            name = rename.get(source, source)
            if name not in outputs:
                key = f"objectives[{at}]"
                written = self.written(key, source, self.tree(key, source))
                name = self.name(f"{source}_objective" if source.isidentifier() else f"objective_{at + 1}")
                outputs[name] = {"expr": written[0] if written else "0", "unit": "1"}
            goals[name] = "minimize"
        if not goals:
            self.report("objectives", "found no objective, expected at least one expression")
        limits: dict[str, Any] = {}
        for key, source, tree in bounds:
            self.bound(key, source, tree, outputs, limits)
        rules = {
            f"condition_{at + 1}": rule
            for at, (key, source, tree) in enumerate(conditions)
            if (key, source, tree) not in bounds and (rule := self.rule(key, source, tree))
        }
        limits = {
            name: own[0] if isinstance(own, list) and len(own) == 1 else own for name, own in limits.items()
        }
        parts = {
            "rules": rules,
            "lets": {rename.get(n, n): texts[n] for n in formulas if n not in metrics},
            "metrics": outputs,
            "objectives": goals,
            "constraints": limits,
        }
        return {
            "before": {"tables": tables} if tables else {},
            **{name: part for name, part in parts.items() if part},
        }

    def bound(
        self, key: str, source: str, tree: ast.expr, metrics: Mapping[str, Any], limits: dict[str, Any]
    ) -> None:
        """A bound as ``metric: <= expression``, or as a condition of its own."""
        metric = self.scope.renamed.get(name := _bounded(tree) or "", name)
        if metric not in metrics:
            written = self.written(key, source, tree, condition=True)
            if written is not None:
                limits[key.translate(_UNBRACKETED)] = {"check": written[0]}
            return
        assert isinstance(tree, ast.Compare)
        written = self.written(key, source, tree.comparators[0])
        if written is not None:
            text = f"{_SIGNS[type(tree.ops[0])]} {written[0]}"
            limits[metric] = [*limits[metric], text] if metric in limits else [text]

    # -- parts ------------------------------------------------------------------------------------

    def dimensions(self, data: Mapping[str, Any], key: str) -> dict[str, Any]:
        """The dimensions; a parameter whose values are of several kinds holds their texts."""
        dimensions: dict[str, Any] = {}
        found = self.mapping(data, key)
        if not found and not self.found:
            self.report(key, "found nothing, expected names with their values")
        for name, values in found.items():
            own = f"{key}.{name}"
            if not isinstance(values, list) or not values:
                what = "an empty list" if values == [] else _kind(values)
                self.report(own, f"found {what}, expected a list of values")
                continue
            odd = [v for v in values if not isinstance(v, bool | int | float | str)]
            if odd or any(isinstance(v, float) and not math.isfinite(v) for v in values):
                self.report(own, f"found {_kind(odd[0]) if odd else 'an infinity'}, expected values")
                continue
            kinds = {_kind_of(value) for value in values}
            if len(kinds) > 1:
                # Python would compare them with each other by value, which values held as texts cannot do.
                several = " and ".join(sorted({_kind(value) for value in values}))
                self.report(own, f"found {several}, expected values of one kind")
                continue
            kind = kinds.pop() if len(kinds) == 1 else TEXT
            written = values
            if kind == TEXT:
                written = [value if isinstance(value, str) else repr(value) for value in values]
                labels = ((type(value), value) for value in values)
                self.scope.labels[name] = dict(zip(labels, written, strict=True))
            self.scope.kinds[name] = kind
            dimensions[self.name(name)] = written
        return dimensions

    def tables(self, data: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """The tables, keyed by the texts of the dimensions' values."""
        dims = self.mapping(data, "dims")
        for name, table in self.mapping(data, "tables").items():
            key = f"tables.{name}"
            axes = table.get("axes") if isinstance(table, Mapping) else None
            if not isinstance(axes, list) or not axes or not all(isinstance(a, str) for a in axes):
                self.report(key, "found no list 'axes', expected the names of dimensions")
            elif unknown := [axis for axis in axes if not isinstance(dims.get(axis), list)]:
                self.report(f"{key}.axes", f"found {unknown[0]!r}, no dimension{nearest(unknown[0], dims)}")
            else:
                labels = [[shown(_value(v)) for v in dims[axis]] for axis in axes]
                rows = self.rows(key, table.get("values"), labels)
                keys = [self.scope.renamed.get(axis, axis) for axis in axes]
                self.scope.tables[name] = axes
                yield name, {"keys": keys, "unit": "1", "rows": rows}

    def rows(self, key: str, values: object, labels: list[list[str]]) -> Any:
        if not labels:
            if isinstance(values, bool) or not isinstance(values, int | float) or not math.isfinite(values):
                self.report(key, f"found {_kind(values)}, expected a number")
            return values
        if not isinstance(values, list) or len(values) != len(labels[0]):
            size = f"{len(values)} values" if isinstance(values, list) else _kind(values)
            self.report(
                key, f"found {size}, expected one for each of the {len(labels[0])} values of its axis"
            )
            return {}
        if len(set(labels[0])) < len(labels[0]):
            self.report(key, "the values of its axis are the same in 12 digits, and cannot be its keys")
        return {
            label: self.rows(key, below, labels[1:]) for label, below in zip(labels[0], values, strict=True)
        }

    def rule(self, key: str, source: str, tree: ast.expr | None) -> dict[str, str] | None:
        written = self.written(key, source, tree, condition=True)
        because = source.strip().replace("{", "{{").replace("}", "}}")
        return None if written is None else {"check": written[0], "because": f"must hold: {because}"}

    # -- pieces -----------------------------------------------------------------------------------

    def name(self, wanted: str) -> str:
        """A name that expressions can use and nothing else has; a changed one is remembered."""
        name = wanted
        while name in self.taken or name_problem(name) or name == "about":
            name += "_"
            if not name.isidentifier():
                self.report(wanted, f"found the name {wanted!r}, expected letters, digits and underscores")
                break
        self.taken.add(name)
        if name != wanted:
            self.scope.renamed[wanted] = name
        return name

    def tree(self, key: str, source: str) -> ast.expr | None:
        try:
            return parse_python(source)
        except ExpressionError as error:
            self.report(key, error.message, source, error.offset)
            return None

    def written(
        self, key: str, source: str, tree: ast.expr | None, *, condition: bool = False
    ) -> tuple[str, str] | None:
        try:
            return None if tree is None else rewrite(tree, self.scope, condition=condition)
        except ExpressionError as error:
            self.report(key, error.message, source, error.offset)
            return None

    def text(self, data: Mapping[str, Any], key: str) -> str:
        found = data.get(key, "")
        if not isinstance(found, str):
            self.report(key, f"found {_kind(found)}, expected a text")
            return ""
        return " ".join(found.split())

    def texts(self, data: Mapping[str, Any], key: str) -> list[str]:
        found = data.get(key, [])
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            self.report(key, "expected a list of texts")
            return []
        return found

    def mapping(self, data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
        found = data.get(key, {})
        if not isinstance(found, Mapping):
            self.report(key, f"found {_kind(found)}, expected an object")
            return {}
        return found


def _closures(formulas: Mapping[str, ast.expr]) -> dict[str, set[str]]:
    """All formulas that each formula reads, directly or not; formulas stand in order."""
    reads: dict[str, set[str]] = {}
    for name, tree in formulas.items():
        direct = [other for other in names_in(tree) if other in reads]
        reads[name] = set(direct).union(*(reads[other] for other in direct))
    return reads


def _ordered(tree: ast.expr) -> bool:
    """Whether a condition is one comparison of sizes."""
    return isinstance(tree, ast.Compare) and len(tree.ops) == 1 and isinstance(tree.ops[0], _ORDERS)


def _bounded(tree: ast.expr) -> str | None:
    """The name on the left of a comparison."""
    return tree.left.id if isinstance(tree, ast.Compare) and isinstance(tree.left, ast.Name) else None


def _kind_of(value: object) -> str:
    return FLAG if isinstance(value, bool) else TEXT if isinstance(value, str) else NUMBER


def _value(value: Any) -> Any:
    return float(value) if type(value) is int else value


def _kind(value: object) -> str:
    names: Iterable[tuple[type | tuple[type, ...], str]] = (
        (bool, "true or false"), ((int, float), "a number"), (str, "a text"), (list, "a list"), (Mapping, "an object"),
    )  # fmt: skip
    return next((name for kind, name in names if isinstance(value, kind)), "nothing")
