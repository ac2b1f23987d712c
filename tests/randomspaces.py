"""Random space files, as plain data for ``dse.problem.library.load``: every operator, function and kind of value.

One generator serves both ways of drawing: ``space(random.Random(seed))`` for bulk runs, and the Hypothesis strategy
:func:`spaces`, whose random numbers Hypothesis chooses and shrinks.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from hypothesis import strategies as st

from dse.errors import SpaceError
from dse.problem import Problem
from dse.problem.library import load

__all__ = ["problem", "space", "spaces"]

Data = dict[str, Any]

NUMBER, TIME, PERCENT, BOOL, TEXT = "number", "time", "percent", "bool", "text"
UNITS = {NUMBER: "1", TIME: "ms", PERCENT: "percent"}
WORDS = ["red", "green", "blue", "grey"]
PLAIN = ["1", "2", "3", "0.5", "7", "10", "1.25", "100"]
ODD = ["0", "1e300", "1e-300", "9007199254740992", "0.1", "3.0e2", "1e308"]


class Text(NamedTuple):
    """An expression, how tightly its outermost operator binds, and (of a text) what it can be."""

    text: str
    level: int
    known: frozenset[str] = frozenset()


class Column(NamedTuple):
    """``dimension.column``: of which kind, with which texts in it."""

    dimension: str
    text: str
    kind: str
    known: frozenset[str]


def space(draw: random.Random, designs: int = 200, objectives: int | None = None, depth: int = 3) -> Data:
    """A space file of at most ``designs`` designs. Everything in it is right; what it means may be odd."""
    return _Writer(draw, depth).write(designs, objectives)


@cache
def problem(seed: int, designs: int = 200, objectives: int | None = None) -> Problem:
    """The problem of the space that ``seed`` stands for."""
    return load(space(random.Random(seed), designs, objectives))


def spaces(designs: int = 60, objectives: int | None = None, depth: int = 3) -> st.SearchStrategy[Data]:
    """The same spaces, drawn by Hypothesis."""
    return st.randoms(use_true_random=False).map(lambda draw: space(draw, designs, objectives, depth))


class _Writer:
    def __init__(self, draw: random.Random, depth: int) -> None:
        self.draw = draw
        self.depth = depth
        self.names: dict[str, list[Text]] = {kind: [] for kind in (NUMBER, TIME, PERCENT, BOOL, TEXT)}
        self.lists: list[tuple[str, frozenset[str]]] = []  # columns that hold lists of texts
        self.sentences: list[str] = []  # what a `because` may name
        self.values: dict[str, list[Any]] = {}
        self.keys: dict[str, tuple[str, list[str]]] = {}  # dimension -> kind, labels

    def chance(self, share: float) -> bool:
        return self.draw.random() < share

    def count(self, low: int, high: int) -> int:
        return self.draw.randint(low, high)

    # -- the file ---------------------------------------------------------------------------------

    def write(self, designs: int, objectives: int | None) -> Data:
        data: Data = {"dse": 1, "name": "random", "inputs": {}, "tables": {}, "dimensions": {}}
        self.inputs(data)
        left = designs
        for at in range(self.count(1, 6)):
            size = self.count(1, max(1, min(6, left)))
            left //= size
            self.dimension(data, f"d{at}", size)
            if self.keys and self.chance(0.4):
                self.keyed_table(data, f"k{at}")
        data["lets"] = {}
        for at in range(self.count(0, 3)):
            self.declare(data["lets"], f"l{at}", self.draw.choice([NUMBER, TIME, PERCENT, BOOL, TEXT]))
        data["rules"] = {f"r{at}": self.rule() for at in range(self.count(0, 2))}
        data["teams"] = self.teams()
        self.costs(data, objectives or self.count(1, 4))
        return data

    def inputs(self, data: Data) -> None:
        for at in range(self.count(0, 3)):
            name = f"i{at}"
            kind = self.draw.choice([NUMBER, TIME, PERCENT, BOOL, TEXT])
            if kind == TEXT:
                data["inputs"][name] = {"default": self.draw.choice(WORDS), "choices": WORDS}
                self.names[TEXT].append(Text(name, 9, frozenset(WORDS)))
                continue
            number = self.draw.choice([1, 2, 0.5, -3, 0, 40])
            data["inputs"][name] = {
                NUMBER: number, TIME: f"{number} us", PERCENT: f"{number} percent", BOOL: number == 1
            }[kind]  # fmt: skip
            self.names[kind].append(Text(name, 9))
            self.sentences.append(name)

    def dimension(self, data: Data, name: str, size: int) -> None:
        kind = self.draw.choice(["numbers", "range", "times", "flag", "texts", "table", "table"])
        declared: Data = {}
        when = self.boolean(2).text if self.names[BOOL] and self.chance(0.35) else None
        if kind == "table":
            declared["table"] = f"t{name[1:]}"
            labels = [f"r{at}" for at in range(size)]
            columns = self.row_table(data, declared["table"], name, labels)
            values: list[Any] = labels
            found = Text(name, 9, frozenset(labels))
            self.names[TEXT].append(found)
            for column in columns:
                if column.kind == "list":
                    self.lists.append((column.text, column.known))
                else:
                    self.names[column.kind].append(Text(column.text, 9, column.known))
                    self.sentences.append(column.text)
            self.keys[name] = (TEXT, labels)
        elif kind == "texts":
            labels = self.draw.sample([*WORDS, "int8", "none", "on"], size)
            declared["choices"] = values = labels
            self.names[TEXT].append(Text(name, 9, frozenset(labels)))
            self.keys[name] = (TEXT, labels)
        elif kind == "flag":
            declared["choices"] = values = [False, True][: max(1, size)]
            self.names[BOOL].append(Text(name, 9))
            self.keys[name] = (BOOL, [str(value).lower() for value in values])
        elif kind == "range":
            low = self.count(-2, 2)
            declared["range"] = [low, low + size - 1]
            values = list(range(low, low + size))
            self.names[NUMBER].append(Text(name, 9))
            self.keys[name] = (NUMBER, [str(value) for value in values])
        else:
            values = self.draw.sample([0, 1, 2, 4, 0.5, -1.5, -3, 8], size)
            declared["choices"] = values
            if kind == "times":
                declared["unit"] = "ms"
            self.names[TIME if kind == "times" else NUMBER].append(Text(name, 9))
            self.keys[name] = (TIME if kind == "times" else NUMBER, [str(value) for value in values])
        if when is not None:
            declared["when"] = when
            if self.chance(0.6):
                declared["otherwise"] = self.draw.choice(values)
        self.values[name] = values
        self.sentences.append(name)
        data["dimensions"][name] = declared

    def row_table(self, data: Data, table: str, dimension: str, rows: list[str]) -> list[Column]:
        kinds = {"w": TIME, "x": NUMBER, "p": PERCENT, "flag": BOOL, "word": TEXT, "words": "list"}
        chosen = [name for name in kinds if self.chance(0.6)] or ["x"]
        cells: dict[str, list[Any]] = {}
        found = []
        for name in chosen:
            kind = kinds[name]
            cells[name] = [None if self.chance(0.04) else self.table_cell(kind) for _ in rows]
            texts = [cell for cell in cells[name] if cell is not None]
            known = (
                texts if kind == TEXT else [text for cell in texts for text in cell] if kind == "list" else []
            )
            found.append(Column(dimension, f"{dimension}.{name}", kind, frozenset(known)))
        units = {name: {BOOL: "flag", TEXT: "text", "list": "texts"}.get(kinds[name]) for name in chosen}
        data["tables"][table] = {
            "columns": {name: units[name] or UNITS[kinds[name]] for name in chosen},
            "rows": {row: [cells[name][at] for name in chosen] for at, row in enumerate(rows)},
        }
        return found

    def table_cell(self, kind: str) -> Any:
        if kind == "list":
            return self.draw.sample(WORDS, self.count(1, 3))
        if kind == TEXT:
            return self.draw.choice(WORDS)
        return self.chance(0.5) if kind == BOOL else self.draw.choice([0, 1, 2, 3.5, -1, -2.25, 10, 0.1])

    def keyed_table(self, data: Data, name: str) -> None:
        keys = self.draw.sample(sorted(self.keys), min(len(self.keys), self.count(1, 2)))
        kind = self.draw.choice([NUMBER, TIME, PERCENT])

        def rows(rest: list[str]) -> Any:
            if not rest:
                return self.table_cell(kind)
            labels = self.keys[rest[0]][1]
            kept = [label for label in labels if not self.chance(0.05)] or labels
            return {label: rows(rest[1:]) for label in kept}

        data["tables"][name] = {"keys": keys, "unit": UNITS[kind], "rows": rows(keys)}
        read = ", ".join(self.key(key) for key in keys)
        self.names[kind].append(Text(f"{name}[{read}]", 9))

    def key(self, dimension: str) -> str:
        """The dimension itself, or something else of its kind."""
        kind, labels = self.keys[dimension]
        if self.chance(0.8):
            return dimension
        if kind == TEXT:
            return f"where({self.boolean(1).text}, {dimension}, '{self.draw.choice(labels)}')"
        if kind == BOOL:
            return f"not {dimension}"
        return f"{dimension} + {dimension}" if self.chance(0.5) else f"max({dimension}, {dimension})"

    def declare(self, section: Data, name: str, kind: str) -> None:
        made = self.expression(kind, self.depth)
        section[name] = made.text
        if made.text.lstrip("(")[0] in "'\"":
            return  # nothing but a word, which may be compared with fewer texts than another let
        self.names[kind].append(Text(name, 9, made.known))
        if kind != TEXT:
            self.sentences.append(name)

    def rule(self) -> Data:
        check = self.boolean(self.depth).text
        if self.chance(0.7):
            check = f"({check}) or {self.boolean(1, within=2).text} or {self.boolean(1, within=2).text}"
        about = "".join(
            f"{{{name}}} " for name in self.draw.sample(self.sentences, min(2, len(self.sentences)))
        )
        return {"check": check, "because": f"it is so: {about}{{{{x}}}}"}

    def teams(self) -> Data:
        teams: Data = {}
        boxes: dict[str, dict[str, list[Any]]] = {}
        for at in range(self.count(0, 2)):
            box = {
                name: self.draw.sample(values, self.count(1, len(values)))
                for name, values in self.values.items()
                if self.chance(0.4)
            }
            boxes[f"team{at}"] = box
            team: Data = {
                name: values[0] if len(values) == 1 and self.chance(0.5) else values
                for name, values in box.items()
            }
            if self.chance(0.5):
                team["where"] = self.boolean(2).text
                if self.chance(0.5):
                    team["where"] += f" and {self.boolean(1, within=3).text}"
            teams[f"team{at}"] = team
        if len(boxes) == 2:
            teams["either"] = "team0 | team1"
            a, b = boxes.values()
            if all(set(map(repr, a[name])) & set(map(repr, b[name])) for name in a.keys() & b.keys()):
                teams["both"] = "team0 & team1"
        return teams

    def costs(self, data: Data, objectives: int) -> None:
        data["metrics"] = {}
        kinds = {}
        for at in range(objectives + self.count(0, 1)):
            name = f"m{at}"
            kind = kinds[name] = self.draw.choice([NUMBER, NUMBER, TIME, PERCENT])
            made = self.expression(kind, self.depth)
            if self.chance(0.3):  # few values, so that designs tie
                made = Text(f"floor({made.text}) % 3", 6) if kind == NUMBER else made
            if self.chance(0.3):  # infinite in a corner
                one = {NUMBER: "1", TIME: "1 ms", PERCENT: "1 percent"}[kind]
                sign = self.draw.choice(["", "-"])
                made = Text(
                    f"{self.wrapped(made, 1)} if {self.boolean(1, within=1).text} else {sign}{one} / 0", 0
                )
            unit = self.draw.choice(["ms", "us"]) if kind == TIME else UNITS[kind]
            data["metrics"][name] = {"expr": made.text, "unit": unit}
            self.names[kind].append(Text(name, 9))
        names = list(kinds)
        data["objectives"] = {
            name: self.draw.choice(["minimize", "maximize"]) for name in self.draw.sample(names, objectives)
        }
        data["constraints"] = {}
        for name in names:
            if self.chance(0.3):
                bounds = [self.bound(kinds[name]) for _ in range(self.count(1, 2))]
                data["constraints"][name] = bounds[0] if len(bounds) == 1 else list(dict.fromkeys(bounds))
        for at in range(self.count(0, 1)):
            made = self.boolean(self.depth) if self.chance(0.4) else self.comparison(2)
            data["constraints"][f"c{at}"] = {"check": made.text}

    def bound(self, kind: str) -> str:
        op = self.draw.choice(["<=", "<=", "<=", ">=", ">=", ">=", "<", ">", "=="])
        if self.chance(0.06):
            return {NUMBER: "<= -1e308", TIME: "<= -1e305 s", PERCENT: "<= -1e307 percent"}[kind]
        return f"{op} {self.expression(kind, 1).text}"

    # -- expressions ------------------------------------------------------------------------------

    def wrapped(self, made: Text, level: int) -> str:
        """In parentheses where they are needed, and at times where they are not."""
        return f"({made.text})" if made.level < level or self.chance(0.08) else made.text

    def expression(self, kind: str, depth: int) -> Text:
        if kind == BOOL:
            return self.boolean(depth)
        return self.text(depth) if kind == TEXT else self.number(kind, depth)

    def within(self, kind: str, depth: int, level: int) -> str:
        return self.wrapped(self.expression(kind, depth), level)

    def leaf(self, kind: str) -> Text:
        names = self.names[kind]
        if names and self.chance(0.75):
            return self.draw.choice(names)
        number = self.draw.choice(PLAIN if self.chance(0.93) else ODD)
        unit = {NUMBER: "", TIME: self.draw.choice([" ms", " us", " s"]), PERCENT: " percent"}[kind]
        sign = "-" if self.chance(0.15) else ""
        return Text(f"{sign}{number}{unit}", 7 if sign else 9)

    def number(self, kind: str, depth: int) -> Text:
        if depth <= 0 or self.chance(0.2):
            return self.leaf(kind)
        common: list[Callable[[str, int], Text]] = [
            self.sum, self.sum, self.scaled, self.extreme, self.chosen, self.negated, self.remainder,
        ]  # fmt: skip
        own: list[Callable[[str, int], Text]] = [self.power, self.power, self.function, self.ratio]
        return self.draw.choice(common + own if kind == NUMBER else common)(kind, depth - 1)

    def sum(self, kind: str, depth: int) -> Text:
        op = self.draw.choice("+-")
        return Text(f"{self.within(kind, depth, 5)} {op} {self.within(kind, depth, 6)}", 5)

    def scaled(self, kind: str, depth: int) -> Text:
        op = self.draw.choice("*/")
        a, b = self.within(kind, depth, 6), self.within(NUMBER, depth, 7)
        return Text(f"{a} {op} {b}", 6)

    def remainder(self, kind: str, depth: int) -> Text:
        return Text(f"{self.within(kind, depth, 6)} % {self.within(kind, depth, 7)}", 6)

    def ratio(self, kind: str, depth: int) -> Text:
        of = self.draw.choice([NUMBER, TIME, PERCENT])
        op = self.draw.choice(["//", "//", "/"])
        return Text(f"{self.within(of, depth, 6)} {op} {self.within(of, depth, 7)}", 6)

    def power(self, kind: str, depth: int) -> Text:
        base = self.within(NUMBER, depth, 9)
        if self.chance(0.7):
            return Text(
                f"{base} ** {self.draw.choice(['0', '1', '2', '3', '8', '9', '-1', '-2', '0.5', '2.5'])}", 8
            )
        return Text(f"{base} ** {self.within(NUMBER, depth - 1, 7)}", 8)

    def function(self, kind: str, depth: int) -> Text:
        name = self.draw.choice(["ceil", "floor", "sqrt", "log", "log2", "exp", "abs"])
        return Text(f"{name}({self.number(NUMBER, depth).text})", 9)

    def extreme(self, kind: str, depth: int) -> Text:
        parts = [self.number(kind, depth).text for _ in range(self.count(2, 3))]
        if self.chance(0.2):
            parts[-1] = "0"
        return Text(f"{self.draw.choice(['min', 'max'])}({', '.join(parts)})", 9)

    def negated(self, kind: str, depth: int) -> Text:
        if self.chance(0.3):
            return Text(f"abs({self.number(kind, depth).text})", 9)
        return Text(f"{self.draw.choice(['-', '-', '+', '- -'])}{self.within(kind, depth, 7)}", 7)

    def chosen(self, kind: str, depth: int) -> Text:
        yes, no = self.expression(kind, depth), self.expression(kind, depth)
        known = yes.known | no.known
        if self.chance(0.5):
            return Text(f"where({self.boolean(depth).text}, {yes.text}, {no.text})", 9, known)
        condition = self.boolean(depth, within=1).text
        return Text(f"{self.wrapped(yes, 1)} if {condition} else {self.wrapped(no, 0)}", 0, known)

    def text(self, depth: int) -> Text:
        if depth > 0 and self.chance(0.3):
            return self.chosen(TEXT, depth - 1)
        names = self.names[TEXT]
        if names and self.chance(0.9):
            return self.draw.choice(names)
        word = self.draw.choice(WORDS)
        return Text(f"'{word}'" if self.chance(0.5) else f'"{word}"', 9, frozenset((word,)))

    def boolean(self, depth: int, within: int = 0) -> Text:
        made = self._boolean(depth)
        return Text(self.wrapped(made, within), max(made.level, within))

    def _boolean(self, depth: int) -> Text:
        if depth <= 0 or self.chance(0.15):
            names = self.names[BOOL]
            if names and self.chance(0.6):
                return self.draw.choice(names)
            return (
                self.comparison(0)
                if self.chance(0.8)
                else Text(self.draw.choice(["true", "false", "True"]), 9)
            )
        form = self.count(0, 9)
        if form <= 3:
            return self.comparison(depth - 1)
        if form <= 5:
            op, level = self.draw.choice([("and", 2), ("or", 1)])
            a, b = self.boolean(depth - 1, within=level).text, self.boolean(depth - 1, within=level + 1).text
            return Text(f"{a} {op} {b}", level)
        if form == 6:
            return Text(f"not {self.boolean(depth - 1, within=3).text}", 3)
        if form == 7:
            return self.chosen(BOOL, depth - 1)
        return self.about_texts(depth - 1) if self.names[TEXT] else self.comparison(depth - 1)

    def comparison(self, depth: int) -> Text:
        kind = self.draw.choice([NUMBER, NUMBER, TIME, PERCENT])
        ops = ["<", "<=", ">", ">=", "==", "!="]
        if self.chance(0.15):
            items = ", ".join(self.within(kind, 0, 5) for _ in range(self.count(1, 3)))
            return Text(f"{self.within(kind, depth, 5)} {self.draw.choice(['in', 'not in'])} [{items}]", 4)
        made = self.within(kind, depth, 5)
        for _ in range(2 if self.chance(0.2) else 1):
            right = "0" if self.chance(0.1) else self.within(kind, depth, 5)
            made += f" {self.draw.choice(ops)} {right}"
        return Text(made, 4)

    def about_texts(self, depth: int) -> Text:
        made = self.text(depth)
        left = self.wrapped(made, 5)
        known = sorted(made.known) or ["red"]
        if made.text.lstrip("(")[0] in "'\"" or not made.known:
            return self.comparison(depth)
        fitting = [text for text, words in self.lists if made.level == 9 and words]
        if fitting and self.chance(0.5):
            return Text(f"{left} {self.draw.choice(['in', 'not in'])} {self.draw.choice(fitting)}", 4)
        if self.chance(0.3):
            items = [f"'{word}'" for word in self.draw.sample(known, self.count(1, len(known)))]
            return Text(f"{left} in [{', '.join(items)}]", 4)
        if self.chance(0.3):
            other = self.text(depth)
            if other.text.lstrip("(")[0] not in "'\"":
                return Text(f"{left} == {self.wrapped(other, 5)}", 4)
        return Text(f"{left} {self.draw.choice(['==', '!='])} '{self.draw.choice(known)}'", 4)


def _main() -> None:  # pragma: no cover - for looking at what is drawn
    import json
    import sys

    made = space(random.Random(int(sys.argv[1])))
    sys.stdout.write(json.dumps(made, indent=1) + "\n")
    try:
        load(made)
    except SpaceError as error:
        sys.stdout.write(f"{error}\n")


if __name__ == "__main__":  # pragma: no cover
    _main()
