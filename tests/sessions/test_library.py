"""The library: lists, finding, opening, forks, renaming, deleting; and the index, which is only a cache."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from ba_tui.core.errors import NewerSchema, SessionNotFound, UsageError
from ba_tui.core.events import Compressed, MessageDone, ModeChanged, ModelChanged, Titled, TurnStarted
from ba_tui.core.messages import Message, Text, Usage, user
from ba_tui.resources import folder_slug
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.records import Header
from tests.script import collect
from tests.sessions.shelf import WORK, folder_of, library, stored, turn
from tests.sessions.test_journal import _bytes_read

A, B, C = "20261121-120000-ab12", "20261121-130000-cd34", "20261122-090000-ef56"
D = "20261122-100000-0a1b"


async def test_a_new_session_is_found_again_with_its_model_mode_and_words(tmp_path: Path) -> None:
    shelf = library(tmp_path)
    conversation = shelf.create()
    assert shelf.sessions() == []
    await collect(conversation.say("How many rows has sales.csv?"))
    conversation.set_mode("plan")
    conversation.use_model("test/model")
    await conversation.close()
    (info,) = library(tmp_path).sessions()
    assert (info.id, info.title, info.cwd) == (conversation.id, "How many rows has sales.csv?", WORK)
    assert (info.turns, info.model, info.locked_by) == (1, "test/model", "")
    again = shelf.open(conversation.id)
    await again.history()
    assert (again.title, again.permissions.mode) == ("How many rows has sales.csv?", "plan")
    assert [message.text for message in again.transcript.messages] == ["How many rows has sales.csv?", "Noted."]
    await collect(again.say("And columns?"))
    await again.close()
    assert shelf.sessions()[0].turns == 2


async def test_the_last_model_wins_over_the_first(tmp_path: Path) -> None:
    stored(tmp_path, A, turn("one"))
    assert library(tmp_path).find(A).model == "test/model"
    stored(tmp_path, B, [*turn("one"), ModelChanged("other/model")])
    conversation = library(tmp_path).open(B)
    assert conversation.model == "other/model"
    await conversation.close()


def test_lists_are_of_this_folder_or_of_all_newest_first(tmp_path: Path) -> None:
    stored(tmp_path, A, turn("older", at=100))
    stored(tmp_path, B, turn("newer", at=200))
    stored(tmp_path, C, turn("elsewhere", at=300), Path("/srv/other"))
    shelf = library(tmp_path)
    assert [info.id for info in shelf.sessions()] == [B, A]
    assert [info.id for info in shelf.sessions(everywhere=True)] == [C, B, A]
    assert shelf.find(C).cwd == Path("/srv/other")


def test_cost_is_unknown_when_any_part_of_it_is(tmp_path: Path) -> None:
    stored(tmp_path, A, turn("priced"))
    stored(tmp_path, B, [*turn("priced"), *turn("unpriced", cost=None), *turn("priced")])
    broken = MessageDone(Message("assistant", (Text("cut"),), stop="cancelled"))
    stored(tmp_path, C, [*turn("priced"), TurnStarted(user("cut")), broken])
    stored(tmp_path, D, [*turn("priced"), Compressed((), "extract", 9, 8, None, usage=Usage(500, 20))])
    shelf = library(tmp_path)
    assert [shelf.find(id).cost for id in (A, B, C, D)] == [1.0, None, 1.0, None]


def test_sessions_are_found_by_part_of_the_id_or_by_words(tmp_path: Path) -> None:
    stored(tmp_path, A, [*turn("Count the Größe of rows"), Titled("Sizes")])
    stored(tmp_path, B, turn("統計をまとめて 100% now"))
    stored(tmp_path, C, turn("rows elsewhere"), Path("/srv/other"))
    shelf = library(tmp_path)
    assert [shelf.find(key).id for key in (A, "20261121-12", "ab12", "GRÖSSE rows", "sizes")] == [A] * 5
    assert [shelf.find(key).id for key in ("統計", "まとめ", "100%", "elsewhere")] == [B, B, B, C]
    assert [info.id for info in shelf.search("rows")] == [A]
    assert {info.id for info in shelf.search("rows", everywhere=True)} == {A, C}
    with pytest.raises(SessionNotFound, match=r"fits 2 sessions: .+\.$"):
        shelf.find("20261121")
    for key in ("nothing like it", "", "_", "../../etc"):
        with pytest.raises(SessionNotFound, match="no session"):
            shelf.find(key)


def test_changes_go_by_id_alone_never_by_words(tmp_path: Path) -> None:
    file = stored(tmp_path, A, turn("rows"))
    shelf = library(tmp_path)
    for change in (shelf.delete, shelf.open, shelf.fork, lambda id: shelf.rename(id, "x")):
        for id in ("rows", ".", "..", "", "/", f"../{folder_slug(WORK)}/{A}"):
            with pytest.raises(SessionNotFound):
                change(id)
    assert file.exists()


def test_a_fork_holds_whole_turns_and_names_its_parent(tmp_path: Path) -> None:
    events = [*turn("one"), Titled("Numbers"), ModeChanged("plan"), *turn("two"), *turn("three", ended=False)]
    file = stored(tmp_path, A, events)
    file.write_bytes(file.read_bytes() + b'{"type":"from_tomorrow","agent":"main","at":9}\n')
    before = file.read_bytes()
    shelf = library(tmp_path)
    first = shelf.fork(A, 1)
    assert (first.title, first.turns, first.cwd) == ("Numbers (fork)", 1, WORK)
    journal = JournalFile.peek(folder_of(tmp_path, first.id))
    assert journal.header.parent == A
    assert journal.read()[:-1] == events[:8]
    copy = shelf.fork("ab12")
    lines = (folder_of(tmp_path, copy.id) / "events.jsonl").read_bytes()
    assert copy.turns == 3
    assert before.split(b"\n", 1)[1] in lines
    assert file.read_bytes() == before
    for upto in (0, 4, -1):
        with pytest.raises(UsageError, match="3 turns"):
            shelf.fork(A, upto)


def test_a_fork_is_newer_than_what_it_was_taken_from(tmp_path: Path) -> None:
    stored(tmp_path, A, turn("one", at=100))
    stored(tmp_path, B, turn("two", at=200))
    shelf = library(tmp_path)
    copied = shelf.fork(A)
    assert [info.id for info in shelf.sessions()] == [copied.id, B, A]


def test_a_turn_that_runs_is_not_exported_as_interrupted(tmp_path: Path) -> None:
    journal = JournalFile(folder_of(tmp_path, A), Header(A, str(WORK), 1.0))
    for event in [*turn("one"), *turn("two", ended=False)[:-1]]:
        journal.append(event)
    running = "".join(library(tmp_path).export(A, "md"))
    assert library(tmp_path).fork(A).turns == 1
    journal.close()
    assert "> two" in running
    assert "Interrupted" not in running
    assert "Interrupted" in "".join(library(tmp_path).export(A, "md"))


def test_a_title_is_cleaned_and_none_is_refused(tmp_path: Path) -> None:
    stored(tmp_path, A, turn("one"))
    shelf = library(tmp_path)
    shelf.rename(A, "  red \x1b[31m \ud800 \n title ")
    assert shelf.find(A).title == "red  \N{REPLACEMENT CHARACTER} title"
    with pytest.raises(UsageError, match="empty"):
        shelf.rename(A, " \n ")


def test_delete_removes_the_whole_folder(tmp_path: Path) -> None:
    file = stored(tmp_path, A, turn("one"))
    (file.parent / "data").mkdir()
    (file.parent / "data" / "abc").write_text("bulk")
    stored(tmp_path, B, turn("two"))
    shelf = library(tmp_path)
    shelf.delete(A)
    assert not file.parent.exists()
    assert [info.id for info in shelf.sessions()] == [B]
    with pytest.raises(SessionNotFound):
        shelf.open(A)


def test_words_of_sessions_that_were_removed_by_hand_leave_the_index(tmp_path: Path) -> None:
    file = stored(tmp_path, A, turn("a secret plan"))
    stored(tmp_path, B, turn("two"))
    shelf = library(tmp_path)
    assert len(shelf.sessions(everywhere=True)) == 2
    shutil.rmtree(file.parent)
    assert [info.id for info in shelf.sessions(everywhere=True)] == [B]
    with sqlite3.connect(tmp_path / "index.sqlite") as db:
        rows = db.execute("SELECT title FROM sessions").fetchall()
    db.close()
    assert rows == [("two",)]


def test_a_session_of_a_newer_ba_is_listed_refused_and_left_alone(tmp_path: Path) -> None:
    file = stored(tmp_path, A, turn("one"))
    file.write_bytes(file.read_bytes().replace(b'"schema_version": 1', b'"schema_version": 7', 1))
    newer = file.read_bytes()
    shelf = library(tmp_path)
    assert shelf.sessions()[0].preview == "Written by a newer ba."
    for change in (shelf.open, shelf.fork, lambda id: shelf.rename(id, "x"), lambda id: shelf.export(id, "md")):
        with pytest.raises(NewerSchema):
            change(A)
    assert file.read_bytes() == newer


def test_a_folder_with_a_name_that_is_no_utf8_is_found_again(tmp_path: Path) -> None:
    odd = Path("/srv/caf\udce9")
    stored(tmp_path, A, turn("one"), odd)
    assert [info.cwd for info in library(tmp_path, odd).sessions()] == [odd]


def test_a_list_reads_only_what_is_new_since_the_last(tmp_path: Path) -> None:
    events = [event for number in range(400) for event in turn(f"prompt {number} {'x' * 5_000}")]
    file = stored(tmp_path, A, events)
    assert library(tmp_path).sessions()[0].turns == 400
    journal = JournalFile.open(file.parent)
    for event in turn("one more"):
        journal.append(event)
    shelf = library(tmp_path)
    assert shelf.search("nothing", everywhere=False) == []
    for event in turn("and another"):
        journal.append(event)
    before = _bytes_read()
    (info,) = shelf.sessions()
    read = _bytes_read() - before
    journal.close()
    assert (info.turns, info.preview) == (402, "and another")
    assert file.stat().st_size > 4_000_000
    assert read < 1_500_000


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    file = stored(tmp_path, A, turn("first words"))
    shelf = library(tmp_path)
    assert shelf.find(A).title == "first words"
    file.unlink()
    stored(tmp_path, A, [*turn("second"), *turn("third words that make it longer")])
    assert (shelf.find(A).title, shelf.find(A).turns) == ("second", 2)


@pytest.mark.parametrize("damage", ["missing", "garbage", "half", "older layout"])
def test_the_index_is_a_cache_that_is_made_anew(tmp_path: Path, damage: str) -> None:
    stored(tmp_path, A, turn("one"))
    assert len(library(tmp_path).sessions()) == 1
    index = tmp_path / "index.sqlite"
    if damage == "missing":
        index.unlink()
    elif damage == "garbage":
        index.write_bytes(b"this is no database, and long enough to look like one" * 100)
    elif damage == "half":
        index.write_bytes(index.read_bytes()[:5000] + b"\xff" * 5000)
    else:
        with sqlite3.connect(index) as db:
            db.execute("DROP TABLE sessions")
            db.execute("CREATE TABLE sessions (something)")
            db.execute("PRAGMA user_version = 99")
        db.close()
    bad = index.read_bytes() if index.exists() else b""
    shelf = library(tmp_path)
    assert [info.title for info in shelf.sessions()] == ["one"]
    assert [info.id for info in shelf.search("one")] == [A]
    if damage in {"garbage", "half"}:
        assert bad in [path.read_bytes() for path in tmp_path.glob("index.sqlite.damaged-*")]
    assert [info.title for info in library(tmp_path).sessions()] == ["one"]


def test_without_a_place_for_the_index_it_is_kept_in_memory(tmp_path: Path) -> None:
    stored(tmp_path, A, turn("one"))
    (tmp_path / "index.sqlite").mkdir()
    shelf = library(tmp_path)
    assert [info.title for info in shelf.sessions()] == ["one"]
    assert [info.id for info in shelf.search("one")] == [A]


def test_the_index_is_for_its_owner_alone(tmp_path: Path) -> None:
    stored(tmp_path, A, turn("one"))
    library(tmp_path).sessions()
    assert (tmp_path / "index.sqlite").stat().st_mode & 0o077 == 0


def test_two_libraries_list_side_by_side(tmp_path: Path) -> None:
    first, second = library(tmp_path), library(tmp_path)
    stored(tmp_path, A, turn("one"))
    assert len(first.sessions()) == len(second.sessions()) == 1
    stored(tmp_path, B, turn("two"))
    assert len(second.sessions()) == len(first.sessions()) == 2
    first.delete(A)
    assert [info.id for info in second.search("o")] == [B]


@pytest.mark.parametrize("name", ["empty folder", "empty file", "a link"])
def test_what_is_no_session_is_not_listed(tmp_path: Path, name: str) -> None:
    file = stored(tmp_path, A, turn("one"))
    other = file.parent.parent / B
    if name == "a link":
        other.symlink_to(file.parent)
    else:
        other.mkdir()
        if name == "empty file":
            (other / "events.jsonl").touch()
    assert [info.id for info in library(tmp_path).sessions()] == [A]


def test_lone_surrogates_in_a_foreign_file_do_not_stop_the_list(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, A)
    folder.mkdir(parents=True)
    line = '{"type":"turn_started","agent":"main","at":1e999,"prompt":{"role":"user","blocks":[{"text":"a\\ud800b"}]}}'
    folder.joinpath("events.jsonl").write_bytes(Header(A, "/srv", 1.0).line() + line.encode() + b"\n")
    assert [info.title for info in library(tmp_path).sessions()] == ["a\N{REPLACEMENT CHARACTER}b"]
