"""The change over the whole screen: its parts, which of them are made, and what else a question warns of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Diff, Diffs
from ba_tui.faces.tui.inspector.rows import RowView
from ba_tui.faces.tui.screens.diff import DiffScreen
from ba_tui.faces.tui.widgets.ask import AskPanel
from tests.faces.tui.asking.test_ask import PUSH, Chat, asked, seen, settle

BEFORE = "".join(f"line {n}\n" for n in range(60))
AFTER = BEFORE.replace("line 5\n", "line five\n").replace("line 30\n", "").replace("line 55\n", "line 55\nmore\n")
WRITE = Question(
    "permission", "Write the file?", tool="write_file", args={"path": "a.txt", "content": AFTER},
    preview=Diff("a.txt", BEFORE, AFTER), risks=("writes",), rule="write_file(a.txt)", reason="default mode",
)  # fmt: skip


async def opened(pilot: Pilot[None], question: Question) -> Chat:
    app = await asked(pilot, question)
    await pilot.press("d")
    await settle(pilot)
    assert isinstance(app.screen, DiffScreen)
    return app


@pytest.mark.parametrize("size", [(40, 10), (120, 36)])
async def test_only_the_accepted_changes_are_made(size: tuple[int, int]) -> None:
    async with Chat().run_test(size=size) as pilot:
        app = await opened(pilot, WRITE)
        await pilot.press("n", "n", "p", "space")
        await settle(pilot)
        screen = seen(app)
        assert "[ ] Change 2 of 3  left out" in screen
        assert "(2 accepted)" in screen or size[0] < 80
        await pilot.press("escape")
        await settle(pilot)
        assert "2 of 3 accepted: yes makes only these" in seen(app)
        assert "4 n  No" in seen(app)
        await pilot.press("y")
        await settle(pilot)
        wanted = AFTER.replace("line 29\n", "line 29\nline 30\n")
        assert app.answers == [("q1", Reply("once", edited={"path": "a.txt", "content": wanted}), False)]


async def test_the_choice_is_still_there_and_can_be_taken_back() -> None:
    async with Chat().run_test() as pilot:
        app = await opened(pilot, WRITE)
        await pilot.press("a", "escape")
        await settle(pilot)
        await pilot.press("y")
        await settle(pilot)
        assert app.answers == [], "nothing is accepted, so a yes means nothing"
        assert "No change is accepted: d to choose, or No" in seen(app)
        await pilot.press("d")
        await settle(pilot)
        assert "[ ] Change 1 of 3  left out" in seen(app)
        await pilot.press("a", "escape")
        await settle(pilot)
        assert "accepted" not in seen(app)
        await pilot.press("a", "enter")
        await settle(pilot)
        assert app.answers == [("q1", Reply("always", rule="write_file(a.txt)"), False)]


async def test_a_remembered_yes_runs_the_chosen_changes_too() -> None:
    async with Chat().run_test() as pilot:
        app = await opened(pilot, WRITE)
        await pilot.press("space", "escape")
        await settle(pilot)
        await pilot.press("s")
        await settle(pilot)
        [(_, reply, _)] = app.answers
        assert (reply.choice, reply.rule) == ("session", "write_file(a.txt)")
        assert reply.edited is not None
        assert reply.edited["content"] == AFTER.replace("five", "5")


UNSAID = (
    Question("permission", "Patch?", tool="apply_patch", args={"patch": "x"}, preview=Diff("a.txt", BEFORE, AFTER)),
    Question("permission", "Write?", tool="t", args={"content": AFTER}, preview=Diff("a.txt", None, AFTER)),
    Question("permission", "Patch?", tool="p", preview=Diffs((Diff("a", "1\n", "2\n"), Diff("b", None, "3\n")))),
)


async def test_where_a_choice_cannot_be_said_none_is_offered() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, *UNSAID)
        for number in range(1, 4):
            app.clock.now += 1
            await pilot.press("d")
            await settle(pilot)
            assert isinstance(app.screen, DiffScreen)
            await pilot.press("space", "a")
            await settle(pilot)
            assert "Change 1 of" in seen(app) or "Change" in str(app.screen.query_one(RowView).rows)
            assert "[x]" not in seen(app)
            assert "[ ]" not in seen(app)
            await pilot.press("q")
            await settle(pilot)
            await pilot.press("y")
            await settle(pilot)
            assert app.answers[-1] == (f"q{number}", Reply("once"), False)


async def test_side_by_side_where_there_is_room_and_by_key() -> None:
    def sides(app: Chat) -> int:
        return max(map(len, app.screen.query_one(RowView).rows))

    async with Chat().run_test(size=(120, 36)) as pilot:
        app = await opened(pilot, WRITE)
        assert sides(app) == 2
        await pilot.resize_terminal(100, 30)
        await settle(pilot)
        assert sides(app) == 1
        await pilot.press("d")
        await settle(pilot)
        assert sides(app) == 2


async def test_it_goes_when_the_question_does() -> None:
    async with Chat().run_test() as pilot:
        app = await opened(pilot, WRITE)
        app.screen_stack[0].query_one(AskPanel).withdraw("q1")
        await settle(pilot)
        assert not isinstance(app.screen, DiffScreen)


DANGER = Question(
    "permission",
    "Run this command?",
    tool="shell",
    args={"command": "echo"},
    reason="the rule shell(echo) asks (user config.yaml:3)",
    risks=("network", "shares a secret"),
    warnings=("The command holds the hidden character U+202E.", "аpple.com is no plain name (U+0430)."),
    rewritten="the hook guard.sh",
)


@pytest.mark.parametrize("size", [(40, 10), (80, 24)])
async def test_what_cannot_be_seen_by_looking_is_said(size: tuple[int, int]) -> None:
    async with Chat().run_test(size=size) as pilot:
        app = await asked(pilot, DANGER, agent="main/explore-1")
        screen = seen(app)
        if size == (40, 10):
            assert "! 2 warnings, d shows them" in screen
            await pilot.press("d")
            await settle(pilot)
            screen = seen(app)
        else:
            assert "The arguments were changed by the hook guard.sh." in screen
        for words in ("asked by explore-1", "shares a secret", "! The command holds", "U+202E", "U+0430"):
            assert words in " ".join(screen.split()), screen


async def test_why_nothing_is_remembered_is_said() -> None:
    async with Chat().run_test() as pilot:
        screen = seen(await asked(pilot, DANGER))
        assert "can't be remembered: too broad" in screen
        assert "2 s" not in screen


async def test_a_question_that_is_no_call_offers_nothing_to_edit() -> None:
    async with Chat().run_test() as pilot:
        app = await asked(pilot, replace(DANGER, fixed=True, reason="yes holds for this file"))
        for words in ("asked each time", "edit the arguments", "Yes, once"):
            assert words not in seen(app)
        await pilot.press("e")
        await settle(pilot)
        assert "Ctrl+S" not in seen(app)


async def test_the_time_that_is_left_is_shown() -> None:

    async with Chat().run_test() as pilot:
        app = await asked(pilot, replace(PUSH, timeout=300.0), replace(DANGER, timeout=100.0, on_timeout="allow"))
        tick: Callable[[], None] = app.panel._count
        tick()
        assert "Run this command? · 1 of 2 · denied in 5 min" in seen(app)
        app.clock.now += 254.0
        tick()
        await settle(pilot)
        assert "denied in 0:45" in seen(app)
        await pilot.press("y")
        await settle(pilot)
        assert "2 of 2 · allowed in 0:00" in seen(app), "its time ran while it stood behind the other"
        app.panel.withdraw_all()
        await settle(pilot)
        assert app.panel._tick is None
