"""``python -m tests.eval.team [--tasks N]``: prints the table of the guide page *Workers*: messages and tasks per
second, delay of a message, memory. Redis runs on a free port; its workers are processes of their own."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from ba_tui.features.teams.engine.bus import MemoryAccepted, MemoryBus
from ba_tui.features.teams.engine.over_redis.bus import RedisBus
from ba_tui.features.teams.engine.over_redis.server import RedisServer
from ba_tui.features.teams.engine.over_redis.state import RedisAccepted
from ba_tui.permissions.secrets.scanner import redact
from tests.eval.team.simulation import led, piped, together, work
from tests.team.redis_process import RedisProcess, lead_signing

HEAD = "| | messages/s | tasks/s | delay of a message, p95 | memory |\n|---|---|---|---|---|"
PROCESSES = 4


def main(arguments: Sequence[str] | None = None) -> None:
    flags = argparse.ArgumentParser(prog="python -m tests.eval.team", description=__doc__)
    flags.add_argument("--tasks", type=int, default=2_000)
    flags.add_argument("--work", metavar="URL", help=argparse.SUPPRESS)
    flags.add_argument("--agents", type=int, default=200)
    given = flags.parse_args(arguments)
    asyncio.run(_work(given.work, given.agents) if given.work else _measure(given.agents, given.tasks))


async def _measure(agents: int, tasks: int) -> None:
    print(HEAD)
    print((await piped(MemoryBus(), 10 * tasks)).row("in memory: one sender, one reader"))
    for number in (agents // 10, agents, 5 * agents):
        found = await together(MemoryBus(), MemoryAccepted(), number, tasks)
        print(found.row(f"in memory: {number} agents, one process"))
    with tempfile.TemporaryDirectory() as folder:
        async with _redis(Path(folder)) as (url, bus):
            print((await piped(bus, tasks)).row("Redis: one sender, one reader"))
        async with _redis(Path(folder)) as (url, bus):
            with _processes(url, agents // PROCESSES):
                found = await led(bus, agents, tasks)
            print(found.row(f"Redis: {agents} agents in {PROCESSES} processes"))


async def _work(url: str, agents: int) -> None:
    bus = RedisBus(RedisServer(url), lead_signing(), redact=redact)
    with contextlib.suppress(asyncio.CancelledError):
        await work(bus, RedisAccepted(bus), agents, f"p{id(bus)}")


@asynccontextmanager
async def _redis(folder: Path) -> AsyncGenerator[tuple[str, RedisBus]]:
    server = RedisProcess(folder)
    server.start()
    bus = RedisBus(RedisServer(server.url), lead_signing(), redact=redact)
    try:
        yield server.url, bus
    finally:
        await bus.close()
        server.kill()


@contextmanager
def _processes(url: str, agents: int) -> Generator[None]:
    command = [sys.executable, "-m", "tests.eval.team", "--work", url, "--agents", str(agents)]
    started = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(PROCESSES)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


if __name__ == "__main__":
    main()
