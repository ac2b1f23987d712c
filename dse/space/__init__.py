"""Space files: YAML read into a checked declaration, with a place for everything in it."""

from dse.space.ranges import Continuous, expand_range
from dse.space.reading import Declaration, load_declaration
from dse.space.schema import (
    ConstraintDecl,
    DimensionDecl,
    InputDecl,
    KeyedTableDecl,
    MeasureDecl,
    MetricDecl,
    RowTableDecl,
    RuleDecl,
    SpaceDecl,
    TeamDecl,
    json_schema,
)

__all__ = [
    "ConstraintDecl",
    "Continuous",
    "Declaration",
    "DimensionDecl",
    "InputDecl",
    "KeyedTableDecl",
    "MeasureDecl",
    "MetricDecl",
    "RowTableDecl",
    "RuleDecl",
    "SpaceDecl",
    "TeamDecl",
    "expand_range",
    "json_schema",
    "load_declaration",
]
