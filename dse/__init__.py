"""Design-space exploration: a space, a cost model and an account of every design.

The names of the public interface are loaded when they are first used, so that ``import dse`` costs
nothing but this file.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dse.errors import DseError
    from dse.expressions.tracer import (
        ceil,
        contains,
        exp,
        floor,
        log,
        log2,
        maximum,
        minimum,
        quantity,
        sqrt,
        where,
    )
    from dse.problem import Problem
    from dse.problem.library import load
    from dse.study.compare import compare
    from dse.study.limitmap import limit_map
    from dse.study.planner import Planner
    from dse.study.result import NoFeasibleDesign, Result
    from dse.study.study import Study, search
    from dse.study.trial import Trial

__version__ = "0.1.0"

__all__ = [
    "DseError",
    "NoFeasibleDesign",
    "Planner",
    "Problem",
    "Result",
    "Study",
    "Trial",
    "__version__",
    "ceil",
    "compare",
    "contains",
    "exp",
    "floor",
    "limit_map",
    "load",
    "log",
    "log2",
    "maximum",
    "minimum",
    "quantity",
    "search",
    "sqrt",
    "where",
]

# Public name -> the module that defines it.
_HOMES = {
    "DseError": "dse.errors",
    "NoFeasibleDesign": "dse.study.result",
    "Planner": "dse.study.planner",
    "Problem": "dse.problem",
    "Result": "dse.study.result",
    "Study": "dse.study.study",
    "Trial": "dse.study.trial",
    "compare": "dse.study.compare",
    "limit_map": "dse.study.limitmap",
    "load": "dse.problem.library",
    "search": "dse.study.study",
} | dict.fromkeys(
    ("ceil", "contains", "exp", "floor", "log", "log2", "maximum", "minimum", "quantity", "sqrt", "where"),
    "dse.expressions.tracer",
)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dse' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


# In a checkout that is not installed, dse.solvers, dse.spaces and dse.reports are the folders beside this
# one. An installed copy has them inside its own folder, and no pyproject.toml beside it.
_root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
if os.path.isfile(os.path.join(_root, "pyproject.toml")) and os.path.isdir(os.path.join(_root, "solvers")):
    __path__.append(_root)
