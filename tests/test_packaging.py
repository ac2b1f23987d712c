"""What is built from the repository, and what an installed copy finds."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import dse

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("dse", "solvers", "spaces", "reports")
# Packages that no plugin of ours may overwrite at the top level.
FOREIGN = {"solvers", "spaces", "reports", "tests"}

with (ROOT / "pyproject.toml").open("rb") as _file:
    PROJECT = tomllib.load(_file)


def run(command: list[str], folder: Path) -> str:
    """The output of a command run in ``folder`` without this checkout on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def source_files(suffixes: set[str]) -> set[str]:
    """Files of the packages under the paths they have when installed."""
    found = set()
    for folder in SOURCES:
        prefix = Path() if folder == "dse" else Path("dse")
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in suffixes or path.name == "py.typed":
                found.add((prefix / path.relative_to(ROOT)).as_posix())
    return found


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy, so that nothing left in build/ can slip in."""
    copy = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in SOURCES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    target = tmp_path_factory.mktemp("dist")
    program = f"from setuptools import build_meta; build_meta.build_wheel({str(target)!r})"
    run([sys.executable, "-c", program], copy)
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def contents(wheel: Path) -> set[str]:
    """The names of the files in the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_every_package_is_listed() -> None:
    packages = {
        Path(name).parent.as_posix().replace("/", ".")
        for name in source_files({".py"})
        if name.endswith("__init__.py")
    }
    assert packages == set(PROJECT["tool"]["setuptools"]["packages"])


@pytest.mark.slow
def test_the_wheel_holds_every_source_and_data_file(contents: set[str]) -> None:
    installed = {name for name in contents if ".dist-info/" not in name}
    assert installed == source_files({".py", ".yaml", ".csv", ".json", ".j2", ".c"})


@pytest.mark.slow
def test_the_wheel_takes_no_name_but_dse(contents: set[str]) -> None:
    top = {name.split("/")[0] for name in contents}
    assert not top & FOREIGN
    assert {name for name in top if not name.endswith(".dist-info")} == {"dse"}


@pytest.mark.slow
def test_the_wheel_is_named_licensed_and_versioned(wheel: Path, contents: set[str]) -> None:
    assert wheel.name == f"dse_engine-{dse.__version__}-py3-none-any.whl"
    assert f"dse_engine-{dse.__version__}.dist-info/licenses/LICENSE" in contents


@pytest.mark.slow
def test_plugins_are_found_in_an_unpacked_wheel(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n"
        "import dse, dse.solvers, dse.spaces.camera, dse.reports\n"
        "from importlib.metadata import distribution\n"
        "print(dse.__path__, dse.solvers.__file__)\n"
        "groups = distribution('dse-engine').entry_points\n"
        "print(*sorted(f'{e.group}:{e.name}' for e in groups if e.group.startswith('dse.')))\n"
    )
    paths, names = run([sys.executable, "-c", program], tmp_path).splitlines()
    assert str(ROOT) not in paths
    declared = PROJECT["project"]["entry-points"]
    assert names.split() == sorted(f"{group}:{name}" for group in declared for name in declared[group])


def test_a_checkout_works_without_installing(tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "import dse.solvers, dse.spaces.camera, dse.reports; print(dse.solvers.__name__)"
    )
    # -S: without site-packages, so that no installed copy can answer.
    assert run([sys.executable, "-S", "-c", program], tmp_path).strip() == "dse.solvers"


def test_every_entry_point_can_be_loaded() -> None:
    from importlib.metadata import EntryPoint

    for group, entries in PROJECT["project"]["entry-points"].items():
        for name, value in entries.items():
            assert EntryPoint(name, value, group).load() is not None


def test_the_lock_names_no_address_and_pins_every_requirement() -> None:
    lines = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert [line for line in lines if "://" in line or line.startswith("-")] == []
    assert [pin for pin in pins if pin.count("==") != 1] == []

    def folded(requirement: str) -> str:
        return requirement.partition("=")[0].partition(">")[0].strip().lower().replace("_", "-")

    extras = [need for needs in PROJECT["project"]["optional-dependencies"].values() for need in needs]
    needed = {folded(need) for need in [*PROJECT["project"]["dependencies"], *extras]}
    assert needed <= {folded(pin) for pin in pins}
