"""What is old or too much is taken away; nothing of an open session, and what is gone is still known."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path

import pytest

from ba_tui.sessions.artifacts import UNFINISHED, Artifacts
from ba_tui.sessions.journal import JournalFile
from ba_tui.sessions.upkeep import StorageLimits, clean, keep_clean
from tests.sessions.shelf import folder_of, library, stored, turn

A, B, C = "20260101-000000-aaaa", "20260101-000000-bbbb", "20260101-000000-cccc"
DAY = 24 * 3600.0


def session(home: Path, id: str, text: str, *, hours: float = 0.0) -> tuple[Artifacts, str]:
    """A session last used so many hours ago, with one result."""
    stored(home, id, turn("x"))
    shelf = Artifacts(folder_of(home, id) / "data")
    ref = shelf.store(text).ref
    age(folder_of(home, id), hours)
    return shelf, ref


def age(folder: Path, hours: float) -> None:
    then = time.time() - hours * 3600
    for path in (folder / "events.jsonl", folder / "lock", *(folder / "data").iterdir()):
        if path.exists():
            os.utime(path, (then, then))


def test_results_go_a_day_after_the_last_use(tmp_path: Path) -> None:
    old, gone = session(tmp_path, A, "old", hours=25)
    new, kept = session(tmp_path, B, "new", hours=23)
    done = clean(tmp_path / "sessions", StorageLimits())
    assert (done.files, done.bytes) == (1, 3)
    assert old.about(gone).expired
    assert not new.about(kept).expired
    assert clean(tmp_path / "sessions", StorageLimits()).files == 0


def test_a_session_that_is_open_keeps_its_results(tmp_path: Path) -> None:
    shelf, ref = session(tmp_path, A, "old", hours=50)
    journal = JournalFile.open(folder_of(tmp_path, A))
    age(folder_of(tmp_path, A), 50)
    assert clean(tmp_path / "sessions", StorageLimits(size=1)).files == 0
    assert shelf.read(ref).text == "old"
    journal.close()
    age(folder_of(tmp_path, A), 50)
    assert clean(tmp_path / "sessions", StorageLimits()).files == 1


def test_opening_a_session_counts_as_use(tmp_path: Path) -> None:
    shelf, ref = session(tmp_path, A, "old", hours=50)
    JournalFile.open(folder_of(tmp_path, A)).close()
    assert clean(tmp_path / "sessions", StorageLimits()).files == 0
    assert shelf.read(ref).text == "old"


def test_the_least_recently_used_go_down_to_four_fifths(tmp_path: Path) -> None:
    made = [session(tmp_path, id, id[-1] * 400, hours=hours) for id, hours in ((A, 3), (B, 2), (C, 1))]
    made[0][0].read(made[0][1])
    limits = StorageLimits(size=1_000)
    assert clean(tmp_path / "sessions", limits).bytes == 400
    assert [shelf.about(ref).expired for shelf, ref in made] == [False, True, False]
    assert clean(tmp_path / "sessions", limits).files == 0, "at the limit nothing more goes"


def test_what_forks_share_counts_once_and_goes_as_one(tmp_path: Path) -> None:
    shelf, ref = session(tmp_path, A, "x" * 600)
    copied = library(tmp_path).fork(A)
    assert clean(tmp_path / "sessions", StorageLimits(size=1_000)).files == 0
    journal = JournalFile.open(folder_of(tmp_path, copied.id))
    assert clean(tmp_path / "sessions", StorageLimits(size=100)).files == 0, "the copy is open and needs it"
    journal.close()
    done = clean(tmp_path / "sessions", StorageLimits(size=100))
    assert (done.files, done.bytes) == (2, 600)
    assert shelf.about(ref).expired


def test_a_copy_keeps_what_the_first_one_loses_by_age(tmp_path: Path) -> None:
    shelf, ref = session(tmp_path, A, "shared")
    copied = library(tmp_path).fork(A)
    age(folder_of(tmp_path, A), 30)
    assert clean(tmp_path / "sessions", StorageLimits()).files == 1
    assert shelf.about(ref).expired
    assert Artifacts(folder_of(tmp_path, copied.id) / "data").read(ref).text == "shared"


def test_left_overs_of_the_killed_go(tmp_path: Path) -> None:
    session(tmp_path, A, "x")
    left = folder_of(tmp_path, A) / "data" / f"{UNFINISHED}1"
    left.write_text("half")
    fresh = folder_of(tmp_path, A) / "data" / f"{UNFINISHED}2"
    fresh.write_text("half")
    os.utime(left, (0, 0))
    clean(tmp_path / "sessions", StorageLimits())
    assert not left.exists()
    assert fresh.exists()


def test_nothing_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert clean(tmp_path / "none", StorageLimits()).files == 0
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "odd").write_text("")
    assert clean(tmp_path / "sessions", StorageLimits()).files == 0


def test_a_stop_ends_the_round(tmp_path: Path) -> None:
    shelf, ref = session(tmp_path, A, "old", hours=50)
    stop = threading.Event()
    stop.set()
    assert clean(tmp_path / "sessions", StorageLimits(size=0), stop).files == 0
    assert not shelf.about(ref).expired


async def test_it_goes_on_until_it_is_cancelled(tmp_path: Path) -> None:
    shelf, ref = session(tmp_path, A, "old", hours=50)
    rounds: asyncio.Queue[float] = asyncio.Queue()
    go_on = asyncio.Semaphore(0)

    async def pause(seconds: float) -> None:
        await rounds.put(seconds)
        await go_on.acquire()

    task = asyncio.create_task(keep_clean(tmp_path / "sessions", pause=pause))
    assert await rounds.get() == 3600
    assert shelf.about(ref).expired
    later, second = session(tmp_path, B, "later", hours=50)
    go_on.release()
    await rounds.get()
    assert later.about(second).expired
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
