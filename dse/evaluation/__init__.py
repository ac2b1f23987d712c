"""One cost model, evaluated: as a point, to explain; in bulk, to enumerate."""

from dse.evaluation.blocks import BLOCK, Blocks, Judged
from dse.evaluation.bulk import Bulk, BulkEvaluator
from dse.evaluation.scalar import Scalar, Undefined, evaluate_nodes
from dse.evaluation.verdict import Judge, Outcomes, State, Verdict, broken_rule, judge, member

__all__ = [
    "BLOCK",
    "Blocks",
    "Bulk",
    "BulkEvaluator",
    "Judge",
    "Judged",
    "Outcomes",
    "Scalar",
    "State",
    "Undefined",
    "Verdict",
    "broken_rule",
    "evaluate_nodes",
    "judge",
    "member",
]
