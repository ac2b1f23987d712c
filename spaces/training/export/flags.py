"""The arguments of a launch line by name, each with the place where it stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dse.errors import InputError

from .shell import UNKNOWN, Word

__all__ = ["Flag", "Flags"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One argument: its name without dashes, its values, and its line."""

    name: str
    values: tuple[str, ...]
    line: int

    @property
    def text(self) -> str:
        """The argument as it is written."""
        return " ".join((f"--{self.name}", *(value.replace(UNKNOWN, "$?") for value in self.values)))


class Flags:
    """The arguments of a launch line; of one that is repeated, the first, and no other may contradict it."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.named: dict[str, Flag] = {}

    def add(self, flag: Flag) -> None:
        """Add an argument.

        Raises:
            InputError: it was given before, with another value.
        """
        before = self.named.setdefault(flag.name, flag)
        if before.values != flag.values:
            raise InputError(
                f"{self.file}:{flag.line}: {flag.text} contradicts {before.text} in line {before.line}"
            )

    def __contains__(self, name: str) -> bool:
        return name in self.named

    def __iter__(self) -> Iterator[Flag]:
        return iter(self.named.values())

    def on(self, name: str) -> bool:
        """Whether a switch is given."""
        return name in self.named

    def place(self, name: str) -> str:
        """``file:line: --name value`` of an argument; the file where it is not given."""
        flag = self.named.get(name)
        return self.file if flag is None else f"{self.file}:{flag.line}: {flag.text}"

    def fault(self, name: str, why: str) -> InputError:
        """The error that an argument cannot be."""
        return InputError(f"{self.place(name)}: {why}")

    def value(self, name: str, default: str) -> str:
        """The one value of an argument, or the default.

        Raises:
            InputError: it depends on something that is not in the file.
        """
        flag = self.named.get(name)
        if flag is None:
            return default
        if UNKNOWN in flag.values[0]:
            raise self.fault(name, "its value is not in the file; write the value itself")
        return flag.values[0]

    def number(self, name: str, default: int) -> int:
        """A whole number of at least 0, or the default.

        Raises:
            InputError: the value is none.
        """
        if name not in self.named:
            return default
        text = self.value(name, "")
        if not (text.isascii() and text.isdecimal()) or len(text) > 18:
            raise self.fault(name, "expected a whole number")
        return int(text)

    def need(self, name: str) -> int:
        """A whole number above 0 that must be given.

        Raises:
            InputError: it is not.
        """
        if name not in self.named:
            raise InputError(f"{self.file}: there is no --{name}, which the plan needs")
        return self.positive(name, 1)

    def positive(self, name: str, default: int) -> int:
        """A whole number above 0, or the default.

        Raises:
            InputError: the value is none.
        """
        number = self.number(name, default)
        if number < 1:
            raise self.fault(name, "expected a whole number above 0")
        return number

    def decimal(self, name: str, default: float) -> float:
        """A number, or the default.

        Raises:
            InputError: the value is none.
        """
        if name not in self.named:
            return default
        text = self.value(name, "")
        try:
            return float(text)
        except ValueError:
            raise self.fault(name, "expected a number") from None


def spread(words: list[Word]) -> Iterator[tuple[Word, list[Word]]]:
    """The arguments of one command: each word that begins with two dashes, and the words up to the next one."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if not word.text.startswith("--") or len(word.text) < 3:
            continue
        name, sign, value = word.text.partition("=")
        head = Word(name, word.line)
        if sign:
            yield head, [Word(value, word.line)]
            continue
        end = at
        while end < len(words) and not words[end].text.startswith("--"):
            end += 1
        yield head, words[at:end]
        at = end
