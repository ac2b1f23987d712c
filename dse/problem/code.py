"""Importing the Python functions that a space names; nothing else in the engine runs a user's code."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from dse.errors import InputError, nearest

__all__ = ["import_function"]


def import_function(name: str, folder: str) -> Callable[..., Any]:
    """The function called ``package.module:function``, or ``./file.py:function`` relative to ``folder``.

    Raises:
        InputError: there is none, or importing it failed.
    """
    where, _, function_name = name.rpartition(":")
    if not where or not function_name:
        raise InputError(f"found {name!r}, expected package.module:function or ./file.py:function")
    module = _from_file(where, folder) if where.endswith(".py") else _from_name(where)
    function = getattr(module, function_name, None)
    if not callable(function):
        known = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise InputError(f"{where} has no function {function_name!r}{nearest(function_name, known)}")
    found: Callable[..., Any] = function
    return found


def _from_name(name: str) -> Any:
    try:
        with redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # importing runs the user's code, which may raise anything
        raise InputError(f"cannot import {name}: {type(error).__name__}: {error}") from error


def _from_file(where: str, folder: str) -> Any:
    root = Path(folder).resolve()
    path = (root / where).resolve()
    if not path.is_relative_to(root):
        raise InputError(f"{where} is not below the folder of the space file")
    if not path.is_file():
        files = sorted(f"./{p.name}" for p in root.glob("*.py"))
        raise InputError(f"there is no file {where}{nearest(where, files)}")
    module_name = f"_dse_code_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{where} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        with redirect_stdout(sys.stderr):  # what the user's code prints is no part of a command's output
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # importing runs the user's code, which may raise anything
        raise InputError(f"cannot import {where}: {type(error).__name__}: {error}") from error
    return module
