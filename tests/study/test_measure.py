"""Measuring programs and functions: units on the way in and out, and every way to fail becomes a reason."""

from __future__ import annotations

import json
import math
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.errors import InputError
from dse.problem import Design, Measurement, Problem
from dse.study.command import CommandRunner
from dse.study.measure import (
    Failed,
    Measurer,
    check_measurement,
    plain_design,
    read_metrics,
)
from dse.study.worker import ProcessRunner
from tests.study.problems import Build

PYTHON = sys.executable


def problem(**settings: Any) -> Problem:
    build = (
        Build()
        .dimension("tile", [16, 32])
        .dimension("fused", [False, True])
        .dimension("name", ["a b", "$(id)"])
    )
    build.dimension("scale", [0.5, 1.5]).measured("time", "ms").measured("error", "percent").minimize("time")
    return build.problem("kernel", Measurement(**settings) if settings else None)


DESIGN: Design = {"tile": 32.0, "fused": True, "name": "$(id)", "scale": 1.5}


class Hostile:
    """Raises whatever is done with it."""

    def __float__(self) -> float:
        raise RuntimeError("no")

    def __repr__(self) -> str:
        raise RuntimeError("no")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def script(folder: Path, code: str) -> tuple[str, ...]:
    path = folder / "measure.py"
    path.write_text("import json, sys\n" + code, encoding="utf-8")
    return (PYTHON, str(path), "{tile}", "--fused={fused}", "{name}", "{{x}}", "{scale}")


# -- in and out ------------------------------------------------------------------------------------


def test_a_design_goes_out_in_declared_units_and_whole_numbers_are_integers(tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(
        "dse: 1\nname: t\nmeasure: {command: [./run]}\n"
        "dimensions: {clock: {choices: [1 GHz, 1.5 GHz], unit: GHz}, cut: {range: [0.0, 2.0]}, n: [1, 2]}\n"
        "metrics: {time: {unit: ms, measured: true}}\nobjectives: {time: minimize}\n"
    )
    from dse.problem.library import load

    plain = plain_design(load(tmp_path / "space.yaml"), {"clock": 1.5e9, "cut": 2.0, "n": 2.0})
    assert plain == {"clock": 1.5, "cut": 2.0, "n": 2}
    assert [type(value) for value in plain.values()] == [float, float, int]


@pytest.mark.parametrize(
    ("value", "base"),
    [
        (8, 0.008),
        (0.1, 1e-4),
        ("8 us", 8e-6),
        ("8", 0.008),
        (np.float32(0.5), 5e-4),
        (np.int64(3), 0.003),
        (Fraction(1, 2), 5e-4),
        (math.inf, math.inf),
        (-0.0, 0.0),
    ],
)
def test_numbers_come_back_in_the_declared_unit_and_texts_in_their_own(value: object, base: float) -> None:
    assert read_metrics(problem(), {"time": value, "error": 5, "more": "ignored"}) == {
        "time": base,
        "error": 0.05,
    }


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (None, "must return a mapping of metrics, but got None"),
        ([1, 2], "must return a mapping"),
        ({"error": 1}, "returned no time"),
        ({"tiem": 1, "error": 1}, "returned no time; did you mean 'tiem'"),
        ({"time": math.nan, "error": 1}, "time is NaN"),
        ({"time": None, "error": 1}, "time must be a number in ms, but got None"),
        ({"time": True, "error": 1}, "time must be a number in ms, but got True"),
        ({"time": [1], "error": 1}, "time must be a number in ms"),
        ({"time": "8 MB", "error": 1}, r"time is in ms \(s\), but got '8 MB' \(B\)"),
        ({"time": "8 mz", "error": 1}, "time: unknown unit 'mz'"),
        ({"time": "fast", "error": 1}, "time: "),
        ({"time": 1, "error": "x" * 1000}, "error: "),
        ({"time": 10**400, "error": 1}, "time is past the largest number"),
        ({"time": 10**5000, "error": 1}, "time is past the largest number"),
        ({"time": -(10**400), "error": 1}, "time is past the largest number"),
        ({"time": "1e400", "error": 1}, "time: "),
        ({"time": 1e308, "error": 1}, None),
        ({"time": Fraction(10**400), "error": 1}, "time is past the largest number"),
        ({"time": nested(100_000), "error": 1}, "time must be a number in ms"),
        ({"time": [10**5000], "error": 1}, "time must be a number in ms"),
        (nested(100_000), "must return a mapping"),
        ({"time": "\ud800", "error": 1}, "time: "),
        ({"tim\ud800": 1, "error": 1}, "returned no time"),
        ({"time": Hostile(), "error": 1}, "time must be a number in ms, but got"),
        (Hostile(), "must return a mapping of metrics, but got"),
    ],
)
def test_what_cannot_be_read_is_a_reason(found: object, reason: str | None) -> None:
    if reason is None:
        assert read_metrics(problem(), found)
        return
    with pytest.raises(Failed, match=reason) as failure:
        read_metrics(problem(), found)
    assert len(str(failure.value).encode()) < 2000


# -- functions -------------------------------------------------------------------------------------


def function(folder: Path, code: str) -> Measurer:
    (folder / "f.py").write_text(code, encoding="utf-8")
    return Measurer(problem(function="./f.py:measure", folder=str(folder)))


def test_a_function_gets_the_design_and_returns_metrics(tmp_path: Path) -> None:
    code = "def measure(d): return {'time': d['tile'] / 16 if d['fused'] is True else 0, 'error': len(d['name'])}"
    assert function(tmp_path, code).measure(DESIGN) == {"time": 0.002, "error": 0.05}


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def measure(d): return 1 / 0", "the measurement raised ZeroDivisionError: division by zero"),
        ("def measure(d): raise SystemExit(3)", "the measurement raised SystemExit: 3"),
        ("def measure(d): return {'error': 1}", "returned no time"),
    ],
)
def test_a_function_that_fails_gives_a_reason(tmp_path: Path, code: str, reason: str) -> None:
    with pytest.raises(Failed, match=reason):
        function(tmp_path, code).measure(DESIGN)


def test_a_function_in_another_process_is_the_same(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code = "def measure(d):\n    print('noise')\n    return {'time': d['scale'] / 3, 'error': 1e400 if d['fused'] else 2}"
    here = function(tmp_path, code)
    runner = ProcessRunner("./f.py:measure", str(tmp_path))
    there = Measurer(here.problem, runner)
    assert there.measure(DESIGN) == here.measure(DESIGN) == {"time": 0.0005, "error": math.inf}
    there.close()
    with pytest.raises(Failed, match="was stopped"):
        there.measure(DESIGN)
    assert "noise" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("def measure(d): return {'time': object()}", "must return numbers or texts"),
        ("def measure(d): return 1 / 0", "raised ZeroDivisionError"),
        (
            "import os\ndef measure(d): os.abort()",
            "the measuring process was ended by SIGABRT while measuring",
        ),
        (
            "import os\ndef measure(d): os._exit(9)",
            "the measuring process ended with exit code 9 while measuring",
        ),
        ("import os; os._exit(9)", "the measuring process ended with exit code 9 while importing"),
        ("import os\ndef measure(d): os.fork() and os._exit(9); import time; time.sleep(60)", "exit code 9"),
        ("def other(d): ...", "has no function 'measure'"),
        ("def measure(d): return {'t': 10 ** 5000}", "must return numbers or texts"),
        ("def measure(d):\n    d['x'] = d\n    return d", "must return numbers or texts"),
        ("def measure(d): raise ValueError('\\ud800')", "ValueError: .ud800"),
        ("def measure(d): raise ValueError('x' * 10**6)", "ValueError: xxx"),
        ("def measure(d): return 'x' * 2**25", "cannot be read: more than 16 MB"),
    ],
)
def test_a_function_that_fails_in_another_process_gives_a_reason(
    tmp_path: Path, code: str, reason: str
) -> None:
    (tmp_path / "f.py").write_text(code, encoding="utf-8")
    runner = ProcessRunner("./f.py:measure", str(tmp_path))
    for _ in range(2):
        with pytest.raises(Failed, match=reason):
            runner.run({"x": 1})
    runner.close()


def test_a_function_has_the_limits_that_a_program_has(tmp_path: Path) -> None:
    """A timeout ends it with all that it started, and the next design has a process of its own."""
    code = (
        "import subprocess, time\nfrom pathlib import Path\n"
        "def measure(d):\n"
        "    if d['x'] > 1:\n"
        "        child = subprocess.Popen(['sleep', '60'])\n"
        "        Path(__file__).with_name('child').write_text(str(child.pid))\n"
        "        child.wait()\n"
        "    return {'t': d['x']}"
    )
    (tmp_path / "f.py").write_text(code, encoding="utf-8")
    runner = ProcessRunner("./f.py:measure", str(tmp_path), timeout=1.0)
    assert runner.run({"x": 1}) == {"t": 1}
    with pytest.raises(Failed, match=r"^the measurement took longer than 1 s and was killed$"):
        runner.run({"x": 2})
    assert not alive(int((tmp_path / "child").read_text()))
    assert runner.run({"x": 1}) == {"t": 1}
    runner.close()


def alive(process: int) -> bool:
    """Whether a process is there and has not ended; waits a moment for it to go."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return False
        if state == "Z":
            return False
        time.sleep(0.01)
    return True


def test_a_function_that_fails_by_itself_gives_its_own_reason(tmp_path: Path) -> None:
    code = "from dse.study.metrics import Failed\ndef measure(d): raise Failed('no such tile')"
    (tmp_path / "f.py").write_text(code, encoding="utf-8")
    runner = ProcessRunner("./f.py:measure", str(tmp_path))
    with pytest.raises(Failed, match=r"^no such tile$"):
        runner.run({"x": 1})
    runner.close()


# -- programs --------------------------------------------------------------------------------------


def test_a_program_gets_arguments_and_json_and_no_shell_sees_them(tmp_path: Path) -> None:
    code = (
        "assert sys.argv[1:] == ['32', '--fused=true', '$(id)', '{x}', '1.5'], sys.argv\n"
        "design = json.load(sys.stdin)\n"
        "assert design == {'tile': 32, 'fused': True, 'name': '$(id)', 'scale': 1.5}\n"
        "print('warming up')\nprint(json.dumps({'time': 2, 'error': '7 percent'}))"
    )
    measurer = Measurer(problem(command=script(tmp_path, code), folder=str(tmp_path)))
    assert measurer.measure(DESIGN) == {"time": 0.002, "error": 0.07}


def test_a_program_may_print_json_over_several_lines_and_need_not_read(tmp_path: Path) -> None:
    code = "print(json.dumps({'time': 2, 'error': 7}, indent=2))"
    assert Measurer(problem(command=script(tmp_path, code))).measure(DESIGN)["time"] == 0.002


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "print('a', file=sys.stderr); sys.exit('no such device')",
            r"ended with exit code 1: no such device",
        ),
        ("print('time: 3')", r"must print a JSON object of metrics, but printed 'time: 3'"),
        ("", r"must print a JSON object of metrics, but printed ''"),
        ("print('[' * 100000)", r"must print a JSON object"),
        ("print('[1]')", r"must return a mapping of metrics, but got \[1\]"),
        ("print(json.dumps({'time': float('nan'), 'error': 1}))", r"time is NaN"),
        ("print(json.dumps({'error': 1}))", r"returned no time"),
        ("sys.stdout.buffer.write(bytes([255, 254]))", r"must print a JSON object"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", r"was ended by SIGSEGV"),
        ("print('{\"time\": 1' + '0' * 400 + ', \"error\": 1}')", "time is past the largest number"),
        ("print('{\"time\": 1' + '0' * 5000 + ', \"error\": 1}')", "must print a JSON object"),
        ("print('{\"time\": ' + '[' * 900 + ']' * 900 + '}')", "time must be a number"),
        ('print(\'{"time": 1, "error": 1, "time": 2}\')', "gives time twice"),
        (
            "print('no GPU', file=sys.stderr); print('oops')",
            "printed 'oops'; on standard error it said: no GPU",
        ),
        (
            "print('no GPU', file=sys.stderr); print('{}')",
            "returned no time; on standard error it said: no GPU",
        ),
        ("while True: print('y' * 10000)", r"measure.py|python\S* printed more than 16 MB and was killed"),
        ("while True: print('y' * 10000, file=sys.stderr)", "printed more than 16 MB and was killed"),
    ],
)
def test_a_program_that_fails_gives_a_reason(tmp_path: Path, code: str, reason: str) -> None:
    with pytest.raises(Failed, match=reason):
        Measurer(problem(command=script(tmp_path, code))).measure(DESIGN)


def test_a_program_that_is_not_there_gives_a_reason() -> None:
    with pytest.raises(Failed, match=r"cannot run ./no-such-program: "):
        Measurer(problem(command=("./no-such-program",))).measure(DESIGN)


def test_a_timeout_kills_the_program_and_all_that_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    later = f"import time, pathlib; time.sleep(0.6); pathlib.Path({str(mark)!r}).touch()"
    code = f"import subprocess, time\nsubprocess.Popen([sys.executable, '-c', {later!r}])\ntime.sleep(60)"
    measurer = Measurer(problem(command=script(tmp_path, code), timeout=0.3))
    began = time.monotonic()
    with pytest.raises(Failed, match=r"took longer than 0.3 s and was killed"):
        measurer.measure(DESIGN)
    assert time.monotonic() - began < 5
    time.sleep(0.7)
    assert not mark.exists()


@pytest.mark.parametrize("timeout", [None, 20.0])
def test_an_answer_is_taken_when_the_program_ends_whoever_else_holds_its_output(
    tmp_path: Path, timeout: float | None
) -> None:
    mark = tmp_path / "alive"
    later = f"import time, pathlib; time.sleep(3); pathlib.Path({str(mark)!r}).touch(); time.sleep(60)"
    code = f"import subprocess\nsubprocess.Popen([sys.executable, '-c', {later!r}])\nprint('{{\"time\": 2, \"error\": 7}}')"
    began = time.monotonic()
    measurer = Measurer(problem(command=script(tmp_path, code), timeout=timeout))
    assert measurer.measure(DESIGN) == {"time": 0.002, "error": 0.07}
    took = time.monotonic() - began
    assert took < 15
    time.sleep(max(0.0, 3.5 - took))
    assert not mark.exists() or took > 2.5


def test_a_child_that_is_about_to_answer_is_waited_for_a_moment(tmp_path: Path) -> None:
    answer = '{"time": 2, "error": 7}'
    code = f"import os, time\nif os.fork() == 0:\n    time.sleep(0.05)\n    print('{answer}')"
    assert Measurer(problem(command=script(tmp_path, code))).measure(DESIGN)["time"] == 0.002


def counting(folder: Path, values: list[object]) -> tuple[str, ...]:
    """A program that gives one value after the other; None fails."""
    code = (
        f"from pathlib import Path\npath = Path({str(folder / 'count')!r})\n"
        "n = int(path.read_text()) if path.exists() else 0\npath.write_text(str(n + 1))\n"
        f"value = json.loads({json.dumps(values)!r})[n]\n"
        "sys.exit('flaky') if value is None else print(json.dumps({'time': value, 'error': 1}))"
    )
    return script(folder, code)


def test_a_failed_run_is_repeated_as_often_as_it_may(tmp_path: Path) -> None:
    measurer = Measurer(problem(command=counting(tmp_path, [None, None, 3]), retries=2))
    assert measurer.measure(DESIGN)["time"] == 0.003
    (tmp_path / "count").unlink()
    with pytest.raises(Failed, match="flaky"):
        Measurer(problem(command=counting(tmp_path, [None, None, 3]), retries=1)).measure(DESIGN)


def test_each_metric_is_the_median_of_the_repeats(tmp_path: Path) -> None:
    measurer = Measurer(problem(command=counting(tmp_path, [9, 1, 2]), repeats=3))
    assert measurer.measure(DESIGN) == {"time": 0.002, "error": 0.01}
    assert (tmp_path / "count").read_text() == "3"


def test_closing_kills_what_runs() -> None:
    runner = CommandRunner((PYTHON, "-c", "import time; time.sleep(60)"))
    import threading

    reasons: list[str] = []

    def run() -> None:
        try:
            runner.run({})
        except Failed as failed:
            reasons.append(str(failed))

    thread = threading.Thread(target=run)
    thread.start()
    while runner._running is None:
        time.sleep(0.01)
    runner.close()
    thread.join(5)
    assert reasons
    assert "was ended by SIGKILL" in reasons[0]
    with pytest.raises(Failed, match="was stopped"):
        runner.run({})


# -- before anything runs --------------------------------------------------------------------------


def test_an_unknown_placeholder_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown dimension or input 'tiel'; did you mean 'tile'\?"):
        check_measurement(problem(command=("run", "{tiel}")))


def test_a_problem_that_nothing_measures_is_refused() -> None:
    with pytest.raises(InputError, match="nothing measures time, error: the space needs `measure:`"):
        check_measurement(problem())
