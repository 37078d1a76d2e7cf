"""Session files that are empty, huge, torn or in another encoding: listed, opened, searched, and left as they are; and
files that take no more."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import resource
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ba_tui.core.errors import SessionNotSaved, StorageError
from ba_tui.core.events import Event, Notice, TurnEnded, TurnStarted, event_to_json
from ba_tui.core.messages import user
from ba_tui.core.ports.sessions import SessionSaving
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.records import FILE
from tests.script import Memory, collect
from tests.sessions.shelf import folder_of, library, stored, turn

A = "20261121-120000-ab12"
HUGE = event_to_json(TurnStarted(user("w" * 12_000_000))) + b"\n"
DAMAGE = {
    "latin-1 in a line": b'{"type":"notice","agent":"main","at":1,"text":"caf\xe9"}\n',
    "another encoding": '{"type":"notice"}\n'.encode("utf-16"),
    "zeros": b"\0" * 4096 + b"\n",
    "a huge line of no sense": b"x" * 12_000_000 + b"\n",
    "deep nesting": b"[" * 200_000 + b"\n",
    "half a line, glued": b'{"type":"turn_star{"type":"notice"}\n',
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_in_the_middle_costs_its_line_alone(tmp_path: Path, damage: bytes) -> None:
    first, second = turn("one"), turn("two")
    file = stored(tmp_path, A, first)
    sound = file.read_bytes()
    rest = b"".join(event_to_json(event) + b"\n" for event in second)
    file.write_bytes(sound + damage + rest)
    shelf = library(tmp_path)
    (info,) = shelf.sessions()
    assert (info.title, info.turns) == ("one", 2)
    assert [found.id for found in shelf.search("About two")] == [A]
    journal = JournalFile.open(file.parent)
    events = journal.read()
    assert [event for event in events if not isinstance(event, Notice)] == [*first, *second]
    assert any(isinstance(event, Notice) and "damaged" in event.text for event in events)
    assert [event for event in journal.tail(50) if not isinstance(event, Notice)] == [*first, *second]
    journal.append(TurnStarted(user("three")))
    journal.append(TurnEnded("done"))
    journal.close()
    assert file.read_bytes().startswith(sound + damage + rest)
    assert shelf.find(A).turns == 3
    assert json.loads("".join(shelf.export(A, "json")))["turns"][-1]["prompt"] == "three"


def test_a_huge_line_that_makes_sense_is_kept(tmp_path: Path) -> None:
    file = stored(tmp_path, A, turn("one"))
    file.write_bytes(file.read_bytes() + HUGE + event_to_json(TurnEnded("done")) + b"\n")
    shelf = library(tmp_path)
    assert shelf.find(A).turns == 2
    assert [found.id for found in shelf.search("About one")] == [A]
    prompts = [event.prompt.text for event in JournalFile.peek(file.parent).read() if isinstance(event, TurnStarted)]
    assert [len(prompt) for prompt in prompts] == [3, 12_000_000]


def test_an_empty_file_is_no_session_and_can_be_written_on(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, A)
    folder.mkdir(parents=True)
    (folder / FILE).touch()
    shelf = library(tmp_path)
    assert shelf.sessions() == shelf.search("one") == []
    journal = JournalFile.open(folder)
    assert journal.read() == journal.tail(5) == []
    for event in turn("one"):
        journal.append(event)
    journal.close()
    assert shelf.find(A).title == "one"


@pytest.mark.parametrize("kind", ["pipe", "device", "loop"])
def test_what_is_no_file_is_refused_and_never_waited_for(tmp_path: Path, kind: str) -> None:
    file = stored(tmp_path, A, turn("one"))
    file.unlink()
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.symlink_to("/dev/zero" if kind == "device" else file)
    shelf = library(tmp_path)
    assert shelf.sessions() == shelf.search("one") == []
    for look in (shelf.find, shelf.open, shelf.outline, lambda id: "".join(shelf.export(id, "md"))):
        with pytest.raises(StorageError, match="cannot be read"):
            look(A)
    with pytest.raises(StorageError, match="cannot be read"):
        JournalFile.open(file.parent)


@contextmanager
def full(size: int) -> Generator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def told(events: list[Event]) -> list[str]:
    return [event.level for event in events if isinstance(event, Notice)]


async def test_what_is_in_memory_alone_is_told_once_exported_and_saved_at_last(tmp_path: Path) -> None:
    shelf = library(tmp_path)
    talk = shelf.create()
    with full(0):
        assert told(await collect(talk.say("one"))) == ["error"]
        assert told(await collect(talk.say("two"))) == []
        lost = talk.saving.missing
        assert lost is not None
        assert (lost.why, lost.partly, lost.chosen) == ("File too large", False, False)
        await talk.saving.retry()
        assert talk.saving.missing
        turns = json.loads("".join(shelf.export(talk.id, "json")))["turns"]
        assert [each["prompt"] for each in turns] == ["one", "two"]
    assert told(await collect(talk.say("three"))) == ["info"]
    assert talk.saving.missing is None
    await talk.close()
    assert shelf.find(talk.id).turns == 3
    assert [found.id for found in shelf.search("two")] == [talk.id]


async def test_what_a_renamed_session_could_not_keep_is_told_with_the_next_turn(tmp_path: Path) -> None:
    shelf = library(tmp_path)
    talk = shelf.create()
    await collect(talk.say("one"))
    (file,) = tmp_path.glob("sessions/*/*/events.jsonl")
    with full(file.stat().st_size):
        # Nobody looks at a turn that has ended.
        talk.rename("Another title")
        assert told(await collect(talk.say("two"))) == ["error"]
        assert talk.saving.missing is not None
        assert talk.saving.missing.partly
        assert "# Another title" in "".join(shelf.export(talk.id, "md"))
    await talk.close()
    assert talk.saving.missing is None
    assert shelf.find(talk.id).title == "Another title"


@pytest.mark.parametrize("number", [errno.EIO, errno.EDQUOT])
async def test_what_the_system_could_not_write_out_stays_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A failure of fsync is told once by the system; what it had taken may be gone."""
    talk = library(tmp_path).create()
    synced = os.fsync

    def fails(file: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fails)
    first = talk.say("one")
    await collect(first)
    await first.wait()
    monkeypatch.setattr(os, "fsync", synced)
    assert talk.saving.missing is not None
    assert told(await collect(talk.say("two"))) == ["error"]
    await talk.close()
    assert talk.saving.missing is not None
    assert talk.saving.missing.why == os.strerror(number)


class SlowJournal(Memory):
    """Its file is full for the first entry and for one flush, which fails only after the next entry was saved."""

    def __init__(self) -> None:
        super().__init__()
        self.appended = 0
        self.failing, self.fails = threading.Event(), threading.Event()

    def append(self, event: Event) -> None:
        self.appended += 1
        if self.appended == 1:
            raise SessionNotSaved("No space left", "Free some space.", "sessions")

    def sync(self) -> None:
        self.failing.set()
        assert self.fails.wait(30)
        raise SessionNotSaved("No space left", "Free some space.", "sessions")


async def test_a_flush_that_fails_after_its_entries_were_saved_is_no_loss() -> None:
    journal, notices = SlowJournal(), list[Notice]()
    saving = SessionSaving(journal, lambda notice: not notices.append(notice))
    saving.keep(TurnStarted(user("one")))
    flush = asyncio.create_task(saving.sync())
    assert await asyncio.to_thread(journal.failing.wait, 30)
    saving.keep(TurnStarted(user("two")))
    journal.fails.set()
    await flush
    assert saving.missing is None
    assert [notice.level for notice in notices] == ["error", "info"]
