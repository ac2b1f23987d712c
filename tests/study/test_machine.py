"""Measuring this machine: what it may use, what is measured, and the file that a space is searched with."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import dse
from dse.cli import main
from dse.study.machine import limits, probe, roofline
from dse.study.machine.entry import check_space, space_file
from dse.study.machine.probe import Task
from dse.study.machine.roofline import CannotMeasure, Machine, Reading

MIB = 2**20
SMALL = Task(threads=2, array=2**16, matrices=2**18, seconds=1e-6, repeats=2)


def machine(cpus: int = 2) -> Machine:
    medians = {"copy": 12e9, "triad": 9e9, "fp32": 150e9, "fp64": 70e9, "call": 4e-7}
    readings = tuple(
        Reading(name, threads, value * (1 if name == "call" else threads), value, value * 2, "some")
        for threads in dict.fromkeys((1, cpus))
        for name, value in medians.items()
    )
    return Machine("A chip", cpus, 8 * 2**30, readings, ("a remark",))


@pytest.fixture
def root(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    def build(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return build


MEMINFO = "MemTotal:       16384 kB\nMemAvailable:    8192 kB\n"


def test_limits_of_a_machine_and_of_its_control_groups(root: Callable[[dict[str, str]], Path]) -> None:
    plain = root({"proc/meminfo": MEMINFO, "proc/cpuinfo": "model name\t: Some  chip\n"})
    assert (limits.total_memory(plain), limits.available_memory(plain)) == (16 * MIB, 8 * MIB)
    assert limits.title(plain) == "Some chip"
    inside = root({
        "proc/self/cgroup": "0::/a/b\n",
        "sys/fs/cgroup/a/memory.max": f"{6 * MIB}\n",
        "sys/fs/cgroup/a/memory.current": f"{2 * MIB}\n",
        "sys/fs/cgroup/a/b/memory.max": "max\n",
        "sys/fs/cgroup/a/b/cpu.max": "50000 100000\n",
    })  # fmt: skip
    assert (limits.total_memory(inside), limits.available_memory(inside)) == (6 * MIB, 4 * MIB)
    assert limits.cpus(inside) == 1


def test_limits_of_the_first_version_of_control_groups(root: Callable[[dict[str, str]], Path]) -> None:
    inside = root({
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "3:memory:/box\n2:cpu,cpuacct:/box\n",
        "sys/fs/cgroup/memory/box/memory.limit_in_bytes": f"{3 * MIB}",
        "sys/fs/cgroup/memory/box/memory.usage_in_bytes": f"{4 * MIB}",
        "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us": "-1",
    })  # fmt: skip
    assert limits.available_memory(inside) == 0
    assert limits.cpus(inside) >= 1


def test_caches_are_the_last_level_counted_once(root: Callable[[dict[str, str]], Path]) -> None:
    files: dict[str, str] = {}
    for cpu in range(4):
        for level, size, shared in ((1, "32K", str(cpu)), (3, "8M", "0-1" if cpu < 2 else "2-3")):
            folder = f"sys/devices/system/cpu/cpu{cpu}/cache/index{level}"
            files |= {
                f"{folder}/level": f"{level}",
                f"{folder}/size": size,
                f"{folder}/shared_cpu_list": shared,
            }
    assert limits.caches(root(files)) == 16 * MIB


def test_a_system_that_says_nothing(tmp_path: Path) -> None:
    assert limits.cpus(tmp_path) >= 1
    assert limits.available_memory(tmp_path) == limits.total_memory(tmp_path) == 2**30
    assert limits.caches(tmp_path) > 0
    assert limits.title(tmp_path)


@pytest.mark.parametrize("available", [0, 64 * MIB, 2**30, 2**38])
@pytest.mark.parametrize("quick", [False, True])
def test_a_quarter_of_the_memory_is_enough(available: int, quick: bool) -> None:
    tasks = roofline.tasks(quick=quick, threads=4, available=available, caches=300 * MIB)
    assert [task.threads for task in tasks] == [1, 4]
    for task in tasks:
        assert 3 * task.array <= max(available / 4, 2**18)
        assert task.matrices <= max(available / 4, 2**18)
        assert task.array <= 1200 * MIB
    assert len(roofline.tasks(quick=quick, threads=1, available=available, caches=MIB)) == 1


def test_a_probe_measures_everything() -> None:
    found = {one["name"]: one for one in probe.run(SMALL)}
    assert list(found) == ["copy", "triad", "fp32", "fp64", "call"]
    assert all(len(one["values"]) == 2 and min(one["values"]) > 0 for one in found.values())


def test_a_machine_is_measured_in_processes_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roofline, "tasks", lambda **_: (replace(SMALL, threads=1), SMALL))
    monkeypatch.setattr(limits, "cpus", lambda: 2)
    told: list[str] = []
    found = roofline.measure(quick=True, note=told.append)
    assert told == ["measuring on 1 thread", "measuring on 2 threads"]
    assert {reading.name for reading in found.readings} == {"copy", "triad", "fp32", "fp64", "call"}
    assert all(reading.low <= reading.median <= reading.high for reading in found.readings)
    assert found.bandwidth == found.best("copy", "triad") > 0
    assert found.call > 0


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import time; time.sleep(60)", "took longer than 0.5 s and was killed"),
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("raise MemoryError('no room')", "ended with exit code 1: MemoryError: no room"),
    ],
)
def test_a_measuring_process_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, said: str
) -> None:
    script = tmp_path / "python"
    script.write_text(f"#!{sys.executable}\n{program}\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    with pytest.raises(CannotMeasure, match=f"measuring on 1 thread: the process {said}"):
        roofline.measure(quick=True, timeout=0.5 if "sleep" in program else 60.0)


# -- the command -----------------------------------------------------------------------------------------


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The command with a machine that is known."""
    monkeypatch.setattr(roofline, "measure", lambda **_: machine())
    return lambda *words: CliRunner().invoke(main, ["measure", *map(str, words)])


def test_the_table_has_units(measured: Callable[..., Any]) -> None:
    ran = measured("--quick")
    assert ran.exit_code == 0
    assert "A chip, 2 CPUs, 8 GiB" in ran.stdout
    assert "memory, copy                       2" in ran.stdout
    assert "24 GB/s" in ran.stdout
    words = " ".join(ran.stdout.split())
    assert "ridge point fp32: 300 Gflop/s (2 threads) / 24 GB/s (2 threads) = 12.5 flop/B" in words
    taken = [
        line.split()[-2:] for line in ran.stdout.splitlines() if line.endswith(("width", "fp32", "launch"))
    ]
    assert taken == [["some", "bandwidth"], ["peak", "fp32"], ["some", "launch"]]
    assert "note: a remark" in ran.stdout


def test_data_is_in_base_units(measured: Callable[..., Any]) -> None:
    told = json.loads(measured("--json").stdout)
    assert (told["bandwidth"], told["ridge"], told["cpus"]) == (24e9, 12.5, 2)
    assert told["readings"][0] == {
        "name": "copy", "threads": 1, "median": 12e9, "low": 12e9, "high": 24e9, "done_with": "some",
    }  # fmt: skip


def test_the_file_is_a_space_with_this_machine(measured: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    assert measured("--out", out).exit_code == 0
    problem = dse.load(out)
    assert problem.inputs["numbers"].value == "fp32"
    assert problem.inputs["launch"].value == problem.inputs["captured_launch"].value == 4e-7
    done = CliRunner().invoke(
        main, ["search", str(out), "--fix", "hardware=this-machine", "--fix", "tokens=1", "--format", "json"]
    )
    assert done.exit_code == 0, done.output
    (point,) = json.loads(done.stdout)["front"]
    assert point["design"]["hardware"] == "this-machine"
    weights = 4 * 3 * 4096 * 14336
    assert point["metrics"]["time"] >= weights / 24e9
    assert point["metrics"]["kernels"] < 12


def test_other_spaces_and_places(measured: Callable[..., Any], tmp_path: Path) -> None:
    base = tmp_path / "chips.yaml"
    base.write_text(
        "dse: 1\nname: chips\ntables: {gpus: {columns: {bandwidth: GB/s, fp32: flop/s},"
        " rows: {a: [1, 2]}}}\ndimensions: {chip: {table: gpus}}\n"
        "metrics: {time: {expr: 1 GB / chip.bandwidth, unit: s}}\nobjectives: {time: minimize}\n"
    )
    out = tmp_path / "more.yaml"
    assert measured("--space", base, "--out", out).exit_code == 0
    (point,) = dse.search(out).front
    assert point.design == {"chip": "this-machine"}
    below = tmp_path / "below"
    below.mkdir()
    for words, said in (
        (("--space", "camera", "--out", out), "the space camera has no table 'gpus'"),
        (("--space", "kernle", "--out", out), "did you mean 'kernel'?"),
        (("--space", base, "--out", below / "x.yaml"), "in the same folder or below"),
        (("--out", tmp_path / "none" / "x.yaml"), "there is no folder"),
        (("--out", ""), "empty"),
        (("--out", below), "is a folder, but a file is needed"),
    ):
        ran = measured(*words)
        assert ran.exit_code == 2 or (ran.exit_code == 1 and ran.exception is not None)
        assert said in ran.output + str(ran.exception)


def test_a_machine_with_one_cpu_and_a_space_without_inputs(tmp_path: Path) -> None:
    text = space_file(machine(cpus=1), check_space("training"), "training", "mine")
    assert "inputs" not in text
    assert "A chip, 1 thread" in text
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    assert "this-machine" in dse.load(path).graph.tables["gpus"].axes[0]


def test_a_thread_streams_the_memory_that_it_wrote_first(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, dict[int, int]]] = []
    over = probe._over

    def recorded(threads: Any, work: Callable[[slice], None], parts: list[slice]) -> None:
        who: dict[int, int] = {}

        def told(part: slice) -> None:
            who[part.start] = threading.get_ident()
            work(part)

        over(threads, told, parts)
        calls.append((work.__name__, who))

    monkeypatch.setattr(probe, "_over", recorded)
    probe.run(SMALL)
    assert [name for name, _ in calls] == ["fill", *["copy"] * 3, *["triad"] * 3]
    first = calls[0][1]
    assert len(set(first.values())) == SMALL.threads
    assert threading.get_ident() not in first.values()
    assert all(who == first for _, who in calls)
