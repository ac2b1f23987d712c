"""The space's own predictions against the published figures that come with it."""

from __future__ import annotations

import math

from dse.cli.agreement import find_validation
from dse.spaces.serving import validation
from dse.study.agreement import Validation, report_data


def test_published_figures_by_default() -> None:
    assert find_validation("serving").__file__ == validation.__file__
    report = validation.validate(Validation())
    scores = {name: float(cell) for name, cell in report.scores.items() if isinstance(cell, (int, float))}
    assert scores["rows"] > 600
    assert scores["macro"] < 0.12
    assert scores["decode_macro"] < 0.10
    assert scores["throughput_spearman"] >= 0.95
    assert scores["latency_spearman"] >= 0.95
    assert scores["ceilings"] == 261
    tables = report_data(report)["tables"]
    assert {
        "summary",
        "groups",
        "worst",
        "decode",
        "batch_sweeps",
        "ceilings",
        "further",
        "memory",
        "bounds",
    } <= set(tables)
    assert [row["signed"] < -0.5 for row in tables["flagged"]] == [
        True,
        True,
    ]  # prefills far below what is predicted
    _, rows = report.predictions or ((), ())
    assert all(row["predicted"] is not None and math.isfinite(row["predicted"]) for row in rows)
