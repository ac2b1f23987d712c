"""What a training run or a chip amounts to before any plan: operations, days, state and ridge points."""

from __future__ import annotations

from typing import Any

from dse.errors import InputError, nearest

from .catalog import Row

__all__ = ["FORMATS", "ridge_point", "training_days", "training_flops", "training_state"]

FORMATS = ("bf16", "fp16", "fp8", "fp4", "int8", "tf32", "fp32")
"""The columns of ``hardware.csv`` that are peak rates."""

_SECONDS_PER_DAY = 86_400


def training_flops(parameters: Any, tokens: Any) -> Any:
    """Operations to train on ``tokens``: 6 P T, two forward and four backward for each parameter.

    Without the attention's own. Kaplan 2020 (2001.08361) section 2.1.
    """
    return 6 * parameters * tokens


def training_days(flops: Any, n_gpus: Any, peak: Any, mfu: Any) -> Any:
    """Days for ``flops`` on ``n_gpus`` chips of ``peak`` flop/s at the share ``mfu`` of that peak.

    Raises:
        InputError: ``mfu`` is not above 0 and at most 1.
    """
    if isinstance(mfu, int | float) and not 0 < mfu <= 1:
        raise InputError(f"mfu must be above 0 and at most 1, but got {mfu:g}")
    return flops / (n_gpus * peak * mfu) / _SECONDS_PER_DAY


def training_state(parameters: Any, bytes_per_parameter: Any = 16) -> Any:
    """Bytes of weights, gradients and Adam's states: 2 + 2 + 12 for each parameter.

    Rajbhandari 2020 (1910.02054) section 3.1; frameworks differ and give their own ``bytes_per_parameter``.
    """
    return parameters * bytes_per_parameter


def ridge_point(chip: Row, number_format: str, bandwidth: float | None = None) -> float:
    """Operations per byte at which ``chip`` turns from memory-bound to compute-bound (Williams 2009).

    Args:
        chip: a row of the hardware table.
        number_format: one of :data:`FORMATS`.
        bandwidth: bytes per second, in place of the catalogue's.

    Raises:
        InputError: the format is unknown, or the chip has no figure for it.
    """
    if number_format not in FORMATS:
        raise InputError(f"unknown number format {number_format!r}{nearest(number_format, FORMATS)}")
    peak: float | None = getattr(chip, number_format)
    if not peak:
        able = ", ".join(name for name in FORMATS if getattr(chip, name))
        raise InputError(f"{chip.name} has no {number_format} rate; it has {able}")
    speed: float = chip.bandwidth if bandwidth is None else bandwidth
    return peak / speed
