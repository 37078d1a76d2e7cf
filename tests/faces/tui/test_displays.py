"""A display type is one value: with its renderer registered, every place of the screen shows it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast, get_args

import pytest

from ba_tui.core.messages import ToolUse
from ba_tui.core.questions import Question
from ba_tui.core.results import Display, ToolResult
from ba_tui.core.services import Services
from ba_tui.core.start import Start
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.faces.headless import Printer, speak
from ba_tui.faces.tui.displays.renderer import RENDERERS, Build, Renderer
from ba_tui.faces.tui.inspector.rows import line
from ba_tui.faces.tui.transcript.lines import PreviewSpace, Rows
from ba_tui.faces.tui.transcript.markdown import plain
from tests.faces.test_headless import Ready, Shelf
from tests.faces.tui.asking.test_ask import Chat, asked, settle
from tests.faces.tui.asking.test_ask_body import body
from tests.faces.tui.conftest import running
from tests.faces.tui.fakes import World, answer
from tests.faces.tui.inspector.test_pane import seen
from tests.script import Script, conversation, says


@frozen
class Sketch:
    """A type that core does not know."""

    of: str
    type: Literal["sketch"] = "sketch"


BOAT = cast("Display", Sketch("boat"))


class SketchRenderer(Renderer[Sketch]):
    def preview(self, display: Sketch, space: PreviewSpace) -> Rows:
        return plain(f"a glance at a {display.of}", space.width, space.palette.text)

    def page(self, display: Sketch, *, split: bool) -> Sequence[Build]:
        return [lambda: [line((f"all of a {display.of}", ""))]]

    def question(self, display: Sketch) -> Sequence[Build]:
        return [lambda: [line((f"judge this {display.of}", ""))]]

    def text(self, display: Sketch) -> str:
        return f"copy of a {display.of}"

    def values(self, display: Sketch) -> Sequence[object]:
        return [display.of]

    def shows(self, display: Sketch, argument: object) -> bool:
        return argument == display.of


async def _draw(_args: Mapping[str, Any], _call: Call) -> ToolResult:
    return ToolResult("The model reads of a boat.", BOAT)


DRAW = Tool("draw", "Draws.", {"type": "object"}, _draw)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RENDERERS, Sketch, f"{__name__}:SketchRenderer")


def test_every_display_type_has_a_renderer() -> None:
    union, *_ = get_args(Display)
    assert set(get_args(union)) == RENDERERS.keys() - {Sketch}


async def test_a_new_type_is_shown_by_the_transcript_and_the_inspector_and_is_copied(world: World) -> None:
    world.brain.tools = [DRAW]
    world.script.turns = [[answer("", ToolUse("1", "draw", {}))], ["Done."]]
    async with running(world, size=(100, 30)) as hand:
        await hand.send("draw a boat")
        await hand.idle()
        await hand.press("tab", "up", "up", "space")
        await hand.until(lambda: "a glance at a boat" in seen(hand.app))
        await hand.press("enter")
        await hand.until(lambda: "all of a boat" in seen(hand.app))
        await hand.press("ctrl+y")
        await hand.until(lambda: hand.app.clipboard == "copy of a boat")


async def test_a_new_type_is_shown_by_a_question() -> None:
    question = Question("permission", "Draw it?", tool="draw", args={"of": "boat", "size": 3}, preview=BOAT)
    async with Chat().run_test(size=(80, 24)) as pilot:
        app = await asked(pilot, question)
        await settle(pilot)
        shown = body(app)
        assert "judge this boat" in shown
        assert "size: 3" in shown
        assert "of:" not in shown


@pytest.mark.parametrize("format", ["text", "json", "stream-json"])
async def test_a_new_type_is_printed_as_the_text_that_the_model_reads(format: str) -> None:
    out, err = io.StringIO(), io.StringIO()
    talk = conversation(Script(says("", ("draw", {})), says("A boat.")), DRAW)
    services = Services(Shelf(talk), None, Ready(), [])  # type: ignore[arg-type]
    assert await speak(services, Start("draw"), Printer(format, out, err), None) == 0
    assert "A boat." in out.getvalue()
    if format == "stream-json":
        lines = [json.loads(text) for text in out.getvalue().splitlines()]
        assert [each["output"] for each in lines if each["type"] == "tool_result"] == ["The model reads of a boat."]
