"""The tables of the space, made from the published figures: ``python -m dse.spaces.quantization.published``.

``methods.csv`` has the methods, ``forms.csv`` names what bits and a group are together and ``schemes.csv`` what a method
in such a form is, ``storage.csv`` how it is stored, ``losses.csv`` what it loses in a series of figures, and
``evidence.csv`` which series has most of a model. The figures that are nearest to a method in a form are of the nearest
model that has the method (``nearest_models.csv``), and of its nearest width (``nearest_widths.csv``): ``figures_at.csv``.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path

from dse.spaces.catalog import catalog

from .figures import PLAIN, Figure, design_text, family, figures, series
from .quality import between, model_distance
from .schemes import METHODS, UNMEASURED

__all__ = ["TABLES", "text_of", "write"]

_FOLDER = Path(__file__).parent
_QUALITIES = ("any", "perplexity", "accuracy")
_WIDTHS = (1, 2, 2.5, 3, 3.5, 4, 5, 6, 8, 16)
_FORMS = (_WIDTHS, (4, 8, 16), (4, 8, 16), (0, 16, 32, 64, 128))
"""What the space has of bits of weights, activations and cache, and as groups."""
_EFFORTS = {"smoothquant": "calibration", "qat": "training"} | dict.fromkeys(
    ("gptq", "awq", "omniquant", "autoround"), "calibration"
)
_CALIBRATED = ("autoround", "imatrix", "gptq", "awq")
"""Variants that look at activations, whatever the method."""
_ABOUT = {
    "none": "16 bits",
    "rtn": "round to nearest, asymmetric, one scale a row or group",
    "gptq": "Frantar 2022 (2210.17323): rounding column by column, errors made up for in those that follow",
    "awq": "Lin 2023 (2306.00978): scales of input channels searched on activations, then rounding",
    "smoothquant": "Xiao 2022 (2211.10438): outliers of activations moved into the weights, then 8 bits of both",
    "hqq": "Badri 2023: half-quadratic optimization of scales and zero points, no calibration data",
    "omniquant": "Shao 2023 (2308.13137): learned clipping and equivalent transformations",
    "autoround": "Cheng 2023 (2309.05516): rounding and clipping learned by signed gradients",
    "qat": "EfficientQAT, Chen 2024 (2407.11062): training block by block, then of the scales",
    "nf4": "Dettmers 2023 (2305.14314): sixteen quantiles of a normal distribution, blocks of 64",
    "nf4-dq": "the same with quantized scales",
    "fp4": "bitsandbytes: four-bit floats in blocks of 64",
    "fp8-block": "E4M3 with a scale for 128 x 128 weights and for 128 activations",
    "mxfp4": "OCP Microscaling Formats 1.0: E2M1, a power of two for 32 values",
    "nvfp4": "E2M1 with an E4M3 scale for 16 values",
    "kv-int": "LMDeploy: cached keys and values as integers for each head and token",
}


@cache
def designs() -> tuple[Figure, ...]:
    """The figures that the space chooses from: published ones without a flag, half bits interpolated between whole
    ones, and each series' own baseline where it has no row of its own.
    """
    known = [f for f in figures() if not f.flag and f.name != "none+base-1"]
    lines: dict[tuple[object, ...], dict[float, Figure]] = {}
    for figure in known:
        key = (figure.series.name, figure.model, *figure.design[:1], *figure.design[2:])
        lines.setdefault(key, {})[figure.w_bits] = figure
    half = [
        between(figure, line[bits + 1], bits + 0.5)
        for line in lines.values()
        for bits, figure in line.items()
        if bits + 1 in line
    ]
    has_plain = {(f.series.name, f.model) for f in known if f.method == PLAIN}
    plain = {
        (f.series.name, f.model): _baseline(f)
        for f in known
        if f.baseline is not None and (f.series.name, f.model) not in has_plain
    }
    return (*known, *half, *plain.values())


def _baseline(figure: Figure) -> Figure:
    assert figure.baseline is not None
    kept = {name: getattr(figure, name) for name in ("series", "model", "baseline", "place", "source_model")}
    return Figure(
        **kept, method=PLAIN, variant="", w_bits=16.0, a_bits=16.0, kv_bits=16.0, group=0, bits_per_weight=None,
        value=figure.baseline, reference=figure.baseline, flag="", notes="", source_method="",
    )  # fmt: skip


def scheme_name(figure: Figure) -> str:
    """``gptq+reorder-w4g128``: what is done, without the model."""
    return f"{figure.name}-{form_name(*figure.design[1:])}"


def form_name(weights: float, activations: float, cache: float, group: float) -> str:
    """``w8a8``: bits of weights, of activations and KV cache where these are not 16, and the group where there is one."""
    told = f"w{weights:g}"
    told += f"a{activations:g}" if activations != 16 else ""
    told += f"kv{cache:g}" if cache != 16 else ""
    return told + (f"g{group:g}" if group else "")


def storage_format(figure: Figure, bits: float) -> str:
    """The row of the catalogue's formats that weights are stored as."""
    if figure.method in (PLAIN, "kv-int"):
        return "fp16"
    if figure.method == "smoothquant":
        return "int8"
    if figure.method == "awq" and (bits, figure.group) == (4, 128):
        return "int4-awq"
    if family(figure.method) in ("calibrated", "trained") or figure.method in ("rtn", "hqq"):
        return f"int{bits:g}" + (f"-g{figure.group}" if figure.group else "")
    return figure.method


def _methods() -> Iterable[Sequence[object]]:
    yield ("method", "kind", "effort", "forms", "peer", "about")
    for figure in _unique(designs(), lambda f: f.name):
        effort = _EFFORTS.get(figure.method, "none")
        if effort == "none" and any(name in figure.variant for name in _CALIBRATED):
            effort = "calibration"
        forms = dict.fromkeys(form_name(*f.design[1:]) for f in designs() if f.name == figure.name)
        about = _ABOUT.get(figure.method, f"llama.cpp's {figure.method}")
        about += f" ({figure.variant})" if figure.variant else ""
        yield (
            figure.name,
            family(figure.method),
            effort,
            ";".join(forms),
            _alike_in_models(figure.name),
            about,
        )


def _alike_in_models(name: str) -> str:
    """The first method that there are figures of for the same models as for this one."""
    return next(other for other in _names() if _models_of(other) == _models_of(name))


@cache
def _names() -> tuple[str, ...]:
    return tuple(dict.fromkeys(figure.name for figure in designs()))


@cache
def _models_of(name: str) -> frozenset[str]:
    return frozenset(figure.model for figure in designs() if figure.name == name)


def _forms() -> Iterable[Sequence[object]]:
    """Every form, since a rule asks first whether a method has it; ``none`` are those that no method has."""
    yield ("weight_bits", "activation_bits", "kv_bits", "group", "value")
    known = {form_name(*figure.design[1:]) for figure in designs()}
    for numbers in product(*_FORMS):
        name = form_name(*numbers)
        yield (*(f"{number:g}" for number in numbers), name if name in known else "none")


def _schemes() -> Iterable[Sequence[object]]:
    yield ("method", "form", "value")
    for figure in _unique(designs(), scheme_name):
        yield (figure.name, form_name(*figure.design[1:]), scheme_name(figure))


def _storage() -> Iterable[Sequence[object]]:
    yield ("scheme", "lower", "upper", "share", "cache", "interpolated")
    for figure in _unique(designs(), scheme_name):
        low = storage_format(figure, figure.w_bits // 1)
        high = storage_format(figure, -(-figure.w_bits // 1))
        cache = {16: "fp16", 8: "int8", 4: "int4"}[int(figure.kv_bits)]
        share = figure.w_bits % 1
        yield (scheme_name(figure), low, high, f"{share:g}", cache, int(figure.interpolated))


def _stored() -> Iterable[Sequence[object]]:
    yield ("scheme", "value")
    for figure in _unique(designs(), scheme_name):
        yield (scheme_name(figure), storage_format(figure, figure.w_bits // 1))


def _units() -> Iterable[Sequence[object]]:
    yield ("scheme", "value")
    for figure in _unique(designs(), scheme_name):
        eight = "fp8" if figure.method.startswith("fp8") else "int8"
        yield (scheme_name(figure), {16: "half", 8: eight, 4: "fp4"}[int(figure.a_bits)])


def _losses() -> Iterable[Sequence[object]]:
    yield ("series", "published", "scheme", "value")
    for figure in designs():
        yield (figure.series.name, figure.model, scheme_name(figure), f"{figure.loss:.10g}")


def _by_series(model: str, wanted: str) -> dict[str, int]:
    """How many figures each series has of a model: all, or perplexities or accuracies alone."""
    counts: dict[str, int] = {}
    for figure in designs():
        kind = "perplexity" if figure.series.lower_is_better else "accuracy"
        if figure.model == model and wanted in ("any", kind):
            counts[figure.series.name] = counts.get(figure.series.name, 0) + 1
    return counts


def _evidence() -> Iterable[Sequence[object]]:
    yield ("published", "quality", "value")
    for model, wanted in product(_models(), _QUALITIES):
        counts = _by_series(model, wanted)
        if counts:
            yield (model, wanted, max(counts, key=lambda name: (counts[name], name)))


def _counted() -> Iterable[Sequence[object]]:
    yield ("published", "quality", "value")
    known = dict.fromkeys((*_models(), *catalog.names("models")))
    for model, wanted in product(known, _QUALITIES):
        yield (model, wanted, sum(_by_series(model, wanted).values()))


def _alike() -> Iterable[Sequence[object]]:
    """Of the catalogue's models without figures: those of the nearest size that have some."""
    yield ("published", "value")
    for model in catalog.names("models"):
        if model not in _models():
            far = {other: model_distance(model, other) for other in _models()}
            yield (model, " or ".join(other for other in far if far[other] == min(far.values())))


@cache
def _models() -> tuple[str, ...]:
    return tuple(sorted({figure.model for figure in designs()}))


def _baselines() -> Iterable[Sequence[object]]:
    yield ("series", "published", "value")
    for figure in _unique(designs(), lambda f: (f.series.name, f.model)):
        yield (figure.series.name, figure.model, int(figure.baseline is not None))


def _nearest_models() -> Iterable[Sequence[object]]:
    """Of the models that a method has figures of, the nearest to each model; of several the one with most figures."""
    yield ("published", "peer", "value")
    counts = Counter(figure.model for figure in figures())
    for model, name in product(_models(), dict.fromkeys(map(_alike_in_models, _names()))):
        far = {o: 0.0 if o == model else model_distance(model, o) for o in _models_of(name)}
        yield (model, name, min(sorted(far), key=lambda other: (far[other], -counts[other])))


@cache
def _widths() -> Mapping[tuple[str, str], tuple[float, ...]]:
    """The widths that a model has figures of, with a method."""
    found: dict[tuple[str, str], set[float]] = {}
    for figure in designs():
        if not figure.interpolated:
            found.setdefault((figure.model, figure.name), set()).add(figure.w_bits)
    return {key: tuple(sorted(widths)) for key, widths in found.items()}


def _width_list(widths: Iterable[float]) -> str:
    return " ".join(f"{bits:g}" for bits in widths)


def _line_widths() -> Iterable[Sequence[object]]:
    yield ("near_model", "method", "value")
    yield from ((*key, _width_list(widths)) for key, widths in _widths().items())


def _nearest_widths() -> Iterable[Sequence[object]]:
    """Of the widths that there are, the nearest to each; of two the wider."""
    yield ("widths", "weight_bits", "value")
    for widths, bits in product(dict.fromkeys(_widths().values()), _WIDTHS):
        near = min(widths, key=lambda width: (abs(width - bits), -width))
        yield (_width_list(widths), f"{bits:g}", f"{near:g} bits")


def _figures_at() -> Iterable[Sequence[object]]:
    """What there is of a model, with a method and width, and in which series."""
    yield ("near_model", "method", "width", "value")
    told: dict[tuple[str, str, str], dict[str, list[str]]] = {}
    for figure in designs():
        if not figure.interpolated:
            key = (figure.model, figure.name, f"{figure.w_bits:g} bits")
            told.setdefault(key, {}).setdefault(design_text(figure), []).append(figure.series.name)
    for key, texts in told.items():
        yield (
            *key,
            f"{key[0]} " + " or ".join(f"{text} ({', '.join(names)})" for text, names in texts.items()),
        )


def _figured() -> Iterable[Sequence[object]]:
    yield ("figures", "series")
    yield ("model", "")
    for model in _models():
        yield (
            model,
            ";".join(n for n in series() if any(f.series.name == n for f in designs() if f.model == model)),
        )


def _quantizers() -> Iterable[Sequence[object]]:
    yield ("method", "measured", "calibrated", "has", "needs")
    for name, method in METHODS.items():
        told = f"{_list(method.bits)} bits, {_list(method.groups)} as groups, activations in {_list(method.activations)}"
        yield (name, "true", str(method.calibrated).lower(), told, "")
    for name in ("quip", "aqlm", "qat"):
        yield (name, "false", "true", "no quantizer here", UNMEASURED[name])


def _list(values: Sequence[int]) -> str:
    texts = [str(value) for value in values]
    return " or ".join(filter(None, [", ".join(texts[:-1]), texts[-1]]))


def _measurable() -> Iterable[Sequence[object]]:
    yield ("method", "weight_bits", "activation_bits", "group", "value")
    for name, method in METHODS.items():
        yield from ((name, *keys, 1) for keys in product(method.bits, method.activations, method.groups))


def _unique(found: Iterable[Figure], key: object) -> list[Figure]:
    assert callable(key)
    kept: dict[object, Figure] = {}
    for figure in found:
        kept.setdefault(key(figure), figure)
    return list(kept.values())


TABLES = {
    "methods.csv": _methods, "schemes.csv": _schemes, "storage.csv": _storage, "stored.csv": _stored, "units.csv": _units, "losses.csv": _losses,
    "evidence.csv": _evidence, "baselines.csv": _baselines,
    "counted.csv": _counted, "alike.csv": _alike,
    "forms.csv": _forms, "nearest_models.csv": _nearest_models, "line_widths.csv": _line_widths,
    "nearest_widths.csv": _nearest_widths, "figures_at.csv": _figures_at,
    "figured.csv": _figured, "quantizers.csv": _quantizers, "measurable.csv": _measurable,
}  # fmt: skip
"""What each file is made by."""


def text_of(table: str) -> str:
    """A table as its file has it."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(TABLES[table]())
    return out.getvalue()


def write() -> None:
    """Write all tables."""
    for table in TABLES:
        (_FOLDER / table).write_text(text_of(table), encoding="utf-8")


if __name__ == "__main__":
    write()
