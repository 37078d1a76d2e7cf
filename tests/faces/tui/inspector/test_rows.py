"""Rows, pure: diffs, folding, arguments, output, colours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ba_tui.core.results import CommandText, Diff, Prose, Source, Table, Todo, Todos
from ba_tui.core.text.cells import width_of
from ba_tui.faces.tui.displays.table import cell_text, table_text
from ba_tui.faces.tui.inspector.diff import compare, diff_rows, patch, side_by_side, unified
from ba_tui.faces.tui.inspector.json_values import argument_rows, json_rows
from ba_tui.faces.tui.inspector.rows import GridCell, GridRow, folds, hanging, lay_out, line, painted, visible
from ba_tui.faces.tui.inspector.source import (
    command_rows,
    output_rows,
    prose_rows,
    source_rows,
    terminal_rows,
    todo_rows,
    todo_text,
)

LINES = st.lists(st.sampled_from(["", "a", "b", "  c = 1", "  c = 2", "}"]), max_size=30)


def texts(rows: list[GridRow]) -> list[str]:
    return [" | ".join(cell.gutter + cell.text for cell in row) for row in rows]


def test_a_change_in_the_middle_folds_the_rest() -> None:
    before = "".join(f"line {n}\n" for n in range(1, 21))
    rows = unified(compare(before, before.replace("line 10\n", "line ten\n")))
    assert texts(rows) == [
        " ⋯   6 unchanged lines",
        " 7   line 7",
        " 8   line 8",
        " 9   line 9",
        "10 - line 10",
        "10 + line ten",
        "11   line 11",
        "12   line 12",
        "13   line 13",
        " ⋯   7 unchanged lines",
    ]


def test_changed_words_have_a_role_of_their_own() -> None:
    rows = unified(compare("total = int(row)\n", "total = Decimal(row)\n"))
    assert rows[0][0].pieces == (("total = ", "removed"), ("int", "removed-word"), ("(row)", "removed"))
    assert rows[1][0].pieces == (("total = ", "added"), ("Decimal", "added-word"), ("(row)", "added"))


def test_lines_that_share_nothing_are_not_marked_by_word() -> None:
    rows = unified(compare("alpha beta\n", "{};\n"))
    assert [cell.pieces for row in rows for cell in row] == [(("alpha beta", "removed"),), (("{};", "added"),)]


def test_side_by_side_pairs_old_and_new() -> None:
    assert texts(side_by_side(compare("a\nb\n", "a\nc\nd\n"))) == ["1   a | 1   a", "2 - b | 2 + c", " | 3 + d"]


def test_a_new_file_and_one_without_a_line_end() -> None:
    assert texts(diff_rows(Diff("a.py", None, "x"))) == ["a.py  new file  +1 -0", "1 + x (no line end)"]
    assert texts(unified(compare("x\n", "x"))) == ["1 - x", "1 + x (no line end)"]
    assert texts(diff_rows(Diff("a", "x\n", "x\n"))) == ["a  +0 -0", "No line changed."]
    assert texts(diff_rows(Diff("a", "", ""))) == ["a  +0 -0", "No line changed."]


def test_hidden_characters_of_a_change_are_shown() -> None:
    rows = diff_rows(Diff("a", "if admin:\n", "if admin\u202e:\r\n"))
    assert "‹U+202E›" in texts(rows)[-1]
    assert "␍" in texts(rows)[-1]


@given(LINES, LINES)
def test_a_patch_leads_from_one_text_to_the_other(before: list[str], after: list[str]) -> None:
    old, new = "".join(f"{text}\n" for text in before), "".join(f"{text}\n" for text in after)
    change = compare(old, new)
    left = [change.before[i] for block in change.blocks for i in range(block.i1, block.i2)]
    right = [change.after[j] for block in change.blocks for j in range(block.j1, block.j2)]
    assert "".join(left) == old
    assert "".join(right) == new
    assert all(change.before[b.i1 : b.i2] == change.after[b.j1 : b.j2] for b in change.blocks if b.same)
    shown = unified(change)
    assert sum(row[0].gutter.endswith("+ ") for row in shown) == change.added
    assert sum(row[0].gutter.endswith("- ") for row in shown) == change.removed
    assert sum(row[-1].gutter.endswith("+ ") for row in side_by_side(change)) == change.added


def test_the_patch_for_the_clipboard() -> None:
    before = "".join(f"{n}\n" for n in range(12))
    assert patch(Diff("a", before, before + "end")).splitlines() == [
        "--- a", "+++ a", "@@ -10,3 +10,4 @@", " 9", " 10", " 11", "+end", "\\ No newline at end of file",
    ]  # fmt: skip


@given(st.text(max_size=80), st.integers(1, 30))
def test_folding_loses_nothing_and_fits(text: str, width: int) -> None:
    text = visible(text)
    for word_wrap in (False, True):
        starts = folds(text, width, word_wrap=word_wrap)
        parts = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
        assert "".join(parts) == text
        assert all(width_of(part) <= max(width, 2) for part in parts)


def test_words_stay_whole_where_they_can() -> None:
    assert folds("aaa bbb ccc", 8, word_wrap=True) == (0, 8)
    assert folds("aaaaaaaaaa b", 4, word_wrap=True) == (0, 4, 8)


@given(st.text(max_size=80), st.integers(2, 30), st.integers(1, 15))
def test_folded_lines_hang_below_the_first_word(text: str, width: int, hang: int) -> None:
    text, cell = visible(text), GridCell(hang=" " * hang)
    space = width_of(hanging(cell, width))
    assert space in {0, hang}
    assert 2 * space <= width
    for word_wrap in (False, True):
        starts = folds(text, width, word_wrap=word_wrap, hang=space)
        parts = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
        assert "".join(parts) == text
        assert all(width_of(part) <= max(width - space, 2) for part in parts[1:])


def test_columns_fold_side_by_side() -> None:
    layout = lay_out([(line(("x" * 25, ""))[0], line(("y" * 5, ""))[0])], 21, wrap=True)
    assert layout.columns == (10, 10)
    assert list(layout.lines) == [(0, 0), (0, 1), (0, 2)]
    assert layout.slice(0, 0, 2, "x" * 25) == (20, 25)
    assert layout.slice(0, 1, 1, "y" * 5) is None


def test_controls_are_shown_or_taken_but_never_kept() -> None:
    assert visible("a\x1b]0;b\x07c") == "a␛]0;b␇c"
    assert visible("a\tb") == "a       b"
    assert visible("a\u2028b\x9bc") == "a‹U+2028›b‹U+009B›c"
    assert painted("a\x1b[31mb") == "ab"


def test_arguments_stand_whole_and_readable() -> None:
    rows = argument_rows(
        {"path": "a b", "items": [{"id": 1, "tags": []}, "x"], "text": "1\n2", "none": None, "on": True}
    )
    assert texts(rows) == [
        "path: a b", "items: ", "  - id: 1", "    tags: []", "  - x", "text: ", "  1", "  2", "none: null", "on: true",
    ]  # fmt: skip
    assert texts(json_rows([1.5])) == ["- 1.5"]
    assert texts(json_rows("x")) == ["x"]


def test_output_keeps_colours_and_nothing_else() -> None:
    rows = output_rows("\x1b[31mred\x1b[0m plain\x1b]52;c;AAAA\x07\nab\rx\n")
    assert texts(rows) == ["red plain", "xb"]
    style = rows[0][0].pieces[0][1]
    assert not isinstance(style, str)
    assert style.color is not None
    assert style.color.number == 1


def test_a_command_ends_with_its_exit_code() -> None:
    assert texts(terminal_rows(CommandText("ls", "src", "a\n", 0))) == ["$ ls", "  in src", "", "a", "", "exit 0"]
    assert texts(terminal_rows(CommandText("true", "", "", 0))) == ["$ true", "", "No output.", "", "exit 0"]
    assert texts(terminal_rows(CommandText("x", ".", "half")))[1] == "  in the project folder"
    assert texts(terminal_rows(CommandText("x", "", "half"))) == ["$ x", "", "half"]


@pytest.mark.parametrize("code", ["x = 1\r\n\n\n", "\n\nfoo\n\n", "def f():\n\treturn '''a\nb'''", "\x1b[31m\ufeffx"])
def test_colouring_never_changes_the_text(code: str) -> None:
    plain = source_rows(Source("a.py", code), colours=False)
    assert texts(source_rows(Source("a.py", code))) == texts(plain)


def test_source_is_numbered_and_coloured() -> None:
    rows = source_rows(Source("a.py", "def f():\n    return 1\n", start=9))
    assert texts(rows) == [" 9  def f():", "10      return 1"]
    assert ("def", "keyword") in rows[0][0].pieces
    assert ("# x", "comment") in command_rows("ls # x")[0][0].pieces
    assert texts(source_rows(Source("no.such-kind", "a"))) == ["1  a"]
    assert texts(prose_rows(Prose("# a\n\n*b*\n", markdown=True))) == ["# a", "", "*b*"]


def test_todos_read_without_colour() -> None:
    display = Todos((Todo("1", "a", "completed"), Todo("2", "b", "in_progress", "high"), Todo("3", "c")))
    assert texts(todo_rows(display)) == ["[x] a", "[>] b (high)", "[ ] c"]
    assert todo_text(display) == "- [x] a\n- [ ] b\n- [ ] c"
    assert texts(todo_rows(Todos(()))) == ["No todos."]


def test_cells_of_a_table() -> None:
    assert cell_text("[red]x[/]\n").plain == "[red]x[/]␤"
    assert cell_text(None).plain == ""
    assert cell_text(1.5).justify == "right"
    assert len(cell_text("x" * 999).plain) == 40
    assert table_text(Table(("a", "b"), ((1, None), ("x\ty", True)))) == "a\tb\n1\t\nx y\tTrue"


@pytest.mark.outside
def test_no_payload_reaches_the_screen(outside_data: Path) -> None:
    for entry in (outside_data / "escape_payloads.jsonl").read_text("utf-8").splitlines():
        payload = json.loads(entry)["payload"]
        made = [
            *output_rows(payload),
            *argument_rows({payload: payload, "list": [payload]}),
            *diff_rows(Diff(payload, payload, payload + "x")),
            *source_rows(Source("a.py", payload)),
            *prose_rows(Prose(payload, markdown=True)),
            *command_rows(payload),
            *todo_rows(Todos((Todo("1", payload),))),
            line((cell_text(payload).plain, "")),
        ]
        for text in texts(made):
            assert not [letter for letter in text if ord(letter) < 32 or 127 <= ord(letter) < 160], (payload, text)
