"""Certificates: what a right one passes, and that every wrong one is seen whatever its checksum says."""

from __future__ import annotations

import hashlib
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dse.study.certificate import (
    ABSENT,
    CERTIFICATE,
    DOMINATED,
    END,
    FRAME,
    JUDGED,
    LENGTH,
    MAGIC,
    OPEN,
    OUTSIDE,
    RULES,
    TAIL,
    Axis,
    Recorder,
)
from dse.study.certified import check_certificate
from dse.study.proofs import Findings
from dse.study.replay import Certificate, Replay
from dse.study.result import FrontPoint
from dse.study.stated import Stated
from tests.randomspaces import problem as random_problem
from tests.study.certifying import Branching, certify
from tests.study.problems import Build


def checked(folder: Path, claim: Stated, boxes: int = 10_000, seed: int = 0) -> Findings:
    found = Findings()
    check_certificate(folder, claim, boxes, seed, found)
    return found


def random_certificate(seed: int, folder: Path, designs: int = 120) -> tuple[Branching, Stated]:
    draw = random.Random(seed)
    problem = random_problem(seed, designs)
    team = draw.choice([problem.everything, *problem.teams.values()])
    epsilon, top = draw.choice([0.0, 0.0, 0.0, 0.1]), draw.choice([0, 0, 3])
    objective = draw.randrange(len(problem.objectives))
    return certify(problem, team, folder, draw, epsilon=epsilon, top=top, objective=objective)


def sample(folder: Path, top: int = 0) -> Stated:
    """A certificate with boxes of all kinds, of a dimension in two digits, with ties."""
    problem = random_problem(172, 200, 3)
    return certify(problem, problem.everything, folder, random.Random(172), top=top)[1]


# -- right ones ------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_right_certificates_of_random_problems_pass(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + 25):
        _, claim = random_certificate(seed, tmp_path)
        found = checked(tmp_path, claim)
        assert found.broken == [], seed
        boxes = claim.stored["certificate"]["boxes"]
        assert found.held[-1] == f"{boxes:,} of {boxes:,} boxes re-proved", seed


def test_a_sample_of_the_boxes_is_proved_again(tmp_path: Path) -> None:
    claim = sample(tmp_path)
    boxes = claim.stored["certificate"]["boxes"]
    assert boxes > 20
    assert checked(tmp_path, claim, boxes=7).held[-1] == f"7 of {boxes} boxes re-proved"
    assert checked(tmp_path, claim, boxes=0).held[-1] == f"0 of {boxes} boxes re-proved"


# -- changed files ---------------------------------------------------------------------------------


@dataclass
class Frame:
    batch: int
    start: int
    codes: list[list[int]]
    depth: int


@dataclass
class File:
    """A certificate taken apart; :meth:`write` puts it together with right counts and checksums."""

    header: dict[str, Any]
    frames: list[Frame]
    n_frames: int | None = None
    n_boxes: int | None = None

    @classmethod
    def read(cls, path: Path) -> File:
        data = path.read_bytes()
        (length,) = LENGTH.unpack_from(data, len(MAGIC))
        at = len(MAGIC) + LENGTH.size
        header = json.loads(data[at : at + length])
        at += length
        depths: dict[int, int] = {0: 0}
        frames: list[Frame] = []
        while True:
            batch, start, n = FRAME.unpack_from(data, at)
            if batch == END:
                return cls(header, frames)
            at += FRAME.size
            depth = depths[batch]
            size = header["axes"][depth][1]
            codes = np.frombuffer(data, np.uint8, n * size, at).reshape(n, size).tolist()
            at += n * size
            frames.append(Frame(batch, start, codes, depth))
            depths[len(frames)] = depth + 1

    def write(self, folder: Path, claim: Stated) -> Stated:
        """Replace the file; the claim that goes with it."""
        text = json.dumps(self.header).encode()
        data = MAGIC + LENGTH.pack(len(text)) + text
        boxes = 0
        for frame in self.frames:
            data += FRAME.pack(frame.batch, frame.start, len(frame.codes))
            data += bytes(code for row in frame.codes for code in row)
            boxes += sum(code > ABSENT for row in frame.codes for code in row)
        frames = len(self.frames)
        data += TAIL.pack(
            END,
            frames if self.n_frames is None else self.n_frames,
            boxes if self.n_boxes is None else self.n_boxes,
        )
        data += hashlib.sha256(data).digest()
        (folder / CERTIFICATE).write_bytes(data)
        facts = {"file": CERTIFICATE, "boxes": boxes, "sha256": hashlib.sha256(data).hexdigest()}
        return replace(claim, stored={**claim.stored, "certificate": facts})

    def find(self, code: Callable[[int], bool], depth: int = -1) -> tuple[Frame, int, int]:
        """The first child with such a code."""
        for frame in self.frames:
            for row, codes in enumerate(frame.codes):
                for child, own in enumerate(codes):
                    if code(own) and depth in (-1, frame.depth):
                        return frame, row, child
        raise AssertionError("no such child")

    def set(self, code: Callable[[int], bool], to: int) -> None:
        frame, row, child = self.find(code)
        frame.codes[row][child] = to


def test_what_is_taken_apart_and_put_together_is_the_same(tmp_path: Path) -> None:
    claim = sample(tmp_path)
    assert checked(tmp_path, File.read(tmp_path / CERTIFICATE).write(tmp_path, claim)).broken == []


def test_any_byte_that_is_changed_is_seen(tmp_path: Path) -> None:
    claim = sample(tmp_path)
    path = tmp_path / CERTIFICATE
    right = path.read_bytes()
    draw = random.Random(1)
    for at in range(len(right)):
        wrong = bytearray(right)
        wrong[at] ^= draw.randint(1, 255)
        path.write_bytes(wrong)
        found = checked(tmp_path, claim)
        said = "is no certificate" if at < len(MAGIC) else "is damaged: its checksum does not hold"
        assert found.broken == [f"certificate.bin {said}"], at
    for cut in (right[:-1], right + b"\0", right[1:], b"", right[:50]):
        path.write_bytes(cut)
        assert checked(tmp_path, claim).broken


def test_another_file_with_a_right_checksum_is_seen(tmp_path: Path) -> None:
    claim = sample(tmp_path)
    changed = File.read(tmp_path / CERTIFICATE)
    changed.header["more"] = 1
    changed.write(tmp_path, claim)
    assert checked(tmp_path, claim).broken == [
        "certificate.bin is not the file that result.json names (sha256 differs)"
    ]


def test_rows_that_overlap_are_seen(tmp_path: Path) -> None:
    """A batch of two rows whose first is expanded twice, in place of the second."""
    build = Build().dimension("a", [1.0, 2.0]).dimension("b", [1.0, 2.0])
    problem = build.metric("cost", "a * b").minimize("cost").problem()
    for second, broken in ((1, False), (0, True)):
        recorder = Recorder(tmp_path, problem, problem.everything)
        recorder.begin([Axis(0, 2, 1), Axis(1, 2, 1)])
        recorder.frame(0, 0, np.array([[OPEN, OPEN]], dtype=np.uint8))
        recorder.frame(1, 0, np.array([[JUDGED, DOMINATED]], dtype=np.uint8))
        recorder.frame(1, second, np.array([[DOMINATED, DOMINATED]], dtype=np.uint8))
        accounting = {
            "outside": 0,
            "evaluated": 1,
            "illegal_by": {},
            "pruned_by": {"dominated by the front": 3},
        }
        stored = {"certificate": recorder.finish(), "accounting": accounting}
        point = FrontPoint(0, {"a": 1.0, "b": 1.0}, {"cost": 1.0}, {})
        found = checked(tmp_path, Stated(problem, problem.everything, stored, [point], 0.0, 0, 0))
        assert bool(found.broken) == broken
        assert (
            not broken or "frame 2 expands rows 0 to 1 of batch 1, which are not all there" in found.broken[0]
        )


@pytest.mark.parametrize("boxes", [0, 100])
def test_judged_boxes_are_judged_again_one_and_all(tmp_path: Path, boxes: int) -> None:
    build = Build().dimension("a", [1.0, 2.0, 3.0, 4.0]).rule("three", "a != 3").team("two", where="a != 2")
    problem = build.metric("cost", "a").metric("other", "-a").minimize("cost").minimize("other").problem()
    rules, point = [RULES], FrontPoint(0, {"a": 1.0}, {"cost": 1.0, "other": -1.0}, {})
    last = FrontPoint(3, {"a": 4.0}, {"cost": 4.0, "other": -4.0}, {})
    two = FrontPoint(1, {"a": 2.0}, {"cost": 2.0, "other": -2.0}, {})
    for codes, points, team, said in (
        ([JUDGED, OUTSIDE, *rules, JUDGED], [point, last], "two", ""),
        ([JUDGED, JUDGED, *rules, JUDGED], [point, two, last], "all", ""),
        ([JUDGED, JUDGED, *rules, JUDGED], [point, last], "two", "a design that is outside or illegal: a=2"),
        ([JUDGED, OUTSIDE, JUDGED, JUDGED], [point, last], "two", "a design that is outside or illegal: a=3"),
        ([JUDGED, JUDGED, *rules, JUDGED], [point, last], "all", "a judged design belongs on the front and is not there: a=2"),
        ([JUDGED, OUTSIDE, *rules, DOMINATED], [point, last], "two", "the certificate judged none"),
    ):  # fmt: skip
        own = problem.team(team)
        recorder = Recorder(tmp_path, problem, own)
        recorder.begin([Axis(0, 4, 1)])
        recorder.frame(0, 0, np.array([codes], dtype=np.uint8))
        accounting = {
            "outside": codes.count(OUTSIDE),
            "evaluated": codes.count(JUDGED),
            "illegal_by": {"three": codes.count(RULES)},
            "pruned_by": {"dominated by the front": codes.count(DOMINATED)},
        }
        stored = {"certificate": recorder.finish(), "accounting": accounting}
        found = checked(tmp_path, Stated(problem, own, stored, points, 0.0, 0, 0), boxes)
        assert bool(found.broken) == bool(said), (codes, found)
        assert not said or any(said in line for line in found.broken), found.broken


def test_a_list_of_the_best_that_is_not_full_lets_nothing_be_discarded(tmp_path: Path) -> None:
    claim = sample(tmp_path, top=3)
    assert claim.front.worst == claim.best[-1][0]
    assert replace(claim, top=4).front.worst == math.inf
    assert replace(claim, top=0).front.worst == -math.inf


def swap(items: list[Any], a: int, b: int) -> None:
    items[a], items[b] = items[b], items[a]


def is_open(code: int) -> bool:
    return code == OPEN


def closed(code: int) -> bool:
    return code > ABSENT


STRUCTURE: dict[str, tuple[Callable[[File], object], str]] = {
    "a frame dropped": (lambda f: f.frames.pop(3), "expands rows|never expanded"),
    "the last frame dropped": (lambda f: f.frames.pop(), "never expanded"),
    "a frame doubled": (lambda f: f.frames.insert(4, f.frames[3]), "not all there to be expanded"),
    "frames swapped": (lambda f: swap(f.frames, 0, 1), "not all there to be expanded"),
    "no frames": (lambda f: f.frames.clear(), "1 open boxes were never expanded"),
    "a row that is not there": (lambda f: setattr(f.frames[1], "start", 1), "not all there to be expanded"),
    "a batch that is not there": (lambda f: setattr(f.frames[1], "batch", 999), "not all there"),
    "open to dominated": (lambda f: f.set(is_open, DOMINATED), "expands rows|never expanded"),
    "open to illegal": (lambda f: f.set(is_open, RULES), "expands rows|never expanded"),
    "open to absent": (lambda f: f.set(is_open, ABSENT), "calls a box absent that stands for designs"),
    "closed to open": (lambda f: f.set(closed, OPEN), "expands rows|never expanded|all axes are fixed"),
    "closed to absent": (lambda f: f.set(closed, ABSENT), "calls a box absent that stands for designs"),
    "absent to closed": (lambda f: f.set(lambda c: c == ABSENT, DOMINATED), "one that stands for none"),
    "a code without meaning": (lambda f: f.set(closed, 250), "a code that means nothing: 250"),
    "a dimension that is not there": (lambda f: f.header["axes"].append([99, 2, 1]), "that there is not"),
    "an axis dropped": (lambda f: f.header["axes"].pop(), "name every place|cut off|no code|fixed|absent"),
    "another stride": (lambda f: f.header["axes"][0].__setitem__(2, 7), "do not name every place"),
    "another size": (lambda f: f.header["axes"][1].__setitem__(1, 50), "do not name|cut off|not all there|nothing"),
    "fewer places": (lambda f: f.header["axes"][0].__setitem__(1, 4), "do not name|cut off|not all there"),
    "an axis that is too short": (lambda f: f.header["axes"][-1].__setitem__(1, 1), "do not name every place"),
    "axes that are no numbers": (lambda f: f.header.update(axes="x"), "has no axes, width or epsilon"),
    "no width": (lambda f: f.header.pop("width"), "has no axes, width or epsilon"),
    "another format": (lambda f: f.header.update(format=2), "is no certificate of format 1"),
    "fewer frames told": (lambda f: setattr(f, "n_frames", 1), "but says that it has 1 and"),
    "more boxes told": (lambda f: setattr(f, "n_boxes", 9999), "but says that it has .* and 9,999"),
    "another problem": (lambda f: f.header.update(problem="f" * 64), r"is of another problem \(digest ffffffffffff, this"),
    "another team": (lambda f: f.header.update(team="x"), r"is of another team \(x, this study's is"),
    "another team's boxes": (lambda f: f.header.update(boxes="x"), "is of another team"),
    "another epsilon": (lambda f: f.header.update(epsilon=9.0), "epsilon is 9.0, but must be 0.0"),
    "another direction": (lambda f: f.header["objectives"][0].__setitem__(1, "x"), "objectives is .*, but must be"),
    "a rule renamed": (lambda f: f.header["rules"].append("x"), "rules is .*, but must be"),
    "two bytes a code": (lambda f: f.header.update(width=2), "width is 2, but must be 1"),
}  # fmt: skip


@pytest.mark.parametrize("kind", STRUCTURE)
def test_a_changed_structure_is_seen_whatever_the_checksum(tmp_path: Path, kind: str) -> None:
    claim = sample(tmp_path)
    change, message = STRUCTURE[kind]
    file = File.read(tmp_path / CERTIFICATE)
    change(file)
    claim = file.write(tmp_path, claim)
    (broken,) = checked(tmp_path, claim).broken
    assert re.search(message, broken), broken


# -- changed meaning -------------------------------------------------------------------------------


def closed_boxes(folder: Path, branching: Branching) -> list[tuple[int, int, tuple[int, ...]]]:
    """Frame-independent: every closed box as (number, code, digits)."""
    certificate = Certificate.read(folder / CERTIFICATE)
    replay = Replay(certificate, branching.sizes, 256)
    found = []
    for part in replay:
        for at, (code, digits) in enumerate(zip(part.codes.tolist(), part.digits.tolist(), strict=True)):
            found.append((part.first + at, code, tuple(digits)))
    return found


def recoded(file: File, number: int, to: int) -> None:
    """Give closed box ``number`` another code."""
    for frame in file.frames:
        for codes in frame.codes:
            for child, code in enumerate(codes):
                if code > ABSENT:
                    if not number:
                        codes[child] = to
                        return
                    number -= 1


@pytest.mark.parametrize("first", range(0, 60, 30))
def test_a_wrong_reason_is_seen_just_when_it_is_wrong(tmp_path: Path, first: int) -> None:
    """With checksum and accounting made to fit."""
    seen = {True: 0, False: 0}
    for seed in range(first, first + 30):
        branching, claim = random_certificate(seed, tmp_path)
        file = File.read(tmp_path / CERTIFICATE)
        axes = [Axis(*axis) for axis in file.header["axes"]]
        boxes = closed_boxes(tmp_path, branching)
        draw = random.Random(seed)
        for number, code, digits in draw.sample(boxes, min(6, len(boxes))):
            problem = branching.problem
            to = draw.randrange(2, RULES + len(problem.rules) + len(problem.constraints))
            size = len(branching.places(digits, axes))
            branching.designs[code] -= size
            branching.designs[to] += size
            recoded(file, number, to)
            changed = file.write(
                tmp_path, replace(claim, stored={**claim.stored, "accounting": branching.accounting()})
            )
            found = checked(tmp_path, changed)
            right = branching.right(to, digits, axes)
            assert (not found.broken) == right, (seed, number, code, to, digits, found.broken)
            assert not any("does not agree" in line for line in found.broken)
            seen[right] += code != to
            recoded(file, number, code)
            branching.designs[code] += size
            branching.designs[to] -= size
    assert min(seen.values()) > 20


class Lying(Branching):
    """Closes boxes that it should have opened, and accounts for them."""

    def code(self, digits: Sequence[int], axes: Sequence[Axis]) -> int:
        code = super().code(digits, axes)
        if code == OPEN and self.draw.random() < 0.15:
            code = self.draw.randrange(2, RULES + len(self.problem.rules) + len(self.problem.constraints))
            self.lies.append(self.right(code, digits, axes))
            self.hidden += [f for f in map(self.facts.get, self.places(digits, axes)) if f is not None]
        return code


@pytest.mark.parametrize("first", range(0, 80, 40))
def test_a_box_closed_without_proof_is_seen_just_when_it_has_to_be_open(tmp_path: Path, first: int) -> None:
    """With everything made to fit, the front too: points that were not judged are not on it."""
    wrong = 0
    for seed in range(first, first + 40):
        draw = random.Random(seed)
        problem = random_problem(seed, 200, 3)
        lying = Lying(problem, problem.everything, draw, 0.0, 0, 0)
        recorder = Recorder(tmp_path, problem, problem.everything)
        lying.run(recorder)
        claim = lying.claim(recorder.finish())
        if not lying.lies:
            continue
        assert (not checked(tmp_path, claim).broken) == all(lying.lies), seed
        hidden = {f.index for f in lying.hidden if f.member and f.feasible and f.costs in lying.front}
        shown = [point for point in claim.points if point.index not in hidden]
        if hidden and len(shown) < len(claim.points):
            wrong += 1
            assert checked(tmp_path, replace(claim, points=shown)).broken, seed
    assert wrong


def test_accounting_that_does_not_fit_is_seen(tmp_path: Path) -> None:
    claim = sample(tmp_path)
    for part in ("outside", "evaluated"):
        accounting = {**claim.stored["accounting"]}
        accounting[part] += 1
        (broken,) = checked(
            tmp_path, replace(claim, stored={**claim.stored, "accounting": accounting})
        ).broken
        assert broken.startswith("the certificate has ")
        assert f"designs {part}, but the accounting" in broken
    for part in ("illegal_by", "pruned_by"):
        accounting = {**claim.stored["accounting"], part: {"x": 1}}
        broken = checked(tmp_path, replace(claim, stored={**claim.stored, "accounting": accounting})).broken[
            -1
        ]
        assert broken == f"the certificate has 0 designs {part[:-3]} (x), but the accounting 1"


def test_a_front_that_does_not_fit_is_seen(tmp_path: Path) -> None:
    claim = sample(tmp_path)
    first, *rest = claim.points
    name = next(iter(first.objectives))
    worse = {**first.objectives, name: first.objectives[name] + 1.0}
    better = {**first.objectives, name: first.objectives[name] - 1.0}
    for points in (
        rest,
        [replace(first, objectives=worse), *rest],
        [replace(first, objectives=better), *rest],
        [replace(first, ties=first.ties + 1), *rest],
        [replace(first, index=(first.index or 0) + 1), *rest],
    ):
        found = checked(tmp_path, replace(claim, points=points))
        assert found.broken, points[0]
        assert any("front" in line for line in found.broken)


def test_best_designs_that_do_not_fit_are_seen(tmp_path: Path) -> None:
    claim = sample(tmp_path, top=3)
    assert checked(tmp_path, claim).broken == []
    best = claim.stored["best"]
    assert len(best) == 3
    for changed in (best[:2], [best[1], best[0], best[2]], [{**best[0], "index": 0}, *best[1:]], []):
        found = checked(tmp_path, replace(claim, stored={**claim.stored, "best": changed}))
        assert found.broken
