"""/verify and /why: each figure with its source, the way there, and what an answer rests on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ba_tui.core.events import FiguresChecked, Judged, MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.results import CommandText, ToolResult
from ba_tui.core.start import Start
from ba_tui.core.text.figures import FigureReport, FigureSource, FigureVerdict, SourceFile
from ba_tui.faces.tui.explained import Explanation
from ba_tui.faces.tui.grid.pane import GridPane, GridScreen
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.inspector.rows import RowView
from ba_tui.faces.tui.transcript.records import ProseRecord
from ba_tui.features.figures.tui.commands import FigureList
from tests.faces.tui.conftest import Hand, running
from tests.faces.tui.fakes import World
from tests.faces.tui.grid.tables import Tables
from tests.faces.tui.screens.test_reports import report
from tests.faces.tui.sheets import keys, lines

TEXT = "It has 300 lines, 897.0 in row 599, and 77 more."
OUTPUT = "".join(f"line {at}\n" for at in range(100)) + "300 total\n" + "more\n" * 50
CALL = ToolUse("call-1", "shell", {"command": "wc"})
FILE = SourceFile("/data/sales.csv", 1, 2)
CELL = FigureSource("R1", 897.0, "call-2", column="amount", line=598)
FOUND = FigureReport(
    (
        FigureVerdict("300", 7, 10, "sourced", 300.0, "", (FigureSource("shell#1", 300.0, "call-1", 790, 793),)),
        FigureVerdict("897.0", 18, 23, "sourced", 897.0, "", (CELL,), files=(0,)),
        FigureVerdict("77", 40, 42, "unsourced", 77.0),
    ),
    files=(FILE,),
)
ANSWER = Message("assistant", (Text(TEXT),), model="demo/tour", origin="assistant")
EVENTS = [
    TurnStarted(user("count")),
    ToolStarted(CALL, "wc sales.csv"),
    Judged("call-1", "shell", "allow", "rule", "shell(wc:*)", "to count", "abc"),
    ToolFinished("call-1", ToolResult(OUTPUT, CommandText("wc", output=OUTPUT, exit_code=0), summary="exit 0")),
    MessageDone(ANSWER),
    FiguresChecked(ANSWER.id, FOUND),
    TurnEnded("done"),
]


async def listed(hand: Hand) -> None:
    await hand.opened()
    await hand.until(lambda: any(isinstance(each, ProseRecord) for each in hand.chat.transcript.records))
    await hand.send("/verify")
    await hand.until(lambda: isinstance(hand.app.screen, FigureList))
    await hand.pilot.pause()


def filled(world: World, file: SourceFile = FILE) -> Start:
    checked = FiguresChecked(ANSWER.id, replace(FOUND, files=(file,)))
    world.shelf.put("s1", "Count", [checked if isinstance(each, FiguresChecked) else each for each in EVENTS])
    world.brain.inventory = replace(world.brain.inventory, features={Datasets: Tables()})
    return Start(resume="s1")


async def test_each_figure_is_listed_with_its_source(world: World) -> None:
    async with running(world, start=filled(world)) as hand:
        await listed(hand)
        shown = lines(hand)
        assert "300" in shown
        assert "shell#1" in shown
        assert "R1 · amount" in shown
        assert "nothing in this session supports it" in shown
        await hand.press("escape")


async def test_enter_goes_to_the_cell_to_the_line_or_says_why_not(world: World) -> None:
    async with running(world, start=filled(world)) as hand:
        await listed(hand)
        await hand.press("enter")
        await hand.until(lambda: "77: unsourced" in keys(hand))
        await hand.press("up", "enter")
        await hand.until(lambda: isinstance(hand.app.screen, GridScreen))
        view = hand.app.screen.query_one(GridPane).view
        await hand.until(lambda: view.cursor == (598, 2))
        await hand.press("escape")
        await hand.until(lambda: isinstance(hand.app.screen, FigureList))
        await hand.press("up", "enter")
        await hand.until(lambda: isinstance(hand.app.screen, InspectorScreen))
        sheet = hand.app.screen.query_one("#sheet", RowView)
        await hand.until(lambda: any(row[-1].tone == "selected" for row in sheet.rows))
        assert [row[-1].text for row in sheet.rows if row[-1].tone == "selected"] == ["300 total"]
        await hand.until(lambda: sheet.scroll_y > 50)


async def test_a_file_that_changed_is_named_in_the_list_and_below_the_answer(world: World, tmp_path: Path) -> None:
    sales = tmp_path / "sales.csv"
    sales.write_text("amount\n897\n")
    state = sales.stat()
    start = filled(world, SourceFile(str(sales), state.st_size, state.st_mtime_ns))
    async with running(world, start=start) as hand:
        await listed(hand)
        assert "changed since" not in lines(hand)
        await hand.press("escape")
        sales.write_text("amount\n898.5\n")
        await listed(hand)
        assert "changed since: sales.csv" in lines(hand)
        prose = [record for record in hand.chat.transcript.records if isinstance(record, ProseRecord)][-1]
        assert prose.grounded
        assert "1 from a file that changed since" in prose.grounded.report.parts


async def test_without_a_checked_answer_a_line_says_so(world: World) -> None:
    async with running(world) as hand:
        await hand.opened()
        await hand.send("/verify")
        await hand.until(lambda: any("No answer with figures" in each for each in hand.said()))


async def test_why_names_evidence_decisions_and_what_has_none(world: World) -> None:
    async with running(world, start=filled(world)) as hand:
        await hand.opened()
        await hand.send("/why audit")
        await hand.until(lambda: hand.app.screen.query(".rows"))
        await hand.until(lambda: "shell(wc:*)" in report(hand))
        shown = report(hand)
        assert "shell wc sales.csv" in shown
        assert "77" in shown


def test_an_explanation_for_programs_has_figures_calls_and_decisions() -> None:
    found = Explanation(EVENTS).value()
    assert [each["label"] for each in found["figures"]] == ["sourced", "sourced", "unsourced"]
    assert found["figures"][0]["calls"] == ["call-1"]
    assert (found["calls"][0]["tool"], found["calls"][0]["ok"]) == ("shell", True)
    assert found["decisions"][0]["rule"] == "shell(wc:*)"
