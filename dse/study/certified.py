"""Checking the certificate of a study: its coverage, its sums, the front that its judged boxes give, and its boxes."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dse.errors import VerificationFailed
from dse.problem import Problem
from dse.study.boxbounds import Box
from dse.study.certificate import CERTIFICATE, JUDGED, OUTSIDE, RULES, header_of, reason_of
from dse.study.judged import Judged
from dse.study.proofs import Findings
from dse.study.replay import Certificate, Closed, Replay, Tree
from dse.study.reproof import Reprover
from dse.study.stated import Stated

__all__ = ["BOXES", "check_certificate"]

BOXES = 10_000
"""Boxes that are proved again, unless told otherwise."""

_TOGETHER = 4_096  # boxes of one code that are proved together


def check_certificate(folder: Path, stated: Stated, boxes: int, seed: int, found: Findings) -> None:
    """Check the certificate that a result names, if it names one.

    Args:
        boxes: how many are proved again: all, or a sample drawn with ``seed``.
    """
    facts = stated.stored.get("certificate")
    if not isinstance(facts, Mapping):
        return
    if facts.get("file") is None:
        found.check(f"there is no certificate to check: {facts.get('why')}", [])
        return
    try:
        certificate = Certificate.read(folder / CERTIFICATE)
        _check_header(certificate, stated)
        if certificate.sha256 != facts.get("sha256"):
            raise VerificationFailed(f"{CERTIFICATE} is not the file that result.json names (sha256 differs)")
        replay = Replay(certificate, stated.sizes, _codes(stated.problem))
        judged = Judged(stated, replay.tree)
        chosen = _chosen(certificate.n_boxes, boxes, seed)
        sample: list[tuple[NDArray[np.int64], Closed]] = []
        for closed in replay:
            judged.add(closed)
            sample += _sampled(closed, chosen)
    except VerificationFailed as error:
        found.check("", [str(error)])
        return
    total = math.prod(stated.sizes)
    found.check(
        f"the {replay.boxes:,} boxes of the certificate are disjoint and cover all {total:,} designs of the search",
        []
        if replay.boxes == facts.get("boxes")
        else ["the certificate has another number of boxes than result.json"],
    )
    found.check("they sum to the accounting, reason by reason", _wrong_sums(stated, replay.designs))
    found.check(f"the front is that of the {judged.boxes:,} judged boxes", judged.wrong())
    _reprove(stated, replay.tree, sample, replay.boxes, found)


def _codes(problem: Problem) -> int:
    return RULES + len(problem.rules) + len(problem.constraints)


def _check_header(certificate: Certificate, stated: Stated) -> None:
    """Make sure that a certificate is of this search."""
    header, name = certificate.header, certificate.path.name
    expected = header_of(stated.problem, stated.team, certificate.axes, stated.epsilon)
    if header.get("problem") != expected["problem"]:
        raise VerificationFailed(
            f"{name} is of another problem (digest {str(header.get('problem'))[:12]}, "
            f"this one's is {stated.problem.digest[:12]})"
        )
    for key in ("team", "boxes"):
        if header.get(key) != expected[key]:
            raise VerificationFailed(
                f"{name} is of another team ({header.get('team')}, this study's is {stated.team.name})"
            )
    for key, value in expected.items():
        if header.get(key) != value:
            raise VerificationFailed(f"{name}: {key} is {header.get(key)}, but must be {value}")


def _wrong_sums(stated: Stated, designs: Mapping[int, int]) -> list[str]:
    """Where the certificate and the accounting differ."""
    problem, accounting = stated.problem, stated.stored["accounting"]
    illegal: dict[str, int] = {}
    pruned: dict[str, int] = {}
    for code, count in designs.items():
        if RULES <= code < RULES + len(problem.rules):
            name = problem.rules[code - RULES].name
            illegal[name] = illegal.get(name, 0) + count
        elif code not in (OUTSIDE, JUDGED):
            name = reason_of(problem, code)
            pruned[name] = pruned.get(name, 0) + count
    outside = problem.size - math.prod(stated.sizes) + designs.get(OUTSIDE, 0)
    pairs = [("outside", outside, accounting["outside"])]
    pairs.append(("evaluated", designs.get(JUDGED, 0), accounting["evaluated"]))
    for word, own, stored in (
        ("illegal", illegal, accounting["illegal_by"]),
        ("pruned", pruned, accounting["pruned_by"]),
    ):
        pairs += [(f"{word} ({name})", own.get(name, 0), stored.get(name, 0)) for name in {**own, **stored}]
    return [
        f"the certificate has {own:,} designs {what}, but the accounting {stored:,}"
        for what, own, stored in pairs
        if own != stored
    ]


# -- proving boxes again ---------------------------------------------------------------------------


def _chosen(count: int, limit: int, seed: int) -> NDArray[np.int64]:
    """The numbers of the boxes that are proved again, ascending."""
    if count <= limit:
        return np.arange(count)
    return np.array(sorted(random.Random(seed).sample(range(count), limit)), dtype=np.int64)


def _sampled(closed: Closed, chosen: NDArray[np.int64]) -> list[tuple[NDArray[np.int64], Closed]]:
    """Those boxes of a frame that were chosen, with their numbers."""
    first, last = np.searchsorted(chosen, [closed.first, closed.first + len(closed.codes)])
    rows = chosen[first:last] - closed.first
    if not len(rows):
        return []
    return [(chosen[first:last], Closed(closed.first, closed.codes[rows], closed.digits[rows]))]


def _boxes(tree: Tree, closed: Closed) -> Iterator[Box]:
    """The places of the boxes of a frame."""
    ends = []
    for at, (span, size) in enumerate(zip(tree.spans[closed.depth], tree.sizes, strict=True)):
        low = tree.places(closed.digits, at)
        ends.append(list(zip(low.tolist(), np.minimum(low + span, size).tolist(), strict=True)))
    return zip(*ends, strict=True)


def _reprove(
    stated: Stated,
    tree: Tree,
    sample: Sequence[tuple[NDArray[np.int64], Closed]],
    count: int,
    found: Findings,
) -> None:
    reprover = Reprover(stated.problem, stated.team, stated.front, tree)
    by_code: dict[int, tuple[list[int], list[Box]]] = {}
    tried = proved = 0
    wrong: dict[int, str] = {}

    def prove(code: int) -> None:
        nonlocal tried, proved
        own, boxes = by_code.pop(code)
        for number, finding in zip(own, reprover.prove(code, boxes, own), strict=True):
            tried += 1
            proved += finding.proved
            if finding.wrong:
                wrong[number] = f"box {number} of the certificate is wrong: {finding.wrong}"

    for numbers, closed in sample:
        for number, code, box in zip(
            numbers.tolist(), closed.codes.tolist(), _boxes(tree, closed), strict=True
        ):
            own, boxes = by_code.setdefault(code, ([], []))
            own.append(number)
            boxes.append(box)
            if len(boxes) == _TOGETHER:
                prove(code)
    for code in list(by_code):
        prove(code)
    left = tried - proved - len(wrong)
    rest = f"; {left:,} could not be within the effort" if left else ""
    found.check(f"{proved:,} of {count:,} boxes re-proved{rest}", [wrong[at] for at in sorted(wrong)])
