"""The journal, the lock and the checkpoints when a file operation fails or the process ends at any one of them."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from ba_tui.core.errors import BaError, StorageError
from ba_tui.core.events import Event, Notice, Titled, TurnEnded
from ba_tui.sessions import journal
from ba_tui.sessions.checkpoints.shadow import Store
from ba_tui.sessions.journal import JournalFile, Lock
from ba_tui.sessions.records import Header
from tests.noticing.file_faults import ERRORS, Layer, crashes, failures, operations, unsynced
from tests.sessions.shelf import turn

EVENTS: list[Event] = [*turn("one", tool=False), Titled("A title")]
HEADER = Header("20261121-120000-ab12", "/srv/project", 1.0, "test/model")


@pytest.fixture
def made(tmp_path: Path) -> Callable[[], Path]:
    numbers = count()
    return lambda: tmp_path / f"world{next(numbers)}"


def write(folder: Path, acknowledge: Callable[[str], None]) -> list[StorageError]:
    """Append all events; return the errors."""
    told: list[StorageError] = []
    journal = JournalFile(folder, HEADER)
    try:
        for number, event in enumerate(EVENTS):
            try:
                journal.append(event)
                acknowledge(str(number + 1))
            except StorageError as error:
                told.append(error)
        try:
            journal.sync()
            acknowledge(f"synced {len(EVENTS)}")
        except StorageError as error:
            told.append(error)
    finally:
        journal.close()
    return told


def said(folder: Path) -> list[Event]:
    """The events of a session that goes on, without what is added after a crash."""
    try:
        journal = JournalFile.open(folder)
    except BaError:
        return []
    try:
        return [
            each
            for each in journal.read()
            if not (isinstance(each, Notice) or (isinstance(each, TurnEnded) and each.reason == "interrupted"))
        ]
    finally:
        journal.close()


def test_a_journal_tells_every_error_and_keeps_whole_what_it_acknowledged(made: Callable[[], Path]) -> None:
    told: list[StorageError] = []
    kept: list[str] = []

    def work(folder: Path) -> None:
        kept.clear()
        told[:] = write(folder, kept.append)

    for folder, layer in failures(work, made, *ERRORS, "short"):
        found = said(folder)
        assert found == EVENTS[: len(found)], layer.done[layer.at or 0]
        acknowledged = max((int(line.rpartition(" ")[2]) for line in kept), default=0)
        assert len(found) >= acknowledged, (layer.done[layer.at or 0], layer.fault)
        failed = layer.done[layer.at or 0].name
        if (
            layer.fault != "short"
            and failed not in ("flock", "mkdir", "ftruncate", "pwrite")
            and len(found) < len(EVENTS)
        ):
            assert told, layer.done[layer.at or 0]
        for error in told:
            assert str(folder) in str(error)
            assert error.hint
        if folder.exists():
            Lock.acquire(folder).release()


def test_a_crash_at_any_operation_loses_nothing_that_a_journal_acknowledged(made: Callable[[], Path]) -> None:
    for folder, acknowledged in crashes(write, made):
        found = said(folder)
        assert found == EVENTS[: len(found)]
        assert len(found) >= max((int(line.rpartition(" ")[2]) for line in acknowledged), default=0)
        if folder.exists():
            Lock.acquire(folder).release()


def test_a_synced_journal_is_on_the_disk_with_its_name(made: Callable[[], Path]) -> None:
    folder = made()
    done = operations(lambda: write(folder, lambda _: None))
    synced = [each.target for each in done if each.name == "fsync"]
    assert unsynced([each for each in done if not each.target.endswith(journal.LOCK_FILE)]) == set()
    assert synced == [str(folder / "events.jsonl"), str(folder), str(folder.parent)]


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_sync_that_fails_is_told_and_the_next_one_is_whole(made: Callable[[], Path], at: int) -> None:
    journal = JournalFile(made(), HEADER)
    for event in EVENTS:
        journal.append(event)
    with Layer(at, errno.EIO).laid(), pytest.raises(StorageError, match="Input/output error") as told:
        journal.sync()
    assert told.value.hint
    assert len(operations(journal.sync)) == 3, "the file and both folders are synced again"
    assert len(operations(journal.sync)) == 1
    journal.close()


def test_a_lock_works_without_room_for_its_owner_and_is_let_go_after_every_error(tmp_path: Path) -> None:
    for fault in (*ERRORS, errno.ENOLCK):
        for at in range(4):
            folder = tmp_path / f"{fault}-{at}"
            folder.mkdir()
            layer = Layer(at, fault)
            refused: int | None = None
            with layer.laid():
                taken: Lock | None = None
                try:
                    taken = Lock.acquire(folder)
                except OSError as error:
                    refused = error.errno
            if not taken:
                assert (refused, layer.done[at].name) in ((fault, "open"), (fault, "flock"))
                assert (refused, layer.done[at].name) != (errno.ENOLCK, "flock")
            else:
                number = os.open(folder / journal.LOCK_FILE, os.O_RDONLY)
                # Where the file system knows no locks, nothing is locked.
                known = layer.done[at].name != "flock"
                try:
                    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    assert not known
                except BlockingIOError:
                    assert known
                finally:
                    os.close(number)
                taken.release()
                assert not journal.left_open(folder)
            Lock.acquire(folder).release()


def test_a_lock_that_cannot_be_emptied_is_let_go_all_the_same(tmp_path: Path) -> None:
    held = Lock.acquire(tmp_path)
    assert journal.left_open(tmp_path)
    assert journal.owner(tmp_path) == f"pid {os.getpid()}"
    with Layer(0, errno.ENOSPC).laid():
        held.release()
    assert journal.owner(tmp_path) == ""
    Lock.acquire(tmp_path).release()
    assert not journal.left_open(tmp_path)


def test_a_checkpoint_that_cannot_be_kept_is_told_and_the_next_one_is_whole(made: Callable[[], Path]) -> None:
    told: list[str] = []

    def world() -> Path:
        folder = made()
        (folder / "project").mkdir(parents=True)
        return folder

    for folder, layer in failures(lambda folder: _ready(folder, told), world, errno.ENOSPC, errno.EACCES, errno.ENOLCK):
        failed = layer.done[layer.at or 0]
        assert told or failed.name == "flock", failed
        told.clear()
        _ready(folder, told)
        assert not told
        store = Store(folder / "store", folder / "project")
        with store.locked():
            store.ready()
            assert (store.folder / "config").read_text().startswith("[core]")


def _ready(folder: Path, told: list[str]) -> None:
    store = Store(folder / "store", folder / "project")
    try:
        with store.locked():
            store.ready()
    except StorageError as error:
        told.append(f"{error} {error.hint}")
