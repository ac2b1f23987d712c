"""YAML text becomes a tree of located nodes, or one located error."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.errors import Location, SpaceError
from dse.space.composer import ALIAS_LIMIT, NESTING_LIMIT
from dse.space.document import SIZE_LIMIT, parse, read_text
from dse.space.nodes import Scalar, find, locate, locate_key, plain


def errors(text: str) -> list[str]:
    try:
        return [str(d) for d in parse(text, "f.yaml")[1]]
    except SpaceError as error:
        return [str(d) for d in error.diagnostics]


def data(text: str) -> object:
    node, found = parse(text)
    assert not found
    return plain(node)


def test_a_tree_of_plain_data() -> None:
    text = "a: [1, 'x', null]\nb: {c: true, 1: 2e3}\n? d\n: |\n  two\n  lines\n"
    assert data(text) == {"a": [1, "x", None], "b": {"c": True, "1": 2000.0}, "d": "two\nlines\n"}


def test_keys_are_taken_by_their_source_text() -> None:
    assert data("{true: 1, 0x1F: 2, ~: 3, on: 4, 1.50: 5}") == {
        "true": 1,
        "0x1F": 2,
        "~": 3,
        "on": 4,
        "1.50": 5,
    }


def test_aliases_stand_for_their_anchor() -> None:
    assert data("a: &x [1, 2]\nb: *x") == {"a": [1, 2], "b": [1, 2]}


def test_every_value_has_a_place() -> None:
    root, _ = parse('a: 1\nb:\n  - x\n  - "quoted"\n  - >\n    folded\n    text\n', "f.yaml")
    assert locate(root, ("a",)) == Location("f.yaml", 1, 4)
    assert locate(root, ("b", 0)) == Location("f.yaml", 3, 5)
    assert locate(root, ("b", 1)) == Location("f.yaml", 4, 6)  # inside the quotes
    assert locate(root, ("b", 2)) == Location("f.yaml", 5, 5)
    assert locate_key(root, ("b",)) == Location("f.yaml", 2, 1)
    assert locate_key(root, ("b", 1)) == Location("f.yaml", 2, 1)
    assert locate(root, ("b", 7, "no")) == locate(root, ("b",))
    assert locate(root, ("nothing",)) == Location("f.yaml", 1, 1)


def test_an_offset_is_followed_only_where_text_is_verbatim() -> None:
    root, _ = parse("a: \"x + y\"\nb: 'it''s + y'\nc: >\n  x\n  + y\nd: x +\n  y\n")
    assert locate(root, ("a",), 4).column == 9
    assert locate(root, ("b",), 5) == locate(root, ("b",))
    assert locate(root, ("c",), 2) == locate(root, ("c",))
    assert locate(root, ("d",), 4) == locate(root, ("d",))


@given(
    st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126, exclude_characters="'"), min_size=1)
)
def test_a_quoted_text_comes_back_with_its_place(text: str) -> None:
    root, found = parse(f"key: '{text}'")
    node = find(root, ("key",))
    assert not found
    assert isinstance(node, Scalar)
    assert (node.value, node.quoted, node.verbatim) == (text, True, True)
    assert node.at(len(text) - 1).column == 6 + len(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "f.yaml:3:1: a: found the key 'a' again (first on line 1), expected it once"),
        ("{a: 1, a: 2}", "f.yaml:1:8: a: found the key 'a' again (first on column 2), expected it once"),
        ("a: !!str 3", "f.yaml:1:4: a: found the tag '!!str', expected none; quote a text that starts with '!'"),
        ("<<: {a: 1}", "f.yaml:1:1: found the merge key '<<', expected a name"),
        ("a: {'': 1}", "f.yaml:1:5: a: found an empty key, expected a name"),
        ("? [a]\n: b", "f.yaml:1:3: found a list as a key, expected a name"),
        ("a: &x [*x]", "f.yaml:1:8: a.0: found the alias '*x' inside what it stands for, expected no cycle"),
        ("a: *x", "f.yaml:1:4: a: found the alias '*x', expected an anchor before it"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1: found a second document, expected one"),
        ("%YAML 1.1\n---\na: 1", "f.yaml:1:1: found a YAML directive, expected none"),
        ("", "f.yaml:1:1: found an empty file, expected a mapping that starts with 'dse: 1'"),
        ("# only this", "f.yaml:1:1: found an empty file, expected a mapping"),
        ("a: 1\nb: x\x07", "f.yaml:2:5: found the control character U+0007, expected printable text"),
        ("a: 1e999", "f.yaml:1:4: a: found 1e999, expected a number that fits a double"),
        ("a: >= 3 ms", "f.yaml:1:4: a: found '>= 3 ms', expected a quoted text; quote it: \">= 3 ms\""),
        ("a: b: c", "f.yaml:1:5: found ':' where no key can stand; quote a text that contains ': '"),
        ("a: @x", "f.yaml:1:4: a: found '@' at the start of a text, expected a quoted text; quote it"),
        ("a:\n\t- b", "f.yaml:2:1: a: found a tab, expected spaces"),
        ('a: "b', "f.yaml:1:4: a: found a quote that is never closed, expected a closing quote"),
        ("a: [1, 2", "f.yaml:1:4: a.2: found a bracket that is never closed, expected a closing bracket"),
        ("a: 'x' if c", "f.yaml:1:8: found 'if c', expected the next key; check the indentation"),
        ("{a: t[x, y]}", "f.yaml:1:6: found '[' inside an unquoted text, expected ',' or a closing bracket; quote this"),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, message: str) -> None:
    found = errors(text)
    assert len(found) == 1
    assert found[0].startswith(message)


@pytest.mark.parametrize(
    ("text", "place", "value"),
    [
        ("m: {expr: max(a, b), unit: ms}", "1:11: m.expr", {"m": {"expr": "max(a, b)", "unit": "ms"}}),
        ("{expr: f(a, g(b, c), d) + 1}", "1:8: expr", {"expr": "f(a, g(b, c), d) + 1"}),
        ("r: [max(a, b), 3]", "1:5: r.0", {"r": ["max(a, b)", 3]}),
    ],
)
def test_an_expression_cut_by_a_comma_is_one_error(text: str, place: str, value: object) -> None:
    node, found = parse(text, "f.yaml")
    assert [str(d).split(": found")[0] for d in found] == [f"f.yaml:{place}"]
    assert "quote this expression: a comma ended it" in found[0].message
    assert plain(node) == value  # joined again, so that nothing else goes wrong


def test_brackets_in_whole_texts_are_no_cut() -> None:
    assert data("{a: max(b), '(': 1, c (d): 2, e: 'max(a', f: 3}") == {
        "a": "max(b)", "(": 1, "c (d)": 2, "e": "max(a", "f": 3,
    }  # fmt: skip


def test_a_key_with_half_a_bracket_is_a_cut() -> None:
    assert [e.split(": ")[1] for e in errors("{max(a, b): 3}")] == ["max(a", "b)"]


@pytest.mark.parametrize("text", ["[" * 10_000, "{a: " * 10_000, "- " * 10_000, "[" * 10_000 + "]" * 10_000])
def test_deep_nesting_ends_early(text: str) -> None:
    start = time.process_time()
    found = errors(text)
    assert len(found) == 1
    assert f"found more than {NESTING_LIMIT} levels of nesting" in found[0]
    assert time.process_time() - start < 2


def test_nesting_up_to_the_limit_is_read() -> None:
    assert not parse("[" * NESTING_LIMIT + "]" * NESTING_LIMIT)[1]


def test_nesting_through_aliases_counts() -> None:
    half = "[" * 40 + "]" * 40
    text = f"a: &a {half}\nb: {'[' * 40}*a{']' * 40}"
    assert "levels of nesting" in errors(text)[0]


def test_an_alias_bomb_ends_early() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    found = errors("\n".join(lines))
    assert len(found) == 1
    assert f"found more than {ALIAS_LIMIT:,} aliases" in found[0]
    assert found[0].startswith("f.yaml:5:")  # 9 + 90 + 819 fit


def test_a_large_anchor_repeated_ends_early() -> None:
    text = f"a: &a [{', '.join(['x'] * 2000)}]\nb: [{', '.join(['*a'] * 900)}]"
    assert "f.yaml:2:" in errors(text)[0]
    assert "found more than 200,000 values" in errors(text)[0]


def test_a_file_of_ten_megabytes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"a: [" + b"1, " * 3_500_000)
    start = time.process_time()
    with pytest.raises(SpaceError, match=f"found more than {SIZE_LIMIT:,} bytes, expected at most that"):
        read_text(path)
    assert time.process_time() - start < 0.5


def test_files_that_are_no_text(tmp_path: Path) -> None:
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(SpaceError, match=r"binary.yaml:2:4: found byte 0xff, expected UTF-8 text"):
        read_text(binary)
    with pytest.raises(SpaceError, match="no such file"):
        read_text(tmp_path / "none.yaml")
    with pytest.raises(SpaceError, match="found a folder, expected a file"):
        read_text(tmp_path)


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "bom.yaml"
    path.write_bytes(b"\xef\xbb\xbfdse: 1\r\nname: x\r\n")
    root, _ = parse(read_text(path))
    assert plain(root) == {"dse": 1, "name": "x"}
    assert locate(root, ("name",)) == Location("<text>", 2, 7)


@given(st.text(alphabet="ab:{}[](),'\"&*!|>%@`#-? \n\t0~<=", max_size=60))
def test_no_text_does_anything_but_read_or_report(text: str) -> None:
    try:
        root, found = parse(text, "f.yaml")
    except SpaceError as error:
        found = error.diagnostics
        assert found
    else:
        plain(root)
    assert all(d.location.file == "f.yaml" and d.message for d in found)


def test_a_search_for_cuts_takes_time_in_proportion() -> None:
    start = time.process_time()
    assert not errors(f"[{', '.join(['('] * 20_000)}]")
    assert time.process_time() - start < 5
