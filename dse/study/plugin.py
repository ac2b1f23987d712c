"""Everything that a solver of a third party imports.

A **sampling** solver is a class derived from :class:`SamplingSolver` in a package that names it under the entry-point
group ``dse.solvers``. It needs nothing but this module::

    from dse.study.plugin import Proposals, SamplingSolver, draw_design


    class Uniform(SamplingSolver):
        name = "uniform"
        title = "designs drawn at random"
        needs = frozenset({"trials"})

        def propose(self, proposals: Proposals) -> None:
            rng = random.Random(proposals.random_seed)
            accepted = 0
            while accepted < proposals.wanted:
                accepted += proposals.admit(draw_design(proposals, rng)).accepted

The driver does the rest: it evaluates, logs, resumes and never repeats. It ends the loop above by itself when 100
proposals in a row were refused, and fills the batch with unseen legal designs.

A solver names the options that it takes, ``options = frozenset({"depth"})``, and finds their values in
``proposals.options``; any other option is refused.

An **exact** solver derives from :class:`ExactSolver` and accounts for every design in ``search.tally`` (a
:class:`Tally`). The simplest cuts the space into pieces (:class:`Pieces`) and lets :func:`walk` do them over processes,
with checkpoints; :class:`Blocks` are such pieces, already judged, and :class:`Judge` judges arrays of designs.
``solvers/exhaustive.py`` is a whole one in 60 lines. What ``needs`` ``bulk`` is never asked to do a measured or a
continuous problem.
"""

from __future__ import annotations

import math
import random

from dse.errors import InputError, SolverRefused
from dse.evaluation import Blocks, Judge, Outcomes, evaluate_nodes
from dse.expressions import Value
from dse.problem import Design, Dimension, Problem, Team
from dse.study.exact import Pieces, walk
from dse.study.solver import Admission, ExactSearch, ExactSolver, Proposals, SamplingSolver, Solver
from dse.study.tally import Tally
from dse.study.trial import Trial, TrialState

__all__ = [
    "Admission",
    "Blocks",
    "Design",
    "Dimension",
    "ExactSearch",
    "ExactSolver",
    "InputError",
    "Judge",
    "Outcomes",
    "Pieces",
    "Problem",
    "Proposals",
    "SamplingSolver",
    "Solver",
    "SolverRefused",
    "Tally",
    "Team",
    "Trial",
    "TrialState",
    "Value",
    "draw_design",
    "is_active",
    "walk",
]


def is_active(problem: Problem, dimension: Dimension, design: Design) -> bool:
    """Whether a dimension may be chosen, given the dimensions before it in ``design``; if not, its value is fixed."""
    if dimension.when is None:
        return True
    return evaluate_nodes(problem, design, [dimension.when])[dimension.when] is True


def draw_design(proposals: Proposals, rng: random.Random) -> Design:
    """A design of the values that the team may choose, with inactive dimensions at their fixed value.

    It may break a rule, or lie outside a team that is no single box: ``proposals.admit`` says so.
    """
    problem = proposals.problem
    hull = proposals.team.hull(problem.sizes)
    design: Design = {}
    for dimension, digits in zip(problem.dimensions, hull, strict=True):
        interval = dimension.interval
        if interval is not None and interval.log:
            value = math.exp(rng.uniform(math.log(interval.low), math.log(interval.high)))
            design[dimension.name] = min(max(value, interval.low), interval.high)
        elif interval is not None:
            design[dimension.name] = rng.uniform(interval.low, interval.high)
        elif is_active(problem, dimension, design):
            design[dimension.name] = dimension.values[rng.choice(digits)]
        else:
            design[dimension.name] = dimension.values[dimension.otherwise]
    return design
