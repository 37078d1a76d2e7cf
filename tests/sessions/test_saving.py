"""A session whose file takes no more: said once, exported from memory, and saved when that is possible."""

from __future__ import annotations

import errno
import json
import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ba_tui.core.events import Event, Notice
from tests.script import collect
from tests.sessions.shelf import library


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
        assert [turn["prompt"] for turn in turns] == ["one", "two"]
    assert told(await collect(talk.say("three"))) == ["info"]
    assert talk.saving.missing is None
    await talk.close()
    assert shelf.find(talk.id).turns == 3


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
    turn = talk.say("one")
    await collect(turn)
    await turn.wait()
    monkeypatch.setattr(os, "fsync", synced)
    assert talk.saving.missing is not None
    assert told(await collect(talk.say("two"))) == ["error"]
    await talk.close()
    assert talk.saving.missing is not None
    assert talk.saving.missing.why == os.strerror(number)
