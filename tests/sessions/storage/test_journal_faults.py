"""The journal where two things fail at a time, and what it says, keeps and lets go when it is opened or closed then."""

from __future__ import annotations

import errno
import gc
import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import SessionNotSaved, StorageError
from ba_tui.core.events import ModeChanged, Notice, Titled, TurnStarted
from ba_tui.core.messages import user
from ba_tui.sessions.journal import ASIDE, JournalFile, Lock
from ba_tui.sessions.records import Header
from tests.noticing.file_faults import ERRORS, Layer, readable_by_others
from tests.sessions.shelf import stored, turn

ID = "20261121-120000-ab12"
HEADER = Header(ID, "/srv/project", 1.0, "test/model")
ONE, TWO = turn("one"), turn("two")


def begun(folder: Path) -> JournalFile:
    journal = JournalFile(folder / ID, HEADER)
    for event in ONE:
        journal.append(event)
    return journal


def read(journal: JournalFile) -> list[object]:
    return [event for event in JournalFile.peek(journal.path.parent).read() if not isinstance(event, Notice)]


def test_half_a_line_that_cannot_be_taken_back_is_cut_before_the_next_one(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    sound = journal.path.read_bytes()
    for number in (0, 1):
        # Half is written, then nothing more, and the half can't be removed.
        with (
            Layer(number, "short").laid(),
            Layer(number + 1, errno.ENOSPC).laid(),
            Layer(number + 2, errno.EIO).laid(),
            pytest.raises(SessionNotSaved, match="No space left"),
        ):
            journal.append(TWO[number])
        assert journal.path.read_bytes().startswith(sound)
        assert len(journal.path.read_bytes()) > len(sound)
        assert journal.unsaved
    for event in TWO[2:]:
        journal.append(event)
    assert not journal.unsaved
    assert journal.path.read_bytes().startswith(sound)
    journal.close()
    assert JournalFile.peek(journal.path.parent).read() == [*ONE, *TWO]


def test_a_cut_that_fails_is_made_again(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    with (
        Layer(0, "short").laid(),
        Layer(1, errno.ENOSPC).laid(),
        Layer(2, errno.EIO).laid(),
        pytest.raises(SessionNotSaved),
    ):
        journal.append(TWO[0])
    with Layer(0, errno.EIO).laid(), pytest.raises(SessionNotSaved):
        journal.append(TWO[1])
    journal.close()
    assert JournalFile.peek(journal.path.parent, running=True).read() == [*ONE, *TWO[:2]]


@pytest.mark.parametrize("whole", [True, False])
def test_a_session_opens_whole_or_says_why_and_lets_go_at_any_operation(tmp_path: Path, whole: bool) -> None:
    """Files that can't be opened, locked or written; the turn of one session was cut off."""
    events = ONE if whole else [*ONE, *TWO[:2]]
    file = stored(tmp_path, ID, events)
    before = file.read_bytes()
    opened = 0
    for at in range(20):
        file.write_bytes(before)
        layer = Layer(at, ERRORS[1 + at % 2], reads=True)
        journal: JournalFile | None = None
        told: list[str] = []
        with layer.laid():
            try:
                journal = JournalFile.open(file.parent)
            except StorageError as error:
                told.append(str(error))
        assert told in ([], [f"Session {ID} cannot be read: {os.strerror(int(layer.fault))}."])
        if journal:
            found = journal.read()
            assert found[: len(events)] == events
            assert [event.type for event in found[len(events) :]] == ([] if whole else ["turn_ended"])
            journal.close()
        Lock.acquire(file.parent).release()
        opened += journal is not None
        if at < len(layer.done):
            continue
        assert journal
        assert opened < at
        break
    else:
        pytest.fail("there are more operations")
    assert readable_by_others(file.parent) == []


@pytest.mark.parametrize(
    ("fault", "hint", "chosen"),
    [
        (errno.ENOSPC, "Free some space", False),
        (errno.EDQUOT, "Free some space", False),
        (errno.EFBIG, "Free some space", False),
        (errno.EROFS, "Check the folder and its rights", True),
        (errno.EACCES, "Check the folder and its rights", True),
        (errno.EPERM, "Check the folder and its rights", True),
        (errno.ENOTDIR, "Check the folder and its rights", False),
        (errno.EIO, "Check the disk", False),
    ],
)
def test_what_is_not_saved_is_told_with_what_to_do_and_with_what_is_saved(
    tmp_path: Path, fault: int, hint: str, chosen: bool
) -> None:
    new, old = JournalFile(tmp_path / "new", HEADER), begun(tmp_path)
    old.close()
    old = JournalFile.open(old.path.parent)
    # The file of a new session can't be made, twice; nor written, once it is there.
    for journal, at, partly in ((new, 5, False), (new, 0, False), (new, 1, False), (old, 0, True)):
        with Layer(at, fault).laid(), pytest.raises(SessionNotSaved) as told:
            journal.append(TurnStarted(user("now")))
        lost = told.value
        assert (lost.partly, lost.chosen) == (partly, chosen and not partly)
        assert lost.hint.startswith(hint)
        assert (lost.why, lost.folder) == (os.strerror(fault), str(journal.path.parent))
    for journal, prompts in ((new, 3), (old, 2)):
        journal.close()
        assert sum(isinstance(event, TurnStarted) for event in read(journal)) == prompts
    journal = begun(tmp_path / "other")
    with Layer(0, fault).laid(), pytest.raises(SessionNotSaved) as told:
        journal.append(Titled("Later"))
    assert told.value.partly
    journal.close()


def test_a_new_session_that_another_process_holds_is_saved_once_that_lets_go(tmp_path: Path) -> None:
    journal = JournalFile(tmp_path / ID, HEADER)
    (tmp_path / ID).mkdir(mode=0o700)
    other = Lock.acquire(tmp_path / ID)
    with pytest.raises(SessionNotSaved, match="already open here") as told:
        journal.append(ONE[0])
    assert not told.value.partly
    assert told.value.hint == "Close it first, or fork it."
    assert journal.unsaved
    assert not journal.path.exists()
    other.release()
    for event in ONE[1:]:
        journal.append(event)
    journal.close()
    assert read(journal) == ONE


def test_what_could_not_be_saved_is_saved_when_the_session_ends(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = begun(tmp_path)
    with Layer(0, errno.ENOSPC).laid(), pytest.raises(SessionNotSaved):
        journal.append(TWO[0])
    journal.close()
    assert read(journal)[:-1] == [*ONE, TWO[0]]
    assert caplog.records == []


def test_a_session_that_was_never_saved_leaves_no_file_of_its_own_and_nothing_locked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = JournalFile(tmp_path / ID, HEADER)
    with Layer(6, errno.ENOSPC, lasts=True).laid() as layer:
        with pytest.raises(SessionNotSaved):
            journal.append(ONE[0])
        assert layer.done[6].name == "write"
        (tmp_path / ID / "kept").mkdir()
        journal.close()
    assert [path.name for path in (tmp_path / ID).iterdir()] == ["kept"]
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    Lock.acquire(tmp_path / ID).release()


@pytest.mark.parametrize("rest", [b"", b"\0" * 100])
def test_a_file_that_was_emptied_is_said_to_be_lost_unless_its_writer_is_about_to_fill_it(
    tmp_path: Path, rest: bytes
) -> None:
    file = stored(tmp_path, ID, ONE)
    file.write_bytes(rest)
    for look in (JournalFile.peek, JournalFile.open):
        with pytest.raises(StorageError, match="is empty: its content is lost") as told:
            look(file.parent)
        assert str(file) in told.value.hint
    assert {event.type for event in JournalFile.peek(file.parent, running=True)} <= {"notice"}
    Lock.acquire(file.parent).release()
    (file.parent / "lock").unlink()
    file.write_bytes(b"")
    JournalFile.open(file.parent).close()
    assert file.read_bytes() == b""


def test_a_session_of_settings_alone_is_read_to_its_end(tmp_path: Path) -> None:
    journal = JournalFile(tmp_path / ID, HEADER)
    for event in (ModeChanged("plan"), Titled("One")):
        journal.append(event)
    assert not journal.unsaved
    assert [event.type for event in journal.tail(5)] == ["mode_changed", "titled"]
    info = journal.info()
    assert (info.id, info.title, info.cwd, info.created, info.model) == (
        ID,
        "One",
        Path("/srv/project"),
        1.0,
        "test/model",
    )
    journal.append(Titled("Two"))
    assert journal.info().title == "Two"
    journal.close()
    assert JournalFile(tmp_path / "none", HEADER).info().title == ""


def test_the_shortest_tail_is_one_entry_and_its_prompt(tmp_path: Path) -> None:
    journal = begun(tmp_path)
    for name in ("One", "Two"):
        journal.append(Titled(name))
    assert journal.tail(0) == journal.tail(1) == [ONE[0], Titled("Two", at=journal.read()[-1].at)]
    assert len(journal.tail(2)) == 3
    journal.close()


def test_a_long_history_is_set_aside_from_the_garbage_collector_until_the_end(tmp_path: Path) -> None:
    gc.unfreeze()
    journal = JournalFile(tmp_path / ID, HEADER)
    lines = [json.dumps({"type": "titled", "agent": "main", "at": 1.0, "title": "x"})] * (ASIDE - 2)
    journal.append(ONE[0])
    with journal.path.open("a") as file:
        file.write("".join(f"{line}\n" for line in lines))
    assert len(journal.read()) == ASIDE - 1
    assert gc.get_freeze_count() == 0
    journal.append(Titled("the last"))
    assert len(journal.read()) == ASIDE
    assert gc.get_freeze_count() > 0
    journal.close()
    assert gc.get_freeze_count() == 0


def test_a_folder_that_another_process_makes_meanwhile_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.mkdir

    def late(path: Any, *rest: Any) -> None:
        real(path, *rest)
        raise FileExistsError(errno.EEXIST, "File exists", str(path))

    monkeypatch.setattr(os, "mkdir", late)
    journal = begun(tmp_path / "deep")
    monkeypatch.undo()
    assert readable_by_others(tmp_path / "deep") == []
    journal.close()
    assert read(journal) == ONE
