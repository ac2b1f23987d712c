"""Checks on the nodes that go beyond the schema: every finding has the place of its own item."""

from __future__ import annotations

from dataclasses import dataclass, field

from dse.errors import Diagnostic, InputError, nearest
from dse.space.cells import check_tables
from dse.space.choices import check_choices
from dse.space.names import check_names
from dse.space.nodes import Mapping, Node, Path, Scalar, Sequence, describe, find, number_text, show_path
from dse.space.ranges import Values, expand_range
from dse.space.schema import DimensionDecl
from dse.units import is_unit

__all__ = ["Checked", "check_tree"]

_FORMS = ("table", "choices", "range")
_AMBIGUOUS = frozenset({"yes", "no", "on", "off"})


@dataclass(slots=True)
class Checked:
    """What the checks found, and the values of every range that is right."""

    errors: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    ranges: dict[str, Values] = field(default_factory=dict)

    def report(self, node: Node, path: Path, message: str) -> None:
        """Add an error about a node."""
        self.errors.append(Diagnostic(node.location, show_path(path), message))


def check_tree(root: Mapping) -> Checked:
    """Check names, dimensions, inputs and tables. What the schema reports is passed over."""
    checked = Checked()
    errors, warnings = check_names(root)
    checked.errors += errors
    checked.warnings += warnings
    for section, check in (("dimensions", _check_dimension), ("inputs", _check_input)):
        entries = root.entries.get(section)
        for name, node in entries.entries.items() if isinstance(entries, Mapping) else ():
            check(checked, root, name, node)
    checked.errors += check_tables(root)
    return checked


def _check_dimension(checked: Checked, root: Mapping, name: str, node: Node) -> None:
    path: Path = ("dimensions", name)
    if isinstance(node, Sequence):
        _check_choices(checked, node, (*path, "choices"), None)
        return
    if not isinstance(node, Mapping):
        return
    forms = [form for form in _FORMS if form in node.entries]
    rows = node.entries.get("choices")
    if forms == ["table", "choices"] and isinstance(rows, Sequence):
        forms = ["table"]
        _check_rows(checked, root, node, rows, (*path, "choices"))
    if not forms and not node.entries.keys() <= DimensionDecl.model_fields.keys():
        return  # the schema reports the unknown key, which is probably a misspelt form
    if len(forms) != 1:
        found = " and ".join(forms) or "none of them"
        checked.report(
            node,
            path,
            f"found {found}, expected exactly one of table, choices, range, or choices beside table",
        )
        return
    given = forms[0]
    _check_companions(checked, node, given, path)
    form, unit_node = node.entries[given], node.entries.get("unit")
    unit = unit_node.text if isinstance(unit_node, Scalar) else None
    if unit is not None and not is_unit(unit):
        return  # the schema reports the unit
    if given == "choices" and isinstance(form, Sequence):
        _check_choices(checked, form, (*path, given), unit)
    elif given == "range" and isinstance(form, Sequence):
        _check_range(checked, name, node, form, unit)


def _check_companions(checked: Checked, node: Mapping, given: str, path: Path) -> None:
    """The keys that go with one form of a dimension only."""
    for key in ("step", "scale", "count"):
        if given != "range" and key in node.entries:
            where = node.keys[key]
            message = f"found {key!r} beside {given!r}, expected it beside 'range' only"
            checked.errors.append(Diagnostic(where, show_path((*path, key)), message))
    for key, needed in (("otherwise", "when" in node.entries), ("unit", given != "table")):
        if key in node.entries and not needed:
            message = "found 'otherwise' without 'when', expected both"
            if key == "unit":
                message = "found 'unit' beside 'table', expected units on the table's columns"
            checked.errors.append(Diagnostic(node.keys[key], show_path((*path, key)), message))


def _check_rows(checked: Checked, root: Mapping, node: Mapping, rows: Sequence, path: Path) -> None:
    """The rows of its table that a dimension lists as its choices."""
    before = len(checked.errors)
    _check_choices(checked, rows, path, None)
    named = node.entries["table"]
    table = find(root, ("tables", named.text, "rows")) if isinstance(named, Scalar) else None
    if len(checked.errors) > before or not isinstance(table, Mapping) or not isinstance(named, Scalar):
        return
    for at, item in enumerate(rows.items):
        if isinstance(item, Scalar) and item.value is not None and item.value not in table.entries:
            hint = nearest(item.text, table.entries)
            quote = f'; quote it: "{item.text}"' if item.text in table.entries else hint
            checked.report(
                item, (*path, at), f"found {describe(item)}, expected a row of {named.text}{quote}"
            )


def _check_choices(checked: Checked, choices: Sequence, path: Path, unit: str | None) -> None:
    checked.errors += check_choices(choices, path, unit)
    words = [item for item in choices.items if isinstance(item, Scalar) and not item.quoted]
    if words and len(words) == len(choices.items) and all(word.text.lower() in _AMBIGUOUS for word in words):
        message = f"{describe(words[0])} is a text here; write true and false for truth values, or quotes"
        checked.warnings.append(Diagnostic(choices.location, show_path(path), message))


def _check_range(checked: Checked, name: str, node: Mapping, ends: Sequence, unit: str | None) -> None:
    texts = [_number_text(item) for item in ends.items]
    step, scale, count = (node.entries.get(key) for key in ("step", "scale", "count"))
    fits = (
        len(texts) == 2
        and (step is None or _number_text(step) is not None)
        and (scale is None or (isinstance(scale, Scalar) and scale.value in {"pow2", "linear", "log"}))
        and (count is None or (isinstance(count, Scalar) and type(count.value) is int and count.value >= 1))
    )
    if not fits or None in texts:
        return  # the schema reports it
    try:
        checked.ranges[name] = expand_range(
            str(texts[0]),
            str(texts[1]),
            _number_text(step) if step else None,
            str(scale.value) if isinstance(scale, Scalar) else None,
            int(str(count.value)) if isinstance(count, Scalar) else None,
            unit_text=unit,
        )
    except InputError as error:
        checked.report(ends, ("dimensions", name, "range"), str(error))


def _number_text(node: Node) -> str | None:
    """The text of a number or a quantity; None for what the schema refuses."""
    if not isinstance(node, Scalar) or node.value is None or isinstance(node.value, bool) or node.value == "":
        return None
    return number_text(node)


def _check_input(checked: Checked, root: Mapping, name: str, node: Node) -> None:
    path: Path = ("inputs", name)
    default = find(node, ("default",))
    if isinstance(default, Scalar) and isinstance(default.value, float) and default.value != default.value:
        checked.report(default, (*path, "default"), f"found {describe(default)}, expected a number")
    choices = find(node, ("choices",)) if isinstance(node, Mapping) else None
    if not isinstance(choices, Sequence):
        return
    before = len(checked.errors)
    _check_choices(checked, choices, (*path, "choices"), None)
    known = [item for item in choices.items if isinstance(item, Scalar)]
    if before == len(checked.errors) and isinstance(default, Scalar) and default.value is not None:
        same = [item for item in known if item.value == default.value and _kind(item) == _kind(default)]
        if not same:
            shown = ", ".join(describe(item) for item in known[:8])
            checked.report(default, (*path, "default"), f"found {describe(default)}, expected one of {shown}")


def _kind(node: Scalar) -> type:
    return float if type(node.value) is int else type(node.value)
