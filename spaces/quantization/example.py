"""The example that measurements take when no tensors are given: a small network that is trained here, by seed.

It is no language model. Inputs are mixtures of hidden causes, and a few of them are much larger than the others, as in the
residual stream of transformers (Dettmers 2022, 2208.07339, section 4). The network, two layers, learns to find the
causes; what is quantized is its first layer, on inputs that it was not trained on.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["INPUTS", "SEED", "example"]

SEED = 15779
INPUTS = 256
_CAUSES, _HIDDEN, _OUTLIERS, _LARGER = 48, 256, 6, 20.0
_STEPS, _BATCH, _RATE = 100, 64, 2e-3
_TOKENS = 1024

Matrix = NDArray[np.float32]


@cache
def example() -> tuple[Matrix, Matrix]:
    """Weights (256 outputs, 256 inputs) of the trained first layer, and (1024 tokens, 256 inputs) activations."""
    random = np.random.default_rng(SEED)
    mixing = random.standard_normal((_CAUSES, INPUTS)) / np.sqrt(_CAUSES)
    size = np.ones(INPUTS)
    size[random.choice(INPUTS, _OUTLIERS, replace=False)] = _LARGER

    def draw(count: int) -> tuple[Matrix, Matrix]:
        causes = random.laplace(size=(count, _CAUSES))
        noise = 0.1 * random.standard_normal((count, INPUTS))
        return ((causes @ mixing + noise) * size).astype(np.float32), np.tanh(causes).astype(np.float32)

    first = (random.standard_normal((INPUTS, _HIDDEN)) / np.sqrt(INPUTS) / size[:, None]).astype(np.float32)
    second = (random.standard_normal((_HIDDEN, _CAUSES)) / np.sqrt(_HIDDEN)).astype(np.float32)
    layers = [first, second]
    means = [np.zeros_like(w) for w in layers]
    squares = [np.zeros_like(w) for w in layers]
    for step in range(1, _STEPS + 1):
        x, wanted = draw(_BATCH)
        hidden = np.maximum(x @ layers[0], 0)
        back = 2.0 * (hidden @ layers[1] - wanted) / wanted.size
        gradients = [x.T @ ((back @ layers[1].T) * (hidden > 0)), hidden.T @ back]
        for at, gradient in enumerate(gradients):  # Adam (Kingma 2014, 1412.6980, Algorithm 1)
            means[at] = 0.9 * means[at] + 0.1 * gradient
            squares[at] = 0.999 * squares[at] + 0.001 * gradient**2
            move = (means[at] / (1 - 0.9**step)) / (np.sqrt(squares[at] / (1 - 0.999**step)) + 1e-8)
            layers[at] = (layers[at] - _RATE * move).astype(np.float32)
    return np.ascontiguousarray(layers[0].T), draw(_TOKENS)[0]
