"""Sessions for tests: a library over a real folder, with a scripted brain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Event, MessageDone, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, Usage, user
from ba_tui.core.ports.sessions import Journal, SessionInfo
from ba_tui.core.results import ToolResult
from ba_tui.resources import folder_slug
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.library import SessionLibrary
from ba_tui.sessions.records import FILE, Header
from tests.script import Mind, Script, says

WORK = Path("/srv/project")


def library(home: Path, cwd: Path = WORK, *, answer: str = "Noted.") -> SessionLibrary:
    def make(info: SessionInfo, journal: Journal) -> Conversation:
        return Conversation(info, journal, Mind(Script(says(answer))))

    return SessionLibrary(home / "sessions", cwd, folder_slug, make)


def folder_of(home: Path, id: str, cwd: Path = WORK) -> Path:
    return home / "sessions" / folder_slug(cwd) / id


def turn(
    prompt: str, *, cost: float | None = 0.5, tool: bool = True, ended: bool = True, at: float = 1.0
) -> list[Event]:
    """One turn: a prompt, a call of ``cat`` with its result, an answer."""
    call = ToolUse(f"call {prompt}", "cat", {"path": f"{prompt}.txt"})
    asks = Message("assistant", (call,), usage=Usage(10, 1), stop="tool_use", origin="assistant")
    answer = Message("assistant", (Text(f"About {prompt}."),), usage=Usage(10, 1), origin="assistant")
    middle: list[Event] = [
        MessageDone(asks, cost, at=at + 1),
        ToolStarted(call, f"{prompt}.txt", at=at + 2),
        ToolFinished(call.id, ToolResult("text", summary="1 line"), at=at + 3),
    ]
    events: list[Event] = [TurnStarted(user(prompt), at=at), *(middle if tool else [])]
    events += [MessageDone(answer, cost, at=at + 4)]
    return [*events, TurnEnded("done", at=at + 5)] if ended else events


def stored(home: Path, id: str, events: Sequence[Event], cwd: Path = WORK) -> Path:
    """A session on disk; its file."""
    journal = JournalFile(folder_of(home, id, cwd), Header(id, str(cwd), 1.0, "test/model"))
    for event in events:
        journal.append(event)
    journal.close()
    return folder_of(home, id, cwd) / FILE
