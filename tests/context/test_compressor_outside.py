"""Real agent runs through every strategy of the compressor."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ba_tui.context.compression.strategies import faults
from ba_tui.core.conversation import undo_compact
from ba_tui.core.errors import ServerOverloaded
from ba_tui.core.events import Event, MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.core.results import ToolResult
from tests.context.talk import FIXED, Room, compressions, count, told
from tests.script import Script, collect, says

NOTES = "## State\nThe run went on."


def events_of(messages: Sequence[dict[str, Any]]) -> list[Event]:
    events: list[Event] = []
    for message in messages:
        words = str(message.get("content") or "") or "…"
        if message["role"] == "user":
            events.append(TurnStarted(user(words)))
        elif message["role"] == "assistant":
            asked = message.get("tool_calls") or ()
            calls = [ToolUse(each["id"], each["function"]["name"], _args(each)) for each in asked]
            events.append(MessageDone(Message("assistant", (Text(words), *calls), origin="assistant")))
            events += [ToolStarted(call) for call in calls]
        elif message["role"] == "tool":
            events += [ToolFinished(call, ToolResult(words)) for call in message.get("tool_call_ids") or ()]
    return [*events, TurnEnded("done")]


def _args(call: dict[str, Any]) -> dict[str, Any]:
    try:
        return dict(json.loads(call["function"]["arguments"]))
    except ValueError:
        return {}


@pytest.mark.outside
@pytest.mark.parametrize("strategy", ["truncate", "extract", "summarize", "failing"])
async def test_real_runs_stay_sound_and_fit(outside_data: Path, tmp_path: Path, strategy: str) -> None:
    for path in sorted((outside_data / "transcripts" / "sweagent").glob("*.json")):
        run = json.loads(path.read_text())
        events = events_of(run["messages"])
        plain = Room(Script(), events)
        await plain.talk.history()
        size = FIXED + count(plain.talk.transcript.messages)
        writer = Script(ServerOverloaded("busy")) if strategy == "failing" else Script(told(NOTES, 100))
        way = "summarize" if strategy == "failing" else strategy
        room = Room(
            Script(says("Done.")), events, writer=writer, folder=tmp_path / path.stem, strategy=way, window=size + 500
        )
        (done,) = compressions(await collect(room.talk.say("What is left to do?")))
        sent = room.script.requests[0].messages
        assert not faults(sent), path.name
        assert done.after <= 0.5 * room.gauge.room + 1, path.name
        assert sent[-1].text.endswith("What is left to do?")
        if strategy != "truncate":
            task = run["facts"]["task_excerpt"]
            kept = task[:120] if strategy == "summarize" and count([user(task)]) < 400 else task.partition(".")[0]
            assert kept in "\n".join(message.text for message in sent), path.name
        await collect(undo_compact(room.talk))
        before = [block for message in plain.talk.transcript.messages for block in message.blocks]
        after = [block for message in room.talk.transcript.messages for block in message.blocks]
        assert after[: len(before)] == before
        await room.compressor.close()
