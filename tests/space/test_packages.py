"""Tables whose file is in an installed package: ``file: package:name.csv``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dse.errors import SpaceError
from dse.problem.library import load
from dse.problem.plugins import space_folders
from dse.space import RowTableDecl, load_declaration
from tests.space.spacefiles import SMALL


def text(file: str) -> str:
    return SMALL + f"tables:\n  t: {{columns: {{x: ms}}, file: '{file}'}}\n"


@pytest.fixture
def packages(tmp_path: Path) -> dict[str, Path]:
    for name in ("catalogue", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "catalogue" / "rates.csv").write_text("row,x\na,1\nb,2\n", encoding="utf-8")
    (tmp_path / "beside.csv").write_text("row,x\nc,3\n", encoding="utf-8")
    return {name: tmp_path / name for name in ("catalogue", "other")}


def test_a_file_of_a_package(packages: dict[str, Path], tmp_path: Path) -> None:
    source = tmp_path / "s.yaml"
    found = load_declaration(source, text=text("catalogue:rates.csv"), packages=lambda: packages)
    table = found.model.tables["t"]
    assert isinstance(table, RowTableDecl)
    assert table.rows == {"a": (1,), "b": (2,)}
    assert found.files == (source, tmp_path / "catalogue" / "rates.csv")
    given = [("tables.t.file", "catalogue:rates.csv"), ("tables.t.a.x", "7")]
    changed = load_declaration(
        source, given, text=text("beside.csv"), packages=lambda: packages
    ).model.tables["t"]
    assert isinstance(changed, RowTableDecl)
    assert changed.rows == {"a": (7,), "b": (2,)}


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("catalog:rates.csv", "there is no package 'catalog'; did you mean 'catalogue'?"),
        ("nothing:rates.csv", "there is no package 'nothing'; known: catalogue, other"),
        ("catalogue:rate.csv", "found no file 'catalogue:rate.csv', expected one; did you mean 'rates.csv'?"),
        ("catalogue:../beside.csv", "expected a file below the folder of the package"),
        ("catalogue:/etc/passwd", "expected a file below the folder of the package"),
        ("../beside.csv", "expected a file below the folder of this one"),
    ],
)
def test_mistakes(packages: dict[str, Path], tmp_path: Path, file: str, said: str) -> None:
    with pytest.raises(SpaceError) as caught:
        load_declaration(tmp_path / "s.yaml", text=text(file), packages=lambda: packages)
    (found,) = caught.value.diagnostics
    assert found.location.line == 5
    assert said in found.message


def test_the_packages_of_spaces_are_found() -> None:
    folders = space_folders()
    assert {"camera", "catalog"} <= set(folders)
    assert (folders["camera"] / "space.yaml").is_file()
    with pytest.raises(SpaceError, match="there is no package 'camra'; did you mean 'camera'"):
        load(
            {
                "dse": 1,
                "name": "x",
                "dimensions": {"d": [1]},
                "tables": {"t": {"columns": {"x": 1}, "file": "camra:x.csv"}},
            }
        )


def test_finding_a_package_does_not_import_it() -> None:
    told = (
        "import sys; from dse.problem.plugins import space_folders; found = space_folders();"
        "print([name for name in sys.modules if name.startswith('dse.spaces.')])"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
