"""A file that extends another: maps merge by key, lists and scalars replace, null deletes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse.errors import SpaceError
from dse.space import ConstraintDecl, Declaration, DimensionDecl, InputDecl, load_declaration
from tests.space.spacefiles import CAMERA, errors_of


def extend(folder: Path, text: str, base: str = CAMERA) -> Path:
    (folder / "base.yaml").write_text(base, encoding="utf-8")
    path = folder / "child.yaml"
    path.write_text(f"extends: base.yaml\n{text}", encoding="utf-8")
    return path


def load(folder: Path, text: str, base: str = CAMERA) -> Declaration:
    return load_declaration(extend(folder, text, base))


def test_what_is_not_repeated_comes_from_the_base(tmp_path: Path) -> None:
    child = load(tmp_path, "name: mine\n")
    base = load_declaration(tmp_path / "base.yaml")
    assert child.model == base.model.model_copy(update={"name": "mine", "extends": "base.yaml"})
    assert child.locate(("title",)) == base.locate(("title",))
    assert Path(child.locate(("name",)).file).name == "child.yaml"
    assert [path.name for path in child.files] == ["child.yaml", "base.yaml"]


def test_maps_merge_and_lists_replace(tmp_path: Path) -> None:
    model = load(
        tmp_path, "dimensions: {format: [fp32]}\nobjectives: {score: minimize}\nlets: {more: 1}\n"
    ).model
    assert model.dimensions["format"] == DimensionDecl(choices=("fp32",))
    assert len(model.dimensions) == 7
    assert model.objectives == {"latency": "minimize", "score": "minimize"}
    assert list(model.lets) == ["compute", "factor", "more"]


def test_null_deletes(tmp_path: Path) -> None:
    text = "teams: {both: null, ml: {distill: null}}\nconstraints: ~\ntables: {rates: {rows: {cpu: {fp32: null}}}}\n"
    model = load(tmp_path, text).model
    assert set(model.teams) == {"ml", "systems", "mlsys"}
    assert model.teams["ml"].restrict == {"hardware": "cpu"}  # type: ignore[union-attr]
    assert model.constraints == {}
    assert model.tables["rates"].rows["cpu"] == {}


def test_null_for_nothing_is_an_error(tmp_path: Path) -> None:
    assert errors_of(extend(tmp_path, "teams: {sytems: null}\n")) == [
        "child.yaml:2:9: teams.sytems: found null, which deletes, but there is no 'sytems' to delete; did you mean 'systems'?"
    ]


def test_one_cell_of_a_table(tmp_path: Path) -> None:
    text = "tables:\n  detectors: {rows: {Det-S: {work: 2}}}\n  rates: {rows: {npu: {fp32: 7}}}\n"
    tables = load(tmp_path, text).model.tables
    assert tables["detectors"].rows["Det-S"] == (86.0, 2, 2.5e6)
    assert tables["rates"].rows["npu"] == {"int8.v2": 2000, "fp32": 7}


def test_a_new_column_with_its_cells(tmp_path: Path) -> None:
    text = "tables: {detectors: {columns: {cost: USD}, rows: {Det-S: {cost: 1}, Det-L: {cost: 2}}}}"
    rows = load(tmp_path, text).model.tables["detectors"].rows
    assert rows == {"Det-S": (86.0, 1.5, 2.5e6, 1), "Det-L": (91.8, "15 Gop", 31, 2)}


def test_short_forms_count_as_what_they_stand_for(tmp_path: Path) -> None:
    text = "inputs: {n_gpus: 16, fast: {about: new}}\ndimensions: {chunks: [1, 8], distill: {when: fast}}\n"
    model = load(tmp_path, text).model
    assert model.inputs["n_gpus"] == InputDecl(default=16, choices=(8, 16))
    assert model.inputs["fast"] == InputDecl(default=False, about="new")
    assert model.dimensions["chunks"] == DimensionDecl(choices=(1, 8), when="batch > 1", otherwise=1)
    assert model.dimensions["distill"] == DimensionDecl(choices=(False, True), when="fast")


def test_a_dimension_may_change_its_form(tmp_path: Path) -> None:
    child = load(tmp_path, "dimensions: {batch: [1, 3], memory: {range: [1, 4]}, detector: [a, b]}\n")
    assert child.model.dimensions["batch"] == DimensionDecl(choices=(1, 3))
    assert child.model.dimensions["detector"] == DimensionDecl(choices=("a", "b"))
    assert child.ranges == {"memory": range(1, 5)}


def test_a_constraint_may_change_its_form(tmp_path: Path) -> None:
    model = load(tmp_path, "constraints: {total: '<= 3 s', score: {check: score > 2}}\n").model
    assert model.constraints["total"] == "<= 3 s"
    assert model.constraints["score"] == ConstraintDecl(check="score > 2")


def test_a_file_replaces_the_rows_of_the_base(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("name,params,accuracy,work\nDet-X,1,2,3\n")
    path = extend(tmp_path, "tables: {detectors: {file: d.csv}}\n")
    assert load_declaration(path).model.tables["detectors"].rows == {"Det-X": (2, 3, 1)}
    grandchild = tmp_path / "grandchild.yaml"
    grandchild.write_text(
        "extends: child.yaml\ntables: {detectors: {rows: {Det-X: {work: 4}, Det-Y: [1, 2, 3]}}}\n"
    )
    assert load_declaration(grandchild).model.tables["detectors"].rows == {
        "Det-X": (2, 4, 1),
        "Det-Y": (1, 2, 3),
    }


def test_a_csv_file_is_looked_for_beside_the_file_that_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "bases"
    folder.mkdir()
    (folder / "t.csv").write_text("name,c\nr,1\n")
    (folder / "b.yaml").write_text(
        "dse: 1\nname: b\ndimensions: {d: {table: t}}\ntables: {t: {columns: {c: 1}, file: t.csv}}\n"
    )
    path = tmp_path / "child.yaml"
    path.write_text("extends: bases/b.yaml\nname: c\n")
    assert load_declaration(path).model.tables["t"].rows == {"r": (1,)}


def test_errors_of_both_files_are_reported_together(tmp_path: Path) -> None:
    found = errors_of(
        extend(tmp_path, "lets: {x: true}\nlets: {y: 1}\n", CAMERA.replace("unit: 1}", "unit: 2}"))
    )
    assert [error.split(" found")[0].split(":")[0] for error in found] == [
        "child.yaml",
        "child.yaml",
        "base.yaml",
    ]


def test_cycles_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("extends: b.yaml\n")
    (tmp_path / "b.yaml").write_text("extends: a.yaml\n")
    assert errors_of(tmp_path / "a.yaml") == [
        "b.yaml:1:10: extends: found 'a.yaml', which extends this file again"
    ]
    (tmp_path / "self.yaml").write_text("extends: self.yaml\n")
    assert "which extends this file again" in errors_of(tmp_path / "self.yaml")[0]
    (tmp_path / "c.yaml").write_text("extends: bb.yaml\n")
    assert errors_of(tmp_path / "c.yaml") == [
        "c.yaml:1:10: extends: found no file 'bb.yaml', expected one; did you mean 'b.yaml'?"
    ]


@pytest.mark.parametrize("name", ["../base.yaml", "/etc/hostname", "x/../../base.yaml", "link.yaml"])
def test_bases_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "base.yaml").write_text(CAMERA)
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link.yaml").symlink_to(tmp_path / "base.yaml")
    (inside / "child.yaml").write_text(f"extends: {name}\n")
    assert errors_of(inside / "child.yaml") == [
        f"child.yaml:1:10: extends: found {name!r}, expected a file below the folder of this one"
    ]


def test_a_shipped_space_is_found_by_its_name(tmp_path: Path) -> None:
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    (shipped / "camera.yaml").write_text(CAMERA)
    child = tmp_path / "mine" / "child.yaml"
    child.parent.mkdir()
    child.write_text("extends: camera\nname: mine\n")

    def resolve(name: str) -> Path | None:
        return shipped / "camera.yaml" if name == "camera" else None

    assert load_declaration(child, resolve=resolve).model.name == "mine"
    with pytest.raises(SpaceError, match="found no file 'camera'"):
        load_declaration(child)
