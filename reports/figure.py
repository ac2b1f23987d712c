"""The figure of a Pareto front as plain data: what is drawn where, before any drawing library sees it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dse.errors import InputError
from dse.expressions import Kind as TypeKind
from dse.problem import Problem
from dse.study.result import Result
from dse.units import format_value, from_base

from .axes import Axis, drawable, scale_of, spread_out, view
from .cards import Card, Deck, missing
from .cloud import Cloud, Owners, cloud, owners, spots, total
from .quantities import INDEX, Quantity, fixed_bound, quantity
from .source import Source, clean, material
from .style import BACKGROUND, Mark, mark

__all__ = ["FrontFigure", "Line", "Panel", "Series", "TeamMark", "front_figure"]

_MOST_PANELS = 6
_DRAWN = 4000  # designs drawn in a panel before they are thinned

Kind: TypeAlias = Literal["infeasible", "feasible", "miss", "front"]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Series:
    """Designs of one team that are drawn alike: ``x``, ``y`` (n,) in the axes' units, ``cards`` their texts."""

    team: int
    kind: Kind
    x: Floats
    y: Floats
    cards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A constraint's bound on one axis; ``allowed`` is the side where it holds."""

    text: str
    axis: Literal["x", "y"]
    at: float
    allowed: Literal["below", "above", "on"]
    style: int


@dataclass(frozen=True, slots=True)
class Panel:
    """Two axes and what stands between them.

    ``stairs`` are the corners of each team's front, by team number; ``beyond`` are designs that the axes do not
    reach, for a reader who can zoom out.
    """

    x: Axis
    y: Axis
    series: tuple[Series, ...]
    stairs: tuple[tuple[int, Floats, Floats], ...]
    lines: tuple[Line, ...]
    beyond: tuple[Series, ...] = ()


@dataclass(frozen=True, slots=True)
class TeamMark:
    """A team's name, its mark, and one sentence on how it fared; ``near`` is what its nearest miss is called."""

    name: str
    mark: Mark
    summary: str
    near: str = "nearest miss"


@dataclass(frozen=True, slots=True)
class FrontFigure:
    """A front, ready to be drawn.

    ``teams`` are numbered as in ``Series.team``; ``cards`` as in ``Series.cards``, their fields named by
    ``dimensions`` and ``metrics``; ``notes`` say what is shown and what is not; ``front`` is what the front is called.
    """

    title: str
    teams: tuple[TeamMark, ...]
    panels: tuple[Panel, ...]
    dimensions: tuple[str, ...]
    metrics: tuple[str, ...]
    cards: tuple[Card, ...]
    notes: tuple[str, ...]
    front: str = "Pareto front"

    @property
    def grid(self) -> tuple[int, int]:
        """In how many rows and columns the panels stand."""
        count = len(self.panels)
        columns = 1 if count == 1 else 2 if count in (2, 4) else 3
        return -(-count // columns), columns

    def hover(self, card: int) -> str:
        """The text of a card."""
        return self.cards[card].text(self.dimensions, self.metrics)


def front_figure(
    source: Source, x: str | None = None, y: str | None = None, *, drawn: int = _DRAWN
) -> FrontFigure:
    """The front of every team of ``source``, with its evaluated designs.

    Args:
        source: a comparison, a result, or a study.
        x: what the horizontal axis shows: an objective, a metric, a constraint or ``index``. By default the
            first two objectives are drawn, or every pair of up to four; one objective is drawn against the
            first bounded metric, or else another metric, or else the index.
        y: what the vertical axis shows.
        drawn: designs drawn in one panel before they are thinned to one per spot.

    Raises:
        InputError: an axis is unknown, has no kept values, or is the same as the other.
    """
    found = material(source)
    problem = found.problem
    pairs, notes = _pairs(problem, x, y)
    results = [entry.result for entry in found.entries]
    teams = [
        TeamMark(clean(e.team), mark(at), _summary(e.result), f"nearest miss{e.result.so_far}")
        for at, e in enumerate(found.entries)
    ]
    if found.background is not None:
        results.append(found.background)
        teams.append(TeamMark("whole space", BACKGROUND, _summary(found.background)))
    deck = Deck(problem, tuple(team.name for team in teams))
    own = owners(problem, results)
    panels, counts = [], []
    for pair in pairs:
        panel, count = _panel(problem, results, own, pair=pair, deck=deck, drawn=drawn)
        panels.append(panel)
        counts.append(count)
    notes = [
        *_coverage(results, teams, total(own.mine)),
        *_losses(panels, counts, several=len(results) > 1),
        *notes,
    ]
    return FrontFigure(
        clean(found.title),
        tuple(teams),
        tuple(panels),
        tuple(clean(name) for name in problem.names),
        tuple(clean(name) for name in problem.metrics),
        tuple(deck.cards),
        tuple(notes),
        "Pareto front" if len(problem.objectives) > 1 else "best design",
    )


def _pairs(
    problem: Problem, x: str | None, y: str | None
) -> tuple[list[tuple[Quantity, Quantity]], list[str]]:
    """The axes of each panel, and what has to be said about the choice."""
    objectives = [quantity(problem, objective.name) for objective in problem.objectives]
    if x is None and y is None and len(objectives) > 1:
        shown = objectives[:4]
        pairs = list(combinations(shown, 2))[:_MOST_PANELS]
        notes = []
        if len(objectives) > len(shown):
            notes.append(f"The first {len(shown)} of {len(objectives)} objectives are drawn")
        if len(objectives) > 2:
            notes.append(_projection(len(objectives)))
        return pairs, notes
    across = quantity(problem, x) if x is not None else None
    up = quantity(problem, y) if y is not None else None
    if up is None:
        up = next((q for q in objectives if across is None or q.name != across.name), None)
    if across is None:
        assert up is not None
        across = next((q for q in objectives if q.name != up.name), None) or _beside(problem, up)
    if up is None:
        up = _beside(problem, across)
    if across.name == up.name:
        raise InputError(f"the axes must show two different things, but both show {up.name!r}")
    both = across.kind == up.kind == "objective"
    projected = len(objectives) > 1 and (len(objectives) > 2 or not both)
    return [(across, up)], [_projection(len(objectives))] if projected else []


def _projection(count: int) -> str:
    return f"The front is over {count} objectives, so some of its designs look dominated here"


def _beside(problem: Problem, objective: Quantity) -> Quantity:
    """What a single objective is drawn against: a metric with a bound if there is one, or else another metric."""
    fixed: list[str] = []
    bounded: list[str] = []
    for constraint in problem.constraints:
        metric = problem.metrics.get(constraint.metric or "")
        if metric is not None:
            one_bound = fixed_bound(problem, constraint, metric.node) is not None
            (fixed if one_bound else bounded).append(metric.name)
    for name in dict.fromkeys((*fixed, *bounded, *problem.metrics)):
        node = problem.graph[problem.metrics[name].node]
        if name != objective.name and node.support and node.type.kind is TypeKind.NUMBER:
            try:
                return quantity(problem, name)
            except InputError:  # its values are not kept
                continue
    return quantity(problem, INDEX)


@dataclass
class _Count:
    """What became of the kept designs in one panel; a design of several teams counts once."""

    failed: int = 0
    infinite: int = 0
    beyond: int = 0
    inside: int = 0
    drawn: int = 0


def _panel(
    problem: Problem,
    results: list[Result],
    own: Owners,
    *,
    pair: tuple[Quantity, Quantity],
    deck: Deck,
    drawn: int,
) -> tuple[Panel, _Count]:
    clouds = [cloud(problem, result, *pair) for result in results]
    lines = [*_lines(problem, pair[0], "x"), *_lines(problem, pair[1], "y")]
    x = _axis(pair[0], [(c.x[c.finite], c.core(c.x), c.marked[0]) for c in clouds], lines, "x")
    y = _axis(pair[1], [(c.y[c.finite], c.core(c.y), c.marked[1]) for c in clouds], lines, "y")
    # What the one axis leaves out is no reason for the other to reach far.
    across = [(c.x[c.finite & y.holds(c.y)], c.core(c.x, y.holds(c.y)), c.marked[0]) for c in clouds]
    up = [(c.y[c.finite & x.holds(c.x)], c.core(c.y, x.holds(c.x)), c.marked[1]) for c in clouds]
    x, y = _axis(pair[0], across, lines, "x"), _axis(pair[1], up, lines, "y")
    series: list[Series] = []
    far: list[Series] = []
    count = _Count()
    budget = max(1, drawn // (2 * len(clouds)))
    for team, (points, result, fresh) in enumerate(zip(clouds, results, own.mine, strict=True)):
        inside = points.finite & x.holds(points.x) & y.holds(points.y)
        count.failed += int((points.failed & fresh).sum())
        count.infinite += int((~points.failed & ~points.finite & fresh).sum())
        count.beyond += int((points.finite & ~inside & fresh).sum())
        kinds: tuple[tuple[Kind, NDArray[np.bool_]], ...] = (
            ("infeasible", fresh & ~points.feasible),
            ("feasible", fresh & points.feasible),
        )
        for kind, wanted in kinds:
            rows = np.flatnonzero(wanted & inside)
            count.inside += rows.size
            rows = rows[spots(x.at(points.x[rows]), y.at(points.y[rows]), budget)]
            count.drawn += rows.size
            outer = np.flatnonzero(wanted & points.finite & ~inside)
            outer = outer[spots(spread_out(points.x[outer]), spread_out(points.y[outer]), budget // 2)]
            for some, where in ((rows, series), (outer, far)):
                if some.size and result.kept is not None:
                    cards = tuple(deck.of_kept(result.kept, some.tolist(), own.of(team, some)))
                    where.append(Series(team, kind, points.x[some], points.y[some], cards))
        series.extend(_marked(points, team, x, y, deck))
    stairs: list[tuple[int, Floats, Floats]] = []
    if pair[0].kind == pair[1].kind == "objective" and len(problem.objectives) == 2:
        stairs = [(s.team, *_staircase(s.x, s.y, x, y)) for s in series if s.kind == "front"]
    return Panel(x, y, tuple(series), tuple(stairs), tuple(lines), tuple(far)), count


def _marked(points: Cloud, team: int, x: Axis, y: Axis, deck: Deck) -> list[Series]:
    """The front of a team, or its nearest miss."""
    if points.front:
        held = np.flatnonzero(x.holds(points.front_x) & y.holds(points.front_y))
        cards = tuple(deck.of_point(points.front[at]) for at in held)
        return [Series(team, "front", points.front_x[held], points.front_y[held], cards)] if held.size else []
    if points.miss is None:
        return []
    at_x, at_y = np.array(points.miss_at[:1]), np.array(points.miss_at[1:])
    if not (x.holds(at_x) & y.holds(at_y)).all():
        return []
    return [Series(team, "miss", at_x, at_y, (deck.of_point(points.miss),))]


def _axis(
    shown: Quantity, columns: list[tuple[Floats, Floats, Floats]], lines: list[Line], which: str
) -> Axis:
    """The axis of what is shown; ``columns`` have, per team, all values, those to be seen and those marked."""
    values, core, marked = (np.concatenate(part) for part in zip(*columns, strict=True))
    marked = np.append(marked, [line.at for line in lines if line.axis == which])
    if shown.kind == "index":
        core = marked = values
    wanted = np.append(core, marked)
    log = shown.kind != "index" and scale_of(wanted if wanted.size else values)
    low, high = view(values, core, log, marked)
    unit = (
        "" if shown.unit is None or shown.unit.text == "1" else "%" if shown.unit.percent else shown.unit.text
    )
    name = f"violation of {clean(shown.name)}" if shown.kind == "violation" else clean(shown.name)
    return Axis(name, unit, shown.better, log, low, high, whole=shown.kind == "index")


def _lines(problem: Problem, shown: Quantity, axis: Literal["x", "y"]) -> list[Line]:
    """The constraints that bound what an axis shows by the same value for every design."""
    lines = []
    for at, constraint in enumerate(problem.constraints):
        bound = fixed_bound(problem, constraint, shown.node)
        if shown.node < 0 or bound is None or not drawable(np.array([from_base(bound[1], shown.unit)])).all():
            continue
        op, value = bound
        allowed: Literal["below", "above", "on"] = (
            "on" if op == "==" else "below" if op.startswith("<") else "above"
        )
        sign = {"<=": "\u2264", ">=": "\u2265", "==": "="}.get(op, op)
        text = f"{clean(shown.name)} {sign} {format_value(value, shown.unit, 4)}"
        lines.append(Line(text, axis, from_base(value, shown.unit), allowed, at))
    return lines


def _staircase(xs: Floats, ys: Floats, x: Axis, y: Axis) -> tuple[Floats, Floats]:
    """The corners of the border of what a front dominates, from one edge of the panel to the other."""
    flip = -1.0 if x.better == "maximize" else 1.0
    order = np.lexsort((ys * (-1.0 if y.better == "maximize" else 1.0), xs * flip))
    xs, ys = xs[order], ys[order]
    worst_x = x.low if x.better == "maximize" else x.high
    worst_y = y.low if y.better == "maximize" else y.high
    # Across at the old height, then up or down to the next design.
    return np.append(np.repeat(xs, 2), worst_x), np.append(worst_y, np.repeat(ys, 2))


def _summary(result: Result) -> str:
    """``8 feasible, 2 on the front``, or by how much the nearest design misses."""
    funnel = result.funnel
    least = "" if funnel.exact else "at least "
    if result.front:
        if len(result.problem.objectives) == 1:
            best = result.problem.objectives[0]
            return f"{least}{funnel.feasible:,} feasible, best {format_value(result.front[0].objectives[best.name], best.unit)}"
        return f"{least}{funnel.feasible:,} feasible, {len(result.front):,} on the front"
    near = result.nearest_miss
    none = f"none feasible{result.so_far}"
    return f"{none}; {missing(result.problem, near.violations)}" if near else none


def _coverage(results: list[Result], teams: list[TeamMark], seen: int) -> list[str]:
    """Which share of the evaluated designs is here."""
    if all(r.kept is not None and r.kept.complete for r in results):
        notes = [f"All {seen:,} evaluated designs" if seen != 1 else "The one evaluated design"]
    else:
        notes = []
        for result, team in zip(results, teams, strict=True):
            what = _kept(result)
            notes.append(f"{team.name}: {what}" if len(teams) > 1 else what[0].upper() + what[1:])
    if any(r.accounting.pruned for r in results):
        notes.append("Designs that a bound ruled out were not evaluated and are not drawn")
    return notes


def _kept(result: Result) -> str:
    kept = result.kept
    if kept is None:
        return "the front alone, since evaluated designs were not kept"
    if kept.complete:
        return f"all {kept.seen:,} evaluated designs"
    return f"a sample of {len(kept.feasible):,} of {kept.seen:,} evaluated designs"


def _losses(panels: list[Panel], counts: list[_Count], *, several: bool) -> list[str]:
    """Which of them are not in the picture, and why; the same words whatever the number of panels."""
    worst = max(counts, key=lambda count: count.beyond)
    notes = []
    if worst.beyond:
        where = "beyond the axes" if len(panels) == 1 else "beyond the axes of a panel"
        notes.append(f"{worst.beyond:,} {'lies' if worst.beyond == 1 else 'lie'} {where}")
    infinite = max(count.infinite for count in counts)
    if infinite:
        notes.append(f"{infinite:,} {'has' if infinite == 1 else 'have'} no finite value")
    if counts[0].failed:
        notes.append(f"{counts[0].failed:,} failed")
    if several:
        notes.append("A design of several teams has the mark of the smallest")
    if any(count.drawn < count.inside for count in counts):
        notes.append("Where many fall on one spot, one of them is drawn")
    return notes
