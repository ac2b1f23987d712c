"""Rows that a file adds and leaves cells open that designs read: all of them are told at once."""

from __future__ import annotations

from pathlib import Path

import dse
from dse.cli.comparing import comparison_lines
from dse.cli.summary import result_lines
from dse.cli.sweeping import sweep_lines
from dse.study.findings import findings
from dse.study.lacking import lacking

BASE = """\
dse: 1
name: chips
tables:
  chips:
    columns: {memory: 1, speed: 1, generation: text, price: 1, unread: 1}
    rows: {a: [8, 2, old, 1, 1], b: [16, 3, new, 2, 1], c: [16, 3, new, null, 1]}
  shares: {keys: [age], unit: 1, rows: {old: 0.5, new: 0.8}}
dimensions: {chip: {table: chips}, n: [1, 2, 4]}
rules: {fits: {check: n * chip.memory >= 16, because: too little memory}}
metrics:
  rate: {expr: "n * chip.speed * shares[chip.generation]", unit: 1}
  cost: {expr: n * chip.price, unit: 1}
objectives: {rate: maximize}
teams: {some: {n: [1, 2]}, half: {n: 1}}
"""


def space(tmp_path: Path, row: str) -> Path:
    (tmp_path / "chips.yaml").write_text(BASE)
    path = tmp_path / "own.yaml"
    path.write_text(f"dse: 1\nextends: chips.yaml\ntables:\n  chips:\n    rows:\n      mine: {row}\n")
    return path


def test_all_cells_are_told_in_one_warning_with_the_rows_place(tmp_path: Path) -> None:
    path = space(tmp_path, "{price: 1}")
    (own,) = [found for found in findings(dse.load(path)) if "rows.mine" in found]
    assert own == (
        f"{path}:6:7: tables.chips.rows.mine: with chip = mine no design is legal, as rules read memory and designs "
        "then also fail, as they read speed, generation, of which chips has no cell"
    )
    assert not findings(dse.load(space(tmp_path, "{memory: 9, speed: 1, generation: old}")))


def test_a_cell_that_names_no_row_is_told_with_the_known_ones(tmp_path: Path) -> None:
    lack = lacking(dse.load(space(tmp_path, "{memory: 9, generation: mychip}")), "chip", "mine")
    assert (lack.columns, lack.rules) == (("speed",), ())
    assert lack.unknown == ("designs fail, as shares has no key mychip, the generation; known: old, new",)


def test_a_search_says_first_that_many_designs_failed_and_why(tmp_path: Path) -> None:
    result = dse.search(dse.load(space(tmp_path, "{memory: 9, speed: 1, generation: mychip}")))
    lines = result_lines(result)
    at = lines.index("warning: 2 of 10 evaluated designs failed: nothing is known of them")
    assert at < next(n for n, line in enumerate(lines) if line.startswith("best design"))
    assert lines[at + 1] == "  2: shares has no key mychip; known: old, new"
    whole = dse.search(dse.load(space(tmp_path, "{memory: 9, speed: 1, generation: old}")))
    assert not any("warning" in line for line in result_lines(whole))


def test_a_sweep_and_a_comparison_count_what_failed(tmp_path: Path) -> None:
    path = space(tmp_path, "{memory: 9, speed: 1, generation: old, price: 3}")
    settings = {"objectives": "{cost: minimize}"}
    results = [
        ((("chip", chip),), dse.search(dse.load(path, {**settings, "chip": chip}))) for chip in ("b", "c")
    ]
    lines = sweep_lines(results)
    assert any(line.split() == ["chip", "legal", "failed", "feasible", "best", "cost"] for line in lines)
    assert "  3: chips.price has no cell c" in lines
    compared = comparison_lines(dse.compare(dse.load(path, settings)))
    assert "some: 2 of 6 evaluated designs failed: nothing is known of them" in compared
