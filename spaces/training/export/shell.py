"""The words of a shell script's commands, each with its line: as much of the shell's language as launch lines use.

Quotes, comments, continued lines, variables and arrays that the script itself sets, and whole-number arithmetic are
understood. Nothing is run. What comes from elsewhere (the environment, a command's output) is :data:`UNKNOWN`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from dse.errors import InputError

__all__ = ["UNKNOWN", "Script", "Word", "read_script"]

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
"""Stands for what is not in the script."""

_Marked = list[tuple[str, int]]
"""Characters, each with its line."""

_MOST = 200_000
"""Characters that a variable may hold, and words a script may have."""

_DEEPEST = 32
"""Defaults ``${NAME:-...}`` inside each other."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_BEFORE = frozenset("export local readonly declare then else do if elif time exec".split())
"""Words before which a command may begin anew."""


@dataclass(frozen=True, slots=True)
class Word:
    """A word and the line that it stands in."""

    text: str
    line: int


@dataclass
class Script:
    """The commands of a script, each a list of words; and its comments, from the ``#`` on."""

    file: str
    commands: list[list[Word]] = field(default_factory=list)
    comments: list[Word] = field(default_factory=list)


def read_script(text: str, file: str, known: dict[str, str] | None = None) -> Script:
    """The commands of a shell script; ``known`` are variables that are set from outside.

    Raises:
        InputError: a quote or bracket is never closed, a variable grows without end, or defaults are nested too deep.
    """
    reader = _Reader(text.replace("\r\n", "\n"), file)
    for name, value in (known or {}).items():
        reader.variables[name] = [[(c, 0) for c in value]]
    return reader.read()


class _Reader:
    def __init__(self, text: str, file: str, depth: int = 0) -> None:
        self.text, self.at, self.line, self.depth = text, 0, 1, depth
        self.script = Script(file)
        self.variables: dict[str, list[_Marked]] = {}
        self.words = 0
        self.heredocs: list[str] = []

    def fault(self, line: int, why: str) -> InputError:
        return InputError(f"{self.script.file}:{line}: {why}")

    # -- commands -----------------------------------------------------------------------------------

    def read(self) -> Script:
        command: list[Word] = []
        while True:
            self._blanks()
            char = self._peek()
            if not char or char in "\n;&|()<>":
                if command:
                    self.script.commands.append(command)
                    command = []
                if not char:
                    return self.script
                self._separator(char)
            elif char == "#":
                start = self.at
                end = self.text.find("\n", start)
                self.at = len(self.text) if end < 0 else end
                self.script.comments.append(Word(self.text[start : self.at], self.line))
            elif not (all(w.text in _BEFORE for w in command) and self._assignment()):
                command += self._word()
                self.words += 1
                if self.words > _MOST or len(command) > _MOST:
                    raise self.fault(self.line, "the script has too many words")

    def _separator(self, char: str) -> None:
        if self.text.startswith("<<", self.at) and not self.text.startswith("<<<", self.at):
            found = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1").match(self.text, self.at)
            if found:
                self.heredocs.append(found.group(2))
                self.at = found.end()
                return
        self._next()
        while char == "\n" and self.heredocs:
            ending, line = self.heredocs.pop(0), self.line
            while True:
                if self.at >= len(self.text):
                    raise self.fault(line, f"the text up to {ending} has no end")
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                last = self.text[self.at : end].strip() == ending
                self.at, self.line = end + 1, self.line + 1
                if last:
                    break

    def _assignment(self) -> bool:
        """Reads ``NAME=value`` or ``NAME=(words)``, if one stands here."""
        found = _ASSIGNED.match(self.text, self.at)
        if not found:
            return False
        name, add = found.group(1), bool(found.group(2))
        self.at = found.end()
        before = self.variables.get(name, []) if add else []
        if self._peek() == "(":
            line = self.line
            self._next()
            values = list(before)
            while True:
                self._blanks(lines=True)
                if not self._peek():
                    raise self.fault(line, f"the list {name} has no end")
                if self._peek() == ")":
                    self._next()
                    break
                if self._peek() in ";&|<>(":
                    self._next()
                    continue
                values += [[(c, word.line) for c in word.text] for word in self._word()]
        else:
            whole = [mark for part in self._parts(split=False) for mark in part]
            values = [(before[0] if before else []) + whole]
        if sum(map(len, values)) > _MOST:
            raise self.fault(self.line, f"the variable {name} is too long")
        self.variables[name] = values
        return True

    # -- words --------------------------------------------------------------------------------------

    def _word(self) -> list[Word]:
        line = self.line
        parts = self._parts(split=True)
        return [Word("".join(c for c, _ in part), part[0][1] or line if part else line) for part in parts]

    def _parts(self, *, split: bool) -> list[_Marked]:
        """What one word of the script becomes: one word, or several where a variable is not quoted."""
        parts: list[_Marked] = [[]]
        quoted = False
        size = 0
        while (char := self._peek()) and char not in " \t\n;&|()<>":
            if char == "'":
                quoted = True
                parts[-1] += self._single()
            elif char == '"':
                quoted = True
                self._double(parts)
            elif char == "\\":
                self._next()
                if self._peek() != "\n":
                    parts[-1].append((self._peek(), self.line))
                if self._peek():
                    self._next()
            elif char in "$`":
                self._expand(parts, split=split)
            else:
                parts[-1].append((char, self.line))
                self._next()
            size += 1
            if sum(map(len, parts)) > _MOST:
                raise self.fault(self.line, "a word is too long")
        return [part for part in parts if part] or ([[]] if quoted or not split else [])

    def _single(self) -> _Marked:
        line = self.line
        self._next()
        marked: _Marked = []
        while (char := self._peek()) != "'":
            if not char:
                raise self.fault(line, "the quote ' is never closed")
            marked.append((char, self.line))
            self._next()
        self._next()
        return marked

    def _double(self, parts: list[_Marked]) -> None:
        line = self.line
        self._next()
        while (char := self._peek()) != '"':
            if not char:
                raise self.fault(line, 'the quote " is never closed')
            if char in "$`":
                self._expand(parts, split=False)
                continue
            if char == "\\":
                self._next()
                char = self._peek()
                if char == "\n":
                    self._next()
                    continue
                if char not in '$`"\\':
                    parts[-1].append(("\\", self.line))
                    continue
            parts[-1].append((char, self.line))
            self._next()
        self._next()

    # -- expansions ---------------------------------------------------------------------------------

    def _expand(self, parts: list[_Marked], *, split: bool) -> None:
        """Adds what a ``$`` or a backquote stands for to the words that are being read."""
        line = self.line
        if self._peek() == "`":
            self._next()
            self._until("`", line)
            parts[-1].append((UNKNOWN, line))
            return
        self._next()
        if self.text.startswith("((", self.at):
            self._next(2)
            inner = self._balanced(line, 2)
            parts[-1] += [(c, line) for c in self._arithmetic(inner)]
        elif self._peek() == "(":
            self._next()
            self._balanced(line, 1)
            parts[-1].append((UNKNOWN, line))
        elif self._peek() == "{":
            self._next()
            self._add(parts, *self._named(self._until("}", line)), split=split)
        elif found := _NAME.match(self.text, self.at):
            self.at = found.end()
            self._add(
                parts, self.variables.get(found.group(), [[(UNKNOWN, line)]])[:1], whole=False, split=split
            )
        elif self._peek() and self._peek() in "@*#?$!-0123456789":
            self._next()
            if parts[-1] or not split:
                parts[-1].append((UNKNOWN, line))
        else:
            parts[-1].append(("$", line))

    def _named(self, inner: str) -> tuple[list[_Marked], bool]:
        """The values of ``${inner}``, and whether all of a list are meant."""
        found = re.fullmatch(r"([A-Za-z_]\w*)(\[[@*]\])?(?::?[-=](.*))?", inner, re.DOTALL)
        if not found:
            return [[(UNKNOWN, self.line)]], False
        name, whole, default = found.groups()
        if name in self.variables:
            return self.variables[name] if whole else self.variables[name][:1], bool(whole)
        if default is None:
            return [[(UNKNOWN, self.line)]], False
        if self.depth >= _DEEPEST:
            raise self.fault(
                self.line, f"more than {_DEEPEST} defaults ${{{name}:-...}} stand inside each other"
            )
        nested = _Reader(default, self.script.file, self.depth + 1)
        nested.variables, nested.line = self.variables, self.line
        return [[mark for part in nested._parts(split=False) for mark in part]], False

    def _add(self, parts: list[_Marked], values: list[_Marked], whole: bool, *, split: bool) -> None:
        for at, value in enumerate(values):
            if at and whole:
                parts.append([])
            if not split:
                parts[-1] += value
                continue
            for char, line in value:
                if char in " \t\n":
                    if parts[-1]:
                        parts.append([])
                else:
                    parts[-1].append((char, line or self.line))

    def _arithmetic(self, inner: str) -> str:
        """A whole number as text, or UNKNOWN."""

        def value(found: re.Match[str]) -> str:
            held = self.variables.get(found.group(1), [[(UNKNOWN, 0)]])[:1]
            return "".join(c for mark in held for c, _ in mark) or "0"

        text = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", value, inner)
        if len(text) > 500 or not re.fullmatch(r"[\d+*/%()\s-]+", text):
            return UNKNOWN
        try:
            return str(_whole(ast.parse(text.strip().replace("/", "//"), mode="eval").body))
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
            return UNKNOWN

    # -- characters ---------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self.text[self.at] if self.at < len(self.text) else ""

    def _next(self, count: int = 1) -> None:
        for _ in range(count):
            self.line += self._peek() == "\n"
            self.at += 1

    def _blanks(self, *, lines: bool = False) -> None:
        """Skips blanks and continued lines; ``lines``: also line ends and comments."""
        while char := self._peek():
            if char in " \t" or (lines and char == "\n"):
                self._next()
            elif char == "\\" and re.match(r"\\[ \t]*\n", self.text[self.at : self.at + 200]):
                while self._peek() != "\n":
                    self._next()
                self._next()
            elif lines and char == "#":
                while self._peek() not in ("", "\n"):
                    self._next()
            else:
                return

    def _until(self, ending: str, line: int) -> str:
        start, depth = self.at, 0
        while (char := self._peek()) != ending or depth:
            if not char:
                raise self.fault(line, f"{ending} is missing")
            depth += {"{": 1, "}": -1}.get(char, 0) if ending == "}" else 0
            self._next()
        self._next()
        return self.text[start : self.at - 1]

    def _balanced(self, line: int, depth: int) -> str:
        """The text up to the bracket that closes ``depth`` open ones."""
        start, closing = self.at, depth
        while depth:
            char = self._peek()
            if not char:
                raise self.fault(line, "a bracket is never closed")
            depth += {"(": 1, ")": -1}.get(char, 0)
            self._next()
        return self.text[start : self.at - closing]


_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


def _whole(node: ast.expr) -> int:
    """The value of an expression of whole numbers.

    Raises:
        ValueError: it has something else, or becomes too large.
    """
    match node:
        case ast.Constant(int(value)):
            found = value
        case ast.UnaryOp(ast.USub(), operand):
            found = -_whole(operand)
        case ast.BinOp(left, operator, right) if type(operator) in _OPERATIONS:
            found = _OPERATIONS[type(operator)](_whole(left), _whole(right))
        case _:
            raise ValueError
    if abs(found) > 10**18:
        raise ValueError
    return found
