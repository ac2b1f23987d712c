"""The report as one HTML file that needs nothing else: no network, no other file, and for all but the figure no script."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path
from typing import Any

from dse import __version__
from dse.problem import Constraint, Problem, shown
from dse.study.compare import TeamReport
from dse.study.result import Result
from dse.units import format_value

from .cards import missing
from .figure import FrontFigure
from .interactive import element
from .quantities import fixed_bound
from .source import Material, clean
from .style import Mark, mark
from .words import accounting, front_rows, funnel, metric_heads, outcome, reasons

__all__ = ["page"]

_MOST_ROWS = 500
# Shapes in a box of 10 by 10, like Matplotlib's markers of these names.
_SHAPES = {
    "o": '<circle cx="5" cy="5" r="4"/>',
    ".": '<circle cx="5" cy="5" r="2"/>',
    "s": '<path d="M1.4 1.4h7.2v7.2h-7.2z"/>',
    "^": '<path d="M5 .8L9.4 9H.6z"/>',
    "D": '<path d="M5 .3L9.7 5 5 9.7.3 5z"/>',
    "v": '<path d="M5 9.2L9.4 1H.6z"/>',
    "P": '<path d="M3.4.8h3.2v2.6h2.6v3.2H6.6v2.6H3.4V6.6H.8V3.4h2.6z"/>',
    "X": '<path d="M2.5.6L5 3 7.5.6 9.4 2.5 7 5l2.4 2.5-1.9 1.9L5 7 2.5 9.4.6 7.5 3 5 .6 2.5z"/>',
    "p": '<path d="M5 .7l4.3 3.1-1.6 5H2.3l-1.6-5z"/>',
}


def page(found: Material, figure: FrontFigure) -> str:
    """The report on ``found``, with ``figure`` in it."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def glyph(look: Mark) -> Markup:
        shape = Markup(_SHAPES[look.marker])  # noqa: S704 - one of the shapes above
        return Markup('<svg class="mark" viewBox="0 0 10 10" fill="{}" aria-hidden="true">{}</svg>').format(
            look.colour, shape
        )

    folder = Path(__file__).parent
    plot = element(figure)
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string((folder / "report.html.j2").read_text(encoding="utf-8"))
    text = template.render(
        **_words(found, figure),
        glyph=glyph,
        plot=Markup(plot),  # noqa: S704 - plotly escapes its data for a script, and we its texts
        scripts=Markup(" ".join(_digests(plot))),  # noqa: S704 - base64
        version=__version__,
    )
    return f"{text}\n"


def _digests(plot: str) -> list[str]:
    """The scripts of the figure, as a content-security policy names them."""
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", plot, re.DOTALL)
    found = (hashlib.sha256(script.encode()).digest() for script in scripts)
    return [f"'sha256-{base64.b64encode(digest).decode()}'" for digest in found]


def _words(found: Material, figure: FrontFigure) -> dict[str, Any]:
    problem = found.problem
    rows = [(mark(at), [clean(e.team), *row]) for at, e in enumerate(found.entries) for row in front_rows(e)]
    heads = [("team", False), ("index", True), *((clean(n), False) for n in problem.names)]
    heads += [(head, True) for head in metric_heads(problem)] + [("ties", True)]
    sharing = found.whole or max((e.result for e in found.entries), key=lambda r: r.funnel.feasible)
    return {
        "title": figure.title,
        "name": clean(problem.name),
        "about": clean(problem.about),
        "digest": problem.digest[:12],
        "seed": found.entries[0].result.seed if found.entries else 0,
        "objectives": [f"{o.direction} {clean(o.name)}" for o in problem.objectives],
        "constraints": [_constraint(problem, c) for c in problem.constraints],
        "notes": ". ".join(figure.notes),
        "several": len(figure.teams) > 1,
        "beyond": any(panel.beyond for panel in figure.panels),
        "best_heads": [f"best {clean(o.name)}" for o in problem.objectives],
        "entries": [_entry(e, mark(at)) for at, e in enumerate(found.entries)],
        "traits": [clean(trait.text) for trait in sharing.traits] if sharing.front else [],
        "front_heads": heads,
        "front_title": figure.front[0].upper() + figure.front[1:],
        "front": rows[:_MOST_ROWS],
        "front_left": f"{len(rows) - _MOST_ROWS:,}" if len(rows) > _MOST_ROWS else "",
        "note": clean(found.note),
        "inputs": [
            (clean(n), clean(shown(i.value, i.unit)), clean(i.about)) for n, i in problem.inputs.items()
        ],
    }


def _constraint(problem: Problem, constraint: Constraint) -> str:
    """``latency <= 10 ms`` where the bound is one number, else as it was written."""
    bound = (
        None
        if constraint.metric is None
        else fixed_bound(problem, constraint, problem.metrics[constraint.metric].node)
    )
    if bound is None:
        return clean(constraint.text or constraint.name)
    sign = {"<=": "\u2264", ">=": "\u2265", "==": "="}.get(bound[0], bound[0])
    return f"{clean(constraint.metric or '')} {sign} {format_value(bound[1], constraint.unit)}"


def _entry(entry: TeamReport, look: Mark) -> dict[str, Any]:
    result = entry.result
    least = "" if result.funnel.exact else "at least "
    near = result.nearest_miss
    return {
        "name": clean(entry.team),
        "mark": look,
        "about": clean(team.about) if (team := result.problem.teams.get(entry.team)) else "",
        "legal": f"{least}{result.funnel.legal:,}",
        "feasible": f"{least}{result.funnel.feasible:,}",
        "on_front": f"{len(result.front):,}",
        "best": _best(result),
        "miss": ""
        if result.front or near is None
        else missing(result.problem, near.violations) + result.so_far,
        "outcome": outcome(result),
        "reasons": reasons(entry),
        "note": clean(result.note),
        "accounting": accounting(result),
        "funnel": funnel(result),
        "failures": [clean(f"{reason}: {text}") for reason, _, text in result.failures],
    }


def _best(result: Result) -> list[str]:
    """The best value of each objective on the front."""
    texts = []
    for objective in result.problem.objectives:
        values = [point.objectives[objective.name] for point in result.front]
        best = min(values, key=lambda value: value * objective.sign, default=None)
        texts.append("\u2013" if best is None else format_value(best, objective.unit))
    return texts
