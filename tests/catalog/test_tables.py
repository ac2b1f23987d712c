"""Hardware and clusters: dense peaks, bytes that programs see, speeds per direction, and names that are not there."""

from __future__ import annotations

import csv
import pickle
from pathlib import Path

import pytest

from dse.errors import InputError, Location
from dse.problem.library import library
from dse.space.nodes import Mapping, Scalar
from dse.space.tables import read_csv_table
from dse.spaces import catalog
from dse.spaces.catalog import cluster, hardware, model, names
from dse.spaces.catalog.columns import COLUMNS

FOLDER = Path(catalog.__file__).parent


@pytest.mark.parametrize("table", COLUMNS)
def test_the_engine_reads_the_same_tables(table: str) -> None:
    where = Location("declared")
    columns = {name: Scalar(where, unit, unit) for name, unit in COLUMNS[table].items()}
    declared = Mapping(where, {"columns": Mapping(where, dict(columns), dict.fromkeys(columns, where))}, {})
    rows, wrong = read_csv_table(FOLDER / f"{table}.csv", declared)
    assert wrong == []
    assert tuple(rows.entries) == names(table)


@pytest.mark.parametrize("table", COLUMNS)
def test_every_row_has_a_source(table: str) -> None:
    with (FOLDER / f"{table}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row for row in rows if not row["source"]] == []
    assert len({next(iter(row.values())) for row in rows}) == len(rows)


@pytest.mark.parametrize(
    ("name", "number_format", "tera"),
    [
        ("h100-sxm", "bf16", 989.4),  # not 1,979, which is sparse, nor 495, which is tf32
        ("h100-sxm", "fp8", 1978.9),
        ("a100-sxm-80", "bf16", 312),
        ("b200-sxm", "bf16", 2250),
        ("b200-sxm", "fp4", 9000),
        ("gb200-nvl72", "bf16", 2500),  # of one GPU, not of a superchip
        ("v100-sxm2-32", "fp16", 125),
        ("mi300x", "bf16", 1307.4),
        ("l4", "int8", 242.5),
        ("h100-sxm", "tf32", 494.7),
        ("orin-agx-64", "int8", 85),
    ],
)
def test_peaks_are_dense(name: str, number_format: str, tera: float) -> None:
    assert getattr(hardware(name), number_format) == pytest.approx(tera * 1e12, rel=1e-12)


def test_peaks_are_the_doubles_nearest_their_text() -> None:
    assert hardware("h100-sxm").bf16 == 989.4e12


def test_h200_computes_like_h100() -> None:
    for number_format in ("bf16", "fp16", "fp8", "fp4", "int8", "tf32", "fp32"):
        assert getattr(hardware("h200-sxm"), number_format) == getattr(hardware("h100-sxm"), number_format)
    assert hardware("h200-sxm").bandwidth > hardware("h100-sxm").bandwidth


def test_a_format_that_a_chip_lacks_is_zero_and_an_unknown_figure_is_missing() -> None:
    assert hardware("v100-sxm2-32").bf16 == hardware("a100-sxm-80").fp8 == hardware("h100-sxm").fp4 == 0
    assert hardware("gb300-nvl72").fp32 is None
    assert hardware("m1-max").link is None


def test_no_rate_falls_with_narrower_numbers() -> None:
    for name in names("hardware"):
        chip = hardware(name)
        rates = [rate for rate in (chip.fp32, chip.tf32, chip.bf16, chip.fp8, chip.fp4) if rate]
        assert rates == sorted(rates), name


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("h100-sxm", 85_520_809_984),
        ("a100-sxm-80", 85_899_345_920),
        ("a100-sxm-40", 40 * 2**30),
        ("v100-sxm2-32", 32_510 * 2**20),
        ("h200-sxm", 143_771 * 2**20),
        ("b200-sxm", 183_359 * 2**20),
    ],
)
def test_memory_is_what_a_program_sees(name: str, size: int) -> None:
    assert hardware(name).memory == size


@pytest.mark.parametrize(
    ("name", "link", "nic", "node"),
    [
        ("v100-sxm2-32", 150, 12.5, 8),
        ("a100-sxm-80", 300, 25, 8),  # 600 GB/s is the sum of both directions; 200 Gb/s is 25 GB/s
        ("h100-sxm", 450, 50, 8),
        ("b200-sxm", 900, 50, 8),
        ("gb200-nvl72", 900, 50, 72),
    ],
)
def test_links_are_bytes_per_second_in_one_direction(name: str, link: float, nic: float, node: int) -> None:
    chip = hardware(name)
    assert (chip.link, chip.nic, chip.node) == (link * 1e9, nic * 1e9, node)


def test_rows_are_plausible() -> None:
    for name in names("hardware"):
        chip = hardware(name)
        assert 1e9 < chip.memory < 1e12
        assert chip.node >= 1
        assert chip.checked in {"read", "part-read", "recall"}
        assert chip.generation
        assert (chip.price is None) == (not chip.price_source)
        assert not chip.idle or chip.idle < chip.tdp
        assert not chip.nic or chip.nic < (chip.link or 1e12)


def test_prices_are_per_chip_and_hour() -> None:
    assert hardware("h100-sxm").price * 3600 == pytest.approx(55.04 / 8)
    assert "2026-09-10" in hardware("h100-sxm").price_source


def test_clusters_have_tiers() -> None:
    standard = cluster("standard")
    assert (standard.node, standard.nic, standard.rack, standard.fabric_slowdown) == (0, 0, 0, 1)
    assert names("clusters")[0] == "standard"
    meta = cluster("meta-24k-roce")
    assert (meta.node, meta.nic, meta.rack, meta.fabric_slowdown) == (8, 50e9, 3072, 7)
    assert (cluster("jean-zay-v100").node, cluster("internevo-roce").nic) == (4, 6.25e9)
    for name in names("clusters"):
        row = cluster(name)
        assert row.checked in {"read", "part-read", "recall"}
        assert row.rack_slowdown >= 1
        assert row.fabric_slowdown >= 1
        assert row.in_network in (0, 1)
        assert row.rack == 0 or row.rack % row.node == 0
        assert not row.hardware or hardware(row.hardware)


def test_unknown_names_list_the_nearest_and_every_known_one() -> None:
    with pytest.raises(InputError) as caught:
        hardware("h100-sxn")
    assert str(caught.value).startswith(
        "unknown hardware 'h100-sxn'; did you mean 'h100-sxm'? Known: v100-sxm2-32, "
    )
    assert all(name in str(caught.value) for name in names("hardware"))
    with pytest.raises(InputError, match=r"unknown model 'llama-3\.1-450b'; did you mean 'llama-3\.1-405b'"):
        model("llama-3.1-450b")
    with pytest.raises(
        InputError, match=r"unknown model 'xyz'; known: gpt-3-175b, .*, or the path of a Hugging Face"
    ):
        model("xyz")
    with pytest.raises(InputError, match="unknown cluster 'selene'; known: standard, dgx-a100-superpod"):
        cluster("selene")
    with pytest.raises(InputError, match=r"unknown table 'models\.csv'; did you mean 'models'"):
        names("models.csv")


def test_no_chip_stands_in_for_an_unknown_one() -> None:
    for name in ("", "A100", "a100", "H100-SXM ", "gpu"):
        with pytest.raises(InputError):
            hardware(name)


def test_rows_do_not_change() -> None:
    chip = hardware("h100-sxm")
    with pytest.raises(AttributeError, match=r"use replace\(bf16=...\)"):
        chip.bf16 = 1
    with pytest.raises(AttributeError, match="do not change"):
        del chip.bf16
    faster = chip.replace(bandwidth=4e12)
    assert (faster.bandwidth, chip.bandwidth, faster.bf16) == (4e12, 3.35e12, chip.bf16)
    assert faster != chip
    assert faster.name == chip.name
    with pytest.raises(
        AttributeError, match="hardware 'h100-sxm' has no 'bandwith'; did you mean 'bandwidth'"
    ):
        _ = chip.bandwith


def test_rows_can_be_copied_to_a_worker() -> None:
    chip = hardware("h100-sxm")
    copied = pickle.loads(pickle.dumps(chip))
    assert copied == chip
    assert hash(copied) == hash(chip)
    assert repr(copied) == "<hardware h100-sxm>"


def test_the_catalogue_is_no_space() -> None:
    assert [name for name in library() if name.startswith("catalog")] == []
