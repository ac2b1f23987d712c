"""Expressions: one typed graph, built from text or by tracing Python."""

from dse.expressions.graph import Graph, Node
from dse.expressions.parser import FUNCTIONS, Scope, parse
from dse.expressions.render import format_typed, render
from dse.expressions.table import Cell, Column, Table, Value
from dse.expressions.types import Flavor, Kind, Type

__all__ = [
    "FUNCTIONS",
    "Cell",
    "Column",
    "Flavor",
    "Graph",
    "Kind",
    "Node",
    "Scope",
    "Table",
    "Type",
    "Value",
    "format_typed",
    "parse",
    "render",
]
