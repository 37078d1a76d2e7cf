"""The log of memory when a file operation fails or the process ends at any one of them."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError
from ba_tui.features.memory.engine.entries import added
from ba_tui.features.memory.engine.log import Log, Mark
from ba_tui.features.memory.engine.shelf import Shelf
from ba_tui.features.memory.engine.store_process.desk import Ownership
from tests.memory.entries import entry
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

FIRST, SECOND, THIRD = (entry(f"The fact number {number}", id=f"id-{number}") for number in ("one", "two", "three"))
LINES = [added(each) for each in (FIRST, SECOND, THIRD)]


@pytest.fixture
def made(tmp_path: Path) -> Callable[[], Path]:
    """Makes folders with a log of two entries."""
    numbers = count()

    def new() -> Path:
        folder = tmp_path / f"world{next(numbers)}"
        folder.mkdir(mode=0o700)
        Log(folder / "log.jsonl").append(LINES[0] + LINES[1])
        return folder

    return new


def kept(folder: Path) -> list[bytes]:
    """The lines of entries, each of which must be whole."""
    lines = [line for line, _ in Log(folder / "log.jsonl").read(Mark()) if b'"op":"log"' not in line]
    return [line for line in lines if not line.isspace()]


def free(folder: Path) -> bool:
    """Whether no lock is held."""
    for name in ("log.lock", "log.rewriting"):
        if (folder / name).exists():
            number = os.open(folder / name, os.O_RDWR)
            try:
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            finally:
                os.close(number)
    return True


def test_an_append_writes_all_or_nothing_and_says_so(made: Callable[[], Path]) -> None:
    told: list[StorageError] = []

    def work(folder: Path) -> None:
        told.clear()
        try:
            Log(folder / "log.jsonl").append(LINES[2])
        except StorageError as error:
            told.append(error)

    for folder, layer in failures(work, made, *ERRORS, errno.ENOLCK, errno.EDQUOT, errno.EROFS, "short"):
        assert kept(folder) == LINES[: 2 if told else 3], layer.done
        assert free(folder)
        failed = layer.done[layer.at or 0]
        # Without locks, an append relies on the kernel.
        harmless = layer.fault == "short" or (failed.name, layer.fault) == ("flock", errno.ENOLCK)
        assert bool(told) != harmless, failed
        for error in told:
            assert os.strerror(int(layer.fault)) in str(error)
            wanted = {errno.ENOSPC: "Free some space", errno.EDQUOT: "Free some space"}
            wanted |= {errno.EACCES: "Check the rights", errno.EROFS: "Check the rights"}
            assert error.hint.startswith(wanted.get(int(layer.fault), "Try again"))
        Log(folder / "log.jsonl").append(LINES[2])
        assert kept(folder)[-1] == LINES[2]


def test_a_crash_at_any_operation_of_an_append_loses_nothing(made: Callable[[], Path]) -> None:
    def work(folder: Path, acknowledge: Callable[[str], None]) -> None:
        Log(folder / "log.jsonl").append(LINES[2])
        acknowledge("appended")

    for folder, acknowledged in crashes(work, made):
        Log(folder / "log.jsonl").append(b'{"v":1,"op":"used","ids":["id-one"],"at":1}\n')
        lines = kept(folder)
        assert lines[:2] == LINES[:2]
        assert LINES[2] in lines or not acknowledged
        assert lines[-1].startswith(b'{"v":1,"op":"used"')
        assert free(folder)
        assert readable_by_others(folder) == []


def rewrite(folder: Path) -> None:
    Log(folder / "log.jsonl").rewrite(
        lambda line: None if b"id-two" in line else line.replace(b"number one", b"number 1")
    )


def test_a_rewrite_is_whole_or_not_there(made: Callable[[], Path]) -> None:
    after = [LINES[0].replace(b"number one", b"number 1")]
    told: list[StorageError] = []

    def work(folder: Path) -> None:
        told.clear()
        try:
            rewrite(folder)
        except StorageError as error:
            told.append(error)

    for folder, layer in failures(work, made, errno.ENOSPC, "short"):
        found = kept(folder)
        assert found in (LINES[:2], after), layer.done
        assert found == after or told
        assert free(folder)
        assert not [*folder.glob(".log.jsonl.*")] or layer.lasts, layer.done[layer.at or 0]
        assert readable_by_others(folder) == []
        rewrite(folder)
        assert kept(folder) == after
        assert not [*folder.glob(".log.jsonl.*")]


def test_a_crash_at_any_operation_of_a_rewrite_leaves_the_old_or_the_new_file(made: Callable[[], Path]) -> None:
    after = [LINES[0].replace(b"number one", b"number 1")]
    for folder, acknowledged in crashes(lambda folder, acknowledge: (rewrite(folder), acknowledge("done")), made):
        assert kept(folder) in ([after] if acknowledged else [LINES[:2], after])
        rewrite(folder)
        assert kept(folder) == after
        assert not [*folder.glob(".log.jsonl.*")]


def test_what_is_forgotten_is_gone_from_the_disk_or_the_error_is_told(made: Callable[[], Path]) -> None:
    told: list[StorageError] = []

    def work(folder: Path) -> None:
        told.clear()
        try:
            assert Log(folder / "log.jsonl").blank(lambda line: b"id-one" in line, keep=True) == 1
        except StorageError as error:
            told.append(error)

    for folder, layer in failures(work, made, *ERRORS):
        assert LINES[1] in kept(folder)
        assert told or (layer.done[layer.at or 0].name, layer.fault) == ("flock", errno.ENOLCK)
        rest = (folder / "log.jsonl").read_bytes()
        rejected = folder / "log.rejected.jsonl"
        assert FIRST.text.encode() in rest or rejected.read_bytes().endswith(LINES[0])
        assert free(folder)


@pytest.mark.parametrize(
    "work", [rewrite, lambda folder: Log(folder / "log.jsonl").blank(lambda line: True, keep=True)]
)
def test_a_rewrite_and_a_removal_end_on_the_disk(made: Callable[[], Path], work: Callable[[Path], object]) -> None:
    folder = made()
    done = operations(lambda: work(folder))
    assert unsynced(done) == set()
    names = [each.name for each in done]
    if "replace" in names:
        at = names.index("replace")
        new = str(folder / ".log.jsonl.")
        assert done[at - 1].name == "fsync", "the new file is on the disk before it replaces the old one"
        assert done[at - 1].target.startswith(new)
        held = done.index(Operation("open", str(folder / "log.lock")))
        assert [each for each in names[:held] if each in ("write", "fsync")] == ["write", "fsync"], (
            "writers wait only for what was appended meanwhile"
        )
        assert done[-1] == ("fsync", str(folder)), "so is its name"


def test_a_sync_waits_for_the_file_and_its_folder(made: Callable[[], Path]) -> None:
    folder = made()
    done = operations(Log(folder / "log.jsonl").sync)
    assert [each.target for each in done] == [str(folder / "log.jsonl"), str(folder)]
    for at in (0, 1):
        with Layer(at, errno.EIO).laid(), pytest.raises(StorageError, match="Input/output error"):
            Log(folder / "log.jsonl").sync()
    Log(folder / "absent" / "log.jsonl").sync()


def gone(folder: Path) -> bool:
    """Whether nothing names the forgotten entry but the line that forgets it."""
    text = b"".join(path.read_bytes() for path in (folder / "log.jsonl", folder / "log.rejected.jsonl"))
    return b"id-one" not in text.replace(b'"ids":["id-one"]', b"") and FIRST.text.encode() not in text


def test_forgetting_a_shelf_entry_tells_every_error_and_can_be_repeated(made: Callable[[], Path]) -> None:
    told: list[StorageError] = []

    def world() -> Path:
        folder = made()
        (folder / "log.rejected.jsonl").write_bytes(b'{"id":"id-one","broken\n{"id":"other","broken\n')
        return folder

    def work(folder: Path) -> None:
        told.clear()
        try:
            Shelf(folder).forget(["id-one"], ())
        except StorageError as error:
            told.append(error)

    for folder, layer in failures(work, world, errno.ENOSPC, lasting=(False,)):
        failed = layer.done[layer.at or 0]
        assert told or failed.name == "mkdir" or gone(folder), failed
        assert b'{"id":"other","broken\n' in (folder / "log.rejected.jsonl").read_bytes(), failed
        work(folder)
        assert not told
        assert gone(folder), failed
        assert free(folder)


def test_a_vector_index_has_one_owner_and_none_after_an_error(tmp_path: Path) -> None:
    """In forked processes: an owner lets go with its end alone."""
    for fault in (*ERRORS, errno.ENOLCK):
        for at, failed in enumerate(("open", "flock", "ftruncate", "pwrite")):
            path = tmp_path / f"{fault}-{at}"
            if not (child := os.fork()):
                code = 1
                try:
                    code = 0 if _owned(path, Layer(at, fault)) == (failed in ("ftruncate", "pwrite")) else 2
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, (fault, failed)
            assert readable_by_others(path) == []


def _owned(path: Path, layer: Layer) -> bool:
    """Whether the index is owned though an operation failed. Where it is not, another one can own it."""
    first, second = Ownership(path), Ownership(path)
    with layer.laid(), suppress(OSError):
        first.take()
    if first.held:
        assert first.take()
        assert not second.take()
        return True
    assert second.take()
    assert second.owner() == str(os.getpid())
    os.close(second._fd)
    return False
