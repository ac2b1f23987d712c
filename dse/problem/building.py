"""What the steps of building a problem share: the declaration, the names so far, and the diagnostics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from dse.errors import Diagnostic, ExpressionError, Location
from dse.expressions import Value
from dse.expressions.parser import Scope, parse, parse_condition
from dse.problem.names import Broken, Names
from dse.problem.parts import Dimension
from dse.problem.template import Template, parse_template
from dse.space.choices import LARGEST_INTEGER
from dse.space.nodes import Path, show_path
from dse.space.reading import Declaration
from dse.units import Unit, UnitError, parse_quantity, to_base

__all__ = ["Building"]

_T = TypeVar("_T")


@dataclass
class Building:
    """One build. Errors are collected, so that all of a file's are reported at once.

    ``wide`` holds dimensions that were narrowed as they were before.
    """

    declaration: Declaration
    names: Names
    errors: list[Diagnostic] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    locations: dict[str, Location] = field(default_factory=dict)
    wide: dict[str, Dimension] = field(default_factory=dict)

    def report(self, path: Path, message: str, offset: int = 0) -> None:
        """Add an error at the value at ``path``."""
        self.errors.append(Diagnostic(self.declaration.locate(path, offset), show_path(path), message))

    def report_key(self, path: Path, message: str) -> None:
        """Add an error at the key that ends ``path``."""
        self.errors.append(Diagnostic(self.declaration.locate_key(path), show_path(path), message))

    def attempt(self, path: Path, action: Callable[[], _T], skip: int = 0) -> _T | None:
        """The action's value; None when the expression at ``path`` has an error, which is reported.

        ``skip`` characters of the value stand before the expression.
        """
        try:
            return action()
        except Broken:
            return None
        except ExpressionError as error:
            self.report(path, error.message, error.offset + skip)
            return None

    def expression(self, path: Path, text: object, scope: Scope, skip: int = 0) -> int | None:
        """The node of the expression at ``path``."""
        return self.attempt(path, lambda: parse(self.source(path, text, skip), scope), skip)

    def condition(
        self, path: Path, text: object, scope: Scope
    ) -> tuple[int, tuple[int, str, int] | None] | None:
        """The node of the condition at ``path``, and its sides when it is a comparison."""
        return self.attempt(path, lambda: parse_condition(self.source(path, text), scope))

    def template(self, path: Path, text: str, scope: Scope) -> Template:
        """The sentence at ``path``."""
        return self.attempt(path, lambda: parse_template(text, scope)) or Template((text,))

    def plain(self, path: Path, value: object, unit: Unit | None, text: str | None = None) -> Value | None:
        """A plain YAML value in base units; a text with a unit is a quantity. None when it does not fit (reported).

        ``text`` is how a number was written, when the caller knows.
        """
        if isinstance(value, bool):
            return value
        if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
            self.report(path, f"found {value}, expected an integer of at most 2^53")
            return None
        try:
            if isinstance(value, (int, float)):
                return to_base(text or self.source(path, value), unit) if unit else float(value)
            quantity = parse_quantity(str(value))
            if quantity.unit is not None and (unit is None or quantity.unit.dims == unit.dims):
                return quantity.value
        except UnitError as error:
            if unit is not None:
                self.report(path, str(error))
                return None
        except OverflowError:
            self.report(path, f"found {value}, expected a number that fits a double")
            return None
        return str(value)

    def source(self, path: Path, text: object, skip: int = 0) -> str:
        """An expression as it was written: a YAML number or truth value is one too."""
        if isinstance(text, str):
            return text
        try:
            return self.declaration.text(path)[skip:]
        except KeyError:
            return str(text).lower() if isinstance(text, bool) else repr(text)
