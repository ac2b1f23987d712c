"""Tables: inline rows and CSV files give the same, and every wrong cell is found in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.space import KeyedTableDecl, RowTableDecl, load_declaration
from tests.space.spacefiles import SMALL, errors, errors_of, read, with_section

COLUMNS = "columns: {time: ms, label: text, on_chip: flag, engines: texts}"


def rows_errors(rows: str) -> list[str]:
    found = errors(with_section(f"tables:\n  t:\n    {COLUMNS}\n    rows:\n      {rows}\n"))
    return [error.removeprefix("s.yaml:8:") for error in found]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("r: [1, x, true]", "10: tables.t.rows.r: found a row of 3, expected 4 cells (time, label, on_chip, engines)"),
        ("r: 3", "10: tables.t.rows.r: found 3, expected a list of 4 cells or a mapping"),
        ("r: {tiem: 1}", "11: tables.t.rows.r.tiem: found the column 'tiem', expected a declared one; did you mean 'time'?"),
        ("r: {time: x}", "17: tables.t.rows.r.time: found 'x', expected a number or a quantity in ms; 'x' is not a quantity"),
        ("r: {time: 1_000}", "17: tables.t.rows.r.time: found '1_000', expected a number or a quantity in ms; digits must not"),
        ("r: {time: true}", "17: tables.t.rows.r.time: found true, expected a number or a quantity in ms"),
        ("r: {time: '3'}", "18: tables.t.rows.r.time: found '3', expected a number or a quantity in ms, without quotes"),
        ("r: {time: 3 GB}", "17: tables.t.rows.r.time: found '3 GB', expected a number or a quantity in ms"),
        ("r: {time: 3 mss}", "17: tables.t.rows.r.time: found '3 mss', expected a number or a quantity in ms; unknown unit"),
        ("r: {time: [1]}", "17: tables.t.rows.r.time: found a list of 1, expected a number or a quantity in ms"),
        ("r: {label: 1.0}", "18: tables.t.rows.r.label: found 1.0, expected a text (in quotes if it looks like a number)"),
        ("r: {on_chip: yes}", "20: tables.t.rows.r.on_chip: found 'yes', expected true or false"),
        ("r: {engines: x}", "20: tables.t.rows.r.engines: found 'x', expected a list of texts"),
        ("r: {engines: [1]}", "20: tables.t.rows.r.engines: found a list of 1, expected a list of texts"),
        ("{}", "7: tables.t.rows: found no rows, expected at least one (rows or file)"),
        ("x", "7: tables.t.rows: found 'x', expected a mapping of rows"),
    ],
)  # fmt: skip
def test_wrong_rows(row: str, message: str) -> None:
    found = rows_errors(row)
    assert len(found) == 1, found
    assert found[0].startswith(message)


def test_every_wrong_cell_is_reported() -> None:
    assert len(rows_errors("r: [x, 1, 2, 3]")) == 4


def test_null_and_absent_cells_are_missing() -> None:
    text = with_section(f"tables: {{t: {{{COLUMNS}, rows: {{r: [~, null, , ''], s: {{time: 1}}}}}}}}")
    table = read(text.replace(", , ''", ", null, null")).model.tables["t"]
    assert isinstance(table, RowTableDecl)
    assert table.rows == {"r": (None, None, None, None), "s": (1, None, None, None)}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("{a: 3}", "tables.t.rows.a: found 3, expected a mapping whose keys are values of 'g'"),
        ("{a: {b: {c: 3}}}", "tables.t.rows.a.b: found a mapping (c), expected a cell, not another level"),
        ("{a: {b: x}}", "tables.t.rows.a.b: found 'x', expected a number or a quantity in ms"),
        ("{a: {b: 3 GB}}", "tables.t.rows.a.b: found '3 GB', expected a number or a quantity in ms"),
        ("{}", "tables.t.rows: found no rows, expected at least one (rows or file)"),
    ],
)
def test_wrong_cells_of_a_keyed_table(rows: str, message: str) -> None:
    found = errors(with_section(f"tables: {{t: {{keys: [f, g], unit: ms, rows: {rows}}}}}"))
    assert len(found) == 1, found
    assert found[0].split(": ", 1)[1].startswith(message)


def test_a_key_given_twice() -> None:
    found = errors(with_section("tables: {t: {keys: [f, f], unit: ms, rows: {a: {b: 3}}}}"))
    assert found == ["s.yaml:4:24: tables.t.keys.1: found 'f', expected every key once"]


# ------------------------------------------------------------------------------------------------------ CSV


def space(
    folder: Path, csv: str | None, table: str = f"{{{COLUMNS}, file: t.csv}}", file: str = "t.csv"
) -> Path:
    if csv is not None:
        (folder / file).write_text(csv, encoding="utf-8")
    path = folder / "s.yaml"
    path.write_text(f"{SMALL}tables: {{t: {table}}}\n", encoding="utf-8")
    return path


def test_a_csv_file_gives_what_inline_rows_give(tmp_path: Path) -> None:
    csv = 'name, engines ,time,label,on_chip\r\n"a, b",x;y,1e-3,1.0,true\r\n\r\nc,,3 s,,\r\n'
    declaration = load_declaration(space(tmp_path, csv))
    table = declaration.model.tables["t"]
    assert isinstance(table, RowTableDecl)
    assert table.rows == {"a, b": (0.001, "1.0", True, ("x", "y")), "c": ("3 s", None, None, None)}
    assert declaration.text(("tables", "t", "rows", "a, b", "time")) == "1e-3"
    where = declaration.locate(("tables", "t", "rows", "c", "time"))
    assert (Path(where.file).name, where.line) == ("t.csv", 4)
    assert [path.name for path in declaration.files] == ["s.yaml", "t.csv"]


def test_a_keyed_csv_file(tmp_path: Path) -> None:
    table = "{keys: [f, g], unit: ms, file: t.csv}"
    declaration = load_declaration(space(tmp_path, "g,f,value\nx,a,1\ny,a,2 s\nx,b,\n", table))
    rates = declaration.model.tables["t"]
    assert isinstance(rates, KeyedTableDecl)
    assert dict(rates.cells()) == {("a", "x"): 1, ("a", "y"): "2 s", ("b", "x"): None}


def test_a_keyed_table_names_its_column_of_a_table_of_measurements(tmp_path: Path) -> None:
    table = "{keys: [f, g], unit: ms, file: t.csv, value: time}"
    csv = "note,g,f,time,size\nfirst,x,a,1,\n,y,a,,3\n,y,b,2 s,\n"
    rates = load_declaration(space(tmp_path, csv, table)).model.tables["t"]
    assert isinstance(rates, KeyedTableDecl)
    assert dict(rates.cells()) == {("a", "x"): 1, ("b", "y"): "2 s"}
    assert errors_of(space(tmp_path, csv.replace("time", "tiem"), table)) == [
        "t.csv:1: tables.t: found no column 'time', expected f, g, time; did you mean 'tiem'?"
    ]


def test_rows_beside_a_file_amend_it(tmp_path: Path) -> None:
    table = f"{{{COLUMNS}, file: t.csv, rows: {{a: {{time: 9}}, b: [1, x, true, [y]], c: null}}}}"
    csv = "name,time,label,on_chip,engines\na,1,x,true,y\nc,1,x,true,y\n"
    rows = load_declaration(space(tmp_path, csv, table)).model.tables["t"].rows
    assert rows == {"a": (9, "x", True, ("y",)), "b": (1, "x", True, ("y",))}


HEADER = "name,time,label,on_chip,engines\n"


@pytest.mark.parametrize(
    ("csv", "messages"),
    [
        ("", ["t.csv:1: tables.t: found an empty file, expected a line of column names"]),
        (HEADER, ["t.csv:1: tables.t: found no rows, expected at least one below the column names"]),
        (HEADER + "a,1,x,true\n", ["t.csv:2: tables.t: found a row of 4, expected 5 cells (name, time, label, on_chip, engines)"]),
        (HEADER + "a,1,x,true,y\n\na,1,x,true,y\n", ["t.csv:4: tables.t: found the row 'a' again, expected it once"]),
        (HEADER + ",1,x,true,y\n", ["t.csv:2: tables.t: found an empty row name, expected a name"]),
        (HEADER + "a,x,x,maybe,y\n", [
            "t.csv:2: tables.t.rows.a.time: found 'x', expected a number or a quantity in ms; 'x' is not a quantity; write a number and a unit, like '10 ms'",
            "t.csv:2: tables.t.rows.a.on_chip: found 'maybe', expected true or false",
        ]),
        (HEADER + "a,1e999,x,true,y\n", ["t.csv:2: tables.t: found 1e999, expected a number that fits a double (up to 1.8e308)"]),
        (HEADER + 'a,"1,x,true,y\n', ["t.csv:2: tables.t: found broken CSV (unexpected end of data), expected comma-separated cells"]),
        (HEADER.replace("time", "tiem") + "a,1,x,true,y\n", [
            "t.csv:1: tables.t: found the column 'tiem', expected a declared one; did you mean 'time'?",
            "t.csv:1: tables.t: found no column 'time', expected name, time, label, on_chip, engines",
        ]),
        (HEADER.replace("time", "label") + "a,1,x,true,y\n", [
            "t.csv:1: tables.t: found the column 'label' 2 times, expected it once",
            "t.csv:1: tables.t: found no column 'time', expected name, time, label, on_chip, engines",
        ]),
        (None, ["s.yaml:4:85: tables.t.file: found no file 't.csv', expected one"]),
    ],
)  # fmt: skip
def test_wrong_csv_files(tmp_path: Path, csv: str | None, messages: list[str]) -> None:
    assert errors_of(space(tmp_path, csv)) == messages


def test_a_csv_file_of_another_encoding(tmp_path: Path) -> None:
    path = space(tmp_path, "")
    (tmp_path / "t.csv").write_bytes(HEADER.encode() + b"caf\xe9,1,x,true,y\n")
    assert errors_of(path) == ["t.csv:2:4: found byte 0xe9, expected UTF-8 text"]


@pytest.mark.parametrize("file", ["../t.csv", "/etc/passwd", "a/../../t.csv", "link.csv", "'\\0'"])
def test_files_elsewhere_are_refused(tmp_path: Path, file: str) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "t.csv").write_text(HEADER + "a,1,x,true,y\n")
    (inside / "link.csv").symlink_to(tmp_path / "t.csv")
    found = errors_of(space(inside, None, f"{{{COLUMNS}, file: {file}}}"))
    assert len(found) == 1
    assert "expected a file below the folder of this one" in found[0] or "found no file" in found[0]
    assert ("found no file" in found[0]) == (file == "'\\0'")


NUMBERS = st.one_of(st.integers(-(10**6), 10**6), st.floats(allow_nan=False, allow_infinity=False))


@given(
    st.dictionaries(st.from_regex(r"[A-Za-z0-9 ()._-]{1,8}", fullmatch=True), NUMBERS, min_size=1, max_size=8)
)
def test_numbers_come_back_from_both_forms(
    tmp_path_factory: pytest.TempPathFactory, cells: dict[str, float]
) -> None:
    cells = {name.strip() or "x": value for name, value in cells.items()}
    folder = tmp_path_factory.mktemp("csv")
    lines = "".join(f'"{name}",{value!r}\n' for name, value in cells.items())
    by_csv = load_declaration(space(folder, "name,c\n" + lines, "{columns: {c: 1}, file: t.csv}"))
    inline = ", ".join(f"'{name}': [{value!r}]" for name, value in cells.items())
    by_rows = read(with_section(f"tables: {{t: {{columns: {{c: 1}}, rows: {{{inline}}}}}}}"))
    expected = {name: (value,) for name, value in cells.items()}
    assert by_csv.model.tables["t"].rows == by_rows.model.tables["t"].rows == expected
