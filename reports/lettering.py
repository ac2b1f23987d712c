"""The texts in the interactive figure: of constraints, near misses and short fronts, and where they go."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .figure import FrontFigure, Line, Panel
from .hover import markup
from .labels import Box, above, apart, beside, names, split_bound, strokes, text_width
from .style import INK, short

__all__ = ["bound_text", "labels", "margin", "shifts"]


def margin(line: Line) -> int:
    """The pixels that the text of a constraint needs beside the panel."""
    return 16 + round(max(text_width(part, 10.5) for part in split_bound(line)))


def bound_text(line: Line, panel: Panel, ids: dict[str, str], shift: float) -> dict[str, Any]:
    """The text of a constraint: above the panel, or beside it."""
    common = {"showarrow": False, "font": {"size": 11, "color": INK}, "align": "left"}
    axis = panel.x if line.axis == "x" else panel.y
    at = math.log10(line.at) if axis.log and line.at > 0 else line.at
    if line.axis == "x":
        place = {
            "x": at,
            "xref": ids["x"],
            "y": 1,
            "yref": f"{ids['y']} domain",
            "xanchor": "center",
            "yanchor": "bottom",
        }
        return common | place | {"text": markup(short(line.text, 40)), "yshift": 1 + shift}
    place = {
        "x": 1,
        "xref": f"{ids['x']} domain",
        "y": at,
        "yref": ids["y"],
        "xanchor": "left",
        "yanchor": "middle",
    }
    return (
        common | place | {"text": "<br>".join(map(markup, split_bound(line))), "xshift": 4, "yshift": shift}
    )


def shifts(panel: Panel, wide: float, tall: float) -> list[float]:
    """How far each constraint's text moves up, off its neighbours."""
    moved = dict.fromkeys(range(len(panel.lines)), 0.0)
    beside_panel = [at for at, line in enumerate(panel.lines) if line.axis == "y"]
    heights = [tall * float(panel.y.at(np.array(panel.lines[at].at))) for at in beside_panel]
    for at, wanted, got in zip(beside_panel, heights, apart(heights, 30.0), strict=True):
        moved[at] = got - wanted
    over = [at for at, line in enumerate(panel.lines) if line.axis == "x"]
    middles = [wide * float(panel.x.at(np.array(panel.lines[at].at))) for at in over]
    rows = above(middles, [text_width(panel.lines[at].text, 11.0) for at in over])
    moved |= {at: 15.0 * row for at, row in zip(over, rows, strict=True)}
    return list(moved.values())


def labels(
    figure: FrontFigure, panel: Panel, wide: float, tall: float
) -> dict[tuple[int, str], list[tuple[str, str]]]:
    """Texts and their sides for near misses and for the designs of a short front, by team and kind."""

    def page(x: Any, y: Any) -> Any:
        return np.column_stack((panel.x.at(np.asarray(x)) * wide, panel.y.at(np.asarray(y)) * tall))

    named = names(figure, panel, page)
    faint = np.concatenate([page(s.x, s.y) for s in panel.series] or [np.empty((0, 2))])
    lines = [box for _, x, y in panel.stairs for box in strokes(page(x, y).tolist(), 2)]
    for line in panel.lines:
        left, low = page(
            [line.at if line.axis == "x" else panel.x.low], [line.at if line.axis == "y" else panel.y.low]
        )[0]
        lines.append(Box(left, 0, left + 1, tall) if line.axis == "x" else Box(0, low, wide, low + 1))
    area = Box(0, 0, wide, tall)
    widths = [text_width(text, 11.0) for text, *_ in named.values()]
    boxes = beside(list(named), widths, height=15.0, area=area, faint=faint, lines=lines)
    sides = {
        (spot, team, kind): (markup(text), _side(box, spot))
        for (spot, (text, team, kind)), box in zip(named.items(), boxes, strict=True)
        if box is not None
    }
    labelled = {(team, kind) for _, team, kind in named.values()}
    found: dict[tuple[int, str], list[tuple[str, str]]] = {}
    for series in panel.series:
        if (series.team, series.kind) in labelled:
            spots = [(x, y) for x, y in page(series.x, series.y).tolist()]
            found[series.team, series.kind] = [
                sides.pop((spot, series.team, series.kind), ("", "top center")) for spot in spots
            ]
    return found


def _side(box: Box, spot: tuple[float, float]) -> str:
    """Plotly's name of where a box lies, seen from a spot."""
    x, y = spot
    across = "right" if box.left >= x else "left" if box.right <= x else "center"
    up = "top" if box.bottom >= y else "bottom" if box.top <= y else "middle"
    return f"{up} {across}"
