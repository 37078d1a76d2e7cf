"""Sessions of ``ba -p`` are told from those that a person follows, and how a session ended from how it should have."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import SessionLocked, SessionNotFound
from ba_tui.core.events import Asked, MessageDone, Rewound, ToolStarted, TurnEnded, TurnStarted, event_to_json
from ba_tui.core.messages import Message, Text, ToolUse, reminder, user
from ba_tui.core.ports.sessions import Journal, SessionInfo
from ba_tui.core.questions import Question
from ba_tui.core.services import begin
from ba_tui.core.start import Start
from ba_tui.resources import folder_slug
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.library import LibraryHabits, SessionLibrary
from tests.script import Mind, Script, collect, says
from tests.sessions.shelf import WORK, folder_of, library, stored, turn

A, B = "20261121-120000-ab12", "20261121-130000-cd34"
CHECKOUT = Path(__file__).resolve().parents[2]


def printing(home: Path) -> SessionLibrary:
    """The library of ``ba -p``."""

    def make(info: SessionInfo, journal: Journal) -> Conversation:
        return Conversation(info, journal, Mind(Script(says("Noted."))))

    return SessionLibrary(home / "sessions", WORK, folder_slug, make, LibraryHabits(attended=False))


async def printed(home: Path, words: str = "count the rows") -> str:
    conversation = printing(home).create()
    await collect(conversation.say(words))
    await conversation.close()
    return conversation.id


async def test_the_newest_session_of_a_person_is_continued(tmp_path: Path) -> None:
    mine = library(tmp_path).create()
    await collect(mine.say("write the report"))
    await mine.close()
    theirs = await printed(tmp_path)
    shelf = library(tmp_path)
    assert {info.id: info.unattended for info in shelf.sessions()} == {mine.id: False, theirs: True}
    for start, wanted in (
        (Start(resume="last"), mine.id),
        (Start(resume="last", all=True), theirs),
        (Start(resume="count"), ""),
        (Start(resume="count", all=True), theirs),
        (Start(resume=theirs), theirs),
    ):
        if not wanted:
            with pytest.raises(SessionNotFound):
                begin(shelf, start)
            continue
        found = begin(shelf, start)
        assert found.id == wanted
        await found.close()


async def test_without_a_session_of_a_person_the_way_to_the_others_is_told(tmp_path: Path) -> None:
    await printed(tmp_path)
    with pytest.raises(SessionNotFound) as raised:
        begin(library(tmp_path), Start(resume="last"))
    assert "ba -c --all" in raised.value.hint


async def test_a_session_that_a_person_goes_on_with_is_theirs(tmp_path: Path) -> None:
    id = await printed(tmp_path)
    looked_at = library(tmp_path).open(id)
    await looked_at.history()
    await looked_at.close()
    assert library(tmp_path).find(id).unattended, "reading it changes nothing"
    conversation = library(tmp_path).open(id)
    await collect(conversation.say("and the columns"))
    await conversation.close()
    assert not library(tmp_path).find(id).unattended
    assert [event for event in JournalFile.peek(folder_of(tmp_path, id)).read() if isinstance(event, TurnStarted)]
    again = printing(tmp_path).open(id)
    await collect(again.say("once more"))
    await again.close()
    info = library(tmp_path).find(id)
    assert (info.unattended, info.turns) == (False, 3)


async def test_a_copy_is_of_who_takes_it(tmp_path: Path) -> None:
    id = await printed(tmp_path)
    assert not library(tmp_path).fork(id).unattended
    assert printing(tmp_path).fork(id).unattended


def test_a_session_that_was_not_closed_is_told(tmp_path: Path) -> None:
    stored(tmp_path, A, turn("one"))
    stored(tmp_path, B, turn("two"))
    killed = (
        "import os, sys; from pathlib import Path; from ba_tui.sessions.journal import JournalFile\n"
        "JournalFile.open(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", killed, str(folder_of(tmp_path, A))], cwd=CHECKOUT, check=False)
    assert {info.id: info.left_open for info in library(tmp_path).sessions()} == {A: True, B: False}
    held = JournalFile.open(folder_of(tmp_path, A))
    assert not library(tmp_path).find(A).left_open
    held.close()
    assert not library(tmp_path).find(A).left_open


async def test_a_session_in_use_can_be_read_and_not_written(tmp_path: Path) -> None:
    file = stored(tmp_path, A, turn("one"))
    held = JournalFile.open(file.parent)
    before = file.read_bytes()
    with pytest.raises(SessionLocked):
        begin(library(tmp_path), Start(resume=A))
    conversation = begin(library(tmp_path), Start(resume=A), view=True)
    assert conversation.read_only == f"pid {os.getpid()}"
    assert len(await conversation.history()) == len(turn("one"))
    assert conversation.transcript.messages[-1].text == "About one."
    for change in (
        lambda: conversation.say("hello"),
        lambda: conversation.set_mode("plan"),
        lambda: conversation.rename("Mine"),
        lambda: conversation.use_model("test/other"),
    ):
        with pytest.raises(SessionLocked, match="read-only"):
            change()
    with pytest.raises(SessionLocked):
        await conversation.past.rewind(1)
    assert conversation.go_on() is None
    await conversation.close()
    assert file.read_bytes() == before
    held.append(TurnStarted(user("still mine")))
    held.close()


CALL = ToolUse("c1", "write_file", {"path": "a"})
WAITING = [
    TurnStarted(user("write it"), at=1.0),
    MessageDone(Message("assistant", (CALL,), stop="tool_use", origin="assistant"), at=2.0),
    ToolStarted(CALL, "a", at=3.0),
    Asked("q1", Question("permission", "Allow?", "c1", "write_file"), at=4.0),
]


def test_a_turn_that_waits_for_an_answer_is_left_open(tmp_path: Path) -> None:
    file = stored(tmp_path, A, WAITING)
    before = file.read_bytes()
    JournalFile.open(file.parent).close()
    assert file.read_bytes() == before
    assert JournalFile.peek(file.parent).read() == WAITING
    (line,) = library(tmp_path).outline(A).turns
    assert (line.calls, line.ended) == (1, "")


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_any_other_unfinished_turn_is_closed(tmp_path: Path, cut: int) -> None:
    file = stored(tmp_path, A, WAITING[:cut])
    JournalFile.open(file.parent).close()
    (end,) = JournalFile.peek(file.parent).read()[cut:]
    assert isinstance(end, TurnEnded)
    assert end.reason == "interrupted"


def test_an_imported_session_asks_nothing(tmp_path: Path) -> None:
    stored(tmp_path, A, WAITING)
    path = tmp_path / "other.jsonl"
    path.write_text("".join(library(tmp_path).export(A, "jsonl")))
    home = tmp_path / "elsewhere"
    taken = library(home).take_in(path)
    assert JournalFile.peek(folder_of(home, taken.info.id)).read()[-1].type == "turn_ended"


def test_notes_are_never_the_persons_words_in_a_list(tmp_path: Path) -> None:
    note = reminder("AGENTS.md says: be brief")
    joined = user("count the rows").joined(note)
    command = replace(
        user("x"), blocks=(Text("The command /review stands for:\n\nLook at all of it."), Text("/review"))
    )
    events = [
        TurnStarted(joined, at=1.0),
        TurnEnded("done", at=2.0),
        TurnStarted(user("second"), at=3.0),
        TurnEnded("done", at=4.0),
        Rewound((joined,), turns=1, at=5.0),
    ]
    stored(tmp_path, A, events)
    stored(tmp_path, B, [TurnStarted(command, at=1.0), TurnEnded("done", at=2.0)])
    (one, two) = (library(tmp_path).find(id) for id in (A, B))
    assert (one.title, one.preview) == ("count the rows", "count the rows")
    assert (two.title, two.preview) == ("/review", "/review")
    for format in ("md", "html"):
        text = "".join(library(tmp_path).export(A, format))
        assert "count the rows" in text
        assert "be brief" not in text
    assert library(tmp_path).search("brief") == []
    assert b"be brief" in event_to_json(events[0]), "the session itself keeps what was sent"
