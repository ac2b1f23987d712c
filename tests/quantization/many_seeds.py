"""How often does one method lose more than another on its calibration inputs? ``python -m tests.quantization.many_seeds``.

Prints, over seeds 1 to 64, the figures that the README of the space states; it takes minutes, so it is no test.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from itertools import product

from dse.spaces.quantization.calibrated import awq, smoothquant
from dse.spaces.quantization.gptq import gptq, gptq_searched
from dse.spaces.quantization.rounding import asymmetric, output_error, symmetric

from .test_calibrated import outlier_data, plain_w8a8

_PAIRS = {
    "gptq-searched above awq": ("searched", "awq"),
    "gptq-searched above awq without clipping": ("searched", "awq-unclipped"),
    "gptq-searched above rounding": ("searched", "rounding"),
    "gptq above awq": ("gptq", "awq"),
    "gptq-order above awq": ("gptq-order", "awq"),
    "gptq above rounding": ("gptq", "rounding"),
    "awq above rounding": ("awq", "rounding"),
    "smoothquant above plain W8A8": ("smoothquant", "plain W8A8"),
}


def errors(seed: int, larger: float, mixed: float, tokens: int, at: tuple[int, int]) -> dict[str, float]:
    """The output error of each method; ``at`` is bits and group."""
    w, x = outlier_data(seed, larger, tokens=tokens, mixed=mixed)
    found = {
        "searched": gptq_searched(w, x, *at),
        "gptq": gptq(w, x, *at),
        "gptq-order": gptq(w, x, *at, order=True),
        "awq": awq(w, x, *at),
        "awq-unclipped": awq(w, x, *at, clip=False),
        "symmetric": symmetric(w, *at),
        "asymmetric": asymmetric(w, *at),
        "smoothquant": smoothquant(w, x),
        "plain W8A8": plain_w8a8(w),
    }
    lost = {name: output_error(x, w, quantized) for name, quantized in found.items()}
    return lost | {"rounding": min(lost.pop("symmetric"), lost.pop("asymmetric"))}


def main(seeds: int) -> None:
    """Print the share of cases above, and the largest ratio, for each size of outliers, kind of inputs and bits."""
    for larger, mixed, bits in product((5.0, 20.0, 60.0), (0.5, 0.0), (2, 3, 4, 5, 6, 8)):
        ratios: dict[str, list[float]] = defaultdict(list)
        for seed, tokens, group in product(range(1, seeds + 1), (128, 512), (0, 64)):
            lost = errors(seed, larger, mixed, tokens, (bits, group))
            for told, (one, other) in _PAIRS.items():
                ratios[told].append(lost[one] / lost[other])
        kind = "correlated" if mixed else "independent"
        for told, found in ratios.items():
            above = sum(ratio > 1 for ratio in found)
            cases = f"{above}/{len(found)}, at most {max(found):.2f}"
            sys.stdout.write(f"x{larger:g} {kind} {bits} bits: {told}: {cases}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
