"""What can be measured here: methods by name, with the bits and groups that each has, and where its limits come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from dse.errors import InputError, nearest

from .calibrated import awq, awq_gptq, llm_int8, smoothquant
from .floats import E4M3, E5M2, fp8, mxfp4, nf4, nvfp4
from .gptq import gptq, gptq_searched
from .llamacpp import q4_0, q4_k, q6_k, q8_0
from .rounding import Array, Quantized, asymmetric, rounded_rows, symmetric

__all__ = ["METHODS", "UNMEASURED", "Method", "Task", "quantize"]


@dataclass(frozen=True, slots=True)
class Task:
    """What a method is given: (outputs, inputs) weights, (tokens, inputs) activations, bits of a weight, and its group."""

    weights: Array
    activations: Array
    bits: int
    group: int


@dataclass(frozen=True, slots=True)
class Method:
    """A quantizer with the bits, groups and widths of activations that it has."""

    run: Callable[[Task], Quantized]
    bits: tuple[int, ...]
    groups: tuple[int, ...]
    activations: tuple[int, ...] = (16, 8)
    calibrated: bool = False


_WIDTHS = (2, 3, 4, 5, 6, 8)
_GROUPS = (0, 32, 64, 128)


def _gptq(task: Task, *, order: bool) -> Quantized:
    return gptq(task.weights, task.activations, task.bits, task.group, order=order)


METHODS: Mapping[str, Method] = MappingProxyType(
    {
        "rtn": Method(lambda t: symmetric(t.weights, t.bits, t.group), _WIDTHS, _GROUPS),
        "rtn-asym": Method(lambda t: asymmetric(t.weights, t.bits, t.group), _WIDTHS, _GROUPS),
        "llm-int8": Method(lambda t: llm_int8(t.weights, t.activations), (8,), (0,), (8,), calibrated=True),
        "smoothquant": Method(
            lambda t: smoothquant(t.weights, t.activations), (8,), (0,), (8,), calibrated=True
        ),
        "gptq": Method(partial(_gptq, order=False), _WIDTHS, _GROUPS, calibrated=True),
        "gptq-order": Method(partial(_gptq, order=True), _WIDTHS, _GROUPS, calibrated=True),
        "gptq-searched": Method(
            lambda t: gptq_searched(t.weights, t.activations, t.bits, t.group),
            _WIDTHS,
            _GROUPS,
            calibrated=True,
        ),
        "awq": Method(
            lambda t: awq(t.weights, t.activations, t.bits, t.group), _WIDTHS, _GROUPS, calibrated=True
        ),
        "awq-gptq": Method(
            lambda t: awq_gptq(t.weights, t.activations, t.bits, t.group), _WIDTHS, _GROUPS, calibrated=True
        ),
        "q4_0": Method(lambda t: q4_0(t.weights), (4,), (32,)),
        "q8_0": Method(lambda t: q8_0(t.weights), (8,), (32,)),
        "q4_k": Method(lambda t: q4_k(t.weights), (4,), (32,)),
        "q6_k": Method(lambda t: q6_k(t.weights), (6,), (16,)),
        "fp8-e4m3": Method(lambda t: fp8(t.weights, E4M3), (8,), (0,)),
        "fp8-e5m2": Method(lambda t: fp8(t.weights, E5M2), (8,), (0,)),
        "nf4": Method(lambda t: nf4(t.weights), (4,), (64,)),
        "mxfp4": Method(lambda t: mxfp4(t.weights), (4,), (32,), (16, 4)),
        "nvfp4": Method(lambda t: nvfp4(t.weights), (4,), (16,), (16, 4)),
    }
)
"""The methods that run here, all from weights and activations alone."""

UNMEASURED: Mapping[str, str] = MappingProxyType(
    {
        "quip": "its codebooks and fine-tuning",
        "quip#": "its codebooks and fine-tuning",
        "aqlm": "learned codebooks",
        "qat": "training of the network",
        "omniquant": "training of clipping and scales over blocks of the network",
        "autoround": "training of the rounding over blocks of the network",
        "hqq": "its own optimizer",
    }
)
"""Methods with published figures only, and what they would need."""

_ROUNDED: Mapping[str, Mapping[int, Callable[[Array], Array]]] = {
    "fp8-e4m3": {8: lambda x: fp8(x, E4M3).weights},
    "fp8-e5m2": {8: lambda x: fp8(x, E5M2).weights},
    "mxfp4": {4: lambda x: mxfp4(x).weights},
    "nvfp4": {4: lambda x: nvfp4(x).weights},
}
_INTEGER: Mapping[int, Callable[[Array], Array]] = {8: partial(rounded_rows, bits=8)}
_OWN = ("llm-int8", "smoothquant")


def quantize(
    method: str, weights: Array, activations: Array, *, bits: int, group: int = 0, activation_bits: int = 16
) -> Quantized:
    """Quantize a matrix with a method of :data:`METHODS`.

    Args:
        method: its name.
        weights: (outputs, inputs).
        activations: (tokens, inputs) to calibrate on.
        bits: of a weight.
        group: weights that share a scale; 0 a row.
        activation_bits: 16, or those that activations are rounded to while running, with a scale a token (or, of
            four-bit floats, a block).

    Raises:
        InputError: no such method (or one that is published only), bits or a group that it does not have, or shapes
            that do not fit.
    """
    found = METHODS.get(method)
    if found is None:
        if method in UNMEASURED:
            raise InputError(
                f"{method} cannot be measured: it needs {UNMEASURED[method]}; there are published figures of it only "
                "(dse show quantization)"
            )
        raise InputError(f"there is no method {method!r}{nearest(method, METHODS)}")
    for what, value, known in (
        ("bits", bits, found.bits),
        ("group", group, found.groups),
        ("activation_bits", activation_bits, found.activations),
    ):
        if value not in known:
            listed = ", ".join(map(str, known))
            raise InputError(f"{method} has no {what} {value}; it has {listed}")
    if weights.shape[1] != activations.shape[1]:
        raise InputError(
            f"weights are {weights.shape[0]} x {weights.shape[1]} (outputs x inputs) and activations "
            f"{activations.shape[0]} x {activations.shape[1]} (tokens x inputs): the inputs must be as many"
        )
    result = found.run(Task(weights, activations, bits, group))
    if activation_bits == 16 or method in _OWN:
        return result
    rounded = _ROUNDED.get(method, _INTEGER)[activation_bits]
    return Quantized(result.weights, result.stored_bits, rounded)
