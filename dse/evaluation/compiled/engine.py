"""LLVM: from text to functions that run. It is imported here, when the first function is compiled."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any

__all__ = ["CALLBACK", "FUNCTION", "Compiled", "available", "compiled"]

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
"""Of the slots and a range of outer turns; 1: a callback asked it to end. Other threads run meanwhile."""

CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int32)
"""Called when a buffer is full; not 0 to end the function."""

LEVEL = 2
"""How hard LLVM optimizes, 0 to 3."""

_HEAD = """
declare double @llvm.fabs.f64(double)
declare double @llvm.floor.f64(double)
declare double @llvm.ceil.f64(double)
declare double @llvm.sqrt.f64(double)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.ctpop.i64(i64)
"""
_TAIL = """
!0 = !{}
!1 = !{!"branch_weights", i32 4000, i32 1}
!2 = !{!"branch_weights", i32 1, i32 4000}
"""
_lock = threading.Lock()


@cache
def available() -> bool:
    """Whether llvmlite is installed."""
    return find_spec("llvmlite") is not None


class Compiled:
    """Functions in memory; they go when this goes."""

    def __init__(self, engine: Any, names: Sequence[str]) -> None:
        self._engine = engine
        self.functions: dict[str, Callable[[int, int, int], int]] = {
            name: FUNCTION(engine.get_function_address(name)) for name in names
        }


@cache
def _host() -> tuple[Any, str, str]:
    """The processor that runs this: its target, name and features."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target, llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def compiled(text: str, names: Sequence[str]) -> Compiled:
    """Compile functions. Nothing permits LLVM to contract or reorder floating-point operations."""
    import llvmlite.binding as llvm

    with _lock:
        target, cpu, features = _host()
        machine = target.create_target_machine(
            cpu=cpu, features=features, opt=LEVEL, jit=True
        )  # the engine's own
        module = llvm.parse_assembly(_HEAD + text + _TAIL)
        tuning = llvm.create_pipeline_tuning_options(speed_level=LEVEL)
        tuning.loop_vectorization = False
        tuning.slp_vectorization = False
        tuning.loop_unrolling = False  # turns are long enough, and unrolled ones take long to compile
        builder = llvm.create_pass_builder(machine, tuning)
        builder.getModulePassManager().run(module, builder)
        engine = llvm.create_mcjit_compiler(module, machine)
        engine.finalize_object()
    return Compiled(engine, names)
