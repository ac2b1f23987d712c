"""Turn pydantic's findings into located diagnostics: what was found, what was expected, the nearest spelling."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from dse.errors import Diagnostic, nearest
from dse.space.nodes import Mapping, Node, Path, Scalar, describe, find, locate, locate_key, show_path
from dse.space.schema import (
    TAGS,
    ConstraintDecl,
    DimensionDecl,
    InputDecl,
    KeyedTableDecl,
    MeasureDecl,
    MetricDecl,
    RowTableDecl,
    RuleDecl,
    SpaceDecl,
    keys_of_model,
)

__all__ = ["explain"]

_MODELS: dict[str, type[BaseModel]] = {
    "inputs": InputDecl,
    "dimensions": DimensionDecl,
    "rules": RuleDecl,
    "metrics": MetricDecl,
    "constraints": ConstraintDecl,
}
_EXPECTED = {
    "string_type": "a text",
    "bool_type": "true or false",
    "int_type": "an integer",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "string_too_short": "a text that is not empty",
}
_SHORT_FORMS = {
    "inputs": "a value, or a mapping with the key 'default'",
    "dimensions": "a list of choices, or a mapping with one of table, choices, range",
    "rules": "a mapping with the keys 'check' and 'because'",
    "metrics": "a mapping with the keys 'expr' and 'unit'",
    "tables": "a mapping with 'columns' (or 'keys' and 'unit') and 'rows' or 'file'",
    "teams": "a mapping from dimensions to values, or a text such as 'a & b'",
    "measure": "'package.module:function', or a mapping with the key 'command'",
}


def explain(error: ValidationError, root: Mapping) -> list[Diagnostic]:
    """One diagnostic for each mistake; a misspelt key is not reported as missing as well."""
    findings: list[Any] = list(error.errors(include_url=False, include_input=False))
    misspelt = {_meant(finding) for finding in findings if finding["type"] == "extra_forbidden"}
    missing = {finding["loc"]: finding for finding in findings if finding["type"] == "missing"}
    owners = {finding["loc"][:-1] for finding in findings}
    return [
        _explain(f, root)
        for f in findings
        if not (f["loc"] in missing and f["loc"] in misspelt)
        and not (f["type"] == "too_short" and f["loc"] in owners)  # its entries are there, but wrong
    ]


def _meant(finding: Any) -> tuple[str | int, ...]:
    """The place of the key that an unknown key was probably meant to be."""
    *owner, key = finding["loc"]
    close = nearest(str(key), _known_keys(finding["loc"]))
    return (*owner, close.split("'")[1] if "did you mean" in close else "")


def _known_keys(loc: tuple[str | int, ...]) -> list[str]:
    model = _model_at(tuple(step for step in loc if step not in TAGS)[:-1], keyed="<keyed>" in loc)
    return sorted(keys_of_model(model)) if model else []


def _explain(finding: Any, root: Mapping) -> Diagnostic:
    loc, kind = finding["loc"], str(finding["type"])
    path: Path = tuple(step for step in loc if step not in TAGS)
    if path[:1] == ("teams",):
        path = tuple(step for step in path if step != "restrict")
    if kind == "extra_forbidden":
        message = f"found the unknown key {path[-1]!r}, expected a known one{nearest(str(path[-1]), _known_keys(loc))}"
        return Diagnostic(locate_key(root, path), show_path(path), message)
    if kind == "missing":
        model = _model_at(path[:-1], keyed="<keyed>" in loc)
        about = model.model_fields[str(path[-1])].description if model else ""
        where = locate_key(root, path[:-1]) if len(path) > 1 else root.location
        return Diagnostic(where, show_path(path[:-1]), f"found no key {path[-1]!r}, expected it: {about}")
    node = find(root, path)
    message = f"found {describe(node)}, expected {_expected(finding, path, node)}"
    return Diagnostic(locate(root, path), show_path(path), message)


def _expected(finding: Any, path: Path, node: Node | None) -> str:
    kind, context = str(finding["type"]), finding.get("ctx", {})
    if kind == "value_error":
        return str(context["error"])
    if kind == "literal_error":
        hint = nearest(str(node.value), _literals(context)) if isinstance(node, Scalar) else ""
        return f"{context['expected']}{hint if 'did you mean' in hint else ''}"
    if (
        kind in {"model_type", "union_tag_not_found", "string_type"}
        and len(path) <= 2
        and path[0] in _SHORT_FORMS
    ):
        return _SHORT_FORMS[str(path[0])]
    if kind == "string_type" and isinstance(node, Scalar) and node.value is not None:
        return f'a text; quote it: "{node.text}"'
    if kind in {"too_short", "too_long"}:
        return _length(finding, path)
    if kind == "greater_than_equal":
        return f"at least {context['ge']}"
    return _EXPECTED.get(kind, str(finding["msg"]))


def _length(finding: Any, path: Path) -> str:
    if path[-1:] == ("range",):
        return "two ends: [lowest, highest]"
    if finding["ctx"].get("min_length") == 1:
        return "at least one entry"
    return str(finding["msg"])


def _literals(context: Any) -> list[str]:
    return [part.strip(" '") for part in str(context["expected"]).replace(" or ", ", ").split(",")]


def _model_at(path: Path, *, keyed: bool) -> type[BaseModel] | None:
    """The model whose keys stand at a path; None where the keys are names."""
    if not path:
        return SpaceDecl
    if len(path) == 1:
        return MeasureDecl if path[0] == "measure" else None
    if path[0] == "tables":
        return KeyedTableDecl if keyed else RowTableDecl
    return _MODELS.get(str(path[0]))
