"""Lists of changes under faults: saved before a file changes, undone once after a kill, never after the call."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.write_ahead import KEPT, MOST_SAID, AbandonedList, WriteAhead, recover
from tests.noticing.file_faults import (
    ERRORS,
    Layer,
    Operation,
    crashes,
    failures,
    operations,
    readable_by_others,
    unsynced,
)

BODY, CONTENTS = {"files": ["a", "b"]}, (b"old a\n", b"\0\xff")


@pytest.fixture
def made(tmp_path: Path) -> Callable[[], Path]:
    numbers = count()
    return lambda: tmp_path / f"world{next(numbers)}" / "changes"


def write(folder: Path, entered: Callable[[str], None] = lambda line: None) -> None:
    with WriteAhead(folder, "s1").listed("edits", "apply_patch", BODY, CONTENTS):
        entered("entered")
    entered("left")


class Undoing:
    """write_ahead.Undo that notes what it is asked to undo."""

    def __init__(self, error: Exception | None = None) -> None:
        self.undone: list[tuple[Any, ...]] = []
        self._error = error

    def __call__(self, left: AbandonedList) -> str:
        self.undone.append((left.kind, left.by, left.session, left.body, left.content(0, 6), left.content(6, 2)))
        if self._error:
            raise self._error
        return "All is as before."

    def start(self, folder: Path) -> list[str]:
        return recover(folder, {"edits": self})


UNDONE = ("edits", "apply_patch", "s1", BODY, *CONTENTS)


def left_behind(
    folder: Path, change: Callable[[dict[str, Any]], object] = lambda head: None, name: str = "9-x"
) -> Path:
    """A list of a process that is gone."""
    with WriteAhead(folder, "s1").listed("edits", "apply_patch", BODY, CONTENTS):
        line, _, contents = next(folder.glob(f"{os.getpid()}-*.list")).read_bytes().partition(b"\n")
    head = json.loads(line)
    change(head)
    path = folder / f"{name}.list"
    path.write_bytes(json.dumps(head).encode() + b"\n" + contents)
    return path


def test_nothing_is_changed_without_a_list_and_nothing_is_undone_after_all_is_done(made: Callable[[], Path]) -> None:
    seen: list[str] = []

    def work(folder: Path) -> None:
        seen.clear()
        try:
            write(folder, seen.append)
        except StorageError as error:
            seen.append("refused" if error.hint else "no hint")

    for folder, layer in failures(work, made, *ERRORS, errno.ENOLCK, "short"):
        failed = layer.done[layer.at or 0]
        saved = [each.name for each in layer.done].index("ftruncate") if "entered" in seen else len(layer.done)
        harmless = layer.fault == "short" or failed.name == "flock" or (layer.at or 0) >= saved
        assert seen == (["entered", "left"] if harmless else ["refused"]), failed
        undoing = Undoing()
        assert undoing.start(folder) == []
        assert undoing.undone == []
        assert [*folder.glob("*")] == [], failed


def test_after_a_crash_at_any_operation_a_list_is_undone_once_if_it_was_in_use(made: Callable[[], Path]) -> None:
    in_use: list[int] = []
    for folder, told in crashes(write, made):
        undoing = Undoing()
        assert readable_by_others(folder) == []
        said = undoing.start(folder)
        assert undoing.undone in ([UNDONE], [])
        assert said == ["All is as before."] * len(undoing.undone)
        assert [each.text for each in WriteAhead(folder, "s1").outcomes()] == said
        assert WriteAhead(folder, "s2").outcomes() == []
        if told == ["entered"]:
            in_use.append(len(undoing.undone))
        assert not undoing.undone or told != ["entered", "left"]
        assert undoing.start(folder) == []
        assert len(undoing.undone) <= 1
        assert readable_by_others(folder) == []
        assert [*folder.glob("*.list")] == []
    # Before the list is emptied, before that is on the disk, before it is removed.
    assert in_use == [1, 0, 0]


def test_a_list_is_on_the_disk_with_its_name_before_its_use_and_empty_there_afterwards(
    made: Callable[[], Path],
) -> None:
    folder = made()
    done = operations(lambda: write(folder, lambda line: os.mkdir(folder / line)))  # noqa: PTH102 - a marker
    names = [each.name for each in done]
    used = done.index(Operation("mkdir", str(folder / "entered")))
    assert unsynced(done[:used]) == set()
    assert ("fsync", str(folder)) in done[:used]
    assert names[used + 1 :] == ["ftruncate", "fsync", "unlink", "mkdir"]


def test_a_list_that_another_start_took_away_before_it_was_locked_is_not_used(
    made: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, seen = made(), list[str]()
    monkeypatch.setattr(fcntl, "flock", lambda number, how: next(folder.glob("*.list")).unlink())
    with pytest.raises(StorageError, match="was removed by another ba"):
        write(folder, seen.append)
    assert seen == []


def test_a_list_is_never_written_into_a_file_that_is_there(
    made: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, seen = made(), list[str]()
    write(folder)
    monkeypatch.setattr(secrets, "token_hex", lambda size: "0123abcd")
    there = folder / f"{os.getpid()}-0123abcd.list"
    there.write_text("theirs")
    with pytest.raises(StorageError, match="File exists"):
        write(folder, seen.append)
    assert (seen, there.read_text()) == ([], "theirs")


def test_an_error_without_words_of_the_system_is_told_in_its_own(
    made: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(number: int) -> None:
        raise OSError("the tape is torn")

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(StorageError, match="are about to change: the tape is torn"):
        write(made())


def test_a_fault_while_a_list_is_undone_never_undoes_it_twice(made: Callable[[], Path]) -> None:
    undoing, said = Undoing(), list[str]()

    def world() -> Path:
        folder = made()
        left_behind(folder)
        undoing.undone.clear()
        return folder

    def work(folder: Path) -> None:
        said[:] = undoing.start(folder)

    for folder, layer in failures(work, world, *ERRORS, "short", lasting=(False,)):
        failed = layer.done[layer.at or 0]
        if undoing.undone:
            assert said == ["All is as before."]
        elif failed.name == "flock":
            assert said == [], "without locks a new list may be in use on another machine"
        else:
            (line,) = said
            assert os.strerror(int(layer.fault)) in line
            assert "The next start tries again" in line
        undoing.start(folder)
        assert undoing.undone == [UNDONE], failed
        assert [*folder.glob("*.list")] == []
        assert {path.suffix for path in folder.iterdir()} <= {".outcome"}, failed


def test_what_is_no_list_of_a_dead_process_of_this_user_stays_and_holds_up_no_other(
    made: Callable[[], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = made()
    named = left_behind(folder, name="x-no-number")
    linked = left_behind(folder, name="91-linked")
    (folder / "other").hardlink_to(linked)
    os.mkfifo(folder / "92-pipe.list")
    (folder / "93-folder.list").mkdir()
    (folder / "95-link.list").symlink_to(left_behind(folder, name="x-target"))
    locked = left_behind(folder, name="94-locked")
    linking = {"95-link.list", "x-target.list"}
    left_behind(folder, name="99-last")
    undoing = Undoing()
    with locked.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        said = undoing.start(folder)
    assert undoing.undone == [UNDONE]
    assert [line.rpartition("back: ")[2] for line in said] == [
        "Is a directory. The next start tries again.",
        "Too many levels of symbolic links. The next start tries again.",
        "All is as before.",
    ]
    kept = {path.name for path in folder.glob("*.list")}
    assert kept == {named.name, linked.name, locked.name, "92-pipe.list", "93-folder.list", *linking}
    with monkeypatch.context() as patch:
        real = os.geteuid()
        patch.setattr(os, "geteuid", lambda: real + 1)
        undoing.start(folder)
    assert undoing.undone == [UNDONE]
    undoing.start(folder)
    assert undoing.undone == [UNDONE, UNDONE]


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (StorageError("It is in use."), "It is in use."),
        (OSError(errno.EIO, "Input/output error"), "Input/output error."),
        (OSError("torn"), "torn."),
    ],
)
def test_what_cannot_be_undone_now_is_kept_and_said(made: Callable[[], Path], error: Exception, why: str) -> None:
    folder = made()
    left_behind(folder)
    (said,) = Undoing(error).start(folder)
    assert said == (
        f"ba was stopped while apply_patch changed files here. They could not be put back: {why} "
        "The next start tries again."
    )
    assert WriteAhead(folder, "s1").outcomes() == []
    assert Undoing().start(folder) == ["All is as before."]


@pytest.mark.parametrize("error", [ValueError(), KeyError(), TypeError()])
def test_a_damaged_list_is_reported_to_user_and_session_and_dropped(made: Callable[[], Path], error: Exception) -> None:
    folder = made()
    left_behind(folder)
    (said,) = Undoing(error).start(folder)
    assert said.endswith("its list of them is damaged: check your files.")
    assert [each.text for each in WriteAhead(folder, "s1").outcomes()] == [said]
    assert Undoing().start(folder) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda head: head.update(size=9),
        lambda head: head.update(size=7),
        lambda head: head.pop("kind"),
        lambda head: head.update(body=5),
    ],
)
def test_a_list_that_is_not_whole_is_dropped(made: Callable[[], Path], change: Callable[[Any], object]) -> None:
    folder, undoing = made(), Undoing()
    left_behind(folder, change)
    with Layer(2, errno.EACCES).laid() as layer:
        assert undoing.start(folder) == []
    assert layer.done[-1].name == "unlink"
    assert undoing.start(folder) == []
    assert undoing.undone == []
    assert [*folder.iterdir()] == []


@pytest.mark.parametrize("change", [{"kind": "rewind"}, {"version": 2}])
def test_a_list_of_another_ba_stays_as_it_is(made: Callable[[], Path], change: Mapping[str, Any]) -> None:
    folder, undoing = made(), Undoing()
    data = left_behind(folder, lambda head: head.update(change)).read_bytes()
    (said,) = undoing.start(folder)
    assert said.startswith("A newer ba was stopped while apply_patch")
    assert undoing.undone == []
    assert next(folder.glob("*.list")).read_bytes() == data


def test_contents_are_read_only_from_within_the_list(made: Callable[[], Path]) -> None:
    folder = made()
    left_behind(folder)

    def undo(left: AbandonedList) -> str:
        assert left.content(0, 8) == b"".join(CONTENTS)
        assert left.content(8, 0) == b""
        for at, size in ((-1, 1), (0, -1), (8, 1), (0, 9)):
            with pytest.raises(ValueError, match="damaged"):
                left.content(at, size)
        return "x" * 2 * MOST_SAID

    (said,) = recover(folder, {"edits": undo})
    assert said.startswith("xxx")
    assert len(said) <= MOST_SAID
    assert [each.text for each in WriteAhead(folder, "s1").outcomes()] == [said]


def test_outcomes_wait_for_their_session_and_old_ones_of_others_go(made: Callable[[], Path]) -> None:
    folder = made()
    folder.mkdir(parents=True)
    assert WriteAhead(folder / "none").outcomes() == []
    (folder / "0.outcome").write_text("damaged")
    (folder / "1.outcome").write_text("{}")
    for name, session in (("2", "s1"), ("3", "s2"), ("4", "s1"), ("5", "s2")):
        path = folder / f"{name}.outcome"
        path.write_text(json.dumps({"session": session, "text": f"Outcome {name}."}))
        at = time.time() - KEPT + (60 if name < "4" else -60)
        os.utime(path, (at, at))
    first, second = WriteAhead(folder, "s1").outcomes()
    assert (first.text, second.text) == ("Outcome 2.", "Outcome 4.")
    assert {path.name for path in folder.iterdir()} == {f"{number}.outcome" for number in range(5)}
    first.forget()
    first.forget()
    assert [each.text for each in WriteAhead(folder, "s1").outcomes()] == ["Outcome 4."]


def test_a_session_without_a_name_is_told_nothing_later(made: Callable[[], Path]) -> None:
    folder = made()
    left_behind(folder, lambda head: head.update(session=""))
    assert Undoing().start(folder) == ["All is as before."]
    assert [*folder.iterdir()] == []
