"""The compiled evaluator: the graph as native loops, through llvmlite where that is installed."""

from dse.evaluation.compiled.bodies import Wanted
from dse.evaluation.compiled.demands import OUTSIDE
from dse.evaluation.compiled.engine import available
from dse.evaluation.compiled.facts import Declined
from dse.evaluation.compiled.guards import Grid
from dse.evaluation.compiled.nest import Memory, Nest, Work, empty_sets, set_slot

__all__ = [
    "OUTSIDE",
    "Declined",
    "Grid",
    "Memory",
    "Nest",
    "Wanted",
    "Work",
    "available",
    "empty_sets",
    "set_slot",
]
