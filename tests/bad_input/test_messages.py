"""Every mistake in a space file is reported at its place, with what was found, what was expected, the nearest spelling."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from dse.errors import InputError, SpaceError
from dse.problem.library import load
from dse.study.findings import findings

HERE = Path(__file__).parent
SMALL = (HERE / "small.yaml").read_text(encoding="utf-8")


def cases() -> list[tuple[str, list[str]]]:
    blocks = (HERE / "messages.txt").read_text(encoding="utf-8").split("\n\n")[1:]
    return [(block.splitlines()[0], block.splitlines()[1:]) for block in blocks]


def changed(change: str) -> str:
    found, instead = change.replace("\\n", "\n").split(" ==> ")
    assert found in SMALL
    return SMALL.replace(found, instead, 1)


def messages(folder: Path, text: str) -> list[str]:
    path = folder / "s.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpaceError) as caught:
        load(path)
    return [str(diagnostic).replace(f"{folder}/", "") for diagnostic in caught.value.diagnostics]


def warned(folder: Path, text: str) -> list[str]:
    """What is wrong, or hardly meant, about the designs of a file that can be read."""
    path = folder / "s.yaml"
    path.write_text(text, encoding="utf-8")
    problem = load(path)
    try:
        found = [*problem.warnings, *findings(problem)]
    except SpaceError as error:
        found = [str(diagnostic) for diagnostic in error.diagnostics]
    return [message.replace(f"{folder}/", "") for message in found]


def test_the_file_itself_is_right(tmp_path: Path) -> None:
    assert warned(tmp_path, SMALL) == []


@pytest.mark.parametrize(("change", "expected"), cases(), ids=[change for change, _ in cases()])
def test_every_mistake_has_its_message(tmp_path: Path, change: str, expected: list[str]) -> None:
    found = messages(tmp_path, changed(change))
    assert found == expected
    assert all(re.match(r"s\.yaml:\d+:\d+: ", message) for message in found)


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    text = SMALL
    for found, instead in (
        ("max_latency: 10 ms", "max_latency: 10 mss"),
        ("engine in chip.engines", "engin in chip.engines"),
        ('"compute + 1 ms"', '"compute + memory"'),
        ("ml: {chip: cpu}", "ml: {chip: gpu}"),
    ):
        text = text.replace(found, instead)
    assert [message.split(": ")[1] for message in messages(tmp_path, text)] == [
        "inputs.max_latency.default", "rules.runs.check", "metrics.latency.expr", "teams.ml.chip",
    ]  # fmt: skip


def test_a_broken_name_is_reported_once_where_it_is_declared(tmp_path: Path) -> None:
    """What reads a broken let, metric or table is not reported again."""
    found = messages(tmp_path, changed("work: batch * 1 Gop ==> work: bacth * 1 Gop"))
    assert found == ["s.yaml:28:9: lets.work: unknown name 'bacth'; did you mean 'batch'?"]


def test_an_expression_over_several_lines_is_located_where_it_begins(tmp_path: Path) -> None:
    text = SMALL.replace('expr: "compute + 1 ms"', 'expr: "compute\n    + latncy"')
    (found,) = messages(tmp_path, text)
    assert found.startswith("s.yaml:32:20: metrics.latency.expr: unknown name 'latncy'")


# -- what shows only when designs are looked at ------------------------------------------------------------


def test_a_rule_that_no_design_meets(tmp_path: Path) -> None:
    (found,) = warned(tmp_path, changed("check: engine in chip.engines ==> check: batch > 4"))
    assert found.startswith("s.yaml:25:12: rules.runs")


def test_a_team_that_selects_nothing(tmp_path: Path) -> None:
    (found,) = warned(tmp_path, changed('where: "batch > 1" ==> where: "batch > 4"'))
    assert found.startswith("s.yaml:41:")
    assert "teams.hw" in found


def test_a_cell_missing_for_a_legal_design(tmp_path: Path) -> None:
    found = warned(tmp_path, changed("cpu: {fp32: 50, int8: 200} ==> cpu: {fp32: 50}"))
    assert any("rates has no cell cpu, int8" in message for message in found)


def test_a_division_by_zero_in_one_corner(tmp_path: Path) -> None:
    text = changed('expr: "compute + 1 ms" ==> expr: "compute + 1 ms * (batch - 1) / (batch - 1)"')
    assert any("latency is NaN" in message for message in warned(tmp_path, text))


def test_a_key_that_is_nearly_a_dimension(tmp_path: Path) -> None:
    found = warned(tmp_path, changed("keys: [chip, format] ==> keys: [chip, formt]"))
    assert found == [
        "s.yaml:13:18: tables.rates.keys.1: 'formt' is no dimension, so its keys are any texts; did you mean 'format'?"
    ]


def test_a_name_that_hides_a_unit(tmp_path: Path) -> None:
    text = changed("work: batch ==> us: batch\\n  work: batch")
    assert any("'us'" in message and "unit" in message for message in warned(tmp_path, text))


# -- overrides and names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "max_latncy",
            "5 ms",
            "found 'max_latncy', expected an input or a dimension; did you mean 'max_latency'?",
        ),
        (
            "max_latency",
            "5",
            "input 'max_latency' needs a quantity in ms, but got no unit in '5'; write 5 ms",
        ),
        ("max_latency", "5 MB", "input 'max_latency' needs a quantity in ms, but got MB in '5 MB'"),
        ("max_latency", "5 mss", "input 'max_latency': unknown unit 'mss'; did you mean 'ms'?"),
        (
            "min_accuracy",
            "0.9",
            "input 'min_accuracy' needs a quantity in percent, but got no unit in '0.9'; write 0.9 percent",
        ),
        ("tables.rates.npu.int9", "5", "did you mean 'int8'?"),
        ("tables.chips.cpu.bandwith", "5", "did you mean 'bandwidth'?"),
        ("tables.rates.npu.int8", "5 ms", "5 ms"),
    ],
)
def test_overrides_that_do_not_fit(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(SMALL, encoding="utf-8")
    with pytest.raises((SpaceError, InputError)) as caught:
        load(path, {name: text})
    assert message in str(caught.value)
    assert f"--set {name}" in str(caught.value)


def test_spaces_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no space 'camra'; did you mean 'camera'"):
        load("camra")
    (tmp_path / "own.yaml").write_text(SMALL, encoding="utf-8")
    with pytest.raises(InputError, match=r"there is no file .*onw.yaml'; did you mean 'own.yaml'"):
        load(tmp_path / "onw.yaml")
    with pytest.raises(InputError, match="is a folder, expected a space file"):
        load(tmp_path)
    with pytest.raises(InputError, match="must be made of mappings, lists, texts"):
        load({"dse": 1, "name": {1, 2}})


# -- hostile input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "x" * 10_000_000,
        "dse: 1\nname: big\nabout: |\n" + "  x\n" * 2_500_000,
        "dse: 1\nname: deep\nlets: {a: " + "[" * 10_000 + "]" * 10_000 + "}\n",
        "dse: 1\nname: deep\nlets:\n  a: " + "(" * 10_000 + "1" + ")" * 10_000 + "\ndimensions: {a1: [1]}\n",
        "a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(
            f"c{n}: &c{n} [{', '.join([f'*c{n - 1}' if n else '*b'] * 9)}]\n" for n in range(9)
        ),
        "dse: 1\nname: x\ndimensions: {a: [1]}\nlets: {a1: " + "-" * 30_000 + "1}\n",
    ],
    ids=["10 MB word", "10 MB text", "10,000 brackets", "10,000 parentheses", "alias bomb", "30,000 minuses"],
)  # fmt: skip
def test_hostile_files_are_refused_at_once(tmp_path: Path, text: str) -> None:
    started = time.process_time()
    found = messages(tmp_path, text)
    assert time.process_time() - started < 2.0
    assert all(re.match(r"s\.yaml(:\d+:\d+)?: ", message) for message in found)
    assert all(len(message) < 400 for message in found)
