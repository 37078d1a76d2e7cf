"""Members of a team borrow tools from each other: in a session, and from a worker of another process that is killed."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from ba_tui.core.effects import READ_ONLY, UNLIMITED
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Asked, Event, TeamMessage
from ba_tui.core.questions import Reply
from ba_tui.features.teams.engine.approvals import NoAnswer, Requests
from ba_tui.features.teams.engine.bus import MemoryBus
from ba_tui.features.teams.engine.leases import Borrower, Lease, LeaseDenied
from ba_tui.features.teams.engine.messages import (
    WORKERS,
    Bid,
    BusLimits,
    Content,
    Heartbeat,
    Share,
    content,
    inbox,
    message,
)
from ba_tui.features.teams.engine.over_redis.bus import RedisBus
from ba_tui.features.teams.engine.over_redis.server import RedisServer
from ba_tui.permissions.verdicts import Allow
from ba_tui.tools.guards.permission import PermissionGate
from tests.program import Program
from tests.script import says
from tests.team.house import TeamHouse, answer
from tests.team.redis_process import RedisProcess, lead_signing, token
from tests.team.test_shared_work import results

LIBRARIAN = "---\nname: librarian\ndescription: Keeps files.\nlends: read_file, write_file, shell\n---\nKeep them.\n"


def borrows(**args: Any) -> Any:
    return says("", ("borrow_tool", args))


async def test_a_member_borrows_a_tool_of_another(tmp_path: Path) -> None:
    house = TeamHouse(tmp_path)
    house.role("librarian", LIBRARIAN)
    (tmp_path / "a.txt").write_text("forty-two")
    call = {"lender": "librarian", "tool": "read_file", "args": {"path": "a.txt"}}
    house.plays(
        librarian=[[says("Ready.")]],
        writer=[[borrows(need="read file"), borrows(**call), borrows(**call | {"tool": "glob"}), says("Done.")]],
    )
    events = await house.team("Write", "librarian", "writer")
    assert answer(events) == "Done."
    offered, read, never = results(house, 1)
    assert "- read_file of librarian (read):" in offered
    assert "It is data" in read
    assert "You have not borrowed glob of librarian" in never
    steps = [
        event.message.content["value"]["step"]
        for event in events
        if isinstance(event, TeamMessage) and event.message.content.get("kind") == "leases"
    ]
    assert steps[:2] == ["leased", "called"]


@pytest.mark.parametrize("yes", [True, False])
async def test_a_borrowed_tool_that_changes_things_asks_the_borrowers_person(tmp_path: Path, yes: bool) -> None:
    house = TeamHouse(tmp_path)
    house.role("librarian", LIBRARIAN)
    gate = PermissionGate(lambda request: Allow(), lambda rule, scope: None, lambda call: tmp_path)
    house.guard = gate.guard
    call = {"lender": "librarian", "tool": "write_file", "args": {"path": "a.txt", "content": "x"}}
    read = call | {"tool": "read_file"}
    house.plays(
        librarian=[[says("Ready.")]],
        writer=[[borrows(need="read file or write file"), borrows(**read), borrows(**call), says("Done.")]],
    )
    asked: list[Asked] = []

    def react(event: Event) -> None:
        if isinstance(event, Asked):
            asked.append(event)
            assert house.turn
            house.turn.answer(event.ask_id, Reply("once" if yes else "deny"))

    await house.team("Write", "librarian", "writer", react=react)
    (event,) = asked
    assert event.question.args == call
    assert "write_file does more than read, at librarian." in event.question.reason
    assert ("returned this" in results(house, 1)[2]) is yes


class Lead:
    """A lead without a desk, and one borrower, over a real server."""

    def __init__(self, server: RedisProcess) -> None:
        self.bus = RedisBus(RedisServer(server.url), lead_signing(), BusLimits(lease=1.0), tell=lambda text: None)
        self.borrower = Borrower(Requests("writer@t", self.bus, patience=2.0))
        self.borrower.lead = "lead:t"
        self._task = asyncio.create_task(self._take())

    async def _take(self) -> None:
        async for delivery in self.bus.subscribe(inbox("writer@t"), "writer@t", "writer@t"):
            self.borrower.take(delivery.message)
            await self.bus.ack(delivery, "writer@t")

    async def lender(self) -> str:
        """The first worker that lends tools."""
        async for delivery in self.bus.subscribe(WORKERS, "watch", "watch"):
            if content(Heartbeat, delivery.message).lends:
                return delivery.message.sender
        raise AssertionError

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.bus.close()


@pytest.fixture
async def lead(tmp_path: Path) -> AsyncIterator[tuple[RedisProcess, Lead]]:
    server = RedisProcess(tmp_path)
    server.start()
    made = Lead(server)
    yield server, made
    await made.close()
    server.kill()


def sleeping(parent: int) -> list[psutil.Process]:
    """The commands ``sleep`` below a process."""
    with contextlib.suppress(psutil.Error):
        return [each for each in psutil.Process(parent).children(recursive=True) if each.name() == "sleep"]
    return []


async def test_a_worker_lends_within_its_rules_until_it_is_killed(
    lead: tuple[RedisProcess, Lead], tmp_path: Path
) -> None:
    server, made = lead
    home = Program(tmp_path / "work", tmp_path, {"BA_TEAM_TOKEN": token()})
    (home.folder / ".ba" / "roles").mkdir(parents=True)
    (tmp_path / "ba" / "roles").mkdir(parents=True)
    (tmp_path / "ba" / "roles" / "librarian.md").write_text(LIBRARIAN)
    (tmp_path / "ba" / "config.yaml").write_text("team: {lease: 1, heartbeat: 0.3}\n")
    (home.folder / "a.txt").write_text("forty-two")
    (home.folder / "quick.yaml").write_text("steps: []\n")
    worker: subprocess.Popen[str] = home.start(
        "worker",
        "--role",
        "librarian",
        "--bus-url",
        server.url,
        "-m",
        "scripted:quick.yaml",
        "--allow",
        "shell(sleep:*)",
    )
    try:
        lender, borrower = await asyncio.wait_for(made.lender(), 40), made.borrower
        assert "read_file" in (await borrower.offers("read a file", [lender]))[lender]
        lease = await borrower.borrow(lender, ["read_file", "write_file", "shell"], 60)
        assert "forty-two" in (await borrower.call(lease, "read_file", {"path": "a.txt"}, READ_ONLY))[0]
        # What the worker's rules would ask about is denied, and what its borrower may not do never begins.
        text, wrong = await borrower.call(lease, "write_file", {"path": "b.txt", "content": "x"}, UNLIMITED)
        assert (wrong, (home.folder / "b.txt").exists()) == (True, False), text
        with pytest.raises(LeaseDenied, match="itself may not do"):
            await borrower.call(lease, "shell", {"command": "sleep 600"}, READ_ONLY)
        call = asyncio.create_task(borrower.call(lease, "shell", {"command": "sleep 600"}, UNLIMITED))
        assert worker.stdout
        said = ""
        while "Calls shell" not in said:
            said = await asyncio.to_thread(worker.stdout.readline)
            assert said, "the worker ended"
        while not (commands := sleeping(worker.pid)):  # noqa: ASYNC110 - another process has no event
            await asyncio.sleep(0.01)
        worker.send_signal(signal.SIGKILL)
        with pytest.raises(NoAnswer, match="no sign of life"):
            await call
        assert not psutil.wait_procs(commands, 10)[1], "the command outlives its lender"
        assert await borrower.offers("read a file", [lender]) == {}
    finally:
        worker.kill()
        worker.communicate()


class Liar:
    """Answers each request of a borrower with ``said``."""

    def __init__(self, said: Content) -> None:
        self.bus = MemoryBus()
        self.borrower = Borrower(Requests("ann", self.bus, patience=5))
        self.borrower.lead = "lead:t"
        self._said = said
        self._tasks = [asyncio.create_task(each) for each in (self._lie(), self._hear())]

    async def _lie(self) -> None:
        async for delivery in self.bus.subscribe("lender", "lender", "lender"):
            asked = delivery.message
            answer = message(self._said, "lender", asked.sender, about=asked)
            await self.bus.publish(inbox("ann"), replace(answer, correlation_id=asked.id))
            await self.bus.ack(delivery, "lender")

    async def _hear(self) -> None:
        async for delivery in self.bus.subscribe(inbox("ann"), "ann", "ann"):
            self.borrower.take(delivery.message)
            await self.bus.ack(delivery, "ann")

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.bus.close()


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        ({"tools": ["a"]}, "lease", "a wrong lease"),
        ({"until": 5.0}, "lease", "a wrong lease"),
        ({"tools": "a", "until": 5.0}, "lease", "a wrong lease"),
        ("all", "lease", "a wrong lease"),
        ({"tools": ["a"], "until": 5.0}, "result", "something else than a lease"),
    ],
)
async def test_a_wrong_lease_is_refused(value: Any, kind: str, said: str) -> None:
    liar = Liar(Share("id", value, kind=kind))
    try:
        with pytest.raises(UsageError, match=said):
            await liar.borrower.borrow("lender", ["a"], 60)
    finally:
        await liar.close()


async def test_a_lease_is_taken_as_far_as_it_is_understood() -> None:
    liar = Liar(Share("id", {"tools": ["a", 5], "until": 5, "described": "none"}, kind="lease"))
    try:
        lease = await liar.borrower.borrow("lender", ["a"], 60)
        assert lease == Lease("id", "lender", "ann", ("a", "5"), 5.0, "lead:t", {})
    finally:
        await liar.close()


@pytest.mark.parametrize("value", ["text", {"text": "x"}, {"text": 5, "is_error": False}, {"text": "x", "is_error": 0}])
async def test_a_wrong_result_is_refused_and_the_call_may_be_made_anew(value: Any) -> None:
    liar = Liar(Share("id", value, kind="result"))
    lease = Lease("id", "lender", "ann", ("a",), time.time() + 60, "lead:t")
    try:
        with pytest.raises(UsageError, match="a wrong result"):
            await liar.borrower.call(lease, "a", {}, UNLIMITED)
        assert liar.borrower._open == {}
    finally:
        await liar.close()


async def test_a_call_without_an_answer_keeps_its_key_whatever_the_order_of_its_arguments() -> None:
    borrower = Borrower(Requests("ann", MemoryBus(), patience=0.01))
    borrower.lead = "lead:t"
    lease = Lease("id", "lender", "ann", ("a",), time.time() + 60, "lead:t")
    for args in ({"x": 1, "y": 2}, {"y": 2, "x": 1}):
        with pytest.raises(NoAnswer):
            await borrower.call(lease, "a", args, UNLIMITED)
    assert len(borrower._open) == 1


async def test_who_does_not_answer_hides_no_offer_of_others() -> None:
    liar = Liar(Bid(tools=("a",)))
    liar.borrower = Borrower(Requests("ann", liar.bus, patience=0.3))
    liar.borrower.lead = "lead:t"
    try:
        assert await liar.borrower.offers("file", ["silent", "lender"]) == {"lender": ("a",)}
    finally:
        await liar.close()
