"""The breakdown of the window: shares, totals, costs, turns, messages, compressions; and the meters beside it."""

from __future__ import annotations

import pytest
from textual.widgets import OptionList, Static

from ba_tui.core.events import Compressed, Event, MessageDone, ModelChanged, ToolFinished, TurnEnded, TurnStarted
from ba_tui.core.ledger import Ledger
from ba_tui.core.messages import Message, Text, Usage, user
from ba_tui.core.ports.context import ContextItem, ContextPart
from ba_tui.core.provider import ModelInfo, Prices
from ba_tui.core.results import ToolResult
from ba_tui.core.start import Start
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.screens.context import (
    ContextItems,
    ContextScreen,
    Section,
    Window,
    lead,
    painted_section,
    sections,
)
from ba_tui.faces.tui.widgets.main_area import SidePanel
from ba_tui.faces.tui.widgets.notices import Situation, line
from tests.faces.tui.conftest import Hand, World, running

SONNET, QWEN = "anthropic/claude-sonnet-4-5", "openai/qwen3-coder"
MODEL = ModelInfo(SONNET, "anthropic", "claude-sonnet-4-5", prices=Prices(3, 15, 0.3, 3.75), known=True)
TOOLS = (ContextItem("shell", 600, "Run a command.", "Run a [red]command."), ContextItem("grep", 300, "Search."))
BIG = ContextItem("read_file sales.csv", 31_000, "round 2", "region,total\nNorth,\x1b]0;x\x07390", said=True)
PARTS = (
    ContextPart("System prompt", 1_900, "built in", items=(ContextItem("System prompt", 1_900, text="You are ba."),)),
    ContextPart("Tools", 900, "2 listed", items=TOOLS),
    ContextPart("Memory files", 240, "AGENTS.md", items=(ContextItem("AGENTS.md", 240, text="Use tabs."),)),
    ContextPart("Skills", 0),
    ContextPart("Conversation", 9_000, "4 messages", items=(ContextItem("you: What is wrong", 20, said=True),)),
    ContextPart("Tool results", 31_000, "1 result", items=(BIG, ContextItem("grep x", 12, "round 1", said=True))),
    ContextPart("Reserved for reply", 8_192, "of a window of 200,000", kept_free=True),
)


def done(usage: Usage | None, cost: float | None, model: str = SONNET) -> MessageDone:
    return MessageDone(Message("assistant", (Text("It adds up."),), usage, "end_turn", model, "assistant"), cost)


STORY: tuple[Event, ...] = (
    TurnStarted(user("What is wrong\nwith the sales data?")),
    done(Usage(1_200, 80, 30_000, 500), 0.0123),
    TurnEnded("done"),
    Compressed((), "summarize", 120_000, 40_200, 0.002, "the goal, 3 facts"),
    ModelChanged(QWEN),
    TurnStarted(user("And [now]?")),
    done(Usage(43_000, 500), None, QWEN),
    TurnEnded("done"),
)


def ledger(*events: Event) -> Ledger:
    found = Ledger()
    for event in events:
        found.apply(event)
    return found


def window(*events: Event) -> Window:
    return Window(MODEL, PARTS, ledger(*events))


def texts(section: Section, width: int) -> list[str]:
    title, rows = painted_section(section, width)
    return [title.plain.rstrip(), *(row.plain.rstrip() for row in rows)]


def named(title: str, of: Window) -> Section:
    return next(section for section in sections(of) if section.title == title)


def test_the_shares_add_up_to_the_window() -> None:
    shown = texts(named("Window", window(*STORY)), 60)
    assert shown == [
        "Window              tokens  share",
        "System prompt        ~1.9k     1%  built in",
        "Tools                 ~900    <1%  2 listed",
        "Memory files          ~240    <1%  AGENTS.md",
        "Skills                   0     0%",
        "Conversation         ~9.0k     4%  4 messages",
        "Tool results        ~31.0k    16%  1 result",
        "Free                 ~148k    74%",
        "Reserved for reply    8.2k     4%  of a window of 200,000",
    ]


def test_how_full_it_is_is_told_with_how_that_is_known() -> None:
    assert lead(window(), 90).plain.startswith("~43.0k of 200k tokens")
    assert "The provider has not counted yet" in lead(window(), 90).plain
    counted = lead(window(*STORY), 90).plain
    assert counted.startswith("43.5k of 200k tokens")
    assert "22%\nCounted by the provider" in counted
    grown = lead(window(*STORY, ToolFinished("1", ToolResult("x" * 480_000))), 90).plain
    assert "~164k of 200k tokens" in grown
    assert "82% nearly full" in grown
    guessed = Window(ModelInfo("openai/x", "openai", "x"), PARTS, Ledger())
    assert "window is not known; 200k are assumed" in lead(guessed, 90).plain


def test_costs_stand_beside_fresh_and_cached_input() -> None:
    shown = texts(named("Tokens and cost", window(*STORY)), 90)
    assert shown == [
        "Tokens and cost       session   turn",
        "Fresh input             44.2k  43.0k",
        "Written to the cache      500      0",
        "Read from the cache     30.0k      0",
        "Output                    580    500",
        "Input from the cache      40%     0%",
        "Cost                        —      —  a model that was used has no known price",
        "of it for summaries    $0.002",
    ]


def test_models_turns_messages_and_compressions() -> None:
    of = window(*STORY)
    assert texts(named("Models", of), 80)[1:] == [
        f"{SONNET}  $0.012  31.7k   80     95%         1",
        f"{QWEN}                —  43.0k  500      0%         1",
    ]
    turns = texts(named("Turns", of), 80)
    assert [row.split("  ")[0] for row in turns[1:]] == ["2 And [now]?", "1 What is wrong with the sales data?"]
    assert texts(named("Biggest messages", of), 80)[1].split() == (
        ["read_file", "sales.csv", "~31.0k", "16%", "round", "2"]
    )
    assert "summarize    120k  40.2k  $0.002  the goal, 3 facts" in texts(named("Compressions", of), 80)[1]


def test_what_others_wrote_is_painted_as_text() -> None:
    foul = ContextItem("grep \x1b]0;pwned\x07[red]", 9, "round 1\x9b31m", said=True)
    of = Window(
        MODEL, (ContextPart("Tool results", 9, items=(foul, foul)),), ledger(TurnStarted(user("a\x1b[31mb\nc")))
    )
    shown = "\n".join(row for section in sections(of) for row in texts(section, 100))
    assert not set(shown) & {"\x1b", "\x07", "\x9b"}
    assert "grep [red]" in shown
    assert "1 ab c" in shown


@pytest.mark.parametrize("width", [20, 32, 36, 60, 90, 116])
def test_every_row_fits_and_its_figures_stand_below_each_other(width: int) -> None:
    for section in sections(window(*STORY)):
        title, *rows = texts(section, width)
        assert all(len(row) <= width for row in (title, *rows))
    shares = texts(named("Window", window(*STORY)), width)
    assert len({row.index("%") for row in shares[1:] if "%" in row}) <= 1


@pytest.mark.parametrize(("share", "word"), [(0.5, ""), (0.79, ""), (0.81, "nearly full"), (0.96, "full")])
def test_the_status_line_warns_by_word(share: float, word: str) -> None:
    now = Situation(model=SONNET, window=200_000)
    full = ledger(TurnStarted(user("go")), done(Usage(int(200_000 * share)), 0.5))
    shown = line(now, full, 116).plain
    assert f"{share * 100:.0f}%" in shown
    assert ("full" in shown) == bool(word)
    assert word in line(now, full, 40).plain


def test_the_status_line_tells_what_a_turn_cost_and_what_is_estimated() -> None:
    now = Situation(model=SONNET, window=200_000)
    first = (TurnStarted(user("go")), done(Usage(1_000, 10), 0.5), TurnEnded("done"))
    assert "turn" not in line(now, ledger(*first), 116).plain
    second = (*first, TurnStarted(user("on")), done(Usage(2_000, 10), 0.25))
    shown = line(now, ledger(*second), 116).plain
    assert "2.0k/200k" in shown
    assert "turn $0.250  $0.750" in shown
    assert "~3.0k/200k" in line(now, ledger(*second, ToolFinished("1", ToolResult("x" * 4_000))), 116).plain
    assert "—" in line(now, ledger(*second, done(Usage(5), None)), 116).plain
    assert "%" not in line(now, ledger(TurnStarted(user("go"))), 116).plain


async def opened(hand: Hand) -> ContextScreen:
    await hand.send("/context")
    await hand.until(lambda: isinstance(hand.app.screen, ContextScreen))
    screen = hand.app.screen
    assert isinstance(screen, ContextScreen)
    await hand.until(lambda: screen.query_one(OptionList).option_count > 3)
    return screen


def body(screen: ContextScreen) -> str:
    options = screen.query_one(OptionList)
    return "\n".join(str(options.get_option_at_index(place).prompt) for place in range(options.option_count))


@pytest.fixture
def told(world: World) -> World:
    world.brain.parts = PARTS
    world.shelf.model = SONNET
    world.shelf.put("aaaa1111", "Sales data", STORY)
    return world


@pytest.mark.parametrize("size", [(40, 10), (120, 36)])
async def test_items_open_and_close_by_key(told: World, size: tuple[int, int]) -> None:
    async with running(told, Start(resume="aaaa"), size=size) as hand:
        screen = await opened(hand)
        assert "Window" in body(screen)
        assert str(screen.query_one(".lead", Static).content).startswith("43.5k of 200k")
        await hand.press("enter")
        await hand.until(lambda: isinstance(hand.app.screen, InspectorScreen))
        assert isinstance(hand.app.screen, InspectorScreen)
        assert hand.app.screen.inspected.text == "You are ba."
        await hand.press("escape")
        await hand.until(lambda: hand.app.screen is screen)
        await hand.press("down", "enter")
        await hand.until(lambda: isinstance(hand.app.screen, ContextItems))
        await hand.press("enter")
        await hand.until(lambda: isinstance(hand.app.screen, InspectorScreen))
        assert hand.app.screen.inspected.text == "Run a [red]command."
        await hand.press("escape", "escape", "escape")
        await hand.until(lambda: hand.app.screen is hand.chat)


async def test_a_resumed_session_shows_its_totals_again(told: World) -> None:
    async with running(told, Start(resume="aaaa"), size=(120, 36)) as hand:
        await hand.until(lambda: "43.5k/200k" in hand.status or "43.5k/131k" in hand.status)
        side = hand.chat.query_one(SidePanel)
        await hand.until(lambda: "74.7k" in str(side.usage.content))
        assert "Cached    40%" in str(side.usage.content)
        assert "Turns     2" in str(side.usage.content)
