"""The journal: what was appended can be read, whatever happened to the file."""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import NewerSchema, SessionNotFound, StorageError
from ba_tui.core.events import (
    Event,
    MessageDone,
    ModeChanged,
    Notice,
    TextDelta,
    Titled,
    ToolFinished,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.messages import user
from ba_tui.core.results import ToolResult
from ba_tui.core.transcript import INTERRUPTED, Transcript
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.records import TORN, Header
from tests.noticing.file_faults import Layer
from tests.sessions.shelf import folder_of, stored, turn

ID = "20261121-120000-ab12"


def new(home: Path) -> JournalFile:
    return JournalFile(folder_of(home, ID), Header(ID, "/srv/project", 1.0, "test/model"))


def reopened(file: Path) -> list[Event]:
    journal = JournalFile.open(file.parent)
    try:
        return journal.read()
    finally:
        journal.close()


def test_what_was_appended_is_read_again_without_what_is_transient(tmp_path: Path) -> None:
    events = [*turn("one"), Titled("One"), *turn("two")]
    journal = new(tmp_path)
    for event in events:
        journal.append(event)
        journal.append(TextDelta("…"))
    assert journal.read() == events
    journal.sync()
    journal.close()
    assert JournalFile.peek(folder_of(tmp_path, ID)).read() == events


def test_what_another_process_appends_is_read_as_it_comes(tmp_path: Path) -> None:
    first, second = turn("one"), turn("two")
    journal = new(tmp_path)
    for event in first:
        journal.append(event)
    reader = JournalFile.peek(journal.path.parent, running=True)
    events, place = reader.later(0)
    assert events == first
    assert reader.later(place) == ([], place)
    for event in second:
        journal.append(event)
    with journal.path.open("ab") as file:
        file.write(b'{"type":"titled","ti')
    events, place = reader.later(place)
    assert events == second
    with journal.path.open("ab") as file:
        file.write(b'tle":"New","at":1}\n')
    events, place = reader.later(place)
    assert [getattr(event, "title", "") for event in events] == ["New"]
    journal.path.unlink()
    with pytest.raises(StorageError):
        reader.later(place)
    journal.close()


def test_nothing_is_on_disk_before_the_first_turn(tmp_path: Path) -> None:
    journal = new(tmp_path)
    journal.append(ModeChanged("plan"))
    journal.append(Titled("Ahead"))
    journal.sync()
    assert [event.type for event in journal.read()] == ["mode_changed", "titled"]
    assert not (tmp_path / "sessions").exists()
    journal.append(TurnStarted(user("now")))
    assert [event.type for event in journal.read()] == ["mode_changed", "titled", "turn_started"]
    journal.close()
    first = json.loads((folder_of(tmp_path, ID) / "events.jsonl").read_bytes().split(b"\n")[0])
    assert (first["type"], first["schema_version"], first["id"], first["model"]) == ("session", 1, ID, "test/model")


def test_a_session_that_never_began_leaves_nothing(tmp_path: Path) -> None:
    journal = new(tmp_path)
    journal.append(ModeChanged("plan"))
    journal.close()
    assert not (tmp_path / "sessions").exists()


def test_folders_and_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    file = stored(tmp_path, ID, turn("one"))
    rights = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent / "lock", *file.parents[:3])}
    assert {rights.pop("events.jsonl"), rights.pop("lock")} == {0o600}
    assert set(rights.values()) == {0o700}


def test_a_string_that_json_cannot_hold_does_not_lose_the_event(tmp_path: Path) -> None:
    journal = new(tmp_path)
    journal.append(TurnStarted(user("caf\ud800é\0 \U0001f600")))
    journal.append(ToolFinished("c", ToolResult("x", meta={"p\udfff": "a\ud800", "thing": {1}, "path": Path("/x")})))
    journal.close()
    prompt, finished = JournalFile.peek(folder_of(tmp_path, ID)).read()[:2]
    assert isinstance(prompt, TurnStarted)
    assert prompt.prompt.text == "caf\N{REPLACEMENT CHARACTER}é\N{REPLACEMENT CHARACTER} \U0001f600"
    assert isinstance(finished, ToolFinished)
    assert finished.result.meta["p\N{REPLACEMENT CHARACTER}"] == "a\N{REPLACEMENT CHARACTER}"


def test_a_torn_last_line_is_left_out_told_once_and_kept_in_the_file(tmp_path: Path) -> None:
    events = turn("one")
    file = stored(tmp_path, ID, events)
    whole = file.read_bytes()
    file.write_bytes(whole + b'{"agent":"main","at":1.0,"prompt":{"role":"us')
    healed = reopened(file)
    assert healed[:-1] == events
    assert isinstance(healed[-1], Notice)
    assert (healed[-1].text, healed[-1].damage, healed[-1].level, healed[-1].at) == (
        TORN,
        True,
        "warning",
        events[-1].at,
    )
    later = JournalFile.open(file.parent)
    later.append(TurnStarted(user("two")))
    assert [event.type for event in later.read()[-2:]] == ["notice", "turn_started"]
    assert sum(event.type == "notice" for event in later.read()) == 1
    later.close()
    assert file.read_bytes().startswith(whole + b'{"agent":"main","at":1.0,"prompt":{"role":"us\n')


def test_a_whole_last_line_without_a_line_end_is_kept(tmp_path: Path) -> None:
    events = turn("one")
    file = stored(tmp_path, ID, events)
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    assert reopened(file) == events
    assert file.read_bytes().endswith(b"}\n")


def test_garbage_in_the_middle_is_skipped_counted_and_left_alone(tmp_path: Path) -> None:
    events = turn("one")
    file = stored(tmp_path, ID, events)
    lines = file.read_bytes().splitlines(keepends=True)
    lines[3:3] = [b"\x00\xff\xfe garbage\n", b'{"type":"turn_started"}\n', b"[" * 100_000 + b"\n"]
    lines[-1:-1] = [b'{"type":"from_tomorrow","agent":"main","at":2.0}\n']
    damaged = b"".join(lines)
    file.write_bytes(damaged)
    read = reopened(file)
    notices = [event.text for event in read if isinstance(event, Notice)]
    assert [event for event in read if not isinstance(event, Notice)] == events
    assert "3 damaged lines" in notices[0]
    assert "1 entry is of a kind that this ba does not know" in notices[1]
    assert file.read_bytes() == damaged


def test_a_file_without_a_header_is_read_all_the_same(tmp_path: Path) -> None:
    events = turn("one")
    file = stored(tmp_path, ID, events)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([b'{"type":"sess\n', *lines[1:]]))
    read = reopened(file)
    assert [event for event in read if not isinstance(event, Notice)] == events


def test_a_newer_schema_is_refused_and_the_file_untouched(tmp_path: Path) -> None:
    file = stored(tmp_path, ID, turn("one"))
    newer = file.read_bytes().replace(b'"schema_version": 1', b'"schema_version": 2', 1)
    assert newer != file.read_bytes()
    file.write_bytes(newer)
    for read in (JournalFile.open, JournalFile.peek):
        with pytest.raises(NewerSchema, match="newer ba") as refused:
            read(file.parent)
        assert "Update ba" in refused.value.hint
    assert file.read_bytes() == newer


def test_a_turn_that_was_killed_reads_as_interrupted_and_is_closed_in_the_file(tmp_path: Path) -> None:
    killed = [*turn("one"), *turn("two", ended=False)[:-2]]
    file = stored(tmp_path, ID, killed)
    peeked = JournalFile.peek(file.parent).read()
    assert isinstance(peeked[-1], TurnEnded)
    assert peeked[-1].reason == "interrupted"
    before = file.read_bytes()
    assert reopened(file) == peeked
    assert file.read_bytes().startswith(before)
    assert len(file.read_bytes().splitlines()) == len(before.splitlines()) + 1
    assert reopened(file) == peeked


def test_a_missing_session_is_said_to_be_gone(tmp_path: Path) -> None:
    with pytest.raises(SessionNotFound):
        JournalFile.open(folder_of(tmp_path, ID))


def test_a_file_deleted_under_a_running_session_is_told(tmp_path: Path) -> None:
    journal = new(tmp_path)
    for event in turn("one"):
        journal.append(event)
    journal.path.unlink()
    with pytest.raises(StorageError, match="deleted while the session was open"):
        journal.append(Titled("lost?"))
    journal.close()
    assert not (journal.path.parent / "lock").stat().st_size


def test_appending_and_syncing_from_two_threads_writes_each_line_once(tmp_path: Path) -> None:
    """The end of a turn is synced in a thread while the next one may begin."""
    journal = new(tmp_path)
    journal.append(TurnStarted(user("one")))
    done = threading.Event()

    def sync() -> None:
        while not done.is_set():
            journal.sync()

    thread = threading.Thread(target=sync)
    thread.start()
    titles = [Titled(str(number)) for number in range(300)]
    for title in titles:
        journal.append(title)
    done.set()
    thread.join()
    assert journal.read()[1:] == titles
    journal.close()


def test_a_disk_that_is_full_from_the_start_leaves_no_empty_session(tmp_path: Path) -> None:
    import resource

    journal = new(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(StorageError, match="cannot be saved"):
            journal.append(TurnStarted(user("one")))
        journal.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not journal.path.parent.exists()


def test_the_tail_starts_with_a_turn_and_reads_only_the_end(tmp_path: Path) -> None:
    events = [event for number in range(2_000) for event in turn(f"prompt {number} {'x' * 1_000}")]
    file = stored(tmp_path, ID, events)
    journal = JournalFile.open(file.parent)
    journal.tail(1)  # what is imported on first use is no part of the file
    before = _bytes_read()
    tail = journal.tail(100)
    read = _bytes_read() - before
    journal.close()
    assert tail == events[-len(tail) :]
    assert isinstance(tail[0], TurnStarted)
    assert 90 <= len(tail) <= 100
    assert file.stat().st_size > 4_000_000
    assert read < 400_000


def test_the_tail_of_one_endless_turn_is_its_prompt_and_its_end(tmp_path: Path) -> None:
    prompt, *middle, end = turn("one")
    events = [*turn("before"), prompt, *(middle * 500), end]
    file = stored(tmp_path, ID, events)
    tail = JournalFile.peek(file.parent).tail(40)
    assert tail[0] == prompt
    assert isinstance(tail[1], MessageDone)
    assert tail[1:] == events[-len(tail) + 1 :]
    assert 30 <= len(tail) <= 41
    assert INTERRUPTED not in str(Transcript(events=tail).messages)


def _bytes_read() -> int:
    """What this thread has read from files so far."""
    counters = Path("/proc/thread-self/io")
    if not counters.exists():
        pytest.skip("counting the bytes read needs /proc")
    return int(counters.read_text().split()[1])


def test_a_full_disk_is_told_and_nothing_is_lost_or_torn(tmp_path: Path) -> None:
    """The limit on the size of files is the kernel's: a write goes through in part, then fails."""
    import resource

    journal = new(tmp_path)
    first, second = turn("one"), turn("two")
    for event in first:
        journal.append(event)
    sound = journal.path.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(sound) + 100, hard))
    try:
        for event in second[:3]:
            with pytest.raises(StorageError, match="cannot be saved") as told:
                journal.append(event)
            assert "Free some space" in told.value.hint
        assert journal.path.read_bytes() == sound
        assert journal.read() == [*first, *second[:3]]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    for event in second[3:]:
        journal.append(event)
    journal.close()
    assert JournalFile.peek(journal.path.parent).read() == [*first, *second]


def test_a_home_without_rights_is_told(tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file where the folder should be")
    journal = new(tmp_path)
    with pytest.raises(StorageError, match="cannot be saved") as told:
        journal.append(TurnStarted(user("one")))
    assert "BA_HOME" in told.value.hint
    (tmp_path / "sessions").unlink()
    journal.append(TurnEnded("done"))
    journal.close()
    assert [event.type for event in JournalFile.peek(journal.path.parent).read()] == ["turn_started", "turn_ended"]


def test_a_session_that_cannot_be_kept_goes_on_all_the_same(tmp_path: Path) -> None:
    """Where not even the place can be looked at, as under a folder without rights."""
    journal = JournalFile(tmp_path / ("x" * 300), Header(ID, "/srv/project", 1.0, "test/model"))
    events = turn("one")
    for event in events:
        with pytest.raises(StorageError, match="cannot be saved"):
            journal.append(event)
    assert journal.read() == events
    assert journal.tail(10) == events
    journal.close()


def test_a_read_only_session_can_be_read_and_says_why_it_cannot_go_on(tmp_path: Path) -> None:
    """In a child without root's rights, which a plain 0500 would not stop."""
    events = turn("one", ended=False)
    file = stored(tmp_path, ID, events)
    (file.parent / "lock").unlink()
    file.chmod(0o444)
    file.parent.chmod(0o555)
    for folder in (*file.parents[1:3], *tmp_path.parents[:3], tmp_path):
        folder.chmod(0o755)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            journal = JournalFile.open(file.parent)
            kinds = [event.type for event in journal.read()]
            try:
                journal.append(TurnStarted(user("two")))
            except StorageError as error:
                code = 0 if kinds[-1] == "turn_ended" and "rights" in error.hint else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    file.parent.chmod(0o700)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_journal_that_can_no_longer_be_looked_at_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = stored(tmp_path, ID, turn("one"))
    reads = (JournalFile.read, lambda journal: journal.tail(5), lambda journal: journal.later(0), _entries)
    for read in reads:
        journal = JournalFile.peek(file.parent, running=True)
        with (
            Layer(0, errno.EACCES, reads=True).laid(),
            pytest.raises(StorageError, match="cannot be read: Permission denied"),
        ):
            read(journal)
    journal = JournalFile.peek(file.parent, running=True)
    real = os.stat

    def closed(path: Any, **options: Any) -> os.stat_result:
        if str(path) == str(file):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, **options)

    monkeypatch.setattr(os, "stat", closed)
    for read in (JournalFile.read, lambda journal: journal.tail(5), _entries):
        with pytest.raises(StorageError, match="cannot be read: Permission denied"):
            read(journal)


def _entries(journal: JournalFile) -> object:
    return [*journal.entries()]
