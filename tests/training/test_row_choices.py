"""What rows of measured runs state, what is assumed where they do not, and the columns that a table needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dse.spaces.training.measured.choices import SOURCES, TWO_BYTE_GRADIENTS
from dse.spaces.training.measured.row import SMALLEST, Row
from dse.spaces.training.measured.told import assumed_notes, scored_note
from dse.spaces.training.rows import Rows, read_rows
from dse.spaces.training.validation import PUBLISHED
from tests.training.measured_tables import write_table

Read = Callable[..., Rows]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads a table of rows that differ from :data:`ROW`."""
    return lambda *rows: read_rows(write_table(tmp_path / "runs.csv", rows or [{}]))


def one(rows: Rows) -> Row:
    (row,) = rows.rows
    return row


@pytest.fixture(scope="module")
def published() -> Rows:
    return read_rows(PUBLISHED)


@pytest.mark.parametrize(
    ("cells", "dp", "tp"),
    [
        ({}, False, False),
        ({"seq_parallel": "yes"}, False, True),
        ({"seq_parallel": "yes", "tp": "1", "dp": "64"}, False, False),
        ({"zero_stage": "1", "sharding": "distributed optimizer"}, True, False),
        ({"zero_stage": "1", "sharding": "distributed optimizer", "seq_parallel": "yes"}, True, True),
        ({"zero_stage": "3", "sharding": "FSDP2"}, True, False),
        ({"zero_stage": "3", "sharding": "Megatron-FSDP"}, True, False),
        *(({"zero_stage": str(stage), "sharding": f"ZeRO-{stage}"}, False, False) for stage in range(4)),
        ({"overlap_dp": "yes", "overlap_tp": "true"}, True, True),
        ({"zero_stage": "1", "sharding": "distributed optimizer", "overlap_dp": "no"}, False, False),
        ({"seq_parallel": "yes", "overlap_tp": "0"}, False, False),
    ],
)
@pytest.mark.parametrize(
    "source", ["a paper", "NVIDIA DGX Cloud", "NeMo", "InternEvo on our machines", "torchtitan"]
)
def test_what_overlaps_follows_from_what_the_row_states(
    read: Read, cells: Mapping[str, str], dp: bool, tp: bool, source: str
) -> None:
    (plan,) = one(read({**cells, "source": source})).plans
    assert (plan["overlap_dp"], plan["overlap_tp"]) == (dp, tp)


def test_no_plan_depends_on_what_a_source_is_called(published: Rows, tmp_path: Path) -> None:
    """But for the four sources that the documentation names, of which no column says what they ran."""
    named = {*SOURCES, TWO_BYTE_GRADIENTS}
    path = tmp_path / "renamed.csv"
    text = PUBLISHED.read_text(encoding="utf-8")
    sources = {row.cells["source"] for row in published.rows if row.cells["source"].casefold() not in named}
    assert len(sources) > 5
    for at, source in enumerate(sources):
        text = text.replace(source, f"s{at} InternEvo NeMo" if at % 2 else f"s{at}")
    path.write_text(text, encoding="utf-8")
    renamed = read_rows(path).rows
    changed = sum(
        old.cells["source"] != new.cells["source"] for old, new in zip(published.rows, renamed, strict=True)
    )
    assert changed > 150
    for old, new in zip(published.rows, renamed, strict=True):
        assert (old.plans, old.kind, old.assumed) == (new.plans, new.kind, new.assumed)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"attention": "flash", "precision": "fp16"}, {"attention": "flash"}),
        ({"pp": "4", "dp": "4", "schedule": "zb-h1"}, {"schedule": "zb-h1"}),
        ({"pp": "4", "dp": "4", "placement": "tp-cp-pp-dp"}, {"placement": "tp-cp-pp-dp"}),
        ({"pp": "4", "dp": "4", "edges": "embedding"}, {"edges": "embedding"}),
        ({"edges": "embedding"}, {"edges": "even"}),
    ],
)
def test_optional_columns_state_the_plan(
    read: Read, cells: Mapping[str, str], expected: Mapping[str, Any]
) -> None:
    (plan,) = one(read(cells)).plans
    assert {name: plan[name] for name in expected} == expected


def test_what_is_assumed_is_told_where_it_matters(read: Read) -> None:
    stated = {"overlap_dp": "no", "overlap_tp": "no", "attention": "flash3"}
    assert one(read({})).assumed == {"overlap_dp": "off", "overlap_tp": "off", "attention": "flash3"}
    assert one(read(stated)).assumed == {}
    alone = {"n_gpus": "1", "tp": "1", "dp": "1", "attention": "flash", "sharding": "", "zero_stage": ""}
    assert one(read(alone)).assumed == {}
    open_cells = {**stated, "sharding": "", "zero_stage": "", "seq_parallel": "", "system": "A100"}
    assert one(read(open_cells)).assumed == {
        "sharding": "distributed-optimizer", "seq_parallel": "off", "system": "A100 as a100-sxm-80",
    }  # fmt: skip


def test_what_is_known_from_a_published_source_is_told(read: Read) -> None:
    cells = {"source": "InternEvo training performance", "zero_stage": "1", "sharding": "ZeRO-1 over 8 ranks"}
    assert one(read(cells)).assumed["framework"] == "internevo"
    assert "framework" not in one(read({**cells, "framework": "internevo"})).assumed
    assert "framework" not in one(read({**cells, "source": "InternEvo, ours"})).assumed
    recipes = {
        "source": "NVIDIA DGX Cloud Benchmarking recipes", "zero_stage": "1", "sharding": "DDP+distributed optimizer",
    }  # fmt: skip
    assert one(read(recipes)).assumed["gradients"] == "2 bytes"
    assert (
        one(read({**recipes, "source": "ours", "sharding": "distributed-optimizer-bf16"})).plans
        == one(read(recipes)).plans
    )


def test_lines_on_what_is_not_scored_and_what_was_assumed(read: Read) -> None:
    rows = read(
        {},
        {"zero_stage": "1", "sharding": "distributed-optimizer", "seq_parallel": "yes"},
        {"recompute": ""},
        {"flag": "odd"},
        {"dp": "8"},
        {"sharding": "zero9"},
    ).rows
    note = scored_note(rows)
    assert note.startswith("2 of 6 rows scored, 4 not: 2 skipped (1: layout does not multiply to the GPU")
    assert "1 open (1: recomputation unspecified); 1 flagged (1: odd)." in note
    assert scored_note(rows[:2]) == "2 of 2 rows scored."
    assert scored_note(rows[4:5]) == (
        "No row could be predicted, of 1 row. 1: layout does not multiply to the GPU count."
    )
    first, second, third = assumed_notes(rows)
    assert first == (
        "Overlap of DP is not stated in 4 rows: assumed off in 3, for DDP and DeepSpeed's ZeRO, on in 1, for distributed "
        "optimizer, FSDP and InternEvo (column overlap_dp)."
    )
    assert second.startswith("Overlap of TP is not stated in 4 rows: assumed off in 3,")
    assert third == "The attention kernel is not stated in 4 rows: assumed flash3 (column attention)."
    assert assumed_notes(rows[4:]) == []


SMALL = {
    "model": "meta-llama/Llama-3.1-8B", "system": "h100-sxm", "n_gpus": "64", "tp": "2", "pp": "1", "micro_batch": "1",
    "global_batch": "128", "seq_len": "8192", "sharding": "fsdp2", "recompute": "none", "precision": "bf16",
    "metric": "iteration_time", "value": "2.4",
}  # fmt: skip


def test_the_smallest_table(tmp_path: Path) -> None:
    row = one(read_rows(write_table(tmp_path / "mine.csv", [{}], SMALL)))
    assert (row.kind, row.reason, row.hardware, row.cells["source"]) == ("exact", "", "h100-sxm", "mine")
    assert row.model is not None
    assert (row.model["layers"], row.model["kv_heads"], row.cells["layers"]) == (32, 8, "32")
    (plan,) = row.plans
    assert [plan[name] for name in ("dp", "cp", "ep", "chunks")] == [32, 1, 1, 1]
    assert row.target is not None
    assert row.target.seconds == 2.4
    header, told, _ = SMALLEST.removeprefix("The smallest table: ").split("\n")
    path = tmp_path / "told.csv"
    path.write_text(f"{header}\n{told}\n")
    assert one(read_rows(path)).kind == "exact"


def test_models_of_the_catalogue_are_told_apart_in_sweeps(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{}, {"model": "llama-3.2-3b"}], SMALL)
    first, second = read_rows(path).rows
    assert first.scale_sweep != second.scale_sweep


def test_a_part_of_the_architecture_may_be_the_catalogues(read: Read) -> None:
    part = {
        "model": "llama-3.1-8b",
        "hidden": "4096",
        "heads": "32",
        "kv_heads": "",
        "ffn": "",
        "vocab": "",
        "layers": "",
    }
    same, other = read(part, {**part, "hidden": "4097"}).rows
    assert same.model is not None
    assert (same.model["ffn"], same.model["kv_heads"]) == (14336, 8)
    assert other.reason == "architecture not stated (layers, ffn, vocab)"


def test_a_near_miss_of_a_model_is_told(read: Read) -> None:
    nothing = dict.fromkeys(("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab"), "")
    assert one(read({**nothing, "model": "llama-3.1-9b"})).reason.startswith(
        "model 'llama-3.1-9b' is not in the catalogue; did you mean 'llama-3.1-8b'? architecture not stated"
    )
