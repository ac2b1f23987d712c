"""Loading problems: from a file, by the name of a shipped or installed space, or from plain Python data."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

from dse.errors import Diagnostic, InputError, Location, SpaceError, nearest
from dse.problem.builder import build
from dse.problem.plugins import entry_points, space_folders
from dse.problem.problem import Problem
from dse.problem.tracing import CostFunction
from dse.space.reading import load_declaration
from dse.space.schema import SpaceDecl

__all__ = ["library", "load", "locate"]

Setting = str | float | Sequence[str | float]


def library() -> dict[str, Path]:
    """The space files of installed packages, by name; their packages are found, not imported.

    A package's ``space.yaml`` has the entry point's name, any other file ``<entry point>-<stem>``.
    """
    found: dict[str, Path] = {}
    for name in entry_points("dse.spaces"):
        if name in space_folders():
            for path in sorted(space_folders()[name].glob("*.yaml")):
                found.setdefault(name if path.stem == "space" else f"{name}-{path.stem}", path)
    return found


def locate(source: str | Path) -> Path:
    """The file of a space given by path or by name.

    Raises:
        InputError: there is none; the message has the nearest name.
    """
    path = Path(source)
    known = library()
    if str(source) in known:
        return known[str(source)]
    if path.is_file():
        return path
    if path.is_dir():
        raise InputError(f"{source} is a folder, expected a space file or the name of a space")
    looks_like_path = isinstance(source, Path) or bool(path.suffix) or len(path.parts) > 1
    names = (
        [p.name for p in path.parent.glob("*.yaml")]
        if looks_like_path and path.parent.is_dir()
        else list(known)
    )
    kind = "file" if looks_like_path else "space"
    raise InputError(f"there is no {kind} {str(source)!r}{nearest(path.name, names)}")


def load(
    source: str | Path | Mapping[str, Any],
    overrides: Mapping[str, Setting] | Iterable[tuple[str, Setting]] = (),
    *,
    cost: CostFunction | None = None,
    code: bool | None = True,
) -> Problem:
    """Load a problem.

    Args:
        source: a path, the name of a shipped space, or the content of a space file as plain data.
        overrides: what ``--set`` takes: an input, a dimension or a dotted path, and a text, number or truth value, such
            as ``{"max_latency": "5 ms", "tables.rates.npu.fp16": "1000 Gop/s"}``. A dimension keeps only the value that
            is given, or those of a list: ``{"hardware": ["npu", "gpu"]}``.
        cost: a Python cost function; its parameters are named after dimensions, inputs, lets and tables, and it
            returns a mapping of metrics.
        code: whether Python code that the file names may be imported. None leaves its cost function alone, but reads
            the row of a table from a path that an override gives; False does neither.

    Raises:
        SpaceError: everything that is wrong with the file, each with its place.
        InputError: an unknown space, or an override that does not fit.
    """
    given_pairs = list(overrides.items()) if isinstance(overrides, Mapping) else list(overrides)
    pairs = [(name, _text(name, value)) for name, value in given_pairs]
    text = None
    if isinstance(source, Mapping):
        text, path = _as_text(source), Path("<python>")
    else:
        path = locate(source)
    given = [(name, value) for name, value in pairs if _names_input(name)]
    others = [(name, value) for name, value in pairs if not _names_input(name)]
    declaration = load_declaration(path, others, resolve=library().get, packages=space_folders, text=text)
    model = declaration.model
    narrow = [pair for pair in given if pair[0] in model.dimensions and _input(pair[0]) not in model.inputs]
    given = [pair for pair in given if pair not in narrow]
    for name, value in given_pairs:
        if not isinstance(value, str | Real) and any(name == known for known, _ in given):
            raise InputError(
                f"override {name!r} must be a text, number or truth value, as it is no dimension, but got {value!r}"
            )
    unknown = [pair for pair in given if _input(pair[0]) not in model.inputs]
    if unknown:  # asked of the declaration, which knows what else the name may have meant
        load_declaration(path, [*others, *unknown], resolve=library().get, packages=space_folders, text=text)
    problem = build(declaration, cost, code=bool(code), narrow=narrow)
    found = []
    for name, value in given:
        try:
            problem = problem.with_inputs({_input(name): value}, code=code is not False)
        except InputError as error:
            told = str(error)  # may begin with a place in the file that the value names
            named = re.match(rf"{re.escape(value)}((?::\d+)*): ", told)
            place = f"--set {name}={value}{named[1] if named else ''}"
            found.append(Diagnostic(Location(place), "", told[named.end() :] if named else told))
    if found:
        raise SpaceError(found)
    names = {file: name for name, file in library().items()}
    extends = tuple(names[file] for file in declaration.files[1:] if file in names)
    return replace(problem, overrides=tuple(pairs), extends=extends)


def _text(name: str, value: object) -> str:
    """An override's value as the text that ``--set`` would have."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Real):
        return repr(value)
    if isinstance(value, list | tuple) and value:
        items = [json.dumps(item) if isinstance(item, str) else _text(name, item) for item in value]
        return f"[{', '.join(items)}]"
    raise InputError(
        f"override {name!r} must be a text, number or truth value, or a list of them, but got {value!r}"
    )


def _names_input(name: str) -> bool:
    """Whether an override names an input rather than a section or a place in the file."""
    return "." not in _input(name) and name not in SpaceDecl.model_fields


def _input(name: str) -> str:
    return name.removeprefix("inputs.")


def _as_text(data: Mapping[str, Any]) -> str:
    """Plain data as YAML text; JSON is YAML."""
    try:
        return json.dumps(data, indent=1, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"a space given as data must be made of mappings, lists, texts, numbers and flags: {error}"
        ) from None
