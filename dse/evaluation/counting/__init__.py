"""Counting, drawing and listing the legal designs of a space without listing the product of its dimensions."""

from dse.evaluation.counting.joining import TooLarge
from dse.evaluation.counting.legal import WORK, LegalSpace
from dse.evaluation.counting.listing import legal_designs

__all__ = ["WORK", "LegalSpace", "TooLarge", "legal_designs"]
