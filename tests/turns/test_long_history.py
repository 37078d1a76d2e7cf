"""Nothing that grows with the history runs on the event loop: the first prompt of a session of 50 MB."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.events import Event, MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted, event_to_json
from ba_tui.core.messages import Message, Text, ToolUse, user
from ba_tui.core.results import ToolResult
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from ba_tui.resources import folder_slug, places
from ba_tui.sessions.records import FILE, Header
from tests.remembering.world import heard, playing

SIZE = 50_000_000
BLOCK = 0.05
"""Seconds that the loop may be busy without a pause."""
WORDS = "the engine reads each line of the file and keeps what it says of places and people in mind\n" * 320
"""Words without figures: what is computed from those is no work of the loop."""


def long_session(folder: Path) -> str:
    """A session of SIZE bytes, in which calls read file after file and nothing was compressed."""
    id = "a" * 32
    place = places().data / "sessions" / folder_slug(folder.resolve()) / id
    place.mkdir(parents=True)
    call = ToolUse("call_0", "read_file", {"path": "part.txt"})
    turn: list[Event] = [TurnStarted(user("Look at this part."))]
    for number in range(8):
        use = ToolUse(f"call_NUMBER_{number}", call.name, call.input)
        said = Message("assistant", (Text("I look."), use), model="openai/any", origin="assistant")
        turn += [MessageDone(said), ToolStarted(use, "part.txt"), ToolFinished(use.id, ToolResult(WORDS), 0.01)]
    done = Message("assistant", (Text("It is read."),), model="openai/any", origin="assistant")
    turn += [MessageDone(done), TurnEnded("done")]
    # Ids as in a real session: no two are alike.
    ids = [event.message.id for event in turn if isinstance(event, MessageDone)] + [turn[0].prompt.id]  # type: ignore[attr-defined]
    lines = b"".join(event_to_json(event) + b"\n" for event in turn).decode()
    for number, each in enumerate(ids):
        lines = lines.replace(each, f"m-NUMBER-{number}")
    with (place / FILE).open("wb") as file:
        file.write(Header(id, str(folder.resolve()), time.time() - 3600, "openai/any").line())
        for number in range(SIZE // len(lines) + 1):
            file.write(lines.replace("NUMBER", str(number)).encode())
    return id


@pytest.fixture
def blocks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, str]]:
    """How long each callback of the loop kept its thread's processor, and which it was: what else the machine does is
    not counted."""
    found: list[tuple[float, str]] = []
    run, here = asyncio.Handle._run, threading.get_ident()

    def timed(self: asyncio.Handle) -> Any:
        begin = time.thread_time()
        try:
            return run(self)
        finally:
            # The model's server has a loop of its own.
            if (spent := time.thread_time() - begin) > BLOCK / 5 and threading.get_ident() == here:
                found.append((spent, repr(self)))

    monkeypatch.setattr(asyncio.Handle, "_run", timed)
    return found


async def test_keys_live_while_a_session_of_50_megabytes_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, blocks: list[tuple[float, str]]
) -> None:
    trust_folder(tmp_path)
    id = await asyncio.to_thread(long_session, tmp_path)
    (places().config / "models.yaml").write_text("models:\n- {match: [any], window: 100000000}\n")
    with playing(monkeypatch) as model:
        model += [Step(calls=(ScriptedCall("glob", {"pattern": "*"}),)), Step(say="It is read.")]
        flags = {"model": "openai/any", "memory.embedder": "off", "memory.summaries": False}
        library = (await asyncio.to_thread(connect, flags, tmp_path)).library
        talk = await asyncio.to_thread(library.open, id)
        await talk.warm()
        assert len(talk.transcript.messages) > 3_000
        await heard(talk, "What is in the newest part?")
        assert len(model.server.requests[0].body) > 0.9 * SIZE
        await talk.close()
    assert max(blocks, default=(0.0, "")) < (BLOCK, ""), sorted(blocks)[-3:]
    assert gc.isenabled()
