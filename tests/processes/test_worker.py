"""A worker process through its client: replies, progress, cancel, time limits, crashes and restarts."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from ba_tui.processes.values import (
    Confinement,
    ProcessLimits,
    WorkerCrashed,
    WorkerEntry,
    WorkerFailed,
    WorkerSettings,
    WorkerTimeout,
)
from ba_tui.processes.worker import WorkerClient

MAIN = "tests.processes.sample_worker:main"
LIMIT = 20.0


def settings(folder: Path, **more: Any) -> WorkerSettings:
    return WorkerSettings(folder, {"PATH": os.defpath, "NAME": "ba"}, **more)


@asynccontextmanager
async def worker(
    folder: Path, *, clock: Callable[[], float] | None = None, **entry: Any
) -> AsyncGenerator[WorkerClient]:
    made = WorkerClient(WorkerEntry(MAIN, **entry), settings(folder), *([clock] if clock else []))
    try:
        yield made
    finally:
        await made.close()


async def ask(made: WorkerClient, method: str, payload: object = None, **more: Any) -> Any:
    return await made.request(method, payload, timeout=LIMIT, **more)


async def gone(*pids: int) -> bool:
    def wait() -> bool:
        processes: list[psutil.Process] = []
        for pid in pids:
            with suppress(psutil.NoSuchProcess):
                processes.append(psutil.Process(pid))
        return not psutil.wait_procs(processes, 8)[1]

    return await asyncio.to_thread(wait)


async def test_values_go_there_and_back(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        value = {"a": [1, None, True, "é\ud800"], "b": {"c": 0.5}}
        assert await ask(made, "echo", value) == value
        assert await ask(made, "echo", None) is None
        assert await ask(made, "echo", "x" * 1_000_000) == "x" * 1_000_000


async def test_it_starts_once_where_it_should(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        assert not made.alive()
        first, second = await asyncio.gather(ask(made, "where"), ask(made, "where"))
        assert first == second
        assert first[1:] == [str(tmp_path), "ba"]
        assert made.alive()


async def test_its_channel_may_be_file_descriptor_98(tmp_path: Path) -> None:
    """That is where commands of the shell name their last folder. A socket pair takes the two lowest free numbers."""
    async with worker(tmp_path) as made:
        held = [os.open(os.devnull, os.O_RDONLY)]
        while held[-1] < 96:
            held.append(os.open(os.devnull, os.O_RDONLY))
        try:
            assert await ask(made, "echo", 1) == 1
        finally:
            for number in held:
                os.close(number)


async def test_requests_at_once_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async with worker(tmp_path, arguments=("2",)) as made:
        waiting = asyncio.create_task(ask(made, "wait", "gate"))
        assert await ask(made, "add", {"a": 1, "b": 2}) == 3
        await ask(made, "open_gate", "gate")
        assert await waiting == "open"


async def test_progress_comes_in_order_and_before_the_reply(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        seen: list[object] = []
        assert await ask(made, "count", 500, on_progress=seen.append) == "done"
        assert seen == list(range(500))


async def test_a_listener_that_raises_fails_its_own_request_only(tmp_path: Path) -> None:
    def refuse(value: object) -> None:
        raise ValueError(value)

    async with worker(tmp_path) as made:
        with pytest.raises(ValueError, match="0"):
            await ask(made, "count", 3, on_progress=refuse)
        assert await ask(made, "echo", 1) == 1


async def test_what_a_handler_says_of_a_failure(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        for method, kind, words in (
            ("fail", "not_found", "there is no x"),
            ("raise", "internal_error", "ZeroDivisionError: integer division or modulo by zero"),
            ("unsayable", "internal_error", "TypeError: Object of type object is not JSON serializable"),
            ("quit", "internal_error", "SystemExit: bye"),
            ("nothing", "internal_error", "there is no method 'nothing'"),
        ):
            with pytest.raises(WorkerFailed) as caught:
                await ask(made, method, "x")
            assert (caught.value.kind, str(caught.value)) == (kind, words)
        before = (await ask(made, "where"))[0]
        assert (await ask(made, "fork")) is False, "only the first process answers"
        assert (await ask(made, "where"))[0] == before


async def test_what_can_not_be_sent_is_the_callers_error(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        with pytest.raises(TypeError):
            await ask(made, "echo", object())
        assert await ask(made, "echo", 1) == 1


async def test_killed_in_the_middle_of_a_request_it_starts_again(tmp_path: Path) -> None:
    async with worker(tmp_path, arguments=("2",)) as made:
        pid = (await ask(made, "where"))[0]
        begun = asyncio.Event()
        waiting = asyncio.create_task(ask(made, "wait", "gate", on_progress=lambda value: begun.set()))
        await begun.wait()
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(WorkerCrashed, match="ended by SIGKILL") as caught:
            await waiting
        assert caught.value.code == -signal.SIGKILL
        assert (await ask(made, "where"))[0] != pid


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the group of the worker itself can be found")
async def test_with_its_supervisor_killed_it_ends_too(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        pid = (await ask(made, "where"))[0]
        parent = psutil.Process(pid).ppid()
        waiting = asyncio.create_task(ask(made, "wait", "gate", on_progress=lambda value: os.kill(parent, 9)))
        with pytest.raises(WorkerCrashed, match="from outside"):
            await waiting
        assert await gone(pid)
        assert await ask(made, "echo", 1) == 1


async def test_one_that_died_unnoticed_starts_again(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        pid = (await ask(made, "where"))[0]
        supervisor = psutil.Process(pid).ppid()
        os.kill(pid, signal.SIGKILL)
        assert await gone(pid, supervisor)
        assert not made.alive()
        assert (await ask(made, "where"))[0] != pid


@pytest.mark.parametrize("method", ["exit", "broken"])
async def test_other_ends(tmp_path: Path, method: str) -> None:
    async with worker(tmp_path) as made:
        with pytest.raises(WorkerCrashed, match=r"exit 3|broken message"):
            await ask(made, method, 3)
        assert await ask(made, "echo", 1) == 1


async def test_why_it_does_not_start_is_said(tmp_path: Path) -> None:
    made = WorkerClient(WorkerEntry("tests.processes.sample_worker:broken_start"), settings(tmp_path))
    with pytest.raises(WorkerCrashed, match="exit 70") as caught:
        await ask(made, "echo")
    assert caught.value.printed.endswith("ModuleNotFoundError: no module named engine")
    await made.close()


async def test_each_crash_in_a_row_makes_the_next_start_wait_longer(tmp_path: Path) -> None:
    @dataclass
    class Clock:
        now: float = 100.0

    clock = Clock()
    async with worker(tmp_path, clock=lambda: clock.now) as made:

        async def crash() -> str:
            with pytest.raises(WorkerCrashed) as caught:
                await ask(made, "exit", 3)
            return str(caught.value)

        assert "exit 3" in await crash()
        assert "exit 3" in await crash(), "after the first it starts at once"
        assert await crash() == "it crashed 2 times in a row; it starts again in 1 s"
        clock.now += 1
        assert "exit 3" in await crash()
        assert await crash() == "it crashed 3 times in a row; it starts again in 2 s"
        clock.now += 2
        assert await ask(made, "echo", 1) == 1
        assert "exit 3" in await crash()
        assert await ask(made, "echo", 1) == 1, "a reply in between counts"
        assert "exit 3" in await crash()
        with pytest.raises(WorkerFailed):
            await ask(made, "fail", "x")
        assert "exit 3" in await crash()
        assert await ask(made, "echo", 1) == 1, "so does any other answer"


async def test_a_cancelled_request_may_stop_and_the_process_stays(tmp_path: Path) -> None:
    async with worker(tmp_path, grace=LIMIT) as made:
        pid = (await ask(made, "where"))[0]
        begun = asyncio.Event()
        task = asyncio.create_task(ask(made, "wait", "gate", on_progress=lambda value: begun.set()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await ask(made, "where"))[0] == pid


async def test_one_that_does_not_stop_is_ended_with_all_it_started(tmp_path: Path) -> None:
    async with worker(tmp_path, grace=0.05) as made:
        begun: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(ask(made, "deaf", on_progress=begun.set_result))
        pids = await begun
        behind = asyncio.create_task(ask(made, "echo", 1))
        task.cancel()
        with pytest.raises(WorkerCrashed, match="did not stop"):
            await behind
        # The next process starts only once the last one is gone, with what it had locked.
        assert await ask(made, "echo", 1) == 1
        assert not [pid for pid in pids if psutil.pid_exists(pid)]


async def test_a_time_limit_cancels(tmp_path: Path) -> None:
    async with worker(tmp_path, grace=LIMIT) as made:
        pid = (await ask(made, "where"))[0]
        with pytest.raises(WorkerTimeout, match=r"wait took longer than 0.05 s\."):
            await made.request("wait", "gate", timeout=0.05)
        assert (await ask(made, "where"))[0] == pid


async def test_a_flood_of_output_is_bounded_and_heard_before_the_reply(tmp_path: Path) -> None:
    heard: list[bytes] = []
    async with worker(tmp_path, on_output=heard.append) as made:
        await ask(made, "flood")
        assert sum(map(len, heard)) == 200 * 65_536 + len("the end\n")
        with pytest.raises(WorkerCrashed) as caught:
            await ask(made, "exit", 3)
        assert caught.value.printed.endswith("the end")
        assert len(caught.value.printed) <= 2_000


async def test_a_memory_limit(tmp_path: Path) -> None:
    limits = ProcessLimits(memory=300_000_000).for_seconds()
    made = WorkerClient(WorkerEntry(MAIN), settings(tmp_path, limits=limits))
    assert await ask(made, "memory", 1_000_000) == 1_000_000
    with pytest.raises(WorkerFailed, match="MemoryError"):
        await ask(made, "memory", 1_000_000_000)
    await made.close()


async def test_closed_it_ends_and_stays_so(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        pid = (await ask(made, "where"))[0]
        begun = asyncio.Event()
        waiting = asyncio.create_task(ask(made, "wait", "gate", on_progress=lambda value: begun.set()))
        await begun.wait()
        await made.close()
        assert not psutil.pid_exists(pid)
        with pytest.raises(WorkerCrashed, match="it was closed"):
            await waiting
        with pytest.raises(WorkerCrashed, match="it was closed"):
            await ask(made, "echo", 1)


def test_one_that_is_forgotten_ends(tmp_path: Path) -> None:
    async def pid() -> int:
        return (await ask(WorkerClient(WorkerEntry(MAIN), settings(tmp_path)), "where"))[0]

    forgotten = asyncio.run(pid())
    gc.collect()
    assert asyncio.run(gone(forgotten))


def test_another_event_loop_may_go_on_with_it(tmp_path: Path) -> None:
    made = WorkerClient(WorkerEntry(MAIN), settings(tmp_path))
    assert asyncio.run(ask(made, "where")) == asyncio.run(ask(made, "where"))
    made.end()


async def test_a_sandbox_of_its_own(tmp_path: Path) -> None:
    """The confinement is asked for at each start, and its prefix goes before everything."""
    profiles: list[Confinement] = []

    def confine() -> Confinement:
        profiles.append(Confinement(("/usr/bin/env", "INSIDE=yes"), {"NAME": "confined"}, separate=False))
        return profiles[-1]

    made = WorkerClient(WorkerEntry(MAIN), settings(tmp_path, confine=confine))
    assert (await ask(made, "where"))[2] == "confined"
    with pytest.raises(WorkerCrashed):
        await ask(made, "kill")
    await ask(made, "where")
    assert len(profiles) == 2
    await made.close()


KILLED = """
import asyncio, os, sys
from pathlib import Path
from tests.processes.test_worker import MAIN, settings
from ba_tui.processes.worker import WorkerClient
from ba_tui.processes.values import WorkerEntry
def tell(pids):
    print(*pids, flush=True)
asyncio.run(WorkerClient(WorkerEntry(MAIN), settings(Path(sys.argv[1]))).request("deaf", on_progress=tell))
"""


def test_a_killed_ba_leaves_nothing_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE) as ba:
        assert ba.stdout
        pids = [int(word) for word in ba.stdout.readline().split()]
        ba.kill()
    assert len(pids) == 2
    assert asyncio.run(gone(*pids))
