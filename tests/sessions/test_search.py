"""Searching all that was said and done: found in every kind of entry, kept up to date, a cache that may be lost."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
from pathlib import Path

import pytest

from ba_tui.core.events import Event, MessageDone, Steered, Titled, ToolFinished, ToolStarted, TurnEnded, TurnStarted
from ba_tui.core.messages import Message, Text, ToolUse, reminder, user
from ba_tui.core.results import ToolResult
from ba_tui.sessions.journal import JournalFile
from tests.sessions.shelf import WORK, folder_of, library, stored, turn

A, B, C = "20261121-120000-ab12", "20261121-130000-cd34", "20261122-090000-ef56"


def talk() -> list[Event]:
    call = ToolUse("c1", "shell", {"command": "psql -f quarterly_report.sql", "more": {"deep": ["nested-word"]}})
    long = "row\n" * 4_000 + "ERROR: division by zero in line 4711\n"
    return [
        TurnStarted(user("Sum up the café figures"), at=1.0),
        Steered(reminder("a hidden reminder")),
        MessageDone(Message("assistant", (Text("The **turnover** of 統計 grew, Größe too."), call))),
        ToolStarted(call, "psql"),
        ToolFinished("c1", ToolResult(long, is_error=True)),
        Titled("Coffee houses"),
        TurnEnded("done", at=2.0),
    ]


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("turnover", "The **turnover** of"),
        ("TURN grew", "The **turnover** of"),
        ("cafe", ""),
        ("café", "Sum up the café figures"),
        ("quarterly_report.sql", "shell psql -f quarterly_report.sql"),
        ("nested-word", "nested-word"),
        ("division zero", "ERROR: division by zero in line 4711"),
        ("統", "統計 grew"),
        ("統計", "統計 grew"),
        ("GRÖSSE", "Größe too"),
        ("coffee division", "division by zero"),
        ('"division by', "division by"),
        ("grew,", "grew,"),
    ],
)
def test_every_kind_of_entry_is_found_with_its_place(tmp_path: Path, words: str, place: str) -> None:
    stored(tmp_path, A, talk())
    stored(tmp_path, B, turn("something else"))
    (info,) = library(tmp_path).search(words)
    assert info.id == A
    assert place in info.found
    assert "\n" not in info.found


@pytest.mark.parametrize("words", ["hidden", "turnover else", "計統", "ivision", "zero OR else", "…"])
def test_what_was_not_said_is_not_found(tmp_path: Path, words: str) -> None:
    stored(tmp_path, A, talk())
    stored(tmp_path, B, turn("something else"))
    assert library(tmp_path).search(words) == []


def test_a_place_never_shows_a_secret(tmp_path: Path) -> None:
    secret = "sk-ant-api03-" + "Ab1_" * 12
    stored(tmp_path, A, [TurnStarted(user("x")), ToolFinished("c", ToolResult(f"the token is {secret} indeed"))])
    (info,) = library(tmp_path).search("token")
    assert "token is [redacted]" in info.found


def test_what_is_added_is_found_and_what_was_replaced_is_not(tmp_path: Path) -> None:
    file = stored(tmp_path, A, turn("alpha"))
    shelf = library(tmp_path)
    assert [info.id for info in shelf.search("alpha")] == [A]
    journal = JournalFile.open(file.parent)
    for event in turn("beta"):
        journal.append(event)
    assert [info.id for info in shelf.search("alpha beta")] == [A]
    journal.close()
    file.unlink()
    stored(tmp_path, A, [*turn("gamma"), *turn("delta")])
    assert [info.id for info in shelf.search("About gamma")] == [A]
    assert shelf.search("About beta") == []


def test_of_a_deleted_session_no_word_stays(tmp_path: Path) -> None:
    file = stored(tmp_path, A, turn("zebracrossing"))
    stored(tmp_path, B, turn("lighthouse"))
    other = stored(tmp_path, C, turn("flamingo"))
    shelf = library(tmp_path)
    assert len(shelf.search("About")) == 3
    shelf.delete(A)
    shutil.rmtree(other.parent)
    shelf.sessions(everywhere=True)
    assert not file.exists()
    assert [info.id for info in shelf.search("About")] == [B]
    with sqlite3.connect(tmp_path / "search.sqlite") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    data = (tmp_path / "search.sqlite").read_bytes()
    assert b"zebracross" not in data
    assert b"flamingo" not in data
    assert (tmp_path / "search.sqlite").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("damage", ["missing", "garbage", "half", "older layout", "no place"])
def test_the_search_index_is_a_cache_that_is_made_anew(tmp_path: Path, damage: str) -> None:
    stored(tmp_path, A, talk())
    cache = tmp_path / "search.sqlite"
    if damage == "no place":
        cache.mkdir()
    else:
        assert len(library(tmp_path).search("turnover")) == 1
    if damage == "missing":
        for path in tmp_path.glob("search.sqlite*"):
            path.unlink()
    elif damage == "garbage":
        cache.write_bytes(b"this is no database, and long enough to look like one" * 100)
    elif damage == "half":
        cache.write_bytes(cache.read_bytes()[:5000] + b"\xff" * 5000)
    elif damage == "older layout":
        with sqlite3.connect(cache) as db:
            db.execute("PRAGMA user_version = 99")
        db.close()
    assert [info.id for info in library(tmp_path).search("turnover")] == [A]


def test_damaged_lines_do_not_stop_the_search(tmp_path: Path) -> None:
    file = stored(tmp_path, A, talk())
    garbage = b'\x00\xff{"type":"turn_started"\n[]\n{"type":"message_done","message":7}\n' + b"x" * 100_000 + b"\n"
    odd = json.dumps({"type": "turn_started", "agent": "main", "prompt": {"blocks": [{"type": "text", "text": 3}, 4]}})
    file.write_bytes(garbage + file.read_bytes() + odd.encode() + b'\n{"type":"turn_star')
    (folder_of(tmp_path, B)).mkdir()
    (folder_of(tmp_path, B) / "events.jsonl").write_bytes("Größe".encode("utf-16"))
    assert [info.id for info in library(tmp_path).search("turnover")] == [A]


def test_several_may_search_and_write_at_once(tmp_path: Path) -> None:
    for number in range(12):
        stored(tmp_path, f"20261121-1200{number:02d}-ab12", turn(f"common {number}"))
    shelves = [library(tmp_path) for _ in range(4)]
    found: list[int] = []

    def look(index: int) -> None:
        for _ in range(3):
            found.append(len(shelves[index].search("common")))
            stored(tmp_path, f"20261121-1300{index:02d}-cd34", turn("another"), Path("/srv/other"))

    threads = [threading.Thread(target=look, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [12] * 12
    assert len(library(tmp_path, WORK).search("about", everywhere=True)) == 16


def test_another_process_that_writes_the_cache_holds_nobody_up_for_long(tmp_path: Path) -> None:
    stored(tmp_path, A, talk())
    assert len(library(tmp_path).search("turnover")) == 1
    stored(tmp_path, B, turn("turnover again"))
    with sqlite3.connect(tmp_path / "search.sqlite", isolation_level=None) as db:
        db.execute("BEGIN IMMEDIATE")
        shelf = library(tmp_path)
        assert {info.id for info in shelf.search("turnover")} == {A, B}
        shelf.delete(B)
        db.execute("ROLLBACK")
    assert [info.id for info in shelf.sessions(everywhere=True)] == [A]
    stored(tmp_path, B, turn("something new"))
    assert [info.id for info in shelf.search("About new")] == [B]
    db.close()
