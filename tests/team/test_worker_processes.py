"""`ba worker` as real processes on a real Redis server: killed, restarted, gone."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.teamwork import AgentMessage
from ba_tui.features.teams.engine.messages import (
    BusLimits,
    TaskRequest,
    TaskResponse,
    content,
    inbox,
    message,
    work_topic,
)
from ba_tui.features.teams.engine.over_redis.bus import RedisBus
from ba_tui.features.teams.engine.over_redis.server import RedisServer
from tests.program import Program
from tests.team.redis_process import PASSWORD, RedisProcess, lead_signing, token

LEAD = "lead-1"
LEASE = 1.0
SETTINGS = f"team: {{lease: {LEASE:g}, heartbeat: 0.3}}\n"
STUCK = "steps: [{say: never said, delay: 600}]\n"
QUICK = "steps: []\nlast: {say: It is 4.}\n"


@pytest.fixture
def home(tmp_path: Path) -> Program:
    program = Program(tmp_path / "work", tmp_path, {"BA_TEAM_TOKEN": token()})
    program.folder.mkdir()
    (tmp_path / "ba").mkdir()
    (tmp_path / "ba" / "config.yaml").write_text(SETTINGS)
    (program.folder / "stuck.yaml").write_text(STUCK)
    (program.folder / "quick.yaml").write_text(QUICK)
    return program


@pytest.fixture
def workers(home: Program) -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for each in started:
        each.kill()
        each.communicate()


def start(home: Program, url: str, script: str, *more: str) -> subprocess.Popen[str]:
    # Researchers only read, so that their work may be begun again.
    return home.start("worker", "--role", "researcher", "--bus-url", url, "-m", f"scripted:{script}.yaml", *more)


@pytest.fixture(params=[True, False], ids=["persistent", "forgetful"])
async def lead(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[tuple[RedisProcess, RedisBus]]:
    server = RedisProcess(tmp_path, keeps=request.param)
    server.start()
    bus = RedisBus(RedisServer(server.url), lead_signing(), BusLimits(lease=LEASE), tell=lambda text: None)
    yield server, bus
    await bus.close()
    server.kill()


async def test_a_killed_worker_and_a_restarted_server_lose_nothing(
    lead: tuple[RedisProcess, RedisBus], home: Program, workers: list[subprocess.Popen[str]]
) -> None:
    server, bus = lead
    answers = bus.subscribe(inbox(LEAD), LEAD, LEAD)
    said: list[AgentMessage] = []

    async def heard(kind: str, most: int) -> None:
        while sum(each.type == kind for each in said) < most:
            delivery = await anext(answers)
            said.append(delivery.message)
            await bus.ack(delivery, LEAD)

    async def send(task: str) -> None:
        request = message(TaskRequest(task, f"task {task}"), LEAD, "role:researcher", team="t")
        await bus.publish(work_topic("researcher"), replace(request, idempotency_key=f"key-{task}"))

    workers.append(start(home, server.url, "stuck"))
    await send("1")
    await heard("status_update", 1)
    doomed = said[0].sender
    workers.append(start(home, server.url, "quick"))
    await send("2")
    await heard("task_response", 1)
    workers[0].send_signal(signal.SIGKILL)
    workers[0].wait(10)
    server.kill()
    await send("3")
    server.start()
    await heard("task_response", 3)

    responses = [content(TaskResponse, each) for each in said if each.type == "task_response"]
    assert sorted(each.task for each in responses) == ["1", "2", "3"]
    assert {each.outcome for each in responses} == {"done"}
    assert {each.worker for each in responses} == {said[-1].sender} != {doomed}
    by_sender: dict[str, list[int]] = {}
    for each in said:
        by_sender.setdefault(each.sender, []).append(each.sequence)
    assert all(found == sorted(set(found)) for found in by_sender.values())
    workers[1].send_signal(signal.SIGINT)
    out, err = await asyncio.to_thread(workers[1].communicate, timeout=20)
    assert workers[1].returncode == 0, err
    assert out.count("can't be reached") == out.count(f"127.0.0.1:{server.port} is back") == 1
    assert ("has lost its data" in out) is not server.keeps
    assert out.rstrip().endswith("tasks done.")
    assert PASSWORD not in out + err


def test_a_worker_without_a_server_says_so_without_the_password(home: Program, tmp_path: Path) -> None:
    server = RedisProcess(tmp_path)
    done = home.here("worker", "--role", "researcher", "--once", "--bus-url", server.url, "-m", "scripted:quick.yaml")
    assert done.returncode == 2
    assert f"The Redis server 127.0.0.1:{server.port} can't be reached" in done.stderr
    assert PASSWORD not in done.stdout + done.stderr
    done = home.here("worker", "--role", "researcher", "-m", "scripted:quick.yaml")
    assert (done.returncode, "team.bus_url" in done.stderr) == (1, True)
    done = home.here("worker", "--role", "resercher", "--bus-url", server.url, "-m", "scripted:quick.yaml")
    assert (done.returncode, "Did you mean researcher?" in done.stderr) == (1, True)
    wrong = server.url.replace("redis://", "http://")
    done = home.here("worker", "--role", "researcher", "--bus-url", wrong, "-m", "scripted:quick.yaml")
    assert (done.returncode, "begins with redis://" in done.stderr, PASSWORD in done.stderr) == (1, True, False)
