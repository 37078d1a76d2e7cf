"""The log of memory line by line: what is appended and read, and who waits for whom."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.features.memory.engine import log as module
from ba_tui.features.memory.engine.log import Log, Mark
from tests.noticing.file_faults import Layer


@pytest.fixture
def log(tmp_path: Path) -> Log:
    (tmp_path / "memory").mkdir()
    return Log(tmp_path / "memory" / "log.jsonl")


def lines(log: Log, since: Mark | None = None) -> list[bytes]:
    return [line for line, _ in log.read(since or Mark()) if b'"op":"log"' not in line]


def marks(log: Log) -> list[Mark]:
    return [mark for _, mark in log.read(Mark())]


def test_files_are_the_users_alone(log: Log) -> None:
    log.append(b"broken\n")
    log.rewrite(lambda line: line)
    log.blank(lambda line: line == b"broken\n", keep=True)
    log.forget_rejected(["broken"])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in log.path.parent.iterdir()}
    assert modes == dict.fromkeys(("log.jsonl", "log.lock", "log.rejected.jsonl", "log.rewriting"), 0o600)


def test_an_append_adds_its_lines_and_no_other(log: Log) -> None:
    log.append(b"one\n")
    log.append(b"two\nthree\n")
    header, *rest = log.path.read_bytes().splitlines(keepends=True)
    assert b'"op":"log"' in header
    assert rest == [b"one\n", b"two\n", b"three\n"]
    assert log.size() == log.path.stat().st_size
    assert Log(log.path.with_name("none.jsonl")).size() == 0


def test_the_remains_of_a_killed_writer_are_ended_and_skipped(log: Log) -> None:
    log.append(b"one\n")
    with log.path.open("ab") as file:
        file.write(b"tw")
    assert lines(log) == [b"one\n"]
    log.append(b"three\n")
    assert log.path.read_bytes().endswith(b"one\ntw\nthree\n")
    assert lines(log) == [b"one\n", b"tw\n", b"three\n"]


def test_reading_goes_on_behind_each_mark(log: Log) -> None:
    log.append(b"one\n" + b"2" * 200 + b"\n" + b"three\n")
    whole = [line for line, _ in log.read(Mark())]
    for number, mark in enumerate(marks(log)):
        assert log.continues(mark)
        assert [line for line, _ in log.read(mark)] == whole[number + 1 :]


def test_a_mark_of_another_file_starts_from_the_beginning(log: Log) -> None:
    log.append(b"one\ntwo\n")
    *_, mark = marks(log)
    log.rewrite(lambda line: line)
    assert not log.continues(mark)
    assert lines(log, mark) == [b"one\n", b"two\n"]
    *_, mark = marks(log)
    data = log.path.read_bytes()
    log.path.write_bytes(data[:-4] + b"TWO\n")
    assert not log.continues(mark), "the last line was changed"
    log.path.write_bytes(data[:-2])
    assert not log.continues(mark), "the file is shorter"
    log.path.write_bytes(data[:-4] + b"   \n")
    assert log.continues(mark), "the last line was forgotten"
    assert not log.continues(Mark(mark.head, 0, mark.guard))
    assert not log.continues(Mark(b"other", mark.offset, mark.guard))


def test_a_log_that_is_not_there_is_empty_and_nothing_is_made(log: Log) -> None:
    assert [*log.read(Mark())] == []
    assert log.continues(Mark())
    assert not log.continues(Mark(b"head", 10, b"guard"))
    log.sync()
    log.rewrite(lambda line: line)
    assert log.blank(lambda line: True) == 0
    assert log.forget_rejected(["id"]) == 0
    assert [*log.path.parent.iterdir()] == []


def test_a_log_that_cannot_be_read_is_told(log: Log) -> None:
    log.path.mkdir()
    with pytest.raises(StorageError, match="cannot be read") as told:
        lines(log)
    assert told.value.hint == "Check its rights."
    assert not log.continues(Mark(b"head", 10, b"guard"))


def test_only_what_is_gone_is_blank_and_marks_stay_right(log: Log) -> None:
    log.append(b"one\ntwo\nthree\n")
    *_, last = marks(log)
    before = [len(line) for line in log.path.read_bytes().splitlines()]
    assert log.blank(lambda line: line in (b"one\n", b"three\n"), keep=True) == 2
    assert [line for line in lines(log) if not line.isspace()] == [b"two\n"]
    assert [len(line) for line in log.path.read_bytes().splitlines()] == before
    assert log.rejected.read_bytes() == b"one\nthree\n"
    assert log.continues(last)
    log.append(b"four\nfive\n")
    assert log.blank(lambda line: line == b"two\n") == 1
    assert log.rejected.read_bytes() == b"one\nthree\n"
    assert log.blank(lambda line: line == b"four\n", keep=True) == 1
    assert log.rejected.read_bytes() == b"one\nthree\nfour\n"


def test_where_nothing_is_gone_nothing_is_rejected(log: Log) -> None:
    log.append(b"one\n")
    assert log.blank(lambda line: line == b"two\n", keep=True) == 0
    log.rewrite(lambda line: line)
    assert not log.rejected.exists()


def test_what_is_appended_during_a_rewrite_is_in_the_new_file(log: Log) -> None:
    log.append(b"one\ntwo\n")
    seen: list[bytes] = []

    def keep(line: bytes) -> bytes | None:
        if line == b"two\n":
            log.append(b"three\n")
        seen.append(line)
        return None if line == b"one\n" else line.upper()

    log.rewrite(keep)
    assert lines(log) == [b"TWO\n", b"THREE\n"]
    assert seen == [b"one\n", b"two\n", b"three\n"]
    assert log.path.read_bytes().count(b'"op":"log"') == 1


def test_a_rewrite_keeps_what_only_looks_like_a_first_line(log: Log) -> None:
    alike = [b'{"v":1,"op":"log","ma\n', b'{"v":1,"op":"used","by":{"op":"log"}}\n', b'["op":"log"]\n']
    log.append(b"".join(alike))
    log.rewrite(lambda line: line)
    assert log.path.read_bytes().splitlines(keepends=True)[1:] == alike


def test_a_line_without_its_end_is_whole_after_a_rewrite(log: Log) -> None:
    log.append(b"one\n")
    with log.path.open("ab") as file:
        file.write(b"tw")
    log.rewrite(lambda line: line)
    assert lines(log) == [b"one\n", b"tw\n"]


@pytest.mark.parametrize("name", ["lock", "rewriting"])
def test_who_holds_the_lock_is_awaited(log: Log, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(b"one\n")
    waits, ended = threading.Event(), threading.Event()
    monkeypatch.setattr(time, "sleep", lambda seconds: (waits.set(), ended.wait(seconds)))

    def work() -> None:
        log.append(b"two\n") if name == "lock" else log.rewrite(lambda line: line + b"two\n")
        ended.set()

    with log.path.with_suffix(f".{name}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        thread = threading.Thread(target=work)
        thread.start()
        assert waits.wait(20)
        assert not ended.is_set()
        assert lines(log) == [b"one\n"]
    thread.join()
    assert lines(log) == [b"one\n", b"two\n"]


def test_a_lock_that_is_never_free_is_told(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(b"one\n")
    monkeypatch.setattr(module, "_PATIENCE", 0.01)
    with log.path.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(StorageError, match="another process is writing") as told:
            log.append(b"two\n")
    assert told.value.hint.startswith("Try again")
    assert lines(log) == [b"one\n"]


def test_a_full_disk_within_a_line_leaves_the_log_as_it_was(log: Log) -> None:
    log.append(b"one\n")
    before = log.path.read_bytes()
    with Layer(3, "short").laid(), Layer(4, errno.ENOSPC).laid() as layer, pytest.raises(StorageError):
        log.append(b"two\n")
    assert [each.name for each in layer.done[3:]] == ["write", "write", "ftruncate"]
    assert log.path.read_bytes() == before


def test_a_full_disk_is_told_though_the_rest_cannot_be_taken_back(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.append(b"one\n")

    def broken(number: int, size: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "ftruncate", broken)
    at = 3
    with Layer(at, errno.ENOSPC).laid() as layer, pytest.raises(StorageError) as told:
        log.append(b"two\n")
    assert layer.done[at].name == "write"
    assert str(told.value) == f"The memory log {log.path} cannot be written: No space left on device."


def test_a_rewrite_that_fails_says_why_though_its_file_cannot_be_removed(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stays(path: str) -> None:
        raise OSError(errno.EIO, "Input/output error")

    log.append(b"one\n")
    monkeypatch.setattr(os, "unlink", stays)

    def full(line: bytes) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StorageError, match="No space left on device"):
        log.rewrite(full)
    assert lines(log) == [b"one\n"]


def test_an_error_without_words_of_the_system_is_told_in_its_own(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(number: int) -> None:
        raise OSError("the tape is torn")

    log.append(b"one\n")
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(StorageError, match="cannot be written: the tape is torn"):
        log.sync()


def test_only_rejected_lines_of_the_ids_are_forgotten(log: Log) -> None:
    log.append(b"x\n")
    log.rejected.write_bytes(b"a one\nb two\nc one\n")
    assert log.forget_rejected(["one", "four"]) == 2
    assert log.rejected.read_bytes() == b"b two\n"
    kept = log.rejected.stat().st_ino
    assert log.forget_rejected(["one"]) == 0
    assert log.rejected.stat().st_ino == kept, "it is not written again"
