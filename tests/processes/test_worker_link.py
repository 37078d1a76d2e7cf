"""The connection to a worker: while nobody asks anything, between event loops, and when it is let go."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from pathlib import Path

import psutil
import pytest

from ba_tui.processes import worker as client
from ba_tui.processes.values import WorkerCrashed, WorkerEntry
from ba_tui.processes.worker import WorkerClient
from tests.processes.test_duplex import NOWHERE, held
from tests.processes.test_worker import LIMIT, MAIN, ask, gone, settings, worker


@pytest.fixture
def short_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "REST_SECONDS", 0.01)


async def test_one_that_is_forgotten_ends_while_the_loop_runs(tmp_path: Path, short_rest: None) -> None:
    made = WorkerClient(WorkerEntry(MAIN), settings(tmp_path))
    await ask(made, "echo", 1)
    pid = (await ask(made, "where"))[0]
    del made
    async with asyncio.timeout(LIMIT):
        while psutil.pid_exists(pid):
            gc.collect()
            await asyncio.sleep(0.01)


async def test_after_a_rest_it_answers_again(tmp_path: Path, short_rest: None) -> None:
    async with worker(tmp_path, arguments=("2",)) as made:
        pid = (await ask(made, "where"))[0]
        waiting = asyncio.create_task(ask(made, "wait", "gate"))
        for _ in range(5):
            await asyncio.sleep(0.02)
            assert made.alive()
        await ask(made, "open_gate", "gate")
        assert await waiting == "open"
        await asyncio.sleep(0.05)
        assert made.alive()
        assert (await ask(made, "where"))[0] == pid


async def test_what_is_printed_between_two_requests_belongs_to_neither(tmp_path: Path, short_rest: None) -> None:
    heard: list[bytes] = []
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    async with worker(tmp_path, on_output=heard.append) as made:
        await ask(made, "print_later", str(pipe))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(pipe.write_text, "now")
        assert await asyncio.to_thread(pipe.read_text) == "printed"
        await ask(made, "echo", 1)
        assert heard == []
        with pytest.raises(WorkerCrashed) as caught:
            await ask(made, "exit", 3)
        assert caught.value.printed == "between"


def test_one_that_died_between_two_event_loops_starts_again(tmp_path: Path) -> None:
    made = WorkerClient(WorkerEntry(MAIN), settings(tmp_path))
    pid = asyncio.run(ask(made, "where"))[0]
    assert made.alive()
    supervisor = psutil.Process(pid).ppid()
    os.kill(pid, signal.SIGKILL)
    assert asyncio.run(gone(pid, supervisor))
    assert not made.alive()
    assert asyncio.run(ask(made, "where"))[0] != pid
    made.end()
    assert not made.alive()


async def test_it_holds_no_file_of_ours_once_it_is_closed_or_did_not_start(tmp_path: Path) -> None:
    before = held()
    made = WorkerClient(WorkerEntry(MAIN), settings(tmp_path))
    await ask(made, "echo", 1)
    assert held() > before
    await made.close()
    assert held() == before
    made = WorkerClient(WorkerEntry(MAIN), settings(tmp_path, confine=lambda: NOWHERE))
    with pytest.raises(FileNotFoundError):
        await ask(made, "echo", 1)
    assert held() == before
    assert not made.alive()


async def test_no_signal_of_the_terminal_reaches_a_worker_or_its_supervisor(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        pid = (await ask(made, "where"))[0]
        assert os.getsid(0) not in {os.getsid(pid), os.getsid(psutil.Process(pid).ppid())}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the program itself goes on")
async def test_what_a_worker_started_ends_when_its_supervisor_is_killed(tmp_path: Path) -> None:
    async with worker(tmp_path) as made:
        pid, helper = (await ask(made, "where"))[0], await ask(made, "helper")
        os.kill(psutil.Process(pid).ppid(), signal.SIGKILL)
        assert await gone(pid, helper)
        assert await ask(made, "echo", 1) == 1
