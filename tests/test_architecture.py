"""Imports point one way. The rules are checked on the syntax trees, without importing anything."""

from __future__ import annotations

import ast
import graphlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import dse

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = {"dse": "dse", "solvers": "dse.solvers", "spaces": "dse.spaces", "reports": "dse.reports"}
LAYERS = ("errors", "units", "expressions", "space", "problem", "evaluation", "study", "cli")
PLUGINS = ("dse.solvers", "dse.spaces", "dse.reports")
TOO_HEAVY = {"pandas", "optuna", "plotly", "matplotlib", "rich", "jinja2"}
NOT_AT_START = ["numpy", "pandas", "optuna", "plotly", "matplotlib"]
LONGEST = 500


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name. ``at_start``: it is loaded together with the module that imports it."""

    target: str
    line: int
    at_start: bool


def module_names() -> dict[str, Path]:
    """Every module under the name it is imported by, with its file."""
    names = {}
    for folder, package in FOLDERS.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            names[".".join([package, *parts]).removesuffix(".__init__")] = path
    return names


def imports_of(tree: ast.Module, module: str, is_package: bool = False) -> Iterator[Import]:
    """The imports of a module: statements anywhere in it, and ``import_module`` of a constant."""
    package = module if is_package else module.rpartition(".")[0]
    deferred = set(map(id, _deferred(tree)))
    for node in ast.walk(tree):
        for target in _targets(node, package):
            yield Import(target, getattr(node, "lineno", 0), id(node) not in deferred)


def _deferred(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes that do not run when the module is loaded: function bodies and ``if TYPE_CHECKING``."""
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if is_function or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from ast.walk(node)


def _targets(node: ast.AST, package: str) -> list[str]:
    match node:
        case ast.Import(names):
            return [name.name for name in names]
        case ast.ImportFrom(origin, names, level):
            if level:
                base = package.split(".")[: len(package.split(".")) - level + 1]
                origin = ".".join([*base, *([origin] if origin else [])])
            return [f"{origin}.{name.name}" for name in names]
        case ast.Call(ast.Name(function) | ast.Attribute(attr=function), [ast.Constant(str(name)), *_]):
            return [name] if function in {"import_module", "__import__"} else []
    return []


def within(name: str, packages: tuple[str, ...]) -> bool:
    """Whether ``name`` is one of the packages or something inside one."""
    return any(name == package or name.startswith(package + ".") for package in packages)


def layer_of(name: str) -> int | None:
    """The position of a name of the engine in ``LAYERS``; None for what has no layer."""
    parts = name.split(".")
    return LAYERS.index(parts[1]) if parts[0] == "dse" and len(parts) > 1 and parts[1] in LAYERS else None


def wrong_arrow(module: str, target: str) -> str:
    """What is wrong with ``module`` importing ``target``; empty when nothing is."""
    if within(module, PLUGINS):
        own = next(p for p in PLUGINS if within(module, (p,)))
        if within(target, tuple(p for p in PLUGINS if p != own)):
            return "a plugin imports the engine and its own folder only"
        return "a plugin does not import the command line" if within(target, ("dse.cli",)) else ""
    if within(target, (*PLUGINS, "solvers", "spaces", "reports")):
        return "the engine finds plugins by entry points, never by name"
    here, there = layer_of(module), layer_of(target)
    if module in {"dse", "dse.__main__"}:
        return ""
    if here is None:
        return f"the module belongs to no layer ({', '.join(LAYERS)})"
    if within(target, ("dse",)) and there is None and target != "dse.__version__":
        return "the engine imports its modules by their own names, not through the package dse"
    if there is not None and there > here:
        return f"{LAYERS[here]} stands below {LAYERS[there]}"
    return ""


MODULES = module_names()
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in MODULES.items()}
IMPORTS = {
    name: list(imports_of(tree, name, MODULES[name].name == "__init__.py")) for name, tree in TREES.items()
}


def test_every_layer_is_there() -> None:
    assert [layer for layer in LAYERS if f"dse.{layer}" not in MODULES] == []


def test_imports_point_one_way() -> None:
    wrong = [
        f"{MODULES[name].relative_to(ROOT)}:{found.line}: {name} imports {found.target}: {problem}"
        for name, imports in IMPORTS.items()
        for found in imports
        if (problem := wrong_arrow(name, found.target))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_import_cycles() -> None:
    def module_of(target: str) -> str:
        return target if target in MODULES else target.rpartition(".")[0]

    graph = {
        name: {module_of(found.target) for found in imports if found.at_start} & MODULES.keys() - {name}
        for name, imports in IMPORTS.items()
    }
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which lists the cycle


def test_the_engine_loads_heavy_packages_late() -> None:
    early = [
        f"{MODULES[name].relative_to(ROOT)}:{found.line}: {found.target}"
        for name, imports in IMPORTS.items()
        if not within(name, PLUGINS)
        for found in imports
        if found.at_start and found.target.partition(".")[0] in TOO_HEAVY
    ]
    assert not early, "import these inside the function that needs them:\n" + "\n".join(early)


def test_the_numbers_that_certificates_are_written_in_are_given_once() -> None:
    codes = {"OPEN", "ABSENT", "OUTSIDE", "JUDGED", "DOMINATED", "INFINITE", "RULES"}
    givers: dict[str, set[str]] = {}
    for module, path in module_names().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            names = {name.id for t in targets for name in ast.walk(t) if isinstance(name, ast.Name)}
            if codes & names and module.startswith(("dse.study", "dse.solvers")):
                givers[module] = codes & names
    assert givers == {"dse.study.certificate": codes}


def test_no_file_is_too_long() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES.values()}
    assert {str(path): n for path, n in lengths.items() if n > LONGEST} == {}


@pytest.mark.parametrize(
    ("module", "source", "target"),
    [
        ("dse.units", "from dse.study import Study", "dse.study.Study"),
        ("dse.units", "from dse import study", "dse.study"),
        ("dse.units", "from . import study", "dse.study"),
        ("dse.space.schema", "from ..study.front import Front", "dse.study.front.Front"),
        ("dse.errors", "import dse.units", "dse.units"),
        ("dse.cli.main", "import dse.solvers.auto", "dse.solvers.auto"),
        ("dse.cli.main", "import solvers", "solvers"),
        ("dse.study.registry", "def f():\n    from dse import reports", "dse.reports"),
        ("dse.study.registry", "importlib.import_module('dse.spaces.camera')", "dse.spaces.camera"),
        ("dse.study.study", "from dse import load", "dse.load"),
        ("dse.helpers", "import dse.units", "dse.units"),
        ("dse.solvers.auto", "from dse.cli import main", "dse.cli.main"),
        ("dse.solvers.auto", "from dse.reports.front import render", "dse.reports.front.render"),
    ],
)
def test_a_wrong_arrow_is_seen(module: str, source: str, target: str) -> None:
    assert [found.target for found in imports_of(ast.parse(source), module)] == [target]
    assert wrong_arrow(module, target)


@pytest.mark.parametrize(
    ("module", "target"),
    [
        ("dse.cli.main", "dse.study.Study"),
        ("dse.cli.main", "dse.__version__"),
        ("dse.cli.main", "dse.cli.options"),
        ("dse.evaluation.bulk", "numpy"),
        ("dse.solvers.auto", "dse.study.front"),
        ("dse.solvers.auto", "dse.solvers.pareto"),
        ("dse.solvers.optuna", "optuna"),
    ],
)
def test_a_right_arrow_is_left_alone(module: str, target: str) -> None:
    assert not wrong_arrow(module, target)


@pytest.mark.parametrize(
    ("source", "at_start"),
    [
        ("import pandas", True),
        ("try:\n    import pandas\nexcept ImportError: ...", True),
        ("class A:\n    import pandas", True),
        ("def f():\n    import pandas", False),
        ("if TYPE_CHECKING:\n    import pandas", False),
    ],
)
def test_what_is_loaded_at_start_is_told_apart(source: str, at_start: bool) -> None:
    assert [found.at_start for found in imports_of(ast.parse(source), "dse.units")] == [at_start]


@pytest.mark.parametrize(
    "program",
    [
        "import dse",
        "from dse.cli import main; main(['--help'], standalone_mode=False)",
    ],
    ids=["import dse", "dse --help"],
)
def test_start_up_loads_nothing_heavy(program: str) -> None:
    report = f"import json, sys; print(json.dumps([m for m in {NOT_AT_START} if m in sys.modules]))"
    run = subprocess.run(
        [sys.executable, "-c", f"{program}\n{report}"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout.splitlines()[-1]) == []


def test_every_public_name_resolves() -> None:
    assert set(dse.__all__) <= set(dir(dse))
    assert [name for name in dse.__all__ if getattr(dse, name, None) is None] == []


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'stduy'"):
        _ = dse.stduy
