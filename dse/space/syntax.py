"""Say what a YAML syntax error means to someone who writes space files."""

from __future__ import annotations

from ruamel.yaml.error import MarkedYAMLError

__all__ = ["explain_syntax"]


def explain_syntax(error: MarkedYAMLError, text: str) -> tuple[int, int, str]:
    """Line and column (from 1) of a scanner's or parser's error, and a message with the usual remedy."""
    context, problem = str(error.context or ""), str(error.problem or "wrong syntax")
    mark = error.problem_mark or error.context_mark
    start = error.context_mark or mark
    if mark is None:
        return 0, 0, problem
    line, column = mark.line + 1, mark.column + 1
    if "block scalar" in context and start is not None:
        rest = _rest_of_line(text, start.index)
        return (
            start.line + 1,
            start.column + 1,
            f"found {rest!r}, expected a quoted text; quote it: {_quoted(rest)}",
        )
    if "quoted scalar" in context and "end of stream" in problem and start is not None:
        return (
            start.line + 1,
            start.column + 1,
            "found a quote that is never closed, expected a closing quote",
        )
    if "cannot start any token" in problem:
        return line, column, _bad_start(text, mark.index)
    if "mapping values are not allowed" in problem:
        hint = "quote a text that contains ': ', or check the indentation"
        return line, column, f"found ':' where no key can stand; {hint}"
    if "flow" in context and problem.endswith(("'['", "'{'")):
        hint = "quote this expression: a bracket ended it"
        return (
            line,
            column,
            f"found {problem[-2]!r} inside an unquoted text, expected ',' or a closing bracket; {hint}",
        )
    if "flow" in context and "stream end" in problem and start is not None:
        return (
            start.line + 1,
            start.column + 1,
            "found a bracket that is never closed, expected a closing bracket",
        )
    if problem.startswith("expected <block end>"):
        found = _rest_of_line(text, mark.index)
        hint = "check the indentation, and quote a text as a whole"
        return line, column, f"found {found!r}, expected the next key; {hint}"
    return line, column, f"{problem} ({context})" if context else problem


def _rest_of_line(text: str, index: int) -> str:
    rest = text[index : index + 200].split("\n", 1)[0].strip()
    return rest if len(rest) <= 60 else rest[:57] + "..."


def _quoted(text: str) -> str:
    return f"'{text}'" if '"' in text else f'"{text}"'


def _bad_start(text: str, index: int) -> str:
    character = text[index : index + 1]
    if character == "\t":
        return "found a tab, expected spaces; indent with spaces"
    return f"found {character!r} at the start of a text, expected a quoted text; quote it"
