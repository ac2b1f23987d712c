"""Cutting the text of an expression into tokens."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dse.errors import ExpressionError

__all__ = ["KEYWORDS", "Token", "tokenize"]

KEYWORDS = frozenset({"and", "or", "not", "if", "else", "in", "true", "false", "True", "False"})

_FORBIDDEN = frozenset(
    "lambda for while def class import from return yield await async is None with as try except del "
    "global nonlocal assert raise pass break continue".split()
)

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)
    | (?P<name>[^\W\d]\w*)
    | (?P<string>'[^'\\]*'|"[^"\\]*")
    | (?P<op>\*\*|//|<=|>=|==|!=|[-+*/%<>()\[\],.])
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is number, name, string, op or end; ``at`` counts characters from 0."""

    kind: str
    text: str
    at: int

    @property
    def stop(self) -> int:
        """The position just behind the token."""
        return self.at + len(self.text)


def tokenize(text: str) -> list[Token]:
    """The tokens of ``text``, closed by one of kind ``end``.

    Raises:
        ExpressionError: a character or word that no expression has.
    """
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            rest = text[at:].lstrip()
            if not rest:
                break
            raise _unreadable(text, len(text) - len(rest))
        kind = match.lastgroup or ""
        token = Token(kind, match[kind], match.start(kind))
        if token.text in _FORBIDDEN:
            raise ExpressionError(f"{token.text!r} is not part of an expression", token.at)
        if kind == "string" and tokens and tokens[-1].kind == "name" and tokens[-1].stop == token.at:
            raise ExpressionError(
                "a text with a prefix (f'...', r'...') is not part of an expression", tokens[-1].at
            )
        tokens.append(token)
        at = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


_INSTEAD = {
    "=": "'==' compares",
    "&": "write 'and'",
    "|": "write 'or'",
    "!": "write 'not'",
    "^": "write '**' for a power",
    "?": "write 'a if condition else b'",
    "{": "braces are not part of an expression",
    "'": "the text has no closing quote, or has a backslash",
    '"': "the text has no closing quote, or has a backslash",
}


def _unreadable(text: str, at: int) -> ExpressionError:
    hint = _INSTEAD.get(text[at], "")
    return ExpressionError(f"unexpected {text[at]!r}" + (f": {hint}" if hint else ""), at)
