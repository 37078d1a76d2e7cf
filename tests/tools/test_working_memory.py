"""Working memory of a task: in the journal, and on a real Redis server between two processes."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Event, WorkingChanged, event_from_json, event_to_json
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.memory.tools.working import LARGEST, JournaledWorking, task_memory
from tests.analysis.servers import await_port, free_port, missing

OTHER = """
import asyncio, sys
from ba_tui.features.memory.tools.working import connected

async def main() -> None:
    async with connected(sys.argv[1], "plan-1") as memory:
        print(await memory.get("region"))
        await memory.set("rows", [1, 2])

asyncio.run(main())
"""


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def branch(events: list[Event]) -> Branch:
    return Branch(Turn(events.append), Transcript())


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    program = shutil.which("redis-server")
    if not program:
        missing("Redis is not installed: apt install redis-server")
    port, folder = free_port(), tmp_path_factory.mktemp("redis")
    options = f"--port {port} --bind 127.0.0.1 --requirepass s3cret --dir {folder} --save".split()
    server = subprocess.Popen([str(program), *options, ""], stdout=subprocess.DEVNULL)
    try:
        await_port(port, server)
        yield f"redis://:s3cret@127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(10)


def replayed(events: list[Event]) -> Transcript:
    return Transcript(events=[event_from_json(event_to_json(event)) for event in events])


async def test_values_of_a_task_end_with_it_and_those_of_the_session_stay(branch: Branch, events: list[Event]) -> None:
    session = JournaledWorking(branch)
    await session.set("currency", "EUR")
    async with task_memory(branch, "plan-1") as memory:
        await memory.set("region", {"name": "North"})
        await memory.update({"rows": 3, "done": False})
        (await memory.get("region"))["name"] = "changed by a reader"
        assert await memory.to_dict() == {"region": {"name": "North"}, "rows": 3, "done": False}
        assert replayed(events).working == {"": {"currency": "EUR"}, "plan-1": await memory.to_dict()}
    assert await memory.to_dict() == {}
    assert await memory.get("region", "none") == "none"
    assert replayed(events).working == {"": {"currency": "EUR"}}
    kept = [event.values for event in events if isinstance(event, WorkingChanged) and event.scope == "plan-1"]
    assert kept[-2:] == [{"region": {"name": "North"}, "rows": 3, "done": False}, {}]
    await session.clear()
    await session.clear()
    assert replayed(events).working == {}


async def test_what_cannot_be_kept_is_refused_and_changes_nothing(branch: Branch) -> None:
    memory = JournaledWorking(branch)
    for values in ({"x": object()}, {"x": {1, 2}}, {"x": "a" * LARGEST}):
        with pytest.raises(UsageError):
            await memory.update(values)
    await memory.update({"x": float("nan"), "y": "\ud800\0"})
    assert await memory.to_dict() == {"x": None, "y": "\N{REPLACEMENT CHARACTER}" * 2}
    with pytest.raises(UsageError, match="name"):
        async with task_memory(branch, " "):
            pass


async def test_processes_share_a_task_over_redis(branch: Branch, events: list[Event], redis: str) -> None:
    async with task_memory(branch, "plan-1", redis) as memory:
        await memory.set("region", "North")
        command = (sys.executable, "-c", OTHER, redis)
        other = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
        assert (await other.communicate())[0] == b"North\n"
        assert await memory.to_dict() == {"region": "North", "rows": [1, 2]}
        with pytest.raises(UsageError, match="bytes"):
            await memory.set("x", "a" * LARGEST)
    kept = [event.values for event in events if isinstance(event, WorkingChanged)]
    assert kept == [{"region": "North", "rows": [1, 2]}, {}]
    async with task_memory(branch, "plan-1", redis) as again:
        assert await again.to_dict() == {}


async def test_a_redis_server_that_is_gone_is_said_without_its_password(branch: Branch) -> None:
    async def use() -> None:
        async with task_memory(branch, "plan-1", f"redis://:s3cret@127.0.0.1:{free_port()}/0") as memory:
            await memory.set("x", 1)

    with pytest.raises(StorageError, match=r"127\.0\.0\.1 does not answer") as told:
        await use()
    assert "s3cret" not in told.value.with_hint
