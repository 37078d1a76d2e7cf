"""Saving a file whole, and one process at a time in a folder, when an operation fails or the process ends there."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.resources import (
    UNFINISHED,
    UNLOCKED,
    clear_unfinished,
    exclusive,
    places,
    save_whole,
    temporary_name,
    unfinished,
)
from tests.noticing.file_faults import ERRORS, Layer, crashes, failures, operations, unsynced

NEW = ["first ", b"second\n" * 2_000]
TEXT = b"first " + b"second\n" * 2_000


@pytest.fixture(params=[b"old", None])
def made(tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], Path]:
    """Makes a folder, with an old file and without."""
    numbers = count()

    def new() -> Path:
        folder = tmp_path / f"world{next(numbers)}"
        if request.param:
            folder.mkdir(mode=0o700)
            (folder / "file").write_bytes(request.param)
            (folder / "file").chmod(0o640)
        return folder

    return new


def found(folder: Path) -> tuple[bytes, int] | None:
    path = folder / "file"
    return (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) if path.exists() else None


def notes() -> list[Path]:
    return [*(places().state / UNFINISHED).glob("*")]


def test_a_file_is_the_old_or_the_new_one_and_an_error_is_told(made: Callable[[], Path]) -> None:
    told: list[StorageError] = []

    def work(folder: Path) -> None:
        told.clear()
        try:
            save_whole(folder / "file", NEW)
        except StorageError as error:
            told.append(error)

    before = found(made())
    for folder, layer in failures(work, made, *ERRORS, errno.ENOLCK, "short"):
        failed = layer.done[layer.at or 0]
        assert found(folder) == (before if told else (TEXT, 0o640 if before else 0o600)), failed
        assert [path.name for path in folder.glob("*")] == (["file"] if found(folder) else []), failed
        for error in told:
            assert os.strerror(int(layer.fault)) in str(error)
            assert error.hint
        if failed.target.endswith(".tmp") and layer.fault != "short":
            assert told, failed
        for note in notes():
            assert failed.name in ("unlink", "write"), failed
            note.unlink()
        if folder.exists():
            assert not stat.S_IMODE(folder.stat().st_mode) & 0o077


def test_a_crash_leaves_the_old_or_the_new_file_and_nothing_else_after_the_next_start(
    made: Callable[[], Path],
) -> None:
    before = found(made())

    def work(folder: Path, acknowledge: Callable[[str], None]) -> None:
        save_whole(folder / "file", NEW)
        acknowledge("saved")

    for folder, told in crashes(work, made):
        rights = 0o640 if before else 0o600
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.glob("*")} <= {rights, 0o600}
        clear_unfinished(places())
        after = (TEXT, rights)
        assert found(folder) in ([after] if told else [before, after])
        assert notes() == []
        assert {path.name for path in folder.glob("*")} <= {"file"}


def test_a_new_file_is_on_the_disk_with_its_rights_before_it_has_the_name(made: Callable[[], Path]) -> None:
    folder = made()
    done = [
        each
        for each in operations(lambda: save_whole(folder / "file", TEXT, mode=0o644))
        if UNFINISHED not in each.target
    ]
    assert unsynced(done) == set()
    assert [each.name for each in done][-3:] == ["fchmod", "fsync", "replace"]
    assert found(folder) == (TEXT, 0o644)


def test_one_is_in_a_folder_at_a_time_and_everybody_where_there_are_no_locks(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "folder"

    def free() -> bool:
        number = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(number)
        return True

    with exclusive(folder):
        assert not free()
    assert free()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    with pytest.raises(KeyError), exclusive(folder):
        raise KeyError
    assert free()
    with Layer(1, errno.ENOLCK).laid() as layer, exclusive(folder):
        assert layer.done[1].name == "flock"
        assert free()
    for at, reason in ((0, errno.EACCES), (1, errno.EMFILE)):
        with (
            Layer(at, reason, reads=True).laid(),
            pytest.raises(StorageError, match=os.strerror(reason)),
            exclusive(folder / "new"),
        ):
            pytest.fail("it is entered")


@pytest.mark.parametrize(
    ("age", "pid", "cleared"),
    [(0.0, 999_999_999, False), (UNLOCKED + 5, 999_999_999, True), (UNLOCKED + 5, os.getppid(), False)],
)
def test_without_locks_a_note_is_that_of_a_dead_process_after_a_while(
    tmp_path: Path, age: float, pid: int, cleared: bool
) -> None:
    temporary = tmp_path / temporary_name("file")
    with unfinished(temporary):
        (note,) = notes()
        data = note.read_bytes()
    temporary.touch()
    left = note.with_name(f"{pid}-{temporary.name[-12:-4]}")
    left.write_bytes(data)
    at = time.time() - age
    os.utime(left, (at, at))
    with Layer(0, errno.ENOLCK).laid() as layer:
        assert clear_unfinished(places()) == ([temporary] if cleared else [])
    assert layer.done[0].name == "flock"
    assert (temporary.exists(), left.exists()) == (not cleared, not cleared)
    left.unlink(missing_ok=True)
