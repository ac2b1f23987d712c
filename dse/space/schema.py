"""The shape of a space file as pydantic models, and its published JSON Schema.

The models check structure: which keys there are and what kind of value each takes. Names, choices, ranges and
table cells are checked on the nodes (:mod:`dse.space.checks`), where every item has its place. Expressions
stay text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    Tag,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)

from dse.space.fields import (
    Best,
    Bounds,
    Cell,
    Code,
    ColumnKind,
    Condition,
    Duration,
    Expression,
    Factor,
    Number,
    OneOrMany,
    Scalar,
    Share,
    Text,
    Unit,
    Version,
)

__all__ = [
    "TAGS",
    "ConstraintDecl",
    "DimensionDecl",
    "InputDecl",
    "KeyedTableDecl",
    "MeasureDecl",
    "MetricDecl",
    "RowTableDecl",
    "RuleDecl",
    "SpaceDecl",
    "TeamDecl",
    "json_schema",
    "keys_of_model",
]

TAGS = frozenset({"<rows>", "<keyed>", "<short>", "<mapping>"})
"""Steps that pydantic puts into an error's path where a value has several forms."""

_Schema = dict[str, Any]
_VALUE: _Schema = {"type": ["number", "string", "boolean"]}
_CELL: _Schema = {"anyOf": [{"type": ["number", "string", "boolean", "null"]}, {"type": "array"}]}
_ROW: _Schema = {
    "anyOf": [{"type": "array", "items": _CELL}, {"type": "object", "additionalProperties": _CELL}]
}


def _also(short: _Schema) -> Callable[[_Schema], None]:
    """Let a model's JSON Schema accept a shorthand as well."""

    def extend(schema: _Schema) -> None:
        long = dict(schema)
        schema.clear()
        schema["anyOf"] = [short, long]

    return extend


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class InputDecl(_Model):
    """A parameter. ``default`` is a number, a quantity as text (``10 ms``), a text or a truth value.

    With ``table`` it is the name of a row, or the path of a file that the table's ``import`` reads as one. Of a number,
    ``at_least``, ``at_most``, ``above``, ``below`` (in the default's unit) and ``whole`` say what it may be; ``grow`` is
    what it is multiplied by, again and again, to find how much of it would do when no design is feasible.
    """

    model_config = ConfigDict(json_schema_extra=_also(_VALUE))

    default: Scalar = Field(description="the value unless another is given")
    choices: tuple[Scalar, ...] | None = Field(default=None, strict=False)
    table: Text | None = None
    at_least: Number | None = None
    at_most: Number | None = None
    above: Number | None = None
    below: Number | None = None
    whole: bool = False
    grow: Factor | None = None
    about: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_value(cls, data: object) -> object:
        return {"default": data} if isinstance(data, bool | int | float | str) else data


# -------------------------------------------------------------------------------------------------- tables


def _cell(value: object) -> Cell:
    if isinstance(value, list | tuple):
        return tuple(str(item) for item in value)
    return value if value is None or isinstance(value, bool | int | float | str) else None


def _rows(value: object, info: ValidationInfo) -> dict[str, tuple[Cell, ...]]:
    """Rows as tuples in the order of the columns. What does not fit is reported by the checks on the nodes."""
    columns: dict[str, str] = info.data.get("columns", {})
    rows = {}
    for name, row in value.items() if isinstance(value, dict) else ():
        cells = [row.get(column) for column in columns] if isinstance(row, dict) else row
        rows[name] = tuple(map(_cell, cells)) if isinstance(cells, list | tuple) else ()
    return rows


def _tree(value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise ValueError("a mapping of rows")


class RowTableDecl(_Model):
    """A table with named rows. ``rows`` holds each row's cells in the order of ``columns``, None for missing.

    A column's value is its unit, or ``text``, ``flag`` or ``texts`` for texts, truth values and lists of texts.
    Rows of a CSV ``file`` are part of ``rows``. ``import`` (here ``reader``) is a Python function that reads one more
    row from a path which an input gives in place of a row's name.
    """

    columns: dict[str, ColumnKind] = Field(
        min_length=1,
        description="the unit of every column",
        json_schema_extra={"propertyNames": {"pattern": r"^\w+$"}},
    )
    rows: Annotated[
        dict[str, tuple[Cell, ...]],
        PlainValidator(_rows),
        WithJsonSchema({"type": "object", "additionalProperties": _ROW}),
    ] = Field(default_factory=dict)
    file: Text | None = None
    reader: Code | None = Field(default=None, alias="import")
    about: str = ""


class KeyedTableDecl(_Model):
    """A table of one quantity, keyed by dimensions: ``rows`` nests one mapping for each of ``keys``.

    ``value`` names the column of the cells in a CSV ``file`` that has other columns besides.
    """

    keys: tuple[Text, ...] = Field(
        strict=False, min_length=1, description="the dimensions that select a cell"
    )
    unit: ColumnKind = Field(description="the unit of the cells")
    rows: Annotated[dict[str, Any], PlainValidator(_tree), WithJsonSchema({"type": "object"})] = Field(
        default_factory=dict
    )
    file: Text | None = None
    value: Text | None = None
    about: str = ""

    def cells(self) -> Iterator[tuple[tuple[str, ...], Cell]]:
        """Every cell that is given, as (one key text per dimension, cell); a null cell is None."""

        def walk(rows: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Cell]]:
            for name, below in rows.items():
                if len(above) + 1 < len(self.keys):
                    yield from walk(below, (*above, name))
                else:
                    yield (*above, name), _cell(below)

        yield from walk(self.rows, ())


def _table_form(value: object) -> str | None:
    if isinstance(value, RowTableDecl | KeyedTableDecl):
        return "<keyed>" if isinstance(value, KeyedTableDecl) else "<rows>"
    return ("<keyed>" if "keys" in value else "<rows>") if isinstance(value, dict) else None


TableDecl = Annotated[
    Annotated[RowTableDecl, Tag("<rows>")] | Annotated[KeyedTableDecl, Tag("<keyed>")],
    Discriminator(_table_form),
]


# ---------------------------------------------------------------------------------- dimensions, rules, metrics


class DimensionDecl(_Model):
    """One axis: exactly one of ``table``, ``choices`` and ``range``; with ``table``, ``choices`` may list some of its rows.

    Numbers of ``choices`` and ``range`` are in ``unit``; the ends of a range may be quantities as text.
    """

    model_config = ConfigDict(json_schema_extra=_also({"type": "array", "items": _VALUE, "minItems": 1}))

    table: Text | None = None
    choices: tuple[Scalar, ...] | None = Field(default=None, strict=False)
    range: tuple[Number, Number] | None = Field(default=None, strict=False)
    step: Number | None = None
    scale: Literal["pow2", "linear", "log"] | None = None
    count: Annotated[int, Field(ge=1)] | None = None
    unit: Unit | None = None
    when: Condition | None = None
    otherwise: Scalar | None = None
    about: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, data: object) -> object:
        return {"choices": data} if isinstance(data, list | tuple) else data


class RuleDecl(_Model):
    """A condition that every design must meet, and the sentence shown when one does not."""

    check: Condition = Field(description="the condition that a design must meet")
    because: Text = Field(description="the sentence shown when a design is rejected")


class MetricDecl(_Model):
    """An output of the cost model. ``expr`` is missing where Python or a measurement gives the value.

    ``parts`` are metrics that sum to it, and its ``expr`` where there is none. ``record`` is the largest value ever
    measured (or with ``below`` the smallest), past which a prediction is doubted.
    """

    expr: Expression | None = None
    unit: Unit = Field(description="the unit that the metric is shown in, 1 for a plain number")
    measured: bool = False
    parts: tuple[Text, ...] | None = Field(default=None, strict=False, min_length=1)
    record: Best | None = None
    about: str = ""

    @model_validator(mode="before")
    @classmethod
    def _sum_of_parts(cls, data: object) -> object:
        if not isinstance(data, dict) or "expr" in data or data.get("measured"):
            return data
        parts = data.get("parts")
        if not isinstance(parts, list | tuple) or not parts or not all(isinstance(p, str) for p in parts):
            return data
        return {**data, "expr": " + ".join(parts)}


class ConstraintDecl(_Model):
    """A bound that is not of the form metric: bound.

    Of a design that breaks one that comes ``first``, nothing else is told, and any that meets it is nearer.
    """

    check: Condition = Field(description="the comparison that a feasible design meets")
    because: str = ""
    first: bool = False


def _short_or_mapping(value: object) -> str:
    return "<mapping>" if isinstance(value, dict | BaseModel) else "<short>"


_Constraint = Annotated[
    Annotated[Bounds, Tag("<short>")] | Annotated[ConstraintDecl, Tag("<mapping>")],
    Discriminator(_short_or_mapping),
]


class TeamDecl(_Model):
    """A restriction: ``restrict`` maps a dimension to its one value or a tuple of values."""

    model_config = ConfigDict(
        json_schema_extra={
            "properties": {"where": {"type": ["string", "boolean"]}, "about": {"type": "string"}},
            "additionalProperties": {"anyOf": [_VALUE, {"type": "array", "items": _VALUE, "minItems": 1}]},
        }
    )

    restrict: dict[str, OneOrMany] = Field(default_factory=dict)
    where: Condition | None = None
    about: str = ""

    @model_validator(mode="before")
    @classmethod
    def _from_mapping(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        own = {key: data[key] for key in ("where", "about") if key in data}
        return {"restrict": {key: value for key, value in data.items() if key not in own}, **own}


_Team = Annotated[
    Annotated[Text, Tag("<short>")] | Annotated[TeamDecl, Tag("<mapping>")], Discriminator(_short_or_mapping)
]


class MeasureDecl(_Model):
    """A program or a Python function that measures a design."""

    command: tuple[Text, ...] = Field(
        default=(), strict=False, min_length=1, description="the program and its arguments"
    )
    function: Code | None = Field(default=None, description="a function instead of a program")
    timeout: Duration | None = None
    retries: int = Field(default=0, ge=0)
    repeats: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if bool(self.command) == (self.function is not None):
            raise ValueError("a command or a function, one of them")
        return self


_Measure = Annotated[
    Annotated[Code, Tag("<short>")] | Annotated[MeasureDecl, Tag("<mapping>")],
    Discriminator(_short_or_mapping),
]


# ---------------------------------------------------------------------------------------------- the whole file

_REQUIRED = ["dse", "name", "dimensions"]


def _partial(schema: _Schema) -> None:
    """A file that extends another need not repeat what the other has."""
    schema.pop("required", None)
    schema.update({"if": {"required": ["extends"]}, "else": {"required": _REQUIRED}})


class SpaceDecl(_Model):
    """A space file after ``extends`` and overrides were applied.

    A constraint is a bound, a tuple of bounds (both on the metric of its name) or a :class:`ConstraintDecl`; a
    team may be a text that combines earlier ones (``"a & b"``).
    """

    model_config = ConfigDict(json_schema_extra=_partial, title="dse space file")

    dse: Version = Field(description="the version of the format: 1")
    name: Text = Field(description="the name of the space")
    title: str = ""
    about: str = ""
    extends: Text | None = None
    inputs: dict[str, InputDecl] = Field(default_factory=dict)
    tables: dict[str, TableDecl] = Field(default_factory=dict)
    dimensions: dict[str, DimensionDecl] = Field(min_length=1, description="the axes of the space")
    rules: dict[str, RuleDecl] = Field(default_factory=dict)
    lets: dict[str, Expression] = Field(default_factory=dict)
    metrics: dict[str, MetricDecl] = Field(default_factory=dict)
    objectives: dict[str, Literal["minimize", "maximize"]] = Field(default_factory=dict)
    constraints: dict[str, _Constraint] = Field(default_factory=dict)
    error: dict[str, Share] = Field(
        default_factory=dict, description="how far predictions of a metric are from measurements, as a share"
    )
    teams: dict[str, _Team] = Field(default_factory=dict)
    cost: Code | None = None
    measure: _Measure | None = None


def keys_of_model(model: type[BaseModel]) -> list[str]:
    """The keys that a model's mapping may have."""
    return [field.alias or name for name, field in model.model_fields.items()]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a space file, for editors."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **SpaceDecl.model_json_schema()}
