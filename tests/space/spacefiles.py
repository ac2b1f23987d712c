"""Helpers of the tests of space files."""

from __future__ import annotations

from pathlib import Path

from dse.errors import SpaceError
from dse.space import Declaration, load_declaration

CAMERA = """\
dse: 1
name: camera
title: Object detector on a surveillance camera
inputs:
  min_accuracy: 90 percent
  max_latency: 10 ms
  n_gpus: {default: 8, choices: [8, 16]}
  fast: false
tables:
  detectors:
    columns: {accuracy: percent, work: Gop, params: 1}
    rows:
      Det-S: [86.0, 1.50, 2.5e6]
      Det-L: {accuracy: 91.8, work: 15 Gop, params: 0x1F}
  hardwares:
    columns: {bandwidth: GB/s, engines: texts, retrain: flag, label: text}
    rows: {cpu: [8, [naive, optimized], true, "1.0"], npu: [16, [optimized], no-value, null]}
  rates:
    keys: [hardware, format]
    unit: Gop/s
    rows: {cpu: {fp32: 50}, npu: {int8.v2: 2000}}
dimensions:
  detector: {table: detectors}
  hardware: {table: hardwares}
  format: [fp32, int8.v2]
  distill: [false, true]
  batch: {range: [1, 64], scale: pow2}
  memory: {choices: [1, 2 GB], unit: GB}
  chunks: {choices: [1, 2, 4], when: "batch > 1", otherwise: 1}
rules:
  supported: {check: "rates[hardware, format] > 0", because: "{hardware} cannot run {format}"}
lets:
  compute: "detector.work / rates[hardware, format]"
  factor: 0.10
metrics:
  latency: {expr: "max(compute, 1 ms)", unit: ms}
  score: {expr: 1e-3, unit: 1}
objectives: {latency: minimize, score: maximize}
constraints:
  latency: "<= max_latency"
  score: [">= 1", "<= 10"]
  total: {check: "compute <= 1 s", because: too slow}
teams:
  ml: {hardware: cpu, distill: [false, true]}
  systems: {detector: Det-L, where: "not distill", about: no model changes}
  both: ml | systems
  mlsys: {}
""".replace("no-value", "false")

SMALL = "dse: 1\nname: small\ndimensions: {a: [1, 2]}\n"


def read(text: str, *overrides: tuple[str, str], path: Path = Path("s.yaml")) -> Declaration:
    """The declaration of a text."""
    return load_declaration(path, overrides, text=text)


def errors(text: str, *overrides: tuple[str, str], path: Path = Path("s.yaml")) -> list[str]:
    """What is wrong with a text."""
    try:
        read(text, *overrides, path=path)
    except SpaceError as error:
        return [str(diagnostic) for diagnostic in error.diagnostics]
    return []


def errors_of(path: Path, *overrides: tuple[str, str]) -> list[str]:
    """What is wrong with a file, with the folder left out."""
    try:
        load_declaration(path, overrides)
    except SpaceError as error:
        return [str(diagnostic).replace(f"{path.parent}/", "") for diagnostic in error.diagnostics]
    return []


def with_section(section: str) -> str:
    """A small space with another section."""
    return SMALL + section
