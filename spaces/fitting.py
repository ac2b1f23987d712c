"""Fits physically named numbers to measurements: weighted absolute errors of logarithms, and a pull to what is expected.

Levenberg 1944 and Marquardt 1963, with the weights of absolute errors renewed in every step (iteratively reweighted least
squares). Shares move as logits; sizes, factors and seconds as logarithms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fit", "Move", "Number", "balanced", "cell", "decoded", "encoded", "minimized", "rounded"]

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]

SMOOTH = 0.01
"""Errors below 1 % are weighed as squares, so that the weights stay finite."""
NUDGE = 1e-4
FARTHEST = 0.5
"""Most that a number moves in one step."""
LITTLE = 2e-4


@dataclass(frozen=True, slots=True)
class Number:
    """A fitted number: its usual value, how far it may stray (as logit or logarithm), and what kind of number it is."""

    value: float
    spread: float
    share: bool = True
    seconds: bool = False


def encoded(values: Floats, numbers: Mapping[str, Number]) -> Floats:
    """Values (..., names) as they are fitted: logits of shares, logarithms of the others."""
    shares = np.array([number.share for number in numbers.values()])
    bounded = np.clip(values, 1e-12, 1.0 - 1e-6)
    return np.where(shares, np.log(bounded / (1.0 - bounded)), np.log(np.maximum(values, 1e-30)))


def decoded(fitted: Floats, numbers: Mapping[str, Number]) -> Floats:
    """The values of what :func:`encoded` gives."""
    shares = np.array([number.share for number in numbers.values()])
    grown = np.exp(np.clip(fitted, -60.0, 40.0))
    return np.where(shares, grown / (1.0 + grown), grown)


def rounded(values: Floats, numbers: Mapping[str, Number]) -> dict[str, Any]:
    """Values (names,) by name, to four digits."""
    return {name: float(f"{value:.4g}") for name, value in zip(numbers, values.tolist(), strict=True)}


def cell(value: float, number: Number) -> str:
    """A value as tables of fitted numbers have it, to four digits; seconds in microseconds."""
    return f"{value * 1e6:.4g} us" if number.seconds else f"{value:.4g}"


def balanced(groups: Sequence[tuple[str, ...]]) -> Floats:
    """Weights (n,) of runs, with mean 1: sources weigh alike, in each its groups alike, in each its runs alike.

    Args:
        groups: the group of each run, its source first.
    """
    sizes = Counter(groups)
    of_source = Counter(group[0] for group in sizes)
    raw = np.array([1.0 / (sizes[group] * of_source[group[0]]) for group in groups])
    return raw / raw.mean() if len(raw) else raw


@dataclass(frozen=True, slots=True)
class Move:
    """Unknowns that are nudged together to learn slopes: no run depends on two of ``nudged``. Each of ``columns`` (n,) is the
    unknown that a run's slope belongs to.
    """

    nudged: Indices
    columns: tuple[Indices, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """What is minimized over unknowns ``x``: the sum of ``weights`` (n,) times the size of ``errors(x)`` (n,), and half of
    ``strength`` times the squared distance of ``x`` from ``centre``.
    """

    errors: Callable[[Floats], Floats]
    weights: Floats
    centre: Floats
    strength: Floats
    moves: Sequence[Move]


def minimized(fit: Fit, *, steps: int = 60, patience: int = 4) -> Floats:
    """The unknowns at which the sum is least; deterministic. Those that no run depends on stay at the centre.

    Args:
        fit: what is minimized.
        steps: after so many it ends.
        patience: it also ends after so many steps in a row that gain less than :data:`LITTLE` of the sum.
    """
    free = np.unique(np.concatenate([column for move in fit.moves for column in move.columns]))
    strength = np.diag(fit.strength[free])

    def loss(found: Floats, errors: Floats) -> float:
        pull = 0.5 * float((fit.strength * (found - fit.centre) ** 2).sum())
        return float((fit.weights * np.abs(errors)).sum()) + pull

    found, damping, still = fit.centre.copy(), 1e-2, 0
    errors = fit.errors(found)
    best = loss(found, errors)
    for _ in range(steps):
        slopes = _slopes(fit, found, errors)[:, free]
        pull = fit.weights / np.sqrt(errors**2 + SMOOTH**2)
        # not a matrix product, whose threads wait for each other longer than so small a one takes
        square = np.einsum("ri,rj->ij", slopes, pull[:, None] * slopes) + strength
        downhill = -slopes.T @ (pull * errors) - (fit.strength * (found - fit.centre))[free]
        for _ in range(12):
            damped = square + damping * np.diag(np.diag(square))
            trial = found.copy()
            trial[free] += np.clip(np.linalg.solve(damped, downhill), -FARTHEST, FARTHEST)
            tried = fit.errors(trial)
            now = loss(trial, tried)
            if now < best:
                break
            damping *= 4.0
        else:
            break
        still = still + 1 if best - now < LITTLE * best else 0
        found, errors, best, damping = trial, tried, now, damping / 3.0
        if still >= patience:
            break
    return found


def _slopes(fit: Fit, found: Floats, errors: Floats) -> Floats:
    """How errors change with each unknown, (n, unknowns)."""
    slopes = np.zeros((len(errors), len(found)))
    runs = np.arange(len(errors))
    for move in fit.moves:
        nudged = found.copy()
        nudged[move.nudged] += NUDGE
        change = (fit.errors(nudged) - errors) / NUDGE
        for column in move.columns:
            slopes[runs, column] = change
    return slopes
