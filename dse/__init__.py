"""Design-space exploration: a space, a cost model and an account of every design.

The names of the public interface are loaded when they are first used, so that ``import dse`` costs
nothing but this file.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dse.errors import DseError, NoFeasibleDesign
    from dse.problem import Problem
    from dse.problem.library import load
    from dse.study import Planner, Result, Study, Trial, compare, search

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
    "compare",
    "load",
    "search",
]

# Public name -> the module that defines it.
_HOMES = {
    "DseError": "dse.errors",
    "NoFeasibleDesign": "dse.errors",
    "Planner": "dse.study",
    "Problem": "dse.problem",
    "Result": "dse.study",
    "Study": "dse.study",
    "Trial": "dse.study",
    "compare": "dse.study",
    "load": "dse.problem.library",
    "search": "dse.study",
}


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
