"""Exact replacement: found where it is certain, refused with the candidates where it is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ba_tui.tools.editing.matching import Edit, find_edit
from ba_tui.tools.failures import ToolFailure


def applied(text: str, edit: Edit) -> str:
    for change in reversed(edit.changes):
        text = text[: change.start] + change.text + text[change.end :]
    return text


def edited(text: str, old: str, new: str, *, replace_all: bool = False) -> str:
    return applied(text, find_edit(text, old, new, replace_all=replace_all))


def test_one_exact_place() -> None:
    assert edited("a = 1\nb = 2\n", "b = 2", "b = \\1 $&") == "a = 1\nb = \\1 $&\n"


def test_all_places() -> None:
    assert edited("x y x", "x", "zz", replace_all=True) == "zz y zz"


@pytest.mark.parametrize(
    ("text", "old", "said"),
    [
        ("one\ntwo\none\n", "one", "2 places:\n1\tone\n3\tone"),
        ("aaa", "aa", "2 places"),
        ("text", "", "empty"),
        ("text", "new", "the same"),
    ],
)
def test_refused(text: str, old: str, said: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        find_edit(text, old, "new")
    assert said in str(caught.value)


def test_nothing_near_says_so() -> None:
    with pytest.raises(ToolFailure) as caught:
        find_edit("alpha\nbeta\n", "def compute(total):", "x")
    assert "not in the file" in str(caught.value)
    assert "Nearest" not in str(caught.value)


def test_the_nearest_lines_are_shown() -> None:
    with pytest.raises(ToolFailure) as caught:
        find_edit("import os\n\ndef compute(total):\n    return total\n", "def compute(totals):", "x")
    assert "3\tdef compute(total):" in str(caught.value)


def test_an_edit_that_was_made_before_is_said() -> None:
    with pytest.raises(ToolFailure) as caught:
        find_edit("value = compute_all()\n", "value = compute()", "value = compute_all()")
    assert "is already at line 1" in str(caught.value)


def test_shifted_indentation_is_carried_over() -> None:
    text = "class A:\n    def f(self):\n        return 1\n"
    new = edited(text, "def f(self):\n    return 1", "def f(self):\n    if self:\n        return 2\n    return 1")
    expected = "class A:\n    def f(self):\n        if self:\n            return 2\n        return 1\n"
    assert new == expected


def test_less_indentation_than_the_file_has_does_not_make_ragged_lines() -> None:
    text = "class A:\n        first = 1\n"
    new = edited(text, "    first = 1\n", "    first = 1\n    last = 2\n")
    assert new == "class A:\n        first = 1\n        last = 2\n"
    assert edited(text, "    first = 1\n", "    first = 2\n") == text.replace("1", "2")
    with pytest.raises(ToolFailure, match="line 2, but indented deeper"):
        find_edit(text, "    first =", "    last = 1\n    first =")


def test_tabs_where_spaces_were_written() -> None:
    text = "func f() {\n\tif ok {\n\t\treturn 1\n\t}\n}\n"
    old = "    if ok {\n        return 1\n    }"
    assert edited(text, old, old.replace("1", "2")) == text.replace("1", "2")


def test_lines_that_stay_keep_their_trailing_space() -> None:
    assert edited("first line  \nsecond line\t\n", "first line\nsecond line\n", "first line\nthird line\n") == (
        "first line  \nthird line\n"
    )


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        ("    }\n", "\t}", "}}"),
        ("if a:\n    b()\nif a:\n        b()\n", "  if a:\n      b()", "x"),
        ("  hello\n    world\n", "hello\nworld", "x\ny"),
        ("call( a, b )\n", "call(a, b)", "call(b)"),
        ("It’s here now\n", "It's here now", "gone"),
        ("\tif a:\n\t\tb()\n", "    if a:\n        b()", "    if a:\n        if b:\n            c()"),
        ("a = 1\nb = 2\nc = 3\n", "2\tb = 2", "2\tb = 4\nb = 5"),
        ("a = 1\nb = 2\nc = 3\n", "2\tb = 2\n3\tc = 3", "2\tb = 2\n2\tnew\n3\tc = 3"),
        ("1\tfoo\n2\tbar\n", "3\tfoo", "3\tqux"),
        ("first foo\nsecond\n", "1\tfoo", "1\tqux"),
        ("price cafe\u0301\n", "cafe", "tea"),
        ("x\u00a0= 100\n", "x = 100", "x = 200"),
        ("total() # 1\n\n\nrest()\n", "total() # 1\n\nrest()", "rest()"),
        ("\N{FULLWIDTH LATIN SMALL LETTER A}bcd = 1\n", "abcd = 1", "abcd = 2"),
    ],
)
def test_uncertain_matches_are_refused(text: str, old: str, new: str) -> None:
    with pytest.raises(ToolFailure):
        find_edit(text, old, new)


def test_copied_line_numbers_are_left_out() -> None:
    assert edited("a = 1\nb = 2\nc = 3\n", "2\tb = 2\n3\tc = 3", "2\tb = 4\n3\tc = 3") == "a = 1\nb = 4\nc = 3\n"


def test_accents_may_be_written_apart_from_their_letters() -> None:
    apart = "cafe\u0301 noir\nautre cafe\u0301\n"
    assert edited(apart, "caf\u00e9 noir", "th\u00e9 noir") == "th\u00e9 noir\nautre cafe\u0301\n"
    assert (
        edited(f"{apart}x\n", "caf\u00e9 noir\nautre caf\u00e9\nx", "caf\u00e9 noir\nautre caf\u00e9\ny")
        == f"{apart}y\n"
    )
    assert "accents" in find_edit(apart, "caf\u00e9 noir", "x").note
    with pytest.raises(ToolFailure, match="2 places"):
        find_edit("e\u0301te\u0301\n\u00e9t\u00e9\n", "\u00e9t\u00e9 ", "x")


LINES = st.lists(st.text("ab \t(=é", max_size=8), min_size=1, max_size=8).map("\n".join)


@given(LINES, LINES, LINES)
def test_an_edit_touches_only_lines_that_equal_what_was_asked(text: str, old: str, new: str) -> None:
    try:
        edit = find_edit(text, old, new)
    except ToolFailure:
        return
    (change,) = edit.changes
    there = text[change.start : change.end]
    if edit.note:
        assert [line.strip() for line in there.split("\n")] == [line.strip() for line in old.split("\n")]
    else:
        assert there == old
        assert change.text == new


FILE = """\
class Shop:
    def total(self):
        if self.open:
            rate = 2
        return rate
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # All of new_string has the file's indentation, old_string has none.
        ("if self.open:\n    rate = 2", "        if self.open:\n            rate = 3"),
        ("if self.open:\n    rate = 2", "        if self.open:\n            rate = 2\n        log(rate)"),
        # Line for line as deep as the file, although no line stays.
        ("if self.open:\n    rate = 2", "        if self.shut:\n            rate = 3"),
        # old_string is deeper than the file.
        ("            if self.open:\n                rate = 2", "        if self.open:\n            rate = 3"),
    ],
)
def test_what_is_written_with_the_indentation_of_the_file_keeps_it(old: str, new: str) -> None:
    lines = FILE.splitlines()
    after = [*lines[:2], *new.splitlines(), lines[4]]
    assert edited(FILE, old, new) == "\n".join(after) + "\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # Only its first line lacks the file's indentation.
        ("if self.open:\n    rate = 2", "if self.shut:\n            rate = 3"),
        # Another shape: nothing says whose indentation it has.
        ("if self.open:\n    rate = 2", "        rate = 3"),
        ("if self.open:\n    rate = 2", "        if wanted:\n            if self.open:\n                rate = 2"),
        # One line, whose indentation stands before it already.
        ("return rate", "        return self.rate"),
    ],
)
def test_an_indentation_that_would_be_doubled_is_refused(old: str, new: str) -> None:
    with pytest.raises(ToolFailure, match="indent"):
        find_edit(FILE, old, new)


@given(LINES, st.integers(0, 60), st.integers(1, 60), LINES)
def test_what_stands_there_once_is_replaced(text: str, start: int, size: int, new: str) -> None:
    text += "." if not text else ""
    start %= len(text)
    old = text[start : start + size]
    assume(old != new)
    assume(not (old[0] in " \t" and "\n" in new))
    assume(not new[:1].isspace())
    assume(sum(text.startswith(old, at) for at in range(len(text))) == 1)
    assert edited(text, old, new) == text.replace(old, new)


@pytest.mark.outside
def test_real_cases(outside_data: Path) -> None:
    for line in (outside_data / "edits_str_replace.jsonl").read_text("utf-8").splitlines():
        case = json.loads(line)
        expected = None if "expect_error" in case else case["after"]
        try:
            result = edited(
                case["before"], case["old_string"], case["new_string"], replace_all=case.get("replace_all", False)
            )
        except ToolFailure:
            result = None
        if case["tier"].startswith("lenient"):
            assert result in {None, expected}, case["id"]
        else:
            assert result == expected, case["id"]
