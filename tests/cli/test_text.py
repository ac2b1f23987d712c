"""Plain text: columns, wrapping, counts."""

from __future__ import annotations

import pytest

from dse.cli.text import aligned, blocks, count, paragraph, plural, width


def test_columns_are_aligned_and_ruled() -> None:
    rows = [["name", "n"], ["a", "1"], ["longer", "22"]]
    assert aligned(rows, right={1}, indent=1) == [" name     n", " ------  --", " a        1", " longer  22"]
    assert aligned([]) == []


def test_columns_that_do_not_fit_go_on_below(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    rows = [["k", *(f"{'x' * 19}{n}" for n in range(4))], ["v", *"abcd"]]
    table = blocks(rows, fixed=1, left=1)
    assert [line.split() for line in table if "k" in line] == [["k", *rows[0][1:3]], ["k", *rows[0][3:]]]
    assert max(map(len, table)) <= 60
    assert table[3] == ""
    monkeypatch.setenv("COLUMNS", "120")
    assert blocks(rows, fixed=1, left=1) == aligned(rows, right={1, 2, 3, 4})


def test_no_line_ends_in_blanks() -> None:
    assert aligned([["a", "bb"], ["c", ""]], header=False) == ["a  bb", "c"]


def test_a_number_stays_with_its_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    text = "x" * 56 + " 57 ms, 47 ms over <= 10 ms"
    assert paragraph(text) == ["x" * 56, "  57 ms, 47 ms over <= 10 ms"]


def test_a_design_may_be_broken_between_any_two_dimensions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert paragraph("x" * 52 + " n=32 m=16 format=int8 k=2") == [
        "x" * 52 + " n=32",
        "  m=16 format=int8 k=2",
    ]
    assert paragraph("x" * 54 + " t='5 ms' m=16") == ["x" * 54, "  t='5 ms' m=16"]


def test_a_list_of_numbers_may_be_broken_between_any_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert paragraph("x" * 52 + " 1, 2, 3, 4, 5") == ["x" * 52 + " 1, 2,", "  3, 4, 5"]


def test_a_long_word_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert paragraph("y" * 100) == ["y" * 100]


@pytest.mark.parametrize(("columns", "used"), [("20", 60), ("100", 100), ("500", 120)])
def test_width_is_within_bounds(monkeypatch: pytest.MonkeyPatch, columns: str, used: int) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert width() == used


def test_counts() -> None:
    assert count(1234567) == "1,234,567"
    assert count(2**200).startswith("1,606,938,044,")
    assert count(2**200).endswith("(about 10^60)")
    assert (plural(1, "design"), plural(1200, "design")) == ("1 design", "1,200 designs")
