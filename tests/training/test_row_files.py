"""Files of measured runs that cannot be read: every finding has its place, and says what a table needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse.errors import SpaceError
from dse.spaces.training.rows import REQUIRED, read_rows
from tests.training.measured_tables import ROW, write_table


def fails(path: Path) -> list[str]:
    with pytest.raises(SpaceError) as caught:
        read_rows(path)
    return [str(found).replace(str(path), "F") for found in caught.value.diagnostics]


@pytest.mark.parametrize("column", REQUIRED)
def test_a_missing_column_is_named(tmp_path: Path, column: str) -> None:
    (found,) = fails(write_table(tmp_path / "t.csv", [{}], without=column))
    assert found.startswith(f"F:1:1: {column}: found no column {column!r}")
    assert "The smallest table: model,system," in found


def test_a_table_without_most_columns_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("model,value\nx,3\n")
    (found,) = fails(path)
    assert found.startswith("F:1:1: found the columns model, value; expected also system, n_gpus, tp, pp,")
    assert len(found) < 600


def test_a_misspelled_optional_column_is_not_passed_over(tmp_path: Path) -> None:
    (found,) = fails(write_table(tmp_path / "t.csv", [{"overlap_dpp": "yes"}]))
    assert found.endswith("overlap_dpp: found a column that is not read; did you mean 'overlap_dp'?")
    assert (
        len(read_rows(write_table(tmp_path / "u.csv", [{"loss at the end": "2", "gpu hours": "3"}])).rows)
        == 1
    )


def test_a_misspelled_column_is_recognised(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{}])
    path.write_text(path.read_text().replace("global_batch", "global_bacth"))
    (found,) = fails(path)
    assert found.startswith("F:1:1: global_batch: found no column 'global_batch'; is it 'global_bacth'?")


def test_text_in_numbers_has_its_place(tmp_path: Path) -> None:
    path = write_table(
        tmp_path / "t.csv", [{}, {"tp": "four", "value": "1_000"}, {"layers": "nan", "pp": "1e999"}]
    )
    columns = path.read_text().splitlines()[0].split(",")
    tp, value, layers, pp = (1 + columns.index(name) for name in ("tp", "value", "layers", "pp"))
    assert fails(path) == [
        f"F:3:{tp}: tp: found 'four', expected a number",
        f"F:3:{value}: value: found '1_000', expected a number",
        f"F:4:{pp}: pp: found '1e999', expected a number",
        f"F:4:{layers}: layers: found 'nan', expected a number",
    ]


def test_lines_are_counted_through_quoted_cells(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{"notes": 'two\nlines, "quoted"'}, {"tp": "x"}])
    (found,) = fails(path)
    assert found.startswith("F:4:")


def test_marks_blank_lines_and_line_ends(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{"notes": "a, b"}, {}])
    plain = read_rows(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    marked = read_rows(path)
    assert [row.cells for row in marked.rows] == [row.cells for row in plain.rows]
    assert plain.rows[0].cells["notes"] == "a, b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"", "F:1:1: found an empty file, expected column names"),
        (b"\n\n", "F:1:1: found an empty file, expected column names"),
        (b"a,b\xff\n", "F:1: found text that is not UTF-8"),
    ],
)
def test_files_that_are_no_table(tmp_path: Path, text: bytes, expected: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    assert fails(path) == [expected]


def test_no_rows_and_short_rows(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [])
    assert fails(path) == ["F:1:1: found no rows, expected at least one row"]
    path.write_text(path.read_text() + "a,b\n")
    assert fails(path) == [f"F:2:1: found 2 cells, expected {len(ROW)}"]


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert fails(tmp_path / "nothing.csv") == ["F: cannot be read: No such file or directory"]
    assert fails(tmp_path)[0].startswith("F: cannot be read:")


def test_a_column_twice_and_many_findings(tmp_path: Path) -> None:
    path = write_table(tmp_path / "t.csv", [{}])
    columns = path.read_text().splitlines()[0].split(",")
    path.write_text(path.read_text().replace("notes", "tp"))
    assert fails(path) == [f"F:1:{columns.index('notes') + 1}: tp: found the column again, expected it once"]
    found = fails(write_table(tmp_path / "u.csv", [{"tp": "x"}] * 50))
    assert len(found) == 21
    assert found[-1] == f"{tmp_path / 'u.csv'}: and 30 more like these".replace(str(tmp_path / "u.csv"), "F")
