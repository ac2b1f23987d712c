"""The HTML report: self-contained, escaped, and what it says."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from dse.problem import Problem
from dse.reports.figure import front_figure
from dse.reports.page import page
from dse.reports.source import Source, clean, material
from dse.reports.words import listing
from dse.study.compare import Comparison, TeamReport, Unlock
from dse.study.result import Relaxation, Result
from tests.reports.samples import build, camera, compared, knobs, solve

SNAPSHOT = Path(__file__).parent / "snapshots" / "report.html"
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


def written(source: Source) -> str:
    text: str = page(material(source), front_figure(source))
    return text


class Seen(HTMLParser):
    """Every tag with its attributes, the text outside scripts and styles, and the scripts."""

    VOID = frozenset({"meta", "input", "br"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return str(re.sub(r"\s+", " ", " ".join(self.words)))


@pytest.fixture(scope="module")
def cameras() -> Comparison:
    return compared(camera(), "ml", "systems", "mlsys")


def test_the_page_needs_nothing_else(cameras: Comparison) -> None:
    text = written(cameras)
    seen = Seen(text)
    assert seen.open == []
    linking = {"src", "href", "xlink:href", "action", "data", "poster", "srcset"}
    for tag, attributes in seen.tags:
        assert tag not in {"link", "iframe", "img", "object", "embed", "base", "form"}
        assert not [name for name in attributes if name.startswith("on")]
        assert all((attributes[name] or "").startswith("#") for name in linking & attributes.keys())
    assert not re.search(r"@import|url\((?!#)", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL))
    assert len(re.findall(r"plotly\.js v\d", text)) == 1


def test_the_policy_allows_the_scripts_of_the_figure_and_no_network(cameras: Comparison) -> None:
    seen = Seen(written(cameras))
    assert len(seen.scripts) == 3
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in seen.scripts]
    (policy,) = [a["content"] or "" for t, a in seen.tags if t == "meta" and a.get("http-equiv")]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "img-src": "data: blob:",
        "script-src": " ".join(f"'sha256-{digest}'" for digest in digests),
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_ids_are_unique(cameras: Comparison) -> None:
    ids = [a["id"] for _, a in Seen(written(cameras)).tags if "id" in a]
    assert len(ids) == len(set(ids))


def test_the_page_says_why_teams_fail_and_what_would_help(cameras: Comparison) -> None:
    text = Seen(written(cameras)).text
    for said in [
        "maximize accuracy, minimize latency; subject to accuracy \u2265 90 %, latency \u2264 10 ms, memory \u2264 100 MB",
        "Free to choose engine and hardware, it has 8 feasible designs.",
        "Free to choose distill, it has 1 feasible design.",
        "leaves this team: engine is not naive or hardware is not cpu.",
        "Nearest miss: detector=Det-L format=int8-PTQ pruning=none distill=false engine=optimized hardware=npu misses accuracy by 0.2 %.",
        "hardware = npu",
        "format is one of int8-PTQ, int8-QAT, int4-QAT (3 of 5)",
        "max_latency 10 ms",
    ]:
        assert said in text


def plotted(seen: Seen) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """The traces, the layout and the settings that plotly is given."""
    text = seen.scripts[-1]
    at, found = text.index('"plot",', text.index("Plotly.newPlot(")) + len('"plot",'), []
    for _ in range(3):
        at = re.compile(r"[\s,]*").match(text, at).end()  # type: ignore[union-attr]
        value, at = json.JSONDecoder().raw_decode(text, at)
        found.append(value)
    return found[0], found[1], found[2]


def test_the_figure_has_every_design_and_uploads_nothing(cameras: Comparison) -> None:
    traces, _, settings = plotted(Seen(written(cameras)))
    texts = {text.split(",")[0] for trace in traces for text in trace.get("hovertext", ())}
    assert len(texts) == 312
    assert "<b>design 327" in texts
    assert settings["doubleClick"] == "reset"
    assert settings["showSendToCloud"] is False
    assert settings.get("plotlyServerURL", "") == ""


def test_the_page_says_what_is_drawn_and_how_to_use_it(cameras: Comparison) -> None:
    text = Seen(written(cameras)).text
    assert "All 312 evaluated designs. A design of several teams has the mark of the smallest." in text
    assert "double-click for this view again. Click a team" in text
    assert "Click a team" not in Seen(written(cameras.rows[2].result)).text


def evil() -> Problem:
    return build(
        {"a": {"choices": [EVIL, "plain"]}, "b": {"range": [1, 3]}},
        {"x": ("b", "1"), "y": ("4 - b", "1")},
        {"x": "minimize", "y": "minimize"},
        {"x": "<= limit"},
        inputs={"limit": 2, "label": {"default": EVIL, "about": EVIL}},
        title=EVIL,
        about=EVIL,
        teams={"t": {"a": [EVIL], "about": EVIL}},
    )


def test_nothing_a_space_says_becomes_markup() -> None:
    problem = evil()
    result = solve(problem, "t")
    hostile = replace(
        result, note=EVIL, failures=((EVIL, 1, EVIL),), front=(), relaxations=tuple(_relaxations(result))
    )
    rows = (
        TeamReport(EVIL, replace(hostile, team=EVIL), (Unlock((EVIL,), 2),), (EVIL,)),
        TeamReport("t", result),
    )
    text = written(Comparison(problem, rows, solve(problem), EVIL))
    seen = Seen(text)
    assert seen.open == []
    assert len(seen.scripts) == 3
    assert not [tag for tag, _ in seen.tags if tag == "img"]
    assert not [name for _, attributes in seen.tags for name in attributes if name.startswith("on")]
    assert EVIL in "".join(seen.words)
    traces, layout, _ = plotted(seen)
    texts = [text for trace in traces for text in [*trace.get("hovertext", ()), trace.get("name", "")]]
    assert any("alert(1)" in text for text in texts)
    assert not [text for text in texts if re.search(r"<(?!/?[bi]>|br>)|&(?!amp;|lt;|gt;)", text)]
    assert "<" not in json.dumps(layout)


def _relaxations(result: Result) -> list[Relaxation]:
    assert result.nearest_miss is not None
    return [Relaxation((EVIL,), result.nearest_miss)]


def test_a_report_of_one_result_without_a_front() -> None:
    problem = build(
        knobs(), {"x": ("a", "1"), "y": ("b", "1")}, {"x": "minimize", "y": "minimize"}, {"x": ">= 10"}
    )
    text = Seen(written(solve(problem))).text
    assert "misses x by 4" in text
    assert "What all feasible designs share" not in text
    assert "Outcome" in text


def test_what_a_stopped_search_found_is_found_so_far() -> None:
    problem = build(
        knobs(), {"x": ("a", "1"), "y": ("b", "1")}, {"x": "minimize", "y": "minimize"}, {"x": ">= 10"}
    )
    result = solve(problem)
    assert "so far" not in written(result)
    stopped = written(replace(result, status="stopped", funnel=replace(result.funnel, exact=False)))
    text = Seen(stopped).text
    assert "Nearest miss so far: " in text
    assert "misses x by 4 so far" in text
    assert "none feasible so far; misses x by 4" in stopped
    assert "all: nearest miss so far" in stopped


def test_whether_there_is_a_legal_design_is_said_where_it_is_known() -> None:
    result = solve(build(knobs(), {"x": ("a", "1")}, {"x": "minimize"}, {"x": ">= 10"}))
    none = replace(result.funnel, legal=0)
    assert "It has no legal design." in written(replace(result, funnel=none))
    pruned = replace(result, funnel=replace(none, exact=False))
    assert "legal design." not in written(pruned)
    assert "No legal design of it was found so far." in written(
        replace(pruned, status="stopped", nearest_miss=None)
    )


def test_a_long_front_is_cut_and_says_so() -> None:
    problem = build(knobs(600, 1), {"x": ("a", "1"), "y": ("0 - a", "1")}, {"x": "minimize", "y": "minimize"})
    text = Seen(written(solve(problem))).text
    assert "100 more designs are on it." in text


def test_a_problem_without_constraints_or_inputs() -> None:
    text = Seen(written(solve(build(knobs(), {"x": ("a", "1")}, {"x": "minimize"})))).text
    assert "minimize x" in text
    assert "subject to" not in text
    assert "Best design" in text


def test_the_page_is_the_same_every_time(cameras: Comparison) -> None:
    assert written(cameras) == written(cameras)


def test_the_page_as_stored() -> None:
    """The page without the figure; ``DSE_UPDATE_SNAPSHOTS=1`` stores it anew."""
    problem = build(
        {"engine": ["slow", "fast"], "size": {"range": [1, 4]}},
        {
            "quality": ("size * 10 percent", "percent"),
            "time": ("(size if engine == 'fast' else size * 3) * 1 ms", "ms"),
        },
        {"quality": "maximize", "time": "minimize"},
        {"time": "<= limit", "quality": ">= 20 percent"},
        inputs={"limit": "4 ms"},
        rules={"fits": {"check": "size < 4 or engine == 'slow'", "because": "{engine} holds three"}},
        teams={"careful": {"engine": "slow", "about": "keeps the engine"}, "bold": {}},
        title="Engine & size",
        about="A small example.",
    )
    text = written(compared(problem, "careful", "bold"))
    text = re.sub(r"<script>.*?</script>", "<script></script>", text, flags=re.DOTALL)
    text = re.sub(r"sha256-[^']*|(?<=height:)\d+(?=px)|problem [0-9a-f]{12}|dse [0-9.]+\.(?=<)", "...", text)
    if os.environ.get("DSE_UPDATE_SNAPSHOTS"):
        SNAPSHOT.parent.mkdir(exist_ok=True)
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert text == SNAPSHOT.read_text(encoding="utf-8")


def test_words() -> None:
    assert [listing(parts) for parts in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert clean("a\x00b\u202ec\ud800") == "a\ufffdb\ufffdc\ufffd"
    assert clean("gr\u00f6\u00dfe \U0001f600\n\t") == "gr\u00f6\u00dfe \U0001f600\n\t"
