"""``dse new``: the starter file is right, teaches, and never overwrites."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dse.cli.commands.new import starter

Dse = Callable[..., Any]


def test_the_starter_passes_check_without_a_warning(dse: Dse, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    made = dse("new", "mine", "-o", path)
    assert (made.code, made.out) == (0, "")
    assert f"wrote {path}" in made.err
    ran = dse("check", path)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("ok: mine: 972 designs")


def test_the_starter_teaches_every_section() -> None:
    text = starter("mine", "mine.yaml")
    sections = (
        "inputs",
        "tables",
        "dimensions",
        "rules",
        "lets",
        "metrics",
        "objectives",
        "constraints",
        "teams",
    )
    assert all(f"\n{section}:" in text for section in sections)
    assert "dse check mine.yaml" in text
    assert "@" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_default_file_is_named_after_the_space(
    dse: Dse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert dse("new", "mine").code == 0
    assert "name: mine\n" in Path("mine.yaml").read_text(encoding="utf-8")


def test_nothing_is_overwritten(dse: Dse, tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("precious", encoding="utf-8")
    ran = dse("new", "mine", "-o", path)
    assert ran.code == 2
    assert "exists already" in ran.err
    assert path.read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("name", ["", "a b", "../x", "x: y", "1st", "-"])
def test_bad_names(dse: Dse, name: str) -> None:
    ran = dse("new", "--", name)
    assert ran.code == 2
    assert "a name has letters" in ran.err
