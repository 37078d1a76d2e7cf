"""What stands on the screen while a question waits, down to 40 columns and 10 lines."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.widgets import TextArea

from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import CommandText, Diff
from ba_tui.faces.tui.inspector.rows import RowView
from tests.faces.tui.asking.test_ask import EDIT, PUSH, REMOVE, Chat, asked, seen, settle


@pytest.mark.parametrize("size", [(40, 10), (40, 24), (80, 12), (80, 24), (200, 50)])
async def test_everything_that_must_be_read_is_on_the_screen(size: tuple[int, int]) -> None:
    async with Chat().run_test(size=size) as pilot:
        for question in (PUSH, REMOVE, EDIT):
            app = await asked(pilot, question, agent="main/explore-1")
            screen = seen(app)
            for words in ("1 y  Yes, once", "4 n  No", question.tool, question.text):
                assert words in screen, screen
            assert ("Always in this project:" in screen) == (question.rule is not None), screen
            body = app.query_one("#ask-body", RowView)
            assert body.size.height >= 1
            assert body.line_count >= 1
            if size[1] < 16:
                await pilot.press("d")
                await settle(pilot)
            assert question.reason in " ".join(seen(app).split())
            if size[1] < 16:
                await pilot.press("escape")
                await settle(pilot)
            app.panel.withdraw_all()
            await settle(pilot)


@pytest.mark.parametrize("size", [(40, 10), (80, 24)])
async def test_how_to_go_on_stands_below_what_is_written(size: tuple[int, int]) -> None:
    new = "\n".join(f"line {number}" for number in range(9))
    args = {**EDIT.args, "new_string": new}
    change = Diff("a.py", "zero\none\n", f"zero\n{new}\n")
    long = replace(EDIT, args=args, preview=change, reason="Edits need approval in default mode.")
    async with Chat().run_test(size=size) as pilot:
        app = await asked(pilot, long)
        for key, words in (("e", "Ctrl+S Yes,"), ("tab", "Enter sends"), ("r", "Enter uses this rule")):
            await pilot.press(key)
            await pilot.pause()
            assert words in seen(app), seen(app)
            assert "Esc back" in seen(app), seen(app)
            await pilot.press("escape")


async def test_the_words_are_those_of_the_specification() -> None:
    async with Chat().run_test(size=(100, 30)) as pilot:
        screen = seen(await asked(pilot, PUSH))
    for words in (
        "1 y  Yes, once",
        "2 s  Yes, for this session: git push",
        "3 a  Always in this project: git push",
        "4 n  No",
        "Tab  No, and say what to do instead",
        "e edit the arguments first",
        "d full diff or full text",
        "Why: no rule allows git push",
        "runs a command · network",
        "git push",
        "timeout: 60",
    ):
        assert words in screen


async def test_foreign_text_can_neither_hide_nor_steer() -> None:
    evil = "echo a\x1b]0; rm -rf ~; \x07b\u202etac\u200b[bold]x[/]"
    async with Chat().run_test(size=(100, 30)) as pilot:
        question = Question(
            "permission", evil, tool="sh\x1b[8mell", args={"command": evil}, preview=CommandText(evil), reason=evil,
            rule=f"shell({evil})",
        )  # fmt: skip
        app = await asked(pilot, question, agent="main/\x1b[2J")
        screen = seen(app)
        assert "rm -rf ~" in screen
        assert "‹U+202E›" in screen
        assert "‹U+200B›" in screen
        assert "[bold]x[/]" in screen
        assert not [letter for letter in screen if letter != "\n" and not letter.isprintable()]
        await pilot.press("e")
        await settle(pilot)
        text = app.query_one(TextArea).text
        assert "\\u001b" in text
        assert text.isprintable() or "\n" in text
        await pilot.press("ctrl+s")
        await settle(pilot)
        assert app.answers == [("q1", Reply("once"), False)], "an untouched edit changes nothing"


async def test_a_body_that_takes_its_time_is_shown_when_it_is_there() -> None:
    before = "".join(f"value_{n} = {n}\n" for n in range(4_000))
    change = Diff("long.py", before, before.replace("1 =", "2 ="))
    async with Chat().run_test(size=(80, 24)) as pilot:
        app = pilot.app
        assert isinstance(app, Chat)
        app.panel.ask("q1", Question("permission", "Edit?", tool="edit_file", preview=change), "main")
        for _ in range(5):
            await pilot.pause()
        await settle(pilot)
        assert "long.py  +" in seen(app)
        assert app.query_one("#ask-body", RowView).size.height > 3


async def test_a_resize_keeps_everything_readable() -> None:
    async with Chat().run_test(size=(120, 40)) as pilot:
        app = await asked(pilot, PUSH)
        for size in [(40, 10), (80, 24), (40, 12), (200, 50)]:
            await pilot.resize_terminal(*size)
            await settle(pilot)
            screen = seen(app)
            assert "1 y  Yes, once" in screen
            assert "4 n  No" in screen
            assert "git push" in screen
        await pilot.press("y")
        await settle(pilot)
        assert app.answers == [("q1", Reply("once"), False)]
