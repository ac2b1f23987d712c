"""``dse import``: a neutral file becomes a space file that check, show and search take; for real, in a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Dse = Callable[..., Any]

NEUTRAL = Path(__file__).parents[1] / "neutral"


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dse", *map(str, words)], capture_output=True, text=True, check=False
    )


def test_a_tuning_space_is_imported_checked_counted_and_searched(tmp_path: Path) -> None:
    path = tmp_path / "kt.yaml"
    made = run("import", "--from", "neutral", NEUTRAL / "kt_gpu_layers.json", "-o", path)
    assert (made.returncode, made.stdout) == (0, "")
    assert f"wrote {path} (kt_gpu_layers); next: dse show --count {path}" in made.stderr
    checked = run("check", path)
    assert checked.returncode == 0
    assert "3,111,696 designs; 4 dimensions, 2 rules" in checked.stdout
    counted = run("show", path, "--count", "--format", "json")
    assert json.loads(counted.stdout)["legal"] == {"all": 10_660}
    found = run("search", path, "--solver", "exhaustive")
    assert found.returncode == 0
    assert "10,660" in found.stdout


def test_a_cost_model_is_imported_and_searched(dse: Dse, tmp_path: Path) -> None:
    path = tmp_path / "camera.yaml"
    assert dse("import", NEUTRAL / "camera_480.json", "-o", path).code == 0
    found = dse("search", path, "--format", "json")
    assert found.code == 0
    assert len(json.loads(found.out)["front"]) == 38


def test_standard_output_gets_the_space_file_alone(dse: Dse, write: Callable[[str], Path]) -> None:
    for words in ((), ("-o", "-")):
        made = dse("import", NEUTRAL / "hotspot.json", *words)
        assert (made.code, made.err) == (0, "")
        shown = dse("show", write(made.out), "--count", "--format", "json")
        assert json.loads(shown.out)["legal"] == {"all": 349_853}


def test_nothing_is_overwritten(dse: Dse, write: Callable[[str], Path]) -> None:
    path = write("precious")
    made = dse("import", NEUTRAL / "hotspot.json", "-o", path)
    assert made.code == 2
    assert "exists already" in made.err
    assert path.read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "in.json:1:2: the text is not JSON"),
        ('{"parameters": {"a": [1, 1]}}', "in.json: dimensions.a.choices.1: found 1 again"),
        ('{"parameters": {"a": [1]}, "restrictions": ["a + 1 < b"]}', "in.json:1:54: restrictions[0]: unknown name 'b'"),
        ('{"parameters": {"a": [9007199254740993]}}', "in.json: dimensions.a.choices.0: found 9007199254740993"),
    ],
)  # fmt: skip
def test_bad_input_is_located(dse: Dse, write: Callable[..., Path], text: str, message: str) -> None:
    ran = dse("import", write(text, "in.json"))
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err


def test_files_that_cannot_be_read(dse: Dse, tmp_path: Path) -> None:
    assert "no such file" in dse("import", tmp_path / "none.json").err
    assert "found a folder" in dse("import", tmp_path).err
    big = tmp_path / "big.json"
    big.write_text('{"parameters": {"a": [' + ", ".join(map(str, range(100_000))) + "]}}", encoding="utf-8")
    ran = dse("import", big)
    assert ran.code == 2
    assert "expected at most 262,144; put large tables into CSV" in ran.err
