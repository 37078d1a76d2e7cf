"""Session files with times of a wrong clock, emptied ones, and files of a newer ba."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path

import pytest

from ba_tui.core.errors import NewerSchema, StorageError, UsageError, written_by_newer
from ba_tui.core.services import begin
from ba_tui.core.start import Start
from ba_tui.features.data.analysis.report import FORMAT
from ba_tui.features.memory.engine.entries import VERSION
from ba_tui.features.memory.engine.shelf import Shelf
from ba_tui.plotting.plan_exports import SCHEMA, plan_of
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.records import SCHEMA_VERSION
from ba_tui.sqlite_cache import Cache, CacheLayout
from tests.sessions.shelf import library, stored, turn

A, B = "20261121-120000-ab12", "20261121-130000-cd34"
NOW = time.time()
YEARS = 3 * 365 * 86_400.0


def written(home: Path, id: str, at: float, changed: float) -> Path:
    file = stored(home, id, turn(f"of {id}", at=at))
    os.utime(file, (changed, changed))
    return file


async def test_a_stamp_in_the_future_makes_no_session_the_newest_for_ever(tmp_path: Path) -> None:
    written(tmp_path, A, NOW + YEARS, NOW - 5_000)
    written(tmp_path, B, NOW - 100, NOW - 90)
    shelf = library(tmp_path)
    assert [info.id for info in shelf.sessions()] == [B, A]
    assert abs(shelf.sessions()[1].updated - (NOW - 5_000)) < 1
    continued = begin(shelf, Start("", "last", all=True))
    assert continued.id == B
    await continued.close()
    # Where its file has such a time, too, the session comes last.
    written(tmp_path, A, NOW + YEARS, NOW + YEARS)
    assert [info.id for info in library(tmp_path).sessions()] == [B, A]


async def test_a_session_that_goes_on_after_the_clock_was_set_right_is_the_newest(tmp_path: Path) -> None:
    file = written(tmp_path, A, NOW + YEARS, NOW - 5_000)
    written(tmp_path, B, NOW - 100, NOW - 90)
    journal = JournalFile.open(file.parent)
    for event in turn("again", at=NOW - 20):
        journal.append(event)
    journal.close()
    assert [info.id for info in library(tmp_path).sessions()] == [A, B]


@pytest.mark.parametrize("left", [b"", b"\0" * 300, b"\n"])
def test_an_emptied_session_says_so(tmp_path: Path, left: bytes) -> None:
    file = written(tmp_path, A, NOW - 100, NOW - 90)
    file.write_bytes(left)
    shelf = library(tmp_path)
    assert [(info.id, info.preview) for info in shelf.sessions()] == [(A, "Its file is empty.")]
    for opened in (shelf.open, shelf.view, shelf.outline, shelf.fork):
        with pytest.raises(StorageError, match=f"The file of session {A} is empty: its content is lost") as refused:
            opened(A)
        assert f"ba sessions delete {A}" in refused.value.hint
    with pytest.raises(StorageError, match=A):
        begin(shelf, Start("", "last", all=True))
    assert file.read_bytes() == left
    shelf.delete(A)
    assert shelf.sessions() == []


def test_what_a_newer_ba_wrote_is_refused_by_name(tmp_path: Path) -> None:
    file = written(tmp_path, A, NOW - 100, NOW - 90)
    file.write_bytes(file.read_bytes().replace(b'"schema_version": 1', b'"schema_version": 7', 1))
    with pytest.raises(NewerSchema) as refused:
        library(tmp_path).open(A)
    assert str(refused.value) == f"Session {A} was written by a newer ba (schema 7, this one reads {SCHEMA_VERSION})."
    assert refused.value.hint.startswith("Update ba")
    with pytest.raises(UsageError) as plan:
        plan_of({"schema_version": 9})
    assert str(plan.value) == written_by_newer("This plan", 9, SCHEMA)
    assert FORMAT == 1


def test_memory_of_a_newer_ba_is_named_and_kept(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "memory")
    later = json.dumps({"v": VERSION + 2, "op": "add", "id": "m1", "text": "of tomorrow"}).encode() + b"\n"
    shelf.append(later)
    assert shelf.fresh()
    lines, path = "1 line", shelf.log.path
    told = written_by_newer(f"A part of {path} ({lines})", VERSION + 2, VERSION)
    assert shelf.newer(shelf.index.health()) == f"{told} Update ba."
    assert later in path.read_bytes()


def test_an_index_of_a_newer_ba_is_left_as_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "index.sqlite"
    table = "CREATE TABLE held (word TEXT)"
    newer = Cache(file, CacheLayout(5, ("held",), (table,)))
    newer.ask(lambda db: db.execute("INSERT INTO held VALUES ('kept')"))
    older = Cache(file, CacheLayout(4, ("held",), (table,)))
    for _ in range(2):
        assert older.ask(lambda db: db.execute("SELECT count(*) FROM held").fetchone()) == (0,)
    assert f"{file} was written by a newer ba (schema 5, this one reads 4)." in caplog.text
    with sqlite3.connect(file) as db:
        assert db.execute("SELECT word FROM held").fetchall() == [("kept",)]
    db.close()
