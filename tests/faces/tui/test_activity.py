"""The row above the prompt while a model reads: nothing new for a quick one, size and progress for a slow one."""

from __future__ import annotations

from textual.app import App, ComposeResult

from ba_tui.core.events import MessageDone, PromptProgress, TextDelta, ToolStarted, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.faces.tui.widgets.notices import Activity


class Row(App[None]):
    """``now`` is the time."""

    now = 100.0

    def compose(self) -> ComposeResult:
        yield Activity(lambda: self.now)

    def after(self, seconds: float) -> str:
        """The row when ``seconds`` more have gone by."""
        self.now += seconds
        row = self.query_one(Activity)
        row.note("")
        return str(row.render()).partition(" ")[2].partition(" · Esc")[0]


async def test_a_slow_reader_shows_the_size_of_the_prompt_and_how_far_it_is() -> None:
    app = Row()
    async with app.run_test():
        row = app.query_one(Activity)
        row.apply(TurnStarted(user("x")))
        row.apply(PromptProgress(12_034))
        assert app.after(2) == "Working  2 s"
        assert app.after(12) == "Reading ≈12.0k tokens  14 s"
        row.apply(PromptProgress(12_500, 0))
        assert app.after(1) == "Reading 12.5k tokens  15 s"
        row.apply(PromptProgress(12_500, 5_000, 130.4))
        assert app.after(1) == "Reading 12.5k tokens, 40 %, 2 min 10 s left  16 s"
        row.apply(TextDelta("Well"))
        assert app.after(1) == "Answering  17 s"


async def test_a_later_request_has_its_own_time() -> None:
    app = Row()
    async with app.run_test():
        row = app.query_one(Activity)
        row.apply(TurnStarted(user("x")))
        app.after(60)
        row.apply(MessageDone(Message("assistant", (Text("x"),))))
        row.apply(ToolStarted(ToolUse("1", "grep", {})))
        row.apply(PromptProgress(950))
        assert app.after(2) == "Working  1 min 2 s"
        assert app.after(5) == "Reading ≈950 tokens (7 s)  1 min 7 s"
