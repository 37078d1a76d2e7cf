"""Charts of a model in a session: drawn unasked, saved as any file is, told in words, there on resume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Asked, Checkpointed, Event, ToolFinished
from ba_tui.core.questions import Reply
from ba_tui.core.results import Chart, Prose, ToolResult
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer

SALES = "region,units\nNorth,12\nSouth,30\nNorth,5\n"
BARS = {"data": "sales.csv", "kind": "bar", "x": "region", "y": "units"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "sales.csv").write_text(SALES)
    trust_folder(work)
    return work


async def charted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *calls: Mapping[str, Any], reply: str = "once", **flags: Any
) -> tuple[list[ToolResult], list[Asked], list[Event], Conversation]:
    """The results of a model's charts, one a request, and what was asked about them."""
    steps = [*(Step(calls=(ScriptedCall("chart", dict(each)),)) for each in calls), Step(say="Done.")]
    with ModelServer(steps) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = connect({"model": "openai/any", **flags}, folder).library.create()
        turn = talk.say("draw")
        events: list[Event] = []
        async for event in turn:
            events.append(event)
            if isinstance(event, Asked):
                turn.answer(event.ask_id, Reply(reply))  # pyright: ignore[reportArgumentType]
        await talk.close()
    results = [event.result for event in events if isinstance(event, ToolFinished)]
    return results, [event for event in events if isinstance(event, Asked)], events, talk


def kinds(results: Sequence[ToolResult]) -> list[str]:
    return [result.error.kind if result.error else "" for result in results]


async def test_a_chart_asks_nothing_and_the_model_reads_it_in_words(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = (BARS, {"data": "sales"}, {"data": "R9"}, {"data": "sales", "kind": "bar", "x": "unit"})
    found, asked, events, _ = await charted(folder, monkeypatch, *calls, permission_mode="plan")
    assert not asked
    first = found[0]
    assert first.text.split("\n") == [
        "Bar chart of sales (3 rows): sum of units by region.",
        "2 values; highest 30 at South, lowest 17 at North, total 47.",
        "region,sum of units",
        "South,30",
        "North,17",
        "The user sees the chart.",
    ]
    assert first.summary == "bar · sum of units by region"
    assert isinstance(first.display, Chart)
    assert first.display.series[0].y == (30, 17)
    assert isinstance(found[1].display, Chart)
    assert kinds(found) == ["", "", "not_found", "validation_error"]
    assert "Did you mean units?" in found[3].text
    assert not any(isinstance(event, Checkpointed) for event in events)


async def test_saving_asks_as_writing_a_file_does(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save = {**BARS, "save": "charts/x.svg"}
    found, asked, events, _ = await charted(folder, monkeypatch, save, save)
    assert [event.question.preview for event in asked] == [Prose("Save a chart of sales.csv as charts/x.svg.")] * 2
    assert (folder / "charts" / "x.svg").read_text().startswith("<svg")
    assert "Saved as charts/x.svg" in found[0].text
    assert any(isinstance(event, Checkpointed) for event in events)
    denied, _, _, _ = await charted(folder, monkeypatch, {**BARS, "save": "no.png"}, reply="deny")
    assert kinds(denied) == ["permission_denied"]
    assert not (folder / "no.png").exists()


async def test_modes_and_rules_about_writing_hold_for_pictures(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "mine.svg").write_text("mine")
    names = ("a.svg", "mine.svg", "closed/b.svg", "c.pdf", "../away.svg")
    calls = [{**BARS, "save": name} for name in names]
    rules: dict[str, Any] = {"permissions.deny": ["write_file(closed/**)"], "permission_mode": "accept-edits"}
    found, asked, _, _ = await charted(folder, monkeypatch, *calls, reply="deny", **rules)
    assert kinds(found) == ["", "permission_denied", "permission_denied", "validation_error", "permission_denied"]
    assert [event.question.reason.split(";")[0] for event in asked] == [
        "mine.svg exists and would be replaced",
        "The path is outside the workspace.",
    ]
    assert (folder / "mine.svg").read_text() == "mine"
    planned, asked, _, _ = await charted(folder, monkeypatch, calls[0], permission_mode="plan")
    assert "Plan mode only reads" in planned[0].text
    assert not asked
    allowing: dict[str, Any] = {"permissions.allow": ["write_file(ok/**)"]}
    allowed, asked, _, _ = await charted(folder, monkeypatch, {**BARS, "save": "ok/d.svg"}, **allowing)
    assert (kinds(allowed), asked) == ([""], [])


async def test_a_rule_about_reading_the_file_asks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, asked, _, _ = await charted(
        folder, monkeypatch, BARS, reply="deny", **{"permissions.ask": ["read_file(sales.csv)"]}
    )
    assert "read_file(sales.csv)" in asked[0].question.reason
    assert kinds(found) == ["permission_denied"]


async def test_a_chart_is_there_on_resume_and_in_exports(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, _, _, talk = await charted(folder, monkeypatch, BARS)
    library = connect({"model": "openai/any"}, folder).library
    again = library.open(talk.id)
    shown = [event.result.display for event in await again.history() if isinstance(event, ToolFinished)]
    assert isinstance(shown[0], Chart)
    await again.close()
    for format in ("md", "html"):
        text = "".join(library.export(talk.id, format))  # pyright: ignore[reportArgumentType]
        assert "█" in text
        assert "sum of units by region" in text
    assert shown[0].series[0].y == (30, 17)
