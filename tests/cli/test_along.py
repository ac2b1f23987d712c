"""``dse plot --along``: a table, and the picture with its limits and its ridge."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from tests.study.test_along import GPU

Dse = Callable[..., Any]
Snapshot = Callable[[str, str], None]


def words(path: Path) -> str:
    return " ".join(" ".join(ET.parse(path).getroot().itertext()).split())


def test_a_batch_sweep(dse: Dse, snapshot: Snapshot, write: Callable[..., Path], tmp_path: Path) -> None:
    space = write(json.dumps(GPU))
    stem = tmp_path / "sweep"
    ran = dse("plot", space, "format=bf16", "chunks=1", "--along", "batch", "-o", stem)
    assert ran.code == 0
    snapshot("plot_along", ran.out)
    assert ran.err == "".join(f"wrote {stem}.{form}\n" for form in ("png", "svg", "html"))
    drawn = words(stem.with_suffix(".svg"))
    for text in (
        "Batch on one GPU: along batch",
        "Output tokens, unloaded, higher is better",
        "step <= max_step (15 ms)",
        "memory <= 72 GB",
        "transfer | compute",
        "format=bf16 chunks=1",
        "not drawn: batch 2: nothing runs 2",
        "hollow: breaks step",
    ):
        assert text in drawn, text
    before = stem.with_suffix(".svg").read_bytes()
    dse("plot", space, "format=bf16", "chunks=1", "--along", "batch", "-o", stem.with_suffix(".svg"))
    assert stem.with_suffix(".svg").read_bytes() == before


def test_what_is_left_open_is_that_of_the_best_design(
    dse: Dse, write: Callable[..., Path], tmp_path: Path
) -> None:
    space = write(json.dumps(GPU))
    best = dse("plot", space, "--along", "batch", "--y", "step", "-o", tmp_path / "a.svg")
    assert "along batch, the design with the best throughput\n  format=fp8" in best.out
    assert dse("search", space, "--out", tmp_path / "run").code == 0
    run = dse("plot", tmp_path / "run", "--along", "batch", "--y", "step", "-o", tmp_path / "b.svg")
    assert run.out == best.out
    texts = dse("plot", space, "batch=64", "--along", "format", "--y", "step", "-o", tmp_path / "c.svg")
    assert texts.code == 0
    assert "bf16" in words(tmp_path / "c.svg")
    nothing = dse("plot", space, "--along", "batch", "--set", "max_step=1 us", "-o", tmp_path / "d.svg")
    assert nothing.code == 1
    assert "the nearest miss, as no design is feasible" in " ".join(nothing.out.split())


def test_mistakes(dse: Dse, write: Callable[..., Path]) -> None:
    space = write(json.dumps(GPU))
    for arguments, told in (
        (
            ("batch=4", "--along", "batch"),
            "batch=4 fixes the dimension that the plot goes along; leave it out",
        ),
        (("--along", "bach"), "did you mean 'batch'?"),
        (("--along", "batch", "format=bf17"), "dimension 'format' has no value 'bf17'; did you mean 'bf16'?"),
        (("--along", "batch", "--ridge", "step"), "--ridge takes two metrics"),
        (("--along", "batch", "--ridge", "stp,step"), "'stp' is no metric of gpu; did you mean 'step'?"),
        (("--along", "batch", "--ridge", "step,memory"), "step is in ms and memory in GB"),
        (
            ("--along", "chunks", "batch=4", "format=bf16"),
            "nothing to go along in this design: chunks is inactive unless batch > 4, and is then 1",
        ),
        (("--along", "batch", "--x", "step"), "--along takes no --x"),
        (("format=bf16",), "go with --along DIMENSION"),
        (("--y", "step", "--y", "memory"), "go with --along DIMENSION"),
    ):
        ran = dse("plot", space, *arguments)
        assert (ran.code, told in " ".join(ran.err.split())) == (2, True), (arguments, ran.err)
