"""What an expression can be: a number with a unit, a truth value, a text or a list of texts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from dse.errors import ExpressionError
from dse.units import Dims, Unit, dims_text, multiply

__all__ = ["BARE", "BOOL", "STRING", "TEXTS", "ZERO", "Flavor", "Kind", "Type", "meet", "product", "quotient"]


class Kind(Enum):
    """The four kinds of value; the text is the one that messages use."""

    NUMBER = "a number"
    BOOL = "true or false"
    STRING = "a text"
    TEXTS = "a list of texts"


class Flavor(Enum):
    """How a dimensionless number came about, so that a bare ``90`` never meets a percentage.

    BARE is a number written without a unit, or made of such; PERCENT was declared in percent; RATIO is a
    quotient, and meets both; ZERO is the literal 0, which takes any unit.
    """

    BARE = "bare"
    PERCENT = "percent"
    RATIO = "ratio"
    ZERO = "zero"


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an expression. ``dims`` and ``flavor`` matter for numbers only."""

    kind: Kind
    dims: Dims = ()
    flavor: Flavor = Flavor.BARE

    @classmethod
    def of_unit(cls, unit: Unit | None) -> Type:
        """The type of a number declared in ``unit``; None means written without one."""
        if unit is None:
            return BARE
        if unit.dims:
            return cls(Kind.NUMBER, unit.dims, Flavor.RATIO)
        return cls(Kind.NUMBER, (), Flavor.PERCENT if unit.percent else Flavor.BARE)

    def __str__(self) -> str:
        if self.kind is not Kind.NUMBER:
            return str(self.kind.value)
        if self.dims:
            return f"a quantity in {dims_text(self.dims)}"
        return "a percentage" if self.flavor is Flavor.PERCENT else "a number without a unit"


BARE = Type(Kind.NUMBER)
ZERO = Type(Kind.NUMBER, (), Flavor.ZERO)
BOOL = Type(Kind.BOOL)
STRING = Type(Kind.STRING)
TEXTS = Type(Kind.TEXTS)


def meet(left: Type, right: Type, verb: str) -> Type:
    """The common type of two values that are added, compared or chosen between.

    Raises:
        ExpressionError: the kinds or units differ, or a bare number meets a percentage.
    """
    if left.kind is not right.kind:
        raise ExpressionError(f"cannot {verb} {left} and {right}")
    if left.kind is not Kind.NUMBER or left == right:
        return left
    if left.flavor is Flavor.ZERO:
        return right
    if right.flavor is Flavor.ZERO:
        return left
    if left.dims != right.dims:
        raise ExpressionError(f"cannot {verb} {left} and {right}")
    flavors = {left.flavor, right.flavor}
    if flavors == {Flavor.PERCENT, Flavor.BARE}:
        raise ExpressionError(f"cannot {verb} {left} and {right}: write the number as a percentage")
    return right if left.flavor is Flavor.RATIO else left


def product(left: Type, right: Type) -> Type:
    """The type of ``left * right``."""
    dims = multiply(left.dims, right.dims)
    flavors = {left.flavor, right.flavor} - {Flavor.ZERO}
    if dims or left.dims or right.dims:
        return Type(Kind.NUMBER, dims, Flavor.RATIO)
    if left.flavor is Flavor.PERCENT and right.flavor is Flavor.PERCENT:
        return Type(Kind.NUMBER, (), Flavor.RATIO)
    for flavor in (Flavor.PERCENT, Flavor.RATIO):
        if flavor in flavors:
            return Type(Kind.NUMBER, (), flavor)
    return BARE


def quotient(left: Type, right: Type) -> Type:
    """The type of ``left / right``; a quotient of bare numbers is a ratio."""
    dims = multiply(left.dims, right.dims, -1)
    percent = left.flavor is Flavor.PERCENT and not right.dims and right.flavor is not Flavor.PERCENT
    return Type(Kind.NUMBER, dims, Flavor.PERCENT if percent else Flavor.RATIO)
