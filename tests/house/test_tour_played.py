"""The tour played to its end through the real rooms, with every answer a person may give. Only its pauses are left out.

Its words and numbers are judged in test_tour.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Asked, Event, MessageDone, ToolFinished, TurnEnded
from ba_tui.core.questions import Question, Reply
from ba_tui.resources import bundled

DEMO = bundled("config") / "demo"
Answer = Callable[[Question], Reply]


def as_told(question: Question) -> Reply:
    """What the tour tells people to answer."""
    if "rm " in str(question.args):
        return Reply("deny", "keep them for the audit")
    return Reply("once")


def yes(question: Question) -> Reply:
    return Reply("once")


def no(question: Question) -> Reply:
    return Reply("deny", "not today")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DEMO / "data", tmp_path / "sales"))


@pytest.fixture
def talk(folder: Path, tmp_path: Path) -> Conversation:
    script = tmp_path / "tour.yaml"
    text = (DEMO / "tour.yaml").read_text("utf-8")
    script.write_text(re.sub(r"delay: [0-9.]+", "delay: 0", text), "utf-8")
    return connect({"model": f"scripted:{script}"}, folder, ours=True).library.create()


async def play(talk: Conversation, prompt: str, answer: Answer) -> list[Event]:
    turn, events = talk.say(prompt), list[Event]()
    async for event in turn:
        events.append(event)
        if isinstance(event, Asked):
            turn.answer(event.ask_id, answer(event.question))
    return events


def said(events: list[Event]) -> str:
    return "\n".join(event.message.text for event in events if isinstance(event, MessageDone))


async def test_answered_as_told_the_notes_come_out_right(talk: Conversation, folder: Path) -> None:
    events = await play(talk, "Show me.", as_told)
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done"
    failed = [event.result.text for event in events if isinstance(event, ToolFinished) and event.result.is_error]
    assert len(failed) == 1
    assert "keep them for the audit" in failed[0]
    assert (folder / "notes-2025.md").exists()
    assert "Best region: North, 1,655.00 euros.\nOrders: 84." in (folder / "notes.md").read_text("utf-8")
    assert "your words went back to me" in said(events)
    output = next(
        event.result.text for event in events if isinstance(event, ToolFinished) and "By region" in str(event)
    )
    assert "1655.00" in output
    assert "1432.40" in output
    assert "slowly" in said(await play(talk, "tell me more", as_told))
    assert "ba -c" in said(await play(talk, "go on", as_told))
    assert "nothing more" in said(await play(talk, "and now?", as_told))
    await talk.close()


@pytest.mark.parametrize("answer", [yes, no])
async def test_every_way_leads_to_the_end(talk: Conversation, folder: Path, answer: Answer) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    events = await play(talk, "Show me.", answer)
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].reason == "done"
    assert "how to stop me" in said(events)
    assert ("You allowed it" in said(events)) == (answer is yes)
    assert (folder / "notes-2025.md").exists() == (answer is no)
    if answer is no:
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    await talk.close()


async def test_a_question_left_with_esc_counts_as_no_and_the_tour_goes_on(talk: Conversation, folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    heard = ""
    for prompt in ("Show me.", "go on", "go on", "go on", "go on"):
        turn = talk.say(prompt)
        async for event in turn:
            if isinstance(event, Asked):
                turn.cancel()
            elif isinstance(event, MessageDone):
                heard += event.message.text
    assert heard.count("You stopped me, so") == 3
    assert "You allowed it" not in heard
    assert "Both changes are saved" not in heard
    assert "how to stop me" in heard
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    await talk.close()
