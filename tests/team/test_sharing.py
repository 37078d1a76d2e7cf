"""What members share and lend: items with versions, in memory and over Redis; tools under leases."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import pytest

from ba_tui.core.effects import READ_ONLY, UNLIMITED, AgentCeiling, Effect
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Event, TeamMessage, ToolStarted
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.teamwork import AgentMessage, Team
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.teams.engine.approvals import NoAnswer, Requests
from ba_tui.features.teams.engine.bus import AcceptedResults, MemoryAccepted, MemoryBus
from ba_tui.features.teams.engine.desk import DeskMeans, LeadDesk
from ba_tui.features.teams.engine.jobs import HandingOut
from ba_tui.features.teams.engine.leases import ENDED, Borrower, LeaseDenied, Lender, LenderTools
from ba_tui.features.teams.engine.messages import ContextRequest, Share, Trouble, content, inbox, message
from ba_tui.features.teams.engine.over_redis.bus import RedisBus
from ba_tui.features.teams.engine.over_redis.server import RedisServer
from ba_tui.features.teams.engine.over_redis.state import RedisAccepted, RedisItems
from ba_tui.features.teams.engine.shared_context import LARGEST, Items, MemoryItems, SharedContext, StaleWrite
from ba_tui.features.teams.engine.watching import TeamWatch
from tests.team.redis_process import RedisProcess, lead_signing


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    process = RedisProcess(tmp_path_factory.mktemp("redis"))
    process.start()
    yield process
    process.kill()


@pytest.fixture(params=["memory", "redis"])
async def shared(request: pytest.FixtureRequest) -> AsyncIterator[tuple[Items, AcceptedResults]]:
    if request.param == "memory":
        yield MemoryItems(), MemoryAccepted()
        return
    process: RedisProcess = request.getfixturevalue("server")
    bus = RedisBus(RedisServer(process.url), lead_signing(), redact=lambda text: text.replace("hunter2", "[secret]"))
    await bus.run("return redis.call('FLUSHALL')", [], [])
    await bus.server.greet()
    yield RedisItems(bus, "t"), RedisAccepted(bus)
    await bus.close()


async def test_a_stale_write_is_refused_and_read_again(shared: tuple[Items, AcceptedResults]) -> None:
    bus, items = MemoryBus(), shared[0]
    ann, bob = SharedContext(items, bus, "t", "ann"), SharedContext(items, bus, "t", "bob")
    first = await ann.write("orders.march", 411)
    assert (first.version, first.by) == (1, "ann")
    with pytest.raises(StaleWrite, match="ann wrote version 1") as stale:
        await bob.write("orders.march", 412)
    assert stale.value.now == first
    with pytest.raises(StaleWrite):
        await bob.write("orders.april", 1, version=3)

    async def more(value: Any) -> Any:
        return (value or 0) + 1

    await asyncio.gather(*(member.change("count", more) for member in (ann, bob) for _ in range(5)))
    found = await ann.read("count")
    assert found is not None
    assert (found.value, found.version) == (10, 10)


async def test_items_are_found_and_told_to_those_who_care(shared: tuple[Items, AcceptedResults]) -> None:
    bus = MemoryBus()
    ann = SharedContext(shared[0], bus, "t", "ann")
    told = bus.subscribe(inbox("bob"), "bob", "bob")
    ann.cares("bob", "orders.*")
    await ann.write("region", "North is best")
    await ann.write("orders.march", {"rows": 412})
    share = content(Share, (await anext(told)).message)
    assert (share.key, share.value, share.version) == ("orders.march", {"rows": 412}, 1)
    assert [item.key for item in await ann.query("orders.*")] == ["orders.march"]
    assert [item.key for item in await ann.query("best region")] == ["region"]
    assert bus.waiting(inbox("bob")) == 1


async def test_what_can_be_no_item_is_refused(shared: tuple[Items, AcceptedResults]) -> None:
    ann = SharedContext(shared[0], MemoryBus(), "t", "ann")
    for key, value in (("", 1), ("k" * 201, 1), ("k", object()), ("k", float("nan")), ("k", "x" * LARGEST)):
        with pytest.raises(UsageError):
            await ann.write(key, value)
    assert await ann.query("*") == []


async def test_the_first_response_is_the_accepted_one(shared: tuple[Items, AcceptedResults]) -> None:
    accepted = shared[1]
    each = [AgentMessage(f"w{number}", "lead", "task_response", {"n": number}) for number in range(8)]
    assert await accepted.find("k") is None
    winners = await asyncio.gather(*(accepted.first("k", one) for one in each))
    assert {winner.sender for winner in winners} == {winners[0].sender}
    assert await accepted.find("k") == winners[0]
    assert [await accepted.begin("k", "a"), await accepted.begin("k", "b")] == ["", "a"]
    await accepted.ended("k")
    assert await accepted.begin("k", "c") == ""


async def test_no_secret_reaches_the_server(server: RedisProcess) -> None:
    bus = RedisBus(RedisServer(server.url), lead_signing(), redact=lambda text: text.replace("hunter2", "[secret]"))
    items, accepted = RedisItems(bus, "secrets"), RedisAccepted(bus)
    await SharedContext(items, MemoryBus(), "secrets", "ann").write("door", {"code": 'say "hunter2"'})
    found = await items.get("door")
    assert found is not None
    assert found.value == {"code": 'say "[secret]"'}
    winner = await accepted.first("k2", AgentMessage("w", "lead", "task_response", {"result": "hunter2"}))
    assert winner.content == {"result": "[secret]"}
    await bus.close()


class Place:
    """A lender with tools, a borrower, and what goes between them."""

    def __init__(self, ceiling: AgentCeiling, bus: RedisBus | None = None) -> None:
        self.events: list[Event] = []
        branch = Branch(Turn(self.events.append), Transcript())
        branch.ceiling = ceiling
        self.bus = bus or MemoryBus()
        self.started, self.gate, self.runs = asyncio.Event(), asyncio.Event(), 0
        self.stopped = 0
        self.gate.set()
        tools = {
            "read_file": Tool("read_file", "Reads a file.", {}, self._run, Effect.READ),
            "shell": Tool("shell", "Runs a command.", {}, self._run, Effect.EXECUTE),
            "web_fetch": Tool("web_fetch", "Fetches a page.", {}, self._guarded, Effect.READ),
            "kept": Tool("kept", "Not lent.", {}, self._run, Effect.READ),
        }

        async def at(work: Any) -> Any:
            return await work(branch)

        self.lender = Lender(
            "lender", self.bus, LenderTools(tools.get, ("read_file", "shell", "web_fetch"), ceiling, at, beat=0.05)
        )
        self.borrower = Borrower(Requests("borrower", self.bus, patience=5))
        self.borrower.lead = "lead:t"
        self._tasks = [asyncio.create_task(each) for each in (self._lend(), self._borrow())]

    async def _run(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        self.runs += 1
        self.started.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return ToolResult(f"content of {args.get('path')}")

    async def _guarded(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        return failure("permission_denied", "A rule denies this.")

    async def _lend(self) -> None:
        async with asyncio.TaskGroup() as group:
            async for delivery in self.bus.subscribe("lender", "lender", "lender"):
                group.create_task(self.lender.handle(delivery.message))
                await self.bus.ack(delivery, "lender")

    async def _borrow(self) -> None:
        async for delivery in self.bus.subscribe("borrower", "borrower", "borrower"):
            self.borrower.take(delivery.message)
            await self.bus.ack(delivery, "borrower")

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if isinstance(self.bus, MemoryBus):
            await self.bus.close()


@pytest.fixture
async def lending() -> AsyncIterator[Place]:
    made = Place(AgentCeiling(frozenset({Effect.READ})))
    yield made
    await made.close()


async def test_a_tool_is_offered_leased_called_and_written_down(lending: Place) -> None:
    offers = await lending.borrower.offers("file", ["lender"])
    assert offers == {"lender": ("read_file",)}
    lease = await lending.borrower.borrow("lender", ["read_file", "web_fetch"], 60)
    assert await lending.borrower.call(lease, "read_file", {"path": "a.csv"}, UNLIMITED) == ("content of a.csv", False)
    # The lender's guards decide about each call.
    text, wrong = await lending.borrower.call(lease, "web_fetch", {}, UNLIMITED)
    assert ("A rule denies this." in text, wrong) == (True, True)
    assert [line.step for line in lending.lender.audit()] == ["leased", "called", "called"]
    assert {event.agent for event in lending.events if isinstance(event, ToolStarted)} != {"main"}


async def test_a_lease_gives_no_more_than_the_lender_may(lending: Place) -> None:
    for tool in ("shell", "kept", "gone"):
        with pytest.raises(LeaseDenied, match="does not lend"):
            await lending.borrower.borrow("lender", [tool], 60)
    assert lending.lender.leases() == ()
    lease = await lending.borrower.borrow("lender", ["read_file"], 60)
    with pytest.raises(LeaseDenied, match="does not cover"):
        await lending.borrower.call(lease, "web_fetch", {}, UNLIMITED)
    assert lending.runs == 0


async def test_a_call_is_within_the_ceilings_of_both() -> None:
    made = Place(UNLIMITED)
    try:
        lease = await made.borrower.borrow("lender", ["shell", "read_file"], 60)
        for ceiling in (
            READ_ONLY,
            AgentCeiling(tools=frozenset({"read_file"})),
            AgentCeiling(without=frozenset({"shell"})),
        ):
            with pytest.raises(LeaseDenied, match="itself may not do"):
                await made.borrower.call(lease, "shell", {}, ceiling)
        assert made.runs == 0
        for ceiling in (READ_ONLY, UNLIMITED):
            await made.borrower.call(lease, "read_file", {}, ceiling)
        await made.borrower.call(lease, "shell", {}, UNLIMITED)
        # Who does not say what it may do gets nothing.
        request = message(ContextRequest("call", "shell", lease.id, {"args": {}}), "borrower", "lender", team="t")
        watch = made.bus.subscribe("borrower", "watch", "watch")
        await made.bus.publish("lender", request)
        assert "does not say" in content(Trouble, (await anext(watch)).message).message
        assert made.runs == 3
    finally:
        await made.close()


async def test_a_call_without_an_answer_is_not_done_twice() -> None:
    made = Place(UNLIMITED)
    lead = made.bus.subscribe("lead:t", "lead", "lead")
    impatient = Borrower(Requests("borrower", made.bus, patience=0.2))
    impatient.lead = "lead:t"
    try:
        lease = await made.borrower.borrow("lender", ["shell"], 60)
        made.gate.clear()
        # What it answers goes to the other borrower of this name, as if it were lost on its way.
        with pytest.raises(NoAnswer, match="may be gone"):
            await impatient.call(lease, "shell", {"command": "pay"}, UNLIMITED)
        made.gate.set()
        made.borrower.take = impatient.take  # pyright: ignore[reportAttributeAccessIssue]
        await impatient.call(lease, "shell", {"command": "pay"}, UNLIMITED)
        assert made.runs == 1
        await impatient.call(lease, "shell", {"command": "pay"}, UNLIMITED)
        assert made.runs == 2
        told = [content(Share, (await anext(lead)).message).value for _ in range(3)]
        assert [(each["step"], each["borrower"], each["tool"]) for each in told] == [
            ("leased", "borrower", "shell"), ("called", "borrower", "shell"), ("called", "borrower", "shell"),
        ]  # fmt: skip
    finally:
        await made.close()


async def test_the_end_of_a_team_takes_its_leases_back(lending: Place) -> None:
    await lending.borrower.borrow("lender", ["read_file"], 60)
    for sender, left in (("lead:other", 1), ("ann", 1), ("lead:t", 0)):
        await lending.lender.handle(message(Share("t", kind=ENDED), sender, "lender", team="t"))
        assert len(lending.lender.leases()) == left


async def test_the_end_of_a_team_ends_leases_over_redis(server: RedisProcess) -> None:
    """The desk tells each lender that gave a lease to a member of its team."""
    lead = RedisBus(RedisServer(server.url), lead_signing(), tell=lambda text: None)
    made = Place(UNLIMITED, RedisBus(RedisServer(server.url), lead_signing(), tell=lambda text: None))
    heard = asyncio.Event()

    def follow(event: Event) -> None:
        if isinstance(event, TeamMessage):
            heard.set()

    watch = TeamWatch(Team("t", "goal", "hierarchical"), Branch(Turn(follow), Transcript()))
    desk = LeadDesk("lead:t", DeskMeans(lead, lambda member, facts: None), watch, HandingOut())
    desk.start()
    try:
        lease = await made.borrower.borrow("lender", ["shell"], 60)
        made.gate.clear()
        call = asyncio.create_task(made.borrower.call(lease, "shell", {}, UNLIMITED))
        await made.started.wait()
        await heard.wait()
        await desk.close()
        with pytest.raises(LeaseDenied, match="was stopped"):
            await call
        assert made.lender.leases() == ()
    finally:
        await made.close()
        await made.bus.close()
        await lead.close()


async def test_a_lease_can_be_taken_back_while_a_call_runs(lending: Place) -> None:
    lease = await lending.borrower.borrow("lender", ["read_file"], 60)
    lending.gate.clear()
    call = asyncio.create_task(lending.borrower.call(lease, "read_file", {}, UNLIMITED))
    await lending.started.wait()
    assert await lending.lender.revoke(lease.id)
    with pytest.raises(LeaseDenied, match="was stopped"):
        await call
    with pytest.raises(LeaseDenied):
        await lending.borrower.call(lease, "read_file", {}, UNLIMITED)
    assert not await lending.lender.revoke(lease.id)
    assert lending.runs == 1
    assert [line.step for line in lending.lender.audit()][:3] == ["leased", "called", "revoked"]


@pytest.mark.parametrize("end", ["revoked", "closed", "expired", "stopped"])
async def test_no_borrowed_call_outlives_its_lease_or_its_lender(end: str) -> None:
    """The work ends, whatever the borrower is told of it."""
    made = Place(UNLIMITED)
    before = asyncio.all_tasks()
    try:
        lease = await made.borrower.borrow("lender", ["shell"], 0.05 if end == "expired" else 60)
        made.gate.clear()
        call = asyncio.create_task(made.borrower.call(lease, "shell", {}, UNLIMITED))
        await made.started.wait()
        if end == "revoked":
            await made.lender.revoke(lease.id)
        elif end == "closed":
            await made.lender.close()
        elif end == "stopped":
            work = next(iter(made.lender._running[lease.id]))
            answer = next(task for task in made.lender._answers.values() if not task.done())
            answer.cancel()
            await asyncio.wait({answer, work})
            call.cancel()
        (told,) = await asyncio.gather(call, return_exceptions=True)
        assert isinstance(told, asyncio.CancelledError if end == "stopped" else LeaseDenied)
        assert (made.runs, made.stopped) == (1, 1)
        if end != "stopped":
            assert made.lender.leases() == ()
    finally:
        await made.close()
    await asyncio.sleep(0)
    assert asyncio.all_tasks() <= before | {asyncio.current_task()}


async def test_a_lease_ends_by_itself_and_belongs_to_its_borrower(lending: Place) -> None:
    lease = await lending.borrower.borrow("lender", ["read_file"], 60)
    thief = Borrower(Requests("thief", lending.bus, patience=5))
    thief.lead = "lead:t"
    replies = lending.bus.subscribe("thief", "thief", "thief")
    stolen = asyncio.create_task(thief.call(lease, "read_file", {}, UNLIMITED))
    thief.take((await anext(replies)).message)
    with pytest.raises(LeaseDenied, match="does not hold"):
        await stolen
    short = await lending.borrower.borrow("lender", ["read_file"], 0.001)
    lending.gate.clear()
    with pytest.raises(LeaseDenied):
        await lending.borrower.call(short, "read_file", {}, UNLIMITED)
    assert "expired" in [line.step for line in lending.lender.audit()]
    assert [each.id for each in lending.lender.leases()] == [lease.id]
