"""The compiled problem and how a space file becomes one."""

from dse.problem.parts import (
    Bound,
    Constraint,
    Dimension,
    Input,
    Interval,
    Measurement,
    Metric,
    Objective,
    Rule,
    shown,
)
from dse.problem.problem import Design, Problem
from dse.problem.teams import Box, Conjunct, Team
from dse.problem.template import Template

__all__ = [
    "Bound",
    "Box",
    "Conjunct",
    "Constraint",
    "Design",
    "Dimension",
    "Input",
    "Interval",
    "Measurement",
    "Metric",
    "Objective",
    "Problem",
    "Rule",
    "Team",
    "Template",
    "shown",
]
