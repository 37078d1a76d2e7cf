"""A worker that breaks the rules of the connection is ended, and the next request starts another; what it sent before
its end counts, and a request that was given up leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
import threading
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from ba_tui.processes import worker as client
from ba_tui.processes.serving import HEAD, MAGIC, Frame, FrameKind
from ba_tui.processes.values import WorkerCrashed, WorkerEntry
from ba_tui.processes.worker import WorkerClient
from tests.processes.test_duplex_ends import watched
from tests.processes.test_worker import LIMIT, ask, gone, settings, worker
from tests.processes.test_worker_link import short_rest

ODD = "tests.processes.odd_worker:main"
__all__ = ["short_rest"]


@asynccontextmanager
async def odd(folder: Path, **entry: Any) -> AsyncGenerator[WorkerClient]:
    made = WorkerClient(WorkerEntry(ODD, **entry), settings(folder))
    try:
        yield made
    finally:
        await made.close()


async def crash(made: WorkerClient, method: str, payload: object = None, **more: Any) -> WorkerCrashed:
    with pytest.raises(WorkerCrashed) as caught:
        await ask(made, method, payload, **more)
    return caught.value


@pytest.mark.parametrize("frame", [("REQUEST", 1, 0), ("CANCEL", 1, 0), ("RESULT", 1, 9), ("PROGRESS", 1, 9)])
async def test_a_frame_that_nobody_asked_for_ends_it(tmp_path: Path, frame: tuple[str, object, int]) -> None:
    async with odd(tmp_path) as made:
        assert str(await crash(made, "frames", [frame])) == "it sent a broken message (nobody asked for it)"
        assert await ask(made, "echo", 1) == 1


def result(value: bytes) -> str:
    """A reply to the first request with ``value`` as its text, which need not be JSON."""
    return (HEAD.pack(MAGIC, FrameKind.RESULT, 1, len(value)) + value).hex()


@pytest.mark.parametrize(
    ("method", "payload"),
    [
        ("raw", result(b"{")),
        ("raw", result(b"[" * 300_000)),
        ("frames", [("FAILURE", "no pair", 0)]),
        ("frames", [("FAILURE", 5, 0)]),
        ("frames", [("FAILURE", ["a", "b", "c"], 0)]),
    ],
)
async def test_a_reply_that_cannot_be_read_ends_it(tmp_path: Path, method: str, payload: object) -> None:
    async with odd(tmp_path) as made:
        assert str(await crash(made, method, payload)).startswith("it sent a broken reply (")
        assert await ask(made, "echo", 1) == 1


async def test_progress_that_is_not_json_ends_it(tmp_path: Path) -> None:
    frame = (HEAD.pack(MAGIC, FrameKind.PROGRESS, 1, 1) + b"{").hex()
    async with odd(tmp_path) as made:
        with pytest.raises(WorkerCrashed, match=r"broken message \(its value is not JSON\)"):
            await ask(made, "raw", frame, on_progress=lambda value: None)


async def test_one_that_hangs_up_is_ended_and_not_listened_to_until_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[client.Link] = []
    received = client.Link._received

    def counted(link: client.Link) -> None:
        looks.append(link)
        received(link)

    monkeypatch.setattr(client.Link, "_received", counted)
    async with odd(tmp_path) as made:
        pid = await ask(made, "where")
        looks.clear()
        await crash(made, "hang_up")
        assert len(looks) == 1
        assert await gone(pid)
        assert await ask(made, "echo", 1) == 1


async def test_killed_before_it_has_read_a_request_it_starts_again(tmp_path: Path) -> None:
    async with odd(tmp_path) as made:
        pid = await ask(made, "where")
        os.kill(pid, signal.SIGSTOP)
        asking = asyncio.create_task(ask(made, "echo", "x" * 5_000_000))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerCrashed, match="SIGKILL"):
            await asking
        assert await ask(made, "echo", 1) == 1


@pytest.mark.parametrize("size", [1, 2_000_000])
async def test_what_it_sent_before_its_end_counts(tmp_path: Path, size: int) -> None:
    async with odd(tmp_path) as made:
        process = psutil.Process(await ask(made, "where"))
        supervisor = process.ppid()
        asking = asyncio.create_task(ask(made, "last_words", size))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        if size == 1:
            # Its reply and its end are seen in one step of the loop: the supervisor ends once it has reported both.
            psutil.Process(supervisor).wait(LIMIT)
        assert len(await asking) == size
        assert await gone(process.pid, supervisor)
        assert await ask(made, "where") != process.pid


async def test_all_that_it_said_before_its_end_is_read_even_if_the_rest_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[object] = []
    async with odd(tmp_path) as made:
        supervisor = psutil.Process(psutil.Process(await ask(made, "where")).ppid())
        # Its end is seen after the first of several pieces.
        monkeypatch.setattr(client, "CHUNK_BYTES", 16)
        monkeypatch.setattr(client, "MAX_READS", 1)
        asking = asyncio.create_task(crash(made, "break_off", on_progress=heard.append))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        # It ends once it has reported the end of the worker.
        supervisor.wait(LIMIT)
        caught = await asking
    assert (caught.code, caught.printed) == (5, "these are the last words")
    assert heard == ["last"]


async def test_what_a_running_request_prints_is_heard_when_another_one_begins(tmp_path: Path) -> None:
    heard: list[bytes] = []
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with odd(tmp_path, on_output=heard.append) as made:
        await ask(made, "echo", 1)
        link = made._link
        assert link
        waiting = asyncio.create_task(ask(made, "print_and_wait", str(pipe)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        # The word is there, and the loop has not seen it.
        assert select.select([link._printed], [], [], LIMIT)[0]
        assert await ask(made, "echo", 2) == 2
        await asyncio.to_thread(pipe.write_text, "now")
        assert await waiting == "done"
    assert heard == [b"while it works"]


@pytest.mark.skipif(sys.platform != "linux", reason="numbers of signals differ")
@pytest.mark.parametrize(("number", "words"), [(15, "ended by SIGTERM"), (40, r"\(exit -40\)")])
async def test_which_signal_ended_it_is_said(tmp_path: Path, number: int, words: str) -> None:
    async with odd(tmp_path) as made:
        with pytest.raises(WorkerCrashed, match=words) as caught:
            await ask(made, "signal_itself", number)
        assert caught.value.code == -number


async def test_one_that_closes_its_output_goes_on(tmp_path: Path) -> None:
    heard: list[bytes] = []
    async with odd(tmp_path, on_output=heard.append) as made:
        before = watched(asyncio.get_running_loop())
        await ask(made, "shut_output")
        assert heard == [b"last\n"]
        assert await ask(made, "echo", 1) == 1
        assert len(watched(asyncio.get_running_loop()) - before) <= 3
        assert (await crash(made, "signal_itself", 9)).printed == "last"


async def test_one_that_says_something_at_rest_can_not_be_used(tmp_path: Path, short_rest: None) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with odd(tmp_path) as made:
        pid = await ask(made, "later", str(pipe))
        await asyncio.sleep(0.05)
        assert made.alive()
        await asyncio.to_thread(pipe.write_text, "now")
        assert await asyncio.to_thread(pipe.read_text) == "sent"
        assert [made.alive(), made.alive()] == [False, False]
        assert await ask(made, "where") != pid


def test_a_request_that_a_closed_loop_left_makes_it_start_again(tmp_path: Path) -> None:
    made = WorkerClient(WorkerEntry("tests.processes.sample_worker:main"), settings(tmp_path))
    left: list[Any] = []

    async def leave() -> int:
        pid = (await ask(made, "where"))[0]
        begun = asyncio.Event()
        left.append(asyncio.create_task(ask(made, "wait", "gate", on_progress=lambda value: begun.set())))
        await begun.wait()
        return pid

    loop = asyncio.new_event_loop()
    pid = loop.run_until_complete(leave())
    loop.close()
    assert not made.alive()
    assert asyncio.run(ask(made, "where"))[0] != pid
    made.end()
    left.clear()


async def test_one_that_was_given_up_and_has_stopped_is_left_alone(tmp_path: Path) -> None:
    async with worker(tmp_path, grace=0.05, arguments=("2",)) as made:
        pid = (await ask(made, "where"))[0]
        begun = asyncio.Event()
        task = asyncio.create_task(ask(made, "wait", "gate", on_progress=lambda value: begun.set()))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await ask(made, "echo", 1)
        until = time.monotonic() + 0.15
        while time.monotonic() < until:
            assert (await ask(made, "where"))[0] == pid


async def test_a_listener_that_raised_hears_no_more_and_its_request_is_cancelled(tmp_path: Path) -> None:
    heard: list[object] = []

    def refuse(value: object) -> None:
        heard.append(value)
        raise ValueError(value)

    async with worker(tmp_path) as made:
        with pytest.raises(ValueError, match="0"):
            await ask(made, "count", 300, on_progress=refuse)
        assert await ask(made, "echo", 1) == 1
        assert heard == [0]


async def test_a_large_request_is_sent_while_others_wait_and_leaves_no_writer(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    async with worker(tmp_path, arguments=("2",)) as made:
        await ask(made, "echo", 1)
        large = "x" * 5_000_000
        both = await asyncio.gather(ask(made, "echo", large), ask(made, "echo", 2))
        assert both == [large, 2]
        link = made._link
        assert link
        assert not loop.remove_writer(link._number), "it does not wake the loop any more"
        assert loop.remove_reader(link._number)
        loop.add_reader(link._number, link._received)


async def test_a_large_reply_is_read_beside_the_loop_and_a_small_one_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[threading.Thread] = []
    payload = Frame.payload

    def noted(frame: Frame) -> object:
        readers.append(threading.current_thread())
        return payload(frame)

    monkeypatch.setattr(Frame, "payload", noted)
    async with worker(tmp_path) as made:
        for size in (10, client.LARGE_BYTES):
            assert await ask(made, "echo", "x" * size) == "x" * size
    assert [each is threading.main_thread() for each in readers] == [True, False]


async def test_ended_it_is_watched_no_more(tmp_path: Path) -> None:
    before = watched(asyncio.get_running_loop())
    made = WorkerClient(WorkerEntry(ODD), settings(tmp_path))
    await ask(made, "echo", 1)
    assert watched(asyncio.get_running_loop()) > before
    asking = asyncio.create_task(ask(made, "echo", "x" * 5_000_000))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await made.close()
    assert watched(asyncio.get_running_loop()) == before
    with pytest.raises(WorkerCrashed, match="it was closed"):
        await asking


async def test_a_request_to_one_that_has_just_died_says_so(tmp_path: Path) -> None:
    async with odd(tmp_path) as made:
        process = psutil.Process(await ask(made, "where"))
        os.kill(process.pid, signal.SIGKILL)
        # The loop has not seen its end yet.
        process.wait(LIMIT)
        with pytest.raises(WorkerCrashed, match="SIGKILL"):
            await ask(made, "echo", 1)
        assert await ask(made, "echo", 1) == 1
