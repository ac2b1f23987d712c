"""One clear finding for every mistake, with what was found, what was expected and the nearest spelling."""

from __future__ import annotations

import json

import pytest

from dse.space import json_schema
from tests.space.spacefiles import errors, with_section

CASES = [
    ("titel: x", "4:1: titel: found the unknown key 'titel', expected a known one; did you mean 'title'?"),
    ("title: 3", '4:8: title: found 3, expected a text; quote it: "3"'),
    ("title:", "4:7: title: found nothing, expected a text"),
    ("inputs:", "4:8: inputs: found nothing, expected a mapping"),
    ("inputs: [1]", "4:9: inputs: found a list of 1, expected a mapping"),
    ("inputs: {x: [1]}", "4:13: inputs.x: found a list of 1, expected a value, or a mapping with the key 'default'"),
    ("inputs: {x: {about: y}}", "4:10: inputs.x: found no key 'default', expected it: the value unless another is given"),
    ("inputs: {x: {defualt: 1}}", "4:14: inputs.x.defualt: found the unknown key 'defualt', expected a known one; did you mean 'default'?"),
    ("inputs: {x: {default: [1]}}", "4:23: inputs.x.default: found a list of 1, expected a number, a quantity such as '10 ms', a text, true or false"),
    ("inputs: {x: {default: 3, choices: [1, 2]}}", "4:23: inputs.x.default: found 3, expected one of 1, 2"),
    ("inputs: {x: {default: true, choices: [1, 2]}}", "4:23: inputs.x.default: found true, expected one of 1, 2"),
    ("inputs: {x: {default: 1, choices: []}}", "4:35: inputs.x.choices: found an empty list, expected at least one value"),
    ("inputs: {x: {default: 1, grow: 1}}", "4:32: inputs.x.grow: found 1, expected a number above 1, such as 2"),
    ("inputs: {x: {default: 1, grow: more}}", "4:32: inputs.x.grow: found 'more', expected a number above 1, such as 2"),
    ("inputs: {x: {default: 1, at_least: true}}", "4:36: inputs.x.at_least: found true, expected a number or a quantity such as '10 ms'"),
    ("inputs: {x: {default: 1, whole: 1}}", "4:33: inputs.x.whole: found 1, expected true or false"),
    ("inputs: {x: {default: 1, at_lest: 1}}", "4:26: inputs.x.at_lest: found the unknown key 'at_lest', expected a known one; did you mean 'at_least'?"),
    ("inputs: {x: .nan}", "4:13: inputs.x.default: found .nan, expected a number"),
    ("inputs: {a: 1}", "4:10: inputs.a: found an input named 'a', expected a new name; it is a dimension at s.yaml:3:14"),
    ("lets: {x-y: 1}", "4:8: lets.x-y: found the name 'x-y', expected letters, digits and underscores, not starting with a digit"),
    ("lets: {max: 1}", "4:8: lets.max: found the name 'max', expected one that is no function of expressions"),
    ("lets: {not: 1}", "4:8: lets.not: found the name 'not', expected one that is no keyword of expressions"),
    ("lets: {true: 1}", "4:8: lets.true: found the name 'true', expected one that is no keyword of expressions"),
    ("lets: {x: true}", "4:11: lets.x: found true, expected an expression"),
    ("lets: {x: .inf}", "4:11: lets.x: found .inf, expected an expression"),
    ("lets: {x: [1]}", "4:11: lets.x: found a list of 1, expected an expression"),
    ("rules: {r: a > 1}", "4:12: rules.r: found 'a > 1', expected a mapping with the keys 'check' and 'because'"),
    ("rules: {r: {check: a > 1}}", "4:9: rules.r: found no key 'because', expected it: the sentence shown when a design is rejected"),
    ("rules: {r: {check: 3, because: x}}", "4:20: rules.r.check: found 3, expected a condition such as 'a <= b'"),
    ("rules: {r: {check: a, because: ''}}", "4:33: rules.r.because: found '', expected a text that is not empty"),
    ("metrics: {m: a + 1}", "4:14: metrics.m: found 'a + 1', expected a mapping with the keys 'expr' and 'unit'"),
    ("metrics: {m: {expr: a}}", "4:11: metrics.m: found no key 'unit', expected it: the unit that the metric is shown in, 1 for a plain number"),
    ("metrics: {m: {expr: a, unit: mss}}", "4:30: metrics.m.unit: found 'mss', expected a unit; unknown unit 'mss'; did you mean 'ms'?"),
    ("metrics: {m: {expr: a, unit: 2}}", "4:30: metrics.m.unit: found 2, expected a unit such as ms, GB/s or percent, or 1 for a plain number"),
    ("metrics: {m: {unit: ms, measured: yes}}", "4:35: metrics.m.measured: found 'yes', expected true or false"),
    ("objectives: {m: Minimize}", "4:17: objectives.m: found 'Minimize', expected 'minimize' or 'maximize'; did you mean 'minimize'?"),
    ("objectives: {m: 3}", "4:17: objectives.m: found 3, expected 'minimize' or 'maximize'"),
    ("constraints: {m: 3}", "4:18: constraints.m: found 3, expected a bound such as '<= 10 ms', a list of bounds, or a mapping with the key 'check'"),
    ("constraints: {m: []}", "4:18: constraints.m: found an empty list, expected a bound such as"),
    ("constraints: {m: {chek: a > 1}}", "4:19: constraints.m.chek: found the unknown key 'chek', expected a known one; did you mean 'check'?"),
    ("teams: {t: 3}", "4:12: teams.t: found 3, expected a mapping from dimensions to values, or a text such as 'a & b'"),
    ("teams: {t: {a: }}", "4:15: teams.t.a: found nothing, expected a value or a list of values"),
    ("teams: {t: {a: []}}", "4:16: teams.t.a: found an empty list, expected a value or a list of values"),
    ("teams: {t: {where: 3}}", "4:20: teams.t.where: found 3, expected a condition such as 'a <= b'"),
    ("cost: model", "4:7: cost: found 'model', expected a Python function: 'package.module:function' or './file.py:function'"),
    ("cost: ../m.py:f", "4:7: cost: found '../m.py:f', expected a Python function"),
    ("measure: 3", "4:10: measure: found 3, expected a Python function"),
    ("measure: {command: run}", "4:20: measure.command: found 'run', expected a list"),
    ("measure: {command: []}", "4:20: measure.command: found an empty list, expected at least one entry"),
    ("measure: {command: [a], timeout: 3 GB}", "4:34: measure.timeout: found '3 GB', expected a duration such as '30 s'"),
    ("measure: {command: [a], retries: -1}", "4:34: measure.retries: found -1, expected at least 0"),
    ("measure: {command: [a], retires: 1}", "4:25: measure.retires: found the unknown key 'retires', expected a known one; did you mean 'retries'?"),
    ("tables: {t: {keys: a, unit: ms, rows: {r: 1}}}", "4:20: tables.t.keys: found 'a', expected a list"),
    ("tables: {t: {keys: [1], unit: ms, rows: {r: 1}}}", '4:21: tables.t.keys.0: found 1, expected a text; quote it: "1"'),
    ("tables: {t: {columns: {c: 1}, rows: {r: [1, 2]}}}", "4:41: tables.t.rows.r: found a row of 2, expected 1 cell (c)"),
    ("metrics: {m: {expr: 1e400, unit: 1}}", "4:21: metrics.m.expr: found 1e400, expected a number that fits a double"),
    ("tables: {t: 3}", "4:13: tables.t: found 3, expected a mapping with 'columns' (or 'keys' and 'unit') and 'rows' or 'file'"),
    ("tables: {t: {rows: {r: [1]}}}", "4:10: tables.t: found no key 'columns', expected it: the unit of every column"),
    ("tables: {t: {keys: [a], rows: {r: 1}}}", "4:10: tables.t: found no key 'unit', expected it: the unit of the cells"),
    ("tables: {t: {columns: {c: 1.0}, rows: {r: [1]}}}", "4:27: tables.t.columns.c: found 1.0, expected a unit such as ms"),
    ("tables: {t: {columns: {c-d: 1}, rows: {r: [1]}}}", "4:24: tables.t.columns.c-d: found the name 'c-d', expected letters"),
]  # fmt: skip

DIMENSIONS = [
    ("3", "20: dimensions.x: found 3, expected a list of choices, or a mapping with one of table, choices, range"),
    ("[]", "20: dimensions.x.choices: found an empty list, expected at least one value"),
    ("{choices: []}", "30: dimensions.x.choices: found an empty list, expected at least one value"),
    ("{}", "20: dimensions.x: found none of them, expected exactly one of table, choices, range"),
    ("{chioces: [1]}", "21: dimensions.x.chioces: found the unknown key 'chioces', expected a known one; did you mean 'choices'?"),
    ("{table: t, choices: [r, r]}", "44: dimensions.x.choices.1: found 'r' again (value 1 is 'r'), expected it once"),
    ("{table: t, range: [1, 2]}", "20: dimensions.x: found table and range, expected exactly one of"),
    ("{table: t, unit: ms}", "31: dimensions.x.unit: found 'unit' beside 'table', expected units on the table's columns"),
    ("{choices: [1], step: 2}", "35: dimensions.x.step: found 'step' beside 'choices', expected it beside 'range' only"),
    ("{choices: [1], otherwise: 1}", "35: dimensions.x.otherwise: found 'otherwise' without 'when', expected both"),
    ("{range: [1, 2, 3]}", "28: dimensions.x.range: found a list of 3, expected two ends: [lowest, highest]"),
    ("{range: [1, 10], step: 4}", "28: dimensions.x.range: found a step of 4 that misses the end 10, expected an end such as 9 or 13"),
    ("{range: [1, 8], scale: pow}", "43: dimensions.x.scale: found 'pow', expected 'pow2', 'linear' or 'log'; did you mean 'pow2'?"),
    ("{range: [1, 8], count: true}", "43: dimensions.x.count: found true, expected an integer"),
    ("{range: [5, 1]}", "28: dimensions.x.range: found an empty range from 5 to 1, expected the lower end first"),
    ("{range: [a, 1]}", "28: dimensions.x.range: found 'a', expected a number or a quantity"),
    ("{range: [true, 1]}", "29: dimensions.x.range.0: found true, expected a number or a quantity such as '10 ms'"),
    ("[1, 2, 1]", "27: dimensions.x.choices.2: found 1 again (value 1 is 1), expected it once"),
    ("[1, x]", "24: dimensions.x.choices.1: found the text 'x', expected the number like the first value; do not mix kinds"),
    ("[1, .nan]", "24: dimensions.x.choices.1: found .nan, expected a value that equals itself"),
    ("[1, ]", ""),
    ("[x, '']", "25: dimensions.x.choices.1: found '', expected a number, a text that is not empty, true or false"),
    ("[1, ~]", "24: dimensions.x.choices.1: found nothing, expected a number, a quantity such as '10 ms', a text, true or false"),
    ("[1, 9007199254740993]", "24: dimensions.x.choices.1: found 9007199254740993, expected an integer of at most 2^53"),
    ("{choices: [1, 1000 MB], unit: GB}", "34: dimensions.x.choices.1: found '1000 MB' again (value 1 is 1), expected it once"),
    ("{choices: [1, 1 ms], unit: GB}", "34: dimensions.x.choices.1: found '1 ms', expected a number or a quantity in GB"),
    ("{choices: [true], unit: GB}", "31: dimensions.x.choices.0: found true, expected a number or a quantity in GB"),
]  # fmt: skip


@pytest.mark.parametrize(("section", "message"), CASES)
def test_one_finding_for_each_mistake(section: str, message: str) -> None:
    found = errors(with_section(section))
    assert len(found) == 1, found
    assert found[0].startswith(f"s.yaml:{message}")


@pytest.mark.parametrize(("dimension", "message"), DIMENSIONS)
def test_one_finding_for_each_mistake_in_a_dimension(dimension: str, message: str) -> None:
    found = errors(f"dse: 1\nname: x\ndimensions:    {{x: {dimension}}}")
    if not message:
        assert found == []
        return
    assert len(found) == 1, found
    assert found[0].startswith(f"s.yaml:3:{message}")


def test_a_number_equals_itself_written_otherwise_and_is_no_truth_value() -> None:
    found = errors("dse: 1\nname: x\ndimensions: {x: [1, 1.0, true]}")
    assert [error.partition(": found ")[2] for error in found] == [
        "1.0 again (value 1 is 1), expected it once",
        "the truth value true, expected the number like the first value; do not mix kinds",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: x\ndimensions: {a: [1]}", "1:1: found no key 'dse', expected it: the version of the format: 1"),
        ("dse: 2\nname: x\ndimensions: {a: [1]}", "1:6: dse: found 2, expected 1, the version of the format"),
        ("dse: true\nname: x\ndimensions: {a: [1]}", "1:6: dse: found true, expected 1, the version of the format"),
        ("dse: 1.0\nname: x\ndimensions: {a: [1]}", "1:6: dse: found 1.0, expected 1, the version of the format"),
        ("dse: 1\nnmae: x\ndimensions: {a: [1]}", "2:1: nmae: found the unknown key 'nmae', expected a known one; did you mean 'name'?"),
        ("dse: 1\nname: x", "1:1: found no key 'dimensions', expected it: the axes of the space"),
        ("dse: 1\nname: x\ndimensions: {}", "3:13: dimensions: found an empty mapping, expected at least one entry"),
        ("dse: 1\nname: x\ndimensions: {about: [1]}", "3:14: dimensions.about: found the name 'about', expected another; teams use it"),
    ],
)  # fmt: skip
def test_what_every_file_needs(text: str, message: str) -> None:
    found = errors(text)
    assert len(found) == 1, found
    assert found[0].startswith(f"s.yaml:{message}")


def test_row_rule_and_team_names_may_be_any_text() -> None:
    text = with_section(
        "tables: {t: {columns: {c: 1}, rows: {Llama-3.1 (8B): [1], 'a,b': [2]}}}\n"
        "rules: {must fit!: {check: a > 0, because: x}}\nteams: {ml & co: {}}\nconstraints: {1st: {check: a > 0}}"
    )
    assert errors(text) == []


def test_the_json_schema_names_every_section_and_the_short_forms() -> None:
    schema = json_schema()
    json.dumps(schema)
    assert schema["additionalProperties"] is False
    assert {"dse", "inputs", "tables", "dimensions", "rules", "teams", "measure"} <= set(schema["properties"])
    definitions = schema["$defs"]
    assert [form.get("type") for form in definitions["InputDecl"]["anyOf"]] == [
        ["number", "string", "boolean"],
        "object",
    ]
    assert [form["type"] for form in definitions["DimensionDecl"]["anyOf"]] == ["array", "object"]
    assert definitions["RuleDecl"]["required"] == ["check", "because"]
    assert schema["else"] == {"required": ["dse", "name", "dimensions"]}
    assert "required" not in schema
