"""Inputs that name a row of a table, and rows that a space's own function reads from a file."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dse import Planner, search
from dse.errors import InputError, SpaceError, StudyError
from dse.evaluation import judge
from dse.evaluation.sentence import sentence
from dse.problem import Problem
from dse.problem.library import load
from dse.study.study import Study

SPACE = """\
dse: 1
name: sizes
inputs:
  model: {table: models, default: small, about: what is trained}
tables:
  models:
    columns: {layers: 1, size: GB, moe: flag, kind: text, tags: texts, spare: 1}
    rows: {small: [8, 2, false, dense, [x, y], null], 8b: [32, 10 GB, true, sparse, [z], 3]}
    import: ./reading.py:read
  rates: {keys: [model, fmt], unit: GB/s, rows: {small: {bf16: 2, fp8: 4}, 8b: {bf16: 5}}}
dimensions:
  pp: [1, 2, 3, 4, 8]
  fmt: [bf16, fp8]
rules:
  divides: {check: "model.layers % pp == 0", because: "{model} has {model.layers} layers"}
  spare: {check: "fmt == 'bf16' or model.spare > 1", because: "nothing spare"}
metrics:
  time: {expr: "model.size / pp / (3 GB/s)", unit: s}
objectives: {time: minimize}
"""

READING = """\
import json
import dse
def read(path):
    data = json.loads(path.read_text())
    if "wrong" in data:
        raise dse.DseError(data["wrong"])
    return data
"""


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes the space, some of it replaced, and its function; the working directory is another folder."""

    def write(old: str = "", new: str = "") -> Path:
        folder = tmp_path / "space"
        folder.mkdir(exist_ok=True)
        assert old in SPACE
        (folder / "reading.py").write_text(READING, encoding="utf-8")
        (folder / "sizes.yaml").write_text(SPACE.replace(old, new) if old else SPACE, encoding="utf-8")
        return folder / "sizes.yaml"

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return write


def row(**cells: Any) -> str:
    Path("mine.json").write_text(json.dumps(cells), encoding="utf-8")
    return "./mine.json"


def best(problem: Problem) -> float:
    return search(problem).front[0].objectives["time"]


def mistakes(source: Path, *overrides: tuple[str, str], **options: Any) -> str:
    with pytest.raises(SpaceError) as caught:
        load(source, overrides, **options)
    return str(caught.value).replace(f"{source.parent}/", "")


def test_cells_are_those_of_the_row(space: Callable[..., Path]) -> None:
    found = load(space())
    assert found.inputs["model"].value == "small"
    assert best(found) == 2e9 / 8 / 3e9
    assert best(found.with_inputs({"model": "8b"})) == 10e9 / 8 / 3e9  # a row's name is no quantity
    assert best(load(space(), {"model": "8b"})) == 10e9 / 8 / 3e9
    verdict = judge(found, {"pp": 3.0, "fmt": "bf16"})
    assert verdict.rule is not None
    assert sentence(found, verdict.rule.because, {"pp": 3.0, "fmt": "bf16"}) == "small has 8 layers"


def test_a_rule_that_reads_a_missing_cell_rejects(space: Callable[..., Path]) -> None:
    found = load(space())
    verdict = judge(found, {"pp": 1.0, "fmt": "fp8"})
    assert verdict.rule is not None
    assert verdict.rule.name == "spare"
    assert judge(found.with_inputs({"model": "8b"}), {"pp": 1.0, "fmt": "fp8"}).rule is None


def test_cost_functions_read_columns_of_an_input(space: Callable[..., Path]) -> None:
    def cost(model: Any, pp: Any) -> dict[str, Any]:
        return {"time": model.size / pp, "deep": model.layers}

    text = (
        space().read_text(encoding="utf-8").replace('expr: "model.size / pp / (3 GB/s)", unit: s', "unit: GB")
    )
    space().write_text(text.replace("unit: GB}", "unit: GB}\n  deep: {unit: 1}"), encoding="utf-8")
    found = load(Path("../space/sizes.yaml"), {"model": "8b"}, cost=cost)
    assert judge(found, {"pp": 2.0, "fmt": "bf16"}).objectives == (5e9,)


def test_a_planner_changes_the_row_without_loading_again(space: Callable[..., Path]) -> None:
    planner = Planner(load(space()))
    times = [planner.plan({"model": name}).front[0].objectives["time"] for name in ("small", "8b", "small")]
    assert times == [2e9 / 24e9, 10e9 / 24e9, 2e9 / 24e9]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("smal", "input 'model' names a row of models, but got 'smal'; did you mean 'small'? known: small, 8b; or give"),
        ("./none.json", "./none.json: found no file, which ./reading.py:read would read as a row of models"),
        ("large", "known: small, 8b"),
    ],
)  # fmt: skip
def test_an_unknown_row(space: Callable[..., Path], text: str, said: str) -> None:
    found = mistakes(space(), ("model", text))
    assert found.startswith(f"--set model={text}: ")
    assert said in found


def test_many_rows_are_not_all_listed() -> None:
    rows = {f"row{n:03}": [n] for n in range(500)}
    data = {
        "dse": 1, "name": "many", "inputs": {"m": {"table": "t", "default": "row000"}},
        "tables": {"t": {"columns": {"x": "1"}, "rows": rows}}, "dimensions": {"d": [1, 2]},
        "metrics": {"c": {"expr": "m.x * d", "unit": 1}}, "objectives": {"c": "minimize"},
    }  # fmt: skip
    with pytest.raises(
        InputError, match=r"did you mean 'row123'\? known: row\d+(, row\d+){11} and 488 more$"
    ):
        load(data).with_inputs({"m": "rows123"})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("default: small", "default: smal", "inputs.model.default: input 'model' names a row of models, but got 'smal'"),
        ("default: small", "default: 8", 'found 8, expected the name of a row; quote it: "8"'),
        ("table: models", "table: model", "inputs.model.table: found 'model', no table of that name; expected a table of rows; did"),
        ("table: models", "table: rates", "found 'rates', a table keyed by dimensions; expected a table of rows"),
        ("default: small", "default: small, choices: [small]", "found choices beside a table"),
        ("import: ./reading.py:read", "import: reading", "expected a Python function"),
        ("model.layers %", "model.layer %", "table 'models' has no column 'layer'; did you mean 'layers'?"),
        ("import:", "imports:", "found the unknown key 'imports', expected a known one; did you mean 'import'?"),
    ],
)  # fmt: skip
def test_mistakes_in_the_file(space: Callable[..., Path], old: str, new: str, said: str) -> None:
    assert said in mistakes(space(old, new))


# -- rows read from files -----------------------------------------------------------------------------


def test_a_row_read_from_a_file(space: Callable[..., Path]) -> None:
    path = row(layers=4, size="6 GB", moe=True, kind="mine", tags=["z"])
    found = load(space(), {"model": path})
    assert found.inputs["model"].value == path
    assert best(found) == 6e9 / 4 / 3e9
    assert found.graph.tables["models"].columns["tags"].cells[2] == ("z",)
    assert found.graph.tables["models"].columns["spare"].cells[2] is None  # left out: missing
    copied = pickle.loads(pickle.dumps(found))
    assert (copied.digest, best(copied)) == (found.digest, best(found))


def test_the_digest_covers_what_was_read_and_nothing_else(space: Callable[..., Path]) -> None:
    plain = load(space())
    first = plain.with_inputs({"model": row(layers=4, size=6)})
    again = load(space(), {"model": row(layers=4, size=6)})
    other = plain.with_inputs({"model": row(layers=4, size=7)})
    assert first.digest == again.digest != other.digest
    assert other.with_inputs({"model": "small"}).digest == plain.digest
    assert other.with_inputs({"model": "./mine.json"}).digest == other.digest
    assert best(first) == 6e9 / 4 / 3e9
    assert best(other) == 7e9 / 4 / 3e9


def test_a_path_in_the_file_starts_from_its_folder(space: Callable[..., Path]) -> None:
    source = space("default: small", "default: ./own.json")
    (source.parent / "own.json").write_text(json.dumps({"layers": 2, "size": 1}), encoding="utf-8")
    assert best(load(source)) == 1e9 / 2 / 3e9
    assert best(load(source, {"model": "small"})) == 2e9 / 8 / 3e9
    assert "'./own.json' is read by ./reading.py:read, and no code may be run here" in mistakes(
        source, code=None
    )


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"layer": 4}, "./reading.py:read returned the column 'layer', no column of models; did you mean 'layers'?"),
        ({"layers": "four"}, "./mine.json: ./reading.py:read returned 'four' for the column 'layers', expected a number"),
        ({"size": "4 s"}, "returned '4 s' for the column 'size', expected a number in GB"),
        ({"moe": 1}, "returned 1 for the column 'moe', expected true or false"),
        ({"wrong": "no such architecture"}, "--set model=./mine.json: no such architecture"),
    ],
)  # fmt: skip
def test_what_a_reading_function_gets_wrong(
    space: Callable[..., Path], cells: dict[str, Any], said: str
) -> None:
    assert said in mistakes(space(), ("model", row(**cells)))


def test_a_function_that_raises(space: Callable[..., Path]) -> None:
    Path("mine.json").write_text("{", encoding="utf-8")
    assert "mine.json cannot be read: ./reading.py:read raised JSONDecodeError" in mistakes(
        space(), ("model", "mine.json")
    )


def test_what_is_no_regular_file_is_not_opened(space: Callable[..., Path]) -> None:
    Path("folder").mkdir()
    os.mkfifo("pipe")
    for text, said in (
        ("./folder", "--set model=./folder: found a folder, expected a file, which"),
        ("./pipe", "--set model=./pipe: found a device or a pipe"),
        ("/dev/zero", "--set model=/dev/zero: found a device or a pipe"),
        ("/dev/null", "--set model=/dev/null: found an empty file"),
        ("./no\0file", "found no file"),
    ):
        assert said in mistakes(space(), ("model", text))
    Path("folder/config.json").write_text("{}", encoding="utf-8")
    assert "give the path of its config.json: ./folder/config.json" in mistakes(
        space(), ("model", "./folder/")
    )
    assert "'folder' is a folder; give the path of its config.json" in mistakes(space(), ("model", "folder"))
    hub = mistakes(space(), ("model", "Org/Smal"))
    assert (
        "of a Hugging Face id, download its config.json and give the path of that; did you mean 'small'?"
        in hub
    )


def test_a_file_s_name_stands_once_in_a_message(space: Callable[..., Path]) -> None:
    source = space()
    reading = source.parent / "reading.py"
    reading.write_text(
        "from dse.errors import InputError\n\ndef read(path):\n    raise InputError(f'{path}:3: size: found none')\n",
        encoding="utf-8",
    )
    path = row(layers=4)
    assert "--set model=./mine.json:3: size: found none" in mistakes(source, ("model", path))
    assert mistakes(source, ("model", path)).count("mine.json") == 1


def test_code_is_imported_for_a_path_only(space: Callable[..., Path]) -> None:
    source, path = space(), row(layers=4, size=6)
    (source.parent / "reading.py").write_text("raise SystemExit('imported')\n", encoding="utf-8")
    load(source, {"model": "8b"})
    assert "'./mine.json' is read by ./reading.py:read, and no code may be run here" in mistakes(
        source, ("model", path), code=False
    )
    assert "SystemExit: imported" in mistakes(source, ("model", path), code=None)


def test_a_study_is_opened_again_with_the_row(space: Callable[..., Path], tmp_path: Path) -> None:
    found = load(space(), {"model": row(layers=4, size=6)})
    study = Study(found, folder=tmp_path / "run")
    study.run()
    assert Study.open(tmp_path / "run").problem.digest == found.digest
    row(layers=4, size=7)
    with pytest.raises(StudyError, match="is no longer what"):
        Study.open(tmp_path / "run")


def test_a_study_that_was_given_a_path_in_python_reads_it_only_where_code_may_run(
    space: Callable[..., Path], tmp_path: Path
) -> None:
    found = load(space()).with_inputs({"model": row(layers=4, size=6)})
    Study(found, folder=tmp_path / "run").run()
    assert Study.open(tmp_path / "run").problem == found
    with pytest.raises(InputError, match="no code may be run here"):
        Study.open(tmp_path / "run", code=False)


def test_two_inputs_may_read_rows_of_one_table(space: Callable[..., Path]) -> None:
    source = space("inputs:", "inputs:\n  draft: {table: models, default: 8b}")
    Path("a.json").write_text(json.dumps({"layers": 1}), encoding="utf-8")
    Path("b.json").write_text(json.dumps({"layers": 2}), encoding="utf-8")
    one = load(source, [("model", "a.json"), ("draft", "b.json")])
    two = load(source, [("draft", "b.json"), ("model", "a.json")])
    assert one.digest == two.digest
    assert one.graph.tables["models"].axes[0] == ("small", "8b", "b.json", "a.json")
    assert one.with_inputs({"draft": "8b"}).digest == load(source, [("model", "a.json")]).digest
