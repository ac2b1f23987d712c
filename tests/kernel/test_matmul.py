"""A measured multiplication is compiled, checked and timed; what is wrong, hangs, crashes or lies has no time."""

from __future__ import annotations

import csv
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dse
from dse.errors import InputError
from dse.spaces.kernel import building, matmul
from dse.spaces.kernel.building import compiled, compiler, work_folder
from dse.spaces.kernel.matmul import Job, bound, measure, timing
from dse.spaces.kernel.source import Tiling, naive_source, tiled_source
from dse.study.metrics import Failed

needs_compiler = pytest.mark.skipif(not any(map(shutil.which, building.COMPILERS)), reason="no C compiler")
pytestmark = needs_compiler

JOB = Job("fp32", (33, 17, 29), (19, 23, 31), runs=2, timeout=10.0)
TILING = Tiling("fp32", "ikj", 16, 32, 16, 4, 2, pack=True, threads=2)
RIGHT = "C[i * n + j] += A[i * k + p] * B[p * n + j];"


def changed(old: str, new: str) -> str:
    """The plain loops with one thing changed."""
    text: str = naive_source("fp32")
    assert text.count(old) == 1
    return text.replace(old, new)


def left() -> list[str]:
    return [path.name for path in Path(tempfile.gettempdir()).glob(f"{building.folder_prefix(os.getpid())}*")]


# -- right programs ----------------------------------------------------------------------------------------


def test_every_way_to_multiply_is_right() -> None:
    """Tilings that have every value of every dimension between them, on sizes that no tile divides."""
    problem = dse.load("kernel-matmul")
    values = {d.name: [d.plain(value) for value in d.values] for d in problem.dimensions}
    assert tuple(values) == tuple(Tiling.__dataclass_fields__)
    for at in range(max(map(len, values.values()))):
        tiling = Tiling(**{name: choices[at % len(choices)] for name, choices in values.items()})
        job = Job(
            tiling.format, (37, 41, 43), (tiling.tile_m + 3, tiling.tile_n + 5, tiling.tile_k + 7), runs=1
        )
        found = timing(tiled_source(tiling), job)
        assert found.seconds > 0
        assert found.error <= bound(43, tiling.format)
    assert left() == []


def test_a_design_is_measured_in_the_units_of_the_space() -> None:
    problem = dse.load("kernel-matmul", {"size": "48", "runs": "1", "max_threads": "2"})
    result = dse.search(problem, n_trials=3, seed=3)
    (best,) = result.front
    assert result.funnel.failed == 0
    told = {name: value for name, value in best.metrics.items() if isinstance(value, float)}
    assert told["time"] > 0
    assert told["speedup"] == told["naive_time"] / told["time"]
    assert told["rate"] == pytest.approx(2 * 48**3 / told["time"])
    assert told["error"] <= bound(48, "fp32")


def test_the_error_bound_is_that_of_summing_in_any_order() -> None:
    """It holds for every order that NumPy's own sums have, and one wrong digit of one number breaks it."""
    draw = np.random.default_rng(5)
    a, b = (draw.uniform(-1, 1, (64, 64)).astype(np.float32) for _ in range(2))
    exact, scale = a.astype(float) @ b.astype(float), np.abs(a.astype(float)) @ np.abs(b.astype(float))
    plain = np.zeros((64, 64), np.float32)
    for k in draw.permutation(64):
        plain += np.outer(a[:, k], b[k])
    limit = bound(64, "fp32") * scale
    assert (np.abs(plain - exact) <= limit).all()
    assert (np.abs((a + np.float32(1e-3)) @ b - exact) > limit).any()
    assert bound(64, "fp64") < 1e-13 < bound(64, "fp32") < 1e-5


# -- wrong programs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (changed("p < k; p++", "p < k - 1; p++"), "wrong product: .* are off, first C"),
        (changed("i < m; i++", "i < m - (m > 20); i++"), "wrong product"),  # in the second matrices only
        (changed(RIGHT, "C[i * n + j] += A[i * k + p] * B[p * n + j] * (1 + 1e-4f);"), "wrong product"),
        (changed("C[i * n + j] +=", "C[i * n + j] ="), "wrong product"),
        (
            changed(RIGHT, f"{{ {RIGHT} if (i + j + p == 0) C[0] = 0.0f / 0.0f; }}"),
            "two runs gave|wrong product",
        ),
        (
            changed(RIGHT, f"{{ {RIGHT} static long calls; C[0] += calls++ == 3 * m * n * k - 1; }}"),
            "wrong|two runs",
        ),
    ],
    ids=["one product missing", "a row missing", "slightly off", "no sum", "nan", "a later run"],
)
def test_a_wrong_product_has_no_time(source: str, said: str) -> None:
    for _ in range(2):  # the second time it is not even run
        with pytest.raises(Failed, match=said):
            timing(source, JOB)
    assert left() == []


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (changed("p < k; p++", "p < k - 2; p++"), "wrong product"),
        (
            changed(RIGHT, f"{{ {RIGHT} static long n_; C[0] += n_++ == m * n * k; }}"),
            "two runs gave different",
        ),
    ],
)
def test_a_wrong_program_stays_refused(monkeypatch: pytest.MonkeyPatch, source: str, said: str) -> None:
    """A retry does not run it again, so it cannot be lucky."""
    with pytest.raises(Failed, match=said):
        timing(source, JOB)
    monkeypatch.setattr(matmul, "compiled", None)  # would be a TypeError
    with pytest.raises(Failed, match=said):
        timing(source, JOB)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (changed("printf(\"]\\n\");", "printf(\"]\\n\"); for (;;) ;"), "took longer than 0.5 s and was killed"),
        (changed("printf(\"]\\n\");", "abort();"), "was ended by SIGABRT"),
        (changed("printf(\"]\\n\");", "*(volatile int *)8 = 1;"), "was ended by SIGSEGV"),
        (changed("printf(\"]\\n\");", "fail(\"no luck\");"), "ended with exit code 1: no luck"),
        (changed("printf(\"]\\n\");", "printf(\" garbage\\n\");"), "printed .*garbage.*, expected a list"),
        (changed("\"%s%.9g\", run == 1 ? \"[\" : \", \", taken", "\"%s%.9g\", run == 1 ? \"[\" : \", \", -taken"), "above 0"),
        (changed("\"%s%.9g\", run == 1 ? \"[\" : \", \", taken", "\"%s%d\", run == 1 ? \"[\" : \", \", 9"), "but it ran for"),
        (changed("\"wb\"", "\"rb\""), "the product cannot be written"),
        (changed("fclose(file) != 0", "(fclose(file), truncate(words[3], 5))").replace("#include <time.h>", "#include <time.h>\n#include <unistd.h>"), "wrote 5 bytes of a product, expected"),
        ("int main(void) { return 1 +; }", "refuses the program: program.c:1:.* error"),
    ],
    ids=["hangs", "aborts", "crashes", "fails", "garbage", "negative", "too long", "nothing", "short", "no C"],
)  # fmt: skip
def test_a_program_that_misbehaves_has_no_time(source: str, said: str) -> None:
    with pytest.raises(Failed, match=said):
        timing(source, replace(JOB, timeout=0.5 if "for (;;)" in source else 60.0))
    assert left() == []


def test_a_program_that_prints_without_end_is_killed() -> None:
    source = changed('printf("]\\n");', 'for (;;) puts("0123456789");')
    with pytest.raises(Failed, match="printed more than 16 MB and was killed"):
        timing(source, replace(JOB, timeout=20.0))


# -- compilers ---------------------------------------------------------------------------------------------


def fake_compiler(folder: Path, does: str) -> str:
    script = folder / "fakecc"
    script.write_text(f"#!/bin/sh\n{does}\n")
    script.chmod(0o755)
    return str(script)


def test_no_compiler_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="no C compiler: none of cc, gcc, clang is there; install one"):
        compiler({"PATH": str(tmp_path)})
    with pytest.raises(Failed, match="CC names 'none-such', which is not there"):
        compiler({"PATH": os.environ["PATH"], "CC": "none-such"})


def test_without_a_compiler_that_works_no_search_begins(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    problem = dse.load("kernel-matmul", {"size": "16"})
    silent = fake_compiler(tmp_path, "exit 1")
    for named, said in (
        ("none-such", "CC names 'none-such', which is not there"),
        ("'cc", 'CC is "\'cc", which is no command line'),
        (silent, "fakecc refuses the program and does not say why"),
    ):
        monkeypatch.setenv("CC", named)
        with pytest.raises(InputError, match="nothing can be measured") as raised:
            dse.search(problem, n_trials=2)
        assert said in str(raised.value)


def test_a_compiler_that_hangs_is_found_out_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", fake_compiler(tmp_path, "sleep 60"))
    with pytest.raises(Failed, match=r"fakecc took longer than 0\.2 s and was killed"):
        building.check_compiler(0.2)


def test_a_compiler_may_have_arguments(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program, *own = compiler()
    script = fake_compiler(
        tmp_path, f'[ "$1" = "-D A" ] || exit 1; shift; exec {shlex.join([program, *own])} "$@"'
    )
    monkeypatch.setenv("CC", f"{shlex.quote(script)} '-D A'")
    assert compiler() == (script, "-D A")
    building.check_compiler()


def test_a_compiler_that_knows_no_native_flag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "plaincc"
    script.write_text(
        '#!/bin/sh\nfor word in "$@"; do case $word in -m*) echo "error: unknown $word" >&2; exit 1;; esac; done\n'
        f'exec {shlex.join(compiler())} "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    assert timing(naive_source("fp64"), replace(JOB, format="fp64")).seconds > 0


def test_a_text_is_compiled_once_and_folders_of_the_dead_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    stale = Path(tempfile.mkdtemp(prefix=building.folder_prefix(dead.pid)))
    elsewhere, old = (Path(tempfile.mkdtemp(prefix=f"{building.PREFIX}0-{dead.pid}-")) for _ in range(2))
    os.utime(old, (1e9, 1e9))
    source = naive_source("fp64") + "/* once */\n"
    first = compiled(source, compiler())
    assert not stale.exists()
    assert not old.exists()
    elsewhere.rmdir()  # another machine's or container's, whose processes are not ours to see
    monkeypatch.setattr(building, "start", None)
    assert compiled(source, compiler()) is first
    with work_folder() as folder:
        assert folder.is_dir()
    assert left() == []


def test_a_design_is_measured_from_plain_data() -> None:
    problem = dse.load("kernel-matmul", {"size": "32", "runs": "1"})
    inputs = {"size": 32, "runs": 1, "run_timeout": 20.0, "seed": 1}
    found = measure({**inputs, **{name: getattr(TILING, name) for name in TILING.__dataclass_fields__}})
    assert found.keys() == {name for name, metric in problem.metrics.items() if metric.measured}


def test_plain_loops_that_fail_are_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def fails(source: str, job: Job) -> None:
        tried.append(job)
        raise Failed("took longer than 120 s and was killed")

    monkeypatch.setattr(matmul, "timing", fails)
    matmul._naive.cache_clear()
    inputs = {"size": 32, "runs": 1, "run_timeout": 20.0, "seed": 77}
    design = {**inputs, **{name: getattr(TILING, name) for name in TILING.__dataclass_fields__}}
    for _ in range(2):
        with pytest.raises(Failed, match="three plain loops: took longer"):
            measure(design)
    matmul._naive.cache_clear()
    assert len(tried) == 1


# -- killed half-way ---------------------------------------------------------------------------------------


def trials(folder: Path) -> list[dict[str, Any]]:
    with (folder / "trials.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_search_that_is_killed_goes_on_and_loses_nothing(tmp_path: Path) -> None:
    """Killed twice in the middle of a trial; every trial is there once, and no program or folder stays behind."""
    folder = tmp_path / "run"
    settings = ["--set", "size=40", "--set", "runs=1", "--set", "max_threads=2"]
    words = ["search", "kernel-matmul", *settings, "--n-trials", "12", "--out", str(folder)]
    base = [sys.executable, "-m", "dse"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)}
    for at_least, command in ((2, words), (5, ["resume", str(folder)])):
        process = subprocess.Popen(
            [*base, *command], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        finished = wait_for(folder, at_least)
        process.kill()
        process.wait()
        assert finished
    before = done(folder)
    assert 5 <= before < 12
    ended = subprocess.run(
        [*base, "resume", str(folder)], env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    found = trials(folder)
    assert [int(row["number"]) for row in found] == list(range(12))
    assert {row["state"] for row in found} == {"COMPLETE"}
    assert list(tmp_path.glob(f"{building.PREFIX}*")) == []


def done(folder: Path) -> int:
    try:
        with closing(sqlite3.connect(f"file:{folder / 'study.sqlite'}?mode=ro", uri=True)) as database:
            query = "SELECT count(*) FROM trials WHERE state != 'RUNNING'"
            return int(database.execute(query).fetchone()[0])
    except sqlite3.Error:
        return 0


def wait_for(folder: Path, trials: int) -> bool:
    """Whether so many trials are finished within a minute."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if done(folder) >= trials:
            return True
        time.sleep(0.01)
    return False
