"""The loops around the instructions: cuts, counts, and the buffers by which a loop hands designs over.

The outer loops, up to level ``split``, run over a range of their combinations, so that the work can be cut into pieces
of any size; the loops inside them run in full.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dse.evaluation.compiled.coder import Coder
from dse.evaluation.compiled.facts import Facts

__all__ = ["PIECE", "Loops", "Slots"]

PIECE = 2**20
"""Designs, more or less, that the smallest piece of work has."""


class Slots:
    """Where in the array of 64-bit words that a function is handed each of its facts stands."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.places.setdefault(name, len(self.places))

    def __len__(self) -> int:
        return len(self.places)


class Loops:
    """One function ``i32 name(ptr slots, i64 start, i64 stop)``; it returns 1 when a callback asked it to end.

    Args:
        idle: the designs that each turn of the innermost loop stands for.
        tracked: the level down to which it is noted which values lead to a feasible design; 0: none is.
    """

    def __init__(self, name: str, facts: Facts, coder: Coder, idle: int, tracked: int = 0) -> None:
        self.function = name
        self.facts = facts
        self.coder = coder
        self.depth = len(coder.order)
        self.sizes = [0] + [facts.sizes[d] for d in coder.order]
        self.idle = idle
        self.slots = Slots()
        self.counters: list[str] = []
        self.variables: list[str] = []
        inner = [math.prod(self.sizes[level + 1 :]) for level in range(self.depth + 1)]
        self.inner = [size * idle for size in inner]
        self.split = next(
            level for level in range(1, self.depth + 1) if inner[level] <= PIECE or level == self.depth
        )
        self.length = math.prod(self.sizes[1 : self.split + 1])
        self.tracked = tracked
        if tracked:
            self.counter("feasible")
        for level in range(1, self.depth + 1):
            self._start(level, facts.strides[coder.order[level - 1]])

    def _start(self, level: int, stride: int) -> None:
        put = self.coder.lines[level].append
        before = f"%pos{level - 1}" if level > 1 else "0"
        put(f"%step{level} = mul i64 %i{level}, {stride}")
        put(f"%pos{level} = add i64 {before}, %step{level}")

    # -- what bodies are made of --------------------------------------------------------------------

    def latch(self, level: int) -> str:
        """The block that begins the next turn at a level."""
        return f"latch{level}" if level >= self.split else "outer_latch"

    def weight(self, level: int) -> str:
        """How many designs one turn at a level stands for."""
        return str(self.inner[level]) if level >= self.split else "%share"

    def counter(self, name: str) -> str:
        """The variable of a count, which ends up in the slot of its name."""
        if name not in self.counters:
            self.counters.append(name)
        return f"%count.{name}"

    def variable(self, name: str, kind: str) -> str:
        """A variable of the function's own."""
        self.variables.append(f"%own.{name} = alloca {kind}")
        return f"%own.{name}"

    def bump(self, level: int, name: str, by: str) -> None:
        """Add to a count."""
        put, variable = self.coder.put, self.counter(name)
        was = put(level, f"load i64, ptr {variable}")
        now = put(level, f"add i64 {was}, {by}")
        self.coder.lines[level].append(f"store i64 {now}, ptr {variable}")

    def goto(self, level: int, label: str) -> None:
        """End a block by going to another."""
        self.coder.lines[level].append(f"br label %{label}")

    def label(self, level: int, name: str) -> None:
        """Begin a block."""
        self.coder.lines[level].append(f"{name}:")

    def branch(self, level: int, condition: str, *, likely: bool | None = None) -> tuple[str, str]:
        """End a block by a choice of two, which are to be begun: where it is true, where it is false."""
        number = self.coder.name()
        hint = "" if likely is None else f", !prof !{1 if likely else 2}"
        self.coder.lines[level].append(f"br i1 {condition}, label %yes{number}, label %no{number}{hint}")
        return f"yes{number}", f"no{number}"

    def read(self, level: int, name: str, kind: str = "i64") -> str:
        """What a slot holds now."""
        where = self.coder.put(level, f"getelementptr i64, ptr %slots, i64 {self.slots[name]}")
        return self.coder.put(level, f"load {kind}, ptr {where}")

    def write(self, level: int, name: str, value: str) -> None:
        """Change what a slot holds."""
        where = self.coder.put(level, f"getelementptr i64, ptr %slots, i64 {self.slots[name]}")
        self.coder.lines[level].append(f"store i64 {value}, ptr {where}")

    def element(self, level: int, base: str, index: str, kind: str) -> str:
        """The address of an element."""
        return self.coder.put(level, f"getelementptr {kind}, ptr {base}, i64 {index}")

    def emit(self, level: int, buffer: str, words: Sequence[tuple[str, str]]) -> None:
        """Append (type, value) words of 64 bits to a buffer; a full one is taken over by the callback."""
        put, lines = self.coder.put, self.coder.lines[level]
        count = self.read(level, f"{buffer}.count")
        base = self.read(level, f"{buffer}.rows", "ptr")
        row = put(level, f"mul i64 {count}, {len(words)}")
        for at, (kind, value) in enumerate(words):
            place = put(level, f"add i64 {row}, {at}")
            lines.append(f"store {kind} {value}, ptr {self.element(level, base, place, kind)}")
        more = put(level, f"add i64 {count}, 1")
        self.write(level, f"{buffer}.count", more)
        full = put(level, f"icmp eq i64 {more}, {self.read(level, f'{buffer}.room')}")
        yes, no = self.branch(level, full, likely=False)
        self.label(level, yes)
        call = self.read(level, "callback", "ptr")
        answer = put(level, f"call i32 {call}()")
        go = put(level, f"icmp eq i32 {answer}, 0")
        lines.append(f"br i1 {go}, label %{no}, label %exit_early")
        self.label(level, no)

    # -- the function -------------------------------------------------------------------------------

    def text(self) -> str:
        """The function; call it when all bodies are written, each of which must end in its latch or fall through."""
        out = [f"define i32 @{self.function}(ptr %slots, i64 %start, i64 %stop) {{", "entry:"]
        for name in self.counters:
            out += [f"%count.{name} = alloca i64", f"store i64 0, ptr %count.{name}"]
        out += self.variables
        out += self.coder.lines[0]
        out += ["br label %outer", *self._outer()]
        for level in range(self.split, self.depth + 1):
            out += self._loop_head(level)
            out += self.coder.lines[level]
        out.append(f"br label %latch{self.depth}")
        for level in range(self.depth, self.split - 1, -1):
            out += self._loop_latch(level)
        out += ["outer_latch:", *self._mark("outer", range(1, self.split)), "br label %outer"]
        out += self._exit()
        return "\n".join(out)

    def _outer(self) -> list[str]:
        """The combinations of the loops outside ``split``, and which turns of that one belong to them."""
        size, lines = self.sizes[self.split], []
        lines += [
            "outer:", "%at = phi i64 [ %start, %entry ], [ %at.next, %marked.outer ]",
            "%more = icmp slt i64 %at, %stop", "br i1 %more, label %outer_body, label %exit",
            "outer_body:", f"%o{self.split - 1} = sdiv i64 %at, {size}",
            f"%whole = mul i64 %o{self.split - 1}, {size}", "%low = sub i64 %at, %whole",
            "%left = sub i64 %stop, %at", "%reach = add i64 %low, %left",
            f"%high = call i64 @llvm.smin.i64(i64 %reach, i64 {size})", "%span = sub i64 %high, %low",
            "%at.next = add i64 %at, %span", f"%share = mul i64 %span, {self.inner[self.split]}",
        ]  # fmt: skip
        for level in range(self.split - 1, 0, -1):
            lines += [
                f"%i{level} = srem i64 %o{level}, {self.sizes[level]}",
                f"%o{level - 1} = sdiv i64 %o{level}, {self.sizes[level]}",
            ]
        lines += self._remember("outer")
        for level in range(1, self.split):
            lines += self.coder.lines[level]
        return [*lines, f"br label %pre{self.split}"]

    def _loop_head(self, level: int) -> list[str]:
        low = "%low" if level == self.split else "0"
        enter = [] if level == self.split else [f"br label %pre{level}"]
        return [
            *enter, f"pre{level}:", f"br label %loop{level}", f"loop{level}:",
            f"%i{level} = phi i64 [ {low}, %pre{level} ], [ %next{level}, %marked.{level} ]",
            *self._remember(str(level)),
        ]  # fmt: skip

    def _loop_latch(self, level: int) -> list[str]:
        high = "%high" if level == self.split else str(self.sizes[level])
        after = f"latch{level - 1}" if level > self.split else "outer_latch"
        return [
            f"latch{level}:", *self._mark(str(level), [level]), f"%next{level} = add i64 %i{level}, 1",
            f"%over{level} = icmp eq i64 %next{level}, {high}",
            f"br i1 %over{level}, label %{after}, label %loop{level}",
        ]  # fmt: skip

    def _remember(self, turn: str) -> list[str]:
        """Note the count of feasible designs when a turn begins."""
        if not self._marks(turn):
            return []
        return [f"%was.{turn} = load i64, ptr {self.counter('feasible')}"]

    def _marks(self, turn: str) -> bool:
        return self.tracked > 0 and (turn == "outer" or int(turn) <= self.tracked)

    def _mark(self, turn: str, levels: Sequence[int]) -> list[str]:
        """Note the values of some levels as present if the turn that ends found a feasible design."""
        if not self._marks(turn) or not levels:
            return [f"br label %marked.{turn}", f"marked.{turn}:"]
        lines = [
            f"%is.{turn} = load i64, ptr {self.counter('feasible')}",
            f"%found.{turn} = icmp ne i64 %is.{turn}, %was.{turn}",
            f"br i1 %found.{turn}, label %mark.{turn}, label %marked.{turn}", f"mark.{turn}:",
        ]  # fmt: skip
        for level in levels:
            slot = self.slots[f"present.{level}"]
            lines += [
                f"%seen.p{level} = getelementptr i64, ptr %slots, i64 {slot}",
                f"%seen.b{level} = load ptr, ptr %seen.p{level}",
                f"%seen.a{level} = getelementptr i8, ptr %seen.b{level}, i64 %i{level}",
                f"store i8 1, ptr %seen.a{level}",
            ]
        return [*lines, f"br label %marked.{turn}", f"marked.{turn}:"]

    def _exit(self) -> list[str]:
        out = ["exit_early:", "br label %exit", "exit:"]
        early = (
            "[ 1, %exit_early ]"
            if any("%exit_early" in line for lines in self.coder.lines for line in lines)
            else None
        )
        if early is None:
            out = ["exit:", "%answer = add i32 0, 0"]
        else:
            out.append(f"%answer = phi i32 [ 0, %outer ], {early}")
        for at, name in enumerate(self.counters):
            out += [
                f"%exit.p{at} = getelementptr i64, ptr %slots, i64 {self.slots['count.' + name]}",
                f"%exit.a{at} = load i64, ptr %exit.p{at}",
                f"%exit.c{at} = load i64, ptr %count.{name}",
                f"%exit.s{at} = add i64 %exit.a{at}, %exit.c{at}",
                f"store i64 %exit.s{at}, ptr %exit.p{at}",
            ]
        return [*out, "ret i32 %answer", "}"]
