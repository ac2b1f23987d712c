"""Fits physically named numbers to measurements: weighted absolute errors of logarithms, and a pull to what is expected.

Levenberg 1944 and Marquardt 1963, with the weights of absolute errors renewed in every step (iteratively reweighted least
squares). Shares move as logits; sizes, factors and seconds as logarithms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Fit", "Move", "Number", "decoded", "encoded", "minimized"]

Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]

SMOOTH = 0.01
"""Errors below 1 % are weighed as squares, so that the weights stay finite."""
NUDGE = 1e-4
FARTHEST = 0.5
"""Most that a number moves in one step."""


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


def minimized(fit: Fit, *, steps: int = 60) -> Floats:
    """The unknowns at which the sum is least; deterministic."""

    def loss(found: Floats, errors: Floats) -> float:
        pull = 0.5 * float((fit.strength * (found - fit.centre) ** 2).sum())
        return float((fit.weights * np.abs(errors)).sum()) + pull

    found, damping, still = fit.centre.copy(), 1e-2, 0
    errors = fit.errors(found)
    best = loss(found, errors)
    for _ in range(steps):
        slopes = _slopes(fit, found, errors)
        pull = fit.weights / np.sqrt(errors**2 + SMOOTH**2)
        square = slopes.T @ (pull[:, None] * slopes) + np.diag(fit.strength)
        downhill = -slopes.T @ (pull * errors) - fit.strength * (found - fit.centre)
        for _ in range(12):
            damped = square + damping * np.diag(np.diag(square))
            trial = found + np.clip(np.linalg.solve(damped, downhill), -FARTHEST, FARTHEST)
            tried = fit.errors(trial)
            now = loss(trial, tried)
            if now < best:
                break
            damping *= 4.0
        else:
            break
        still = still + 1 if best - now < 2e-4 * best else 0
        found, errors, best, damping = trial, tried, now, damping / 3.0
        if still >= 4:
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
