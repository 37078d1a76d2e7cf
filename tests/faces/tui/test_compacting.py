"""Compressing the conversation in the app: the command, the line in the transcript, and the way back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from ba_tui.context.compression.compressor import Compressor, CompressorContext, SummaryBudget
from ba_tui.context.compression.gauge import Gauge
from ba_tui.context.compression.summarize import Summarizer, SummaryCache, Writer
from ba_tui.core.errors import ProviderError
from ba_tui.core.events import Compressed, Event, TurnEnded, TurnStarted
from ba_tui.core.messages import user
from ba_tui.core.provider import Provider
from ba_tui.core.start import Start
from ba_tui.core.turn import Branch
from ba_tui.faces.tui.inspector.model import inspected
from ba_tui.faces.tui.transcript.fold import fold
from ba_tui.faces.tui.transcript.palette import ASCII, Palette
from ba_tui.faces.tui.transcript.records import Compaction, source
from ba_tui.faces.tui.transcript.rows import Look, rows
from ba_tui.settings import CompressionSettings
from tests.context.talk import MODEL, count, history
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World

NOTES = "# Notes\n" + "\n".join(f"line [bold]{number}[/bold] \x1b[31mof it" for number in range(40))
DONE = Compressed(
    (user(NOTES, origin="compaction", hidden=True),), "summarize", 162_000, 71_000, 0.012, "the last 6 rounds"
)


def painted(record: Compaction, *, expanded: bool, width: int = 80) -> list[str]:
    return [line.text for line in rows(record, Look(width, Palette(glyphs=ASCII), 0.0), expanded=expanded)]


def test_one_line_tells_sizes_way_and_cost() -> None:
    (record,) = fold([DONE])
    assert isinstance(record, Compaction)
    assert painted(record, expanded=False) == ["Compressed: 162k to 71.0k tokens . with a summary . $0.012"]
    assert all(len(line) <= 40 for line in painted(record, expanded=False, width=40))


def test_opened_it_says_what_was_kept_and_shows_no_control() -> None:
    (record,) = fold([DONE])
    assert isinstance(record, Compaction)
    lines = painted(record, expanded=True)
    assert lines[1] == "Kept: the last 6 rounds"
    assert "line [bold]1[/bold] of it" in "\n".join(lines)
    assert "\x1b" not in "".join(lines)
    assert len(lines) < 20
    assert "line [bold]39" in source(record)


def test_the_inspector_shows_all_of_it() -> None:
    (record,) = fold([DONE])
    value = inspected(record)
    assert value.args["tokens before"] == 162_000
    assert "line [bold]39" in str(value.display)


def test_what_rules_did_costs_nothing_and_an_unknown_price_is_a_dash() -> None:
    assert painted(Compaction("extract", 100, 50, 0.0), expanded=False) == ["Compressed: 100 to 50 tokens . by rules"]
    assert painted(Compaction("summarize", 100, 50), expanded=False)[0].endswith("—")


def test_the_end_of_work_beside_the_turns_is_no_turn() -> None:
    events = [TurnStarted(user("hello"), at=1.0), TurnEnded("done", at=2.0), DONE, TurnEnded("done", at=500.0)]
    assert isinstance(fold(events)[-1], Compaction)


def condensed(hand: Hand) -> None:
    """Give the open conversation what compresses it."""
    conversation = hand.chat.session.conversation
    assert conversation is not None

    async def events() -> Sequence[Event]:
        return conversation.tail(10_000)

    async def nobody() -> Provider:
        raise ProviderError("No model writes summaries.")

    settings = CompressionSettings(enable_llm_summarization=False)
    gauge = Gauge(lambda: MODEL, lambda: 100, count)
    writer = Writer(lambda: MODEL, nobody, "")
    summarizer = Summarizer(writer, settings, SummaryCache(Path("/nowhere"), 0, 0), count)
    context = CompressorContext(gauge, summarizer, SummaryBudget(0.0), events=events)
    conversation.condenser = Compressor(settings, context)


def compactions(hand: Hand) -> list[Compaction]:
    return [record for record in hand.chat.transcript.records if isinstance(record, Compaction)]


async def test_compact_and_its_undo_show_as_lines(world: World) -> None:
    world.shelf.put("aaaa1111", "Parts", history(12))
    async with running(world, Start(resume="aaaa1111")) as hand:
        condensed(hand)
        await hand.send("/compact the totals")
        await hand.until(lambda: compactions(hand))
        await hand.idle()
        await hand.send("/compact undo")
        await hand.until(lambda: len(compactions(hand)) == 2)
        assert [record.strategy for record in compactions(hand)] == ["extract", "undo"]
        await hand.idle()
        await hand.send("And now?")
        await hand.until(lambda: "Done." in hand.said())


async def test_without_a_conversation_it_says_so(world: World) -> None:
    async with running(world) as hand:
        await hand.send("/compact")
        await hand.until(lambda: any("Nothing to compress" in text for text in hand.said()))


class Slow:
    """A condenser that works until it is stopped."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def now(self, branch: Branch, focus: str = "") -> None:
        self.begun.set()
        await asyncio.Event().wait()

    async def undo(self, branch: Branch) -> None:
        await self.now(branch)


async def test_prompts_wait_while_it_works_and_escape_stops_it(world: World) -> None:
    world.shelf.put("aaaa1111", "Parts", history(12))
    async with running(world, Start(resume="aaaa1111")) as hand:
        slow = Slow()
        assert hand.chat.session.conversation is not None
        hand.chat.session.conversation.condenser = slow
        await hand.send("/compact")
        await slow.begun.wait()
        await hand.until(lambda: "Compressing" in hand.hint)
        await hand.send("And now?")
        await hand.press("enter")
        assert list(hand.chat.turns.waiting) == ["And now?"]
        await hand.press("escape")
        await hand.idle()
        assert list(hand.chat.turns.waiting) == ["And now?"]
        await hand.press("enter")
        await hand.until(lambda: "Done." in hand.said())
