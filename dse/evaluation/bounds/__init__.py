"""Bounds: the cost model evaluated on boxes, thousands at once, so that what is discarded is proven."""

from dse.evaluation.bounds.axes import Axis, Grid
from dse.evaluation.bounds.boxes import Boxes, Frame

__all__ = ["Axis", "Boxes", "Frame", "Grid"]
