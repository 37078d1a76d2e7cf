"""Notices stand next to the input, cover nothing, go by themselves, and can be read again."""

from __future__ import annotations

from itertools import pairwise

from textual.app import App, ComposeResult
from textual.widgets import Static

from ba_tui.core.events import Notice
from ba_tui.core.messages import ToolUse
from ba_tui.core.questions import Question
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.faces.tui.screens.status import NoticeList
from ba_tui.faces.tui.widgets.notices import NoticeStrip, seconds_to_read, strip
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World, answer
from tests.faces.tui.sheets import shown

ERROR = Notice("The key was refused.", "error", "Use /setup.")


def said(hand: Hand) -> str:
    return str(hand.chat.notices.content) if hand.chat.notices.display else ""


def covers_nothing(hand: Hand) -> bool:
    """No pane of the chat lies over another."""
    chat = hand.chat
    panes = [chat.main_area, *([chat.ask] if chat.ask else []), chat.notices, chat.activity, chat.queue, chat.composer]
    regions = [pane.region for pane in (*panes, chat.status) if pane.display and pane.region]
    return all(above.bottom <= below.y for above, below in pairwise(regions))


def listed(hand: Hand) -> str:
    return str(hand.app.screen.query_one(".rows", Static).content)


async def test_it_stands_right_above_the_input(world: World) -> None:
    async with running(world) as hand:
        hand.chat.tell(Notice("Exported to a.md."))
        await hand.until(lambda: hand.chat.notices.region.height)
        notices = hand.chat.notices.region
        assert notices.bottom == hand.chat.activity.region.y
        assert hand.chat.activity.region.bottom == hand.chat.composer.region.y
        assert said(hand) == "· Exported to a.md."
        assert covers_nothing(hand)
        await hand.press("/")
        await hand.until(lambda: hand.chat.composer.popup.display)
        assert covers_nothing(hand)


async def test_several_notices_have_few_rows_and_a_question_leaves_one(world: World) -> None:
    async def ask(args: object, call: Call) -> ToolResult:
        reply = await call.ask(Question("permission", "Run it?", call.id, "shell", {"command": "make"}))
        return ToolResult(reply.choice)

    world.brain.tools = (Tool("shell", "Runs.", {}, ask),)
    world.script.turns = [[answer("I run.", ToolUse("c1", "shell", {}))]]
    async with running(world) as hand:
        await hand.send("go")
        await hand.until(lambda: hand.chat.ask and hand.chat.ask.waiting)
        for number in range(6):
            hand.chat.tell(Notice(f"Notice {number}"))
        await hand.until(lambda: hand.chat.notices.region.height)
        assert said(hand).splitlines() == ["· Notice 5  +5 more: /notices"]
        await hand.until(lambda: covers_nothing(hand))


class Strip(App[None]):
    """A strip alone, on a clock that a test moves."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.notices = NoticeStrip(lambda: False, lambda: self.now)

    def compose(self) -> ComposeResult:
        yield self.notices


async def test_an_error_stays_until_a_key_that_comes_after_it_was_seen() -> None:
    app = Strip()
    async with app.run_test():
        app.notices.tell(ERROR)
        app.notices.key_pressed()
        assert app.notices.display, "who types has not looked yet"
        app.now = 2.0
        app.notices.key_pressed()
        assert not app.notices.display
        app.notices.tell(Notice("Saved."))
        app.now = 4.0
        app.notices.key_pressed()
        assert app.notices.display, "others go by themselves"


async def test_any_key_of_the_app_is_heard(world: World) -> None:
    async with running(world) as hand:
        pressed: list[str] = []
        hand.chat.notices.key_pressed = lambda: pressed.append("key")  # type: ignore[method-assign]
        await hand.press("a", "pageup")
        assert pressed == ["key", "key"]


def test_longer_ones_stay_longer() -> None:
    assert seconds_to_read(Notice("Saved.")) < seconds_to_read(Notice("Saved.", "warning"))
    assert seconds_to_read(Notice("x" * 300)) > 20


def test_the_newest_comes_last_and_is_never_left_out() -> None:
    notices = [Notice("first " * 40), Notice("second"), ERROR]
    rows = [row.plain for row in strip(notices, 40, 4)]
    assert len(rows) == 4
    assert rows[-1] == "✗ The key was refused. Use /setup."
    (row,) = strip(notices, 60, 1)
    assert row.plain == "✗ The key was refused. Use /setup.  +2 more: /notices"
    (long,) = strip([Notice("word " * 50)], 40, 1)
    assert long.plain.endswith("…")
    assert long.cell_length <= 40


async def test_all_can_be_read_again(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/notices")
        await shown(hand, NoticeList)
        await hand.until(lambda: "No notices yet." in listed(hand))
        await hand.press("escape")
        hand.chat.tell(ERROR)
        hand.chat.tell(Notice("Exported to a.md."))
        await hand.send("/notices")
        await shown(hand, NoticeList)
        await hand.until(lambda: "Exported" in listed(hand))
        text = listed(hand)
        assert "The key was refused. Use /setup." in text
        assert text.index("Exported") < text.index("refused")


async def test_a_notice_that_comes_while_the_app_ends_starts_no_timer(world: World) -> None:
    async with running(world) as hand:
        notices = hand.chat.notices
    notices.tell(Notice("Press Enter to go on."))
    assert [notice.text for notice in notices.kept] == ["Press Enter to go on."]
    assert not notices.display
