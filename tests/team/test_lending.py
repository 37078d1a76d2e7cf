"""Leases from both ends: what a lender refuses and forgets, and what a borrower believes."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from ba_tui.core.effects import READ_ONLY, UNLIMITED, AgentCeiling, Effect
from ba_tui.core.errors import StopTurn, StorageError
from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork import AgentMessage
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.teams.engine.approvals import Requests
from ba_tui.features.teams.engine.bus import MemoryBus
from ba_tui.features.teams.engine.leases import (
    ANSWERS,
    AT_ONCE,
    ENDED,
    LARGEST,
    LEASED,
    LONGEST,
    Borrower,
    Lease,
    LeaseDenied,
    Lender,
    LenderTools,
    asks_lender,
    ceiling_in,
    ceiling_out,
)
from ba_tui.features.teams.engine.messages import (
    Bid,
    Content,
    ContextRequest,
    Share,
    StatusUpdate,
    Trouble,
    content,
    message,
)


class Bus(MemoryBus):
    """Keeps what was published; ``full``: nobody can be told."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[AgentMessage] = []
        self.full = False
        self.stuck: str = ""
        """Whoever has this name is never told anything."""

    async def publish(self, topic: str, message: AgentMessage, *rest: Any, **options: Any) -> Any:
        if self.full:
            raise StorageError("The bus is full.")
        self.sent.append(message)
        if message.receiver == self.stuck:
            await asyncio.Event().wait()
        return await super().publish(topic, message, *rest, **options)


class House:
    """A lender of two tools, which is asked by messages."""

    def __init__(self, beat: float = 60.0, ceiling: AgentCeiling = UNLIMITED) -> None:
        self.bus = Bus()
        self.given: list[Mapping[str, Any]] = []
        self.ceilings: list[AgentCeiling] = []
        self.running: set[str] = set()
        self.gate = asyncio.Event()
        self.gate.set()
        self.text = "content"
        branch = Branch(Turn(), Transcript())
        schema = {"type": "object", "properties": {"path": {"type": "string", "description": "x" * 9_000}}}
        tools = {
            "read_file": Tool("read_file", "Reads a file. " * 900, schema, self._run, Effect.READ),
            "shell": Tool("shell", "Runs a command.", {"title": "Prüfe"}, self._run, Effect.EXECUTE),
        }

        async def at(work: Any) -> Any:
            return await work(branch)

        self.lender = Lender(
            "lender", self.bus, LenderTools(tools.get, ("read_file", "shell", "gone"), ceiling, at, beat)
        )

    async def _run(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        self.given.append(args)
        self.ceilings.append(call.branch.ceiling)
        self.running.add(call.id)
        try:
            await self.gate.wait()
        finally:
            self.running.remove(call.id)
        if self.text == "stop":
            raise StopTurn("Enough.", "Ask later.")
        return ToolResult(self.text, is_error=self.text == "wrong")

    async def ask(self, asked: ContextRequest, sender: str = "ann", team: str = "t", key: str = "") -> Content:
        """The answer to one message."""
        request = replace(message(asked, sender, "lender", team=team), idempotency_key=key)
        assert await self.lender.handle(request)
        answer = next(each for each in reversed(self.bus.sent) if each.correlation_id == request.id)
        kinds: dict[str, type[Any]] = {"error": Trouble, "bid": Bid}
        return content(kinds.get(answer.type, Share), answer)

    async def lease(self, **facts: Any) -> Content:
        facts = {"tools": ["read_file"], "seconds": 60, "lead": "lead:t"} | facts
        return await self.ask(ContextRequest("lease", facts=facts))

    async def call(
        self, lease: Any, tool: str = "read_file", key: str = "", sender: str = "ann", **facts: Any
    ) -> Content:
        facts = {"args": {"path": "a.csv"}, "ceiling": ceiling_out(UNLIMITED)} | facts
        return await self.ask(ContextRequest("call", tool, lease.key, facts), sender, key=key)

    def steps(self) -> list[str]:
        return [line.step for line in self.lender.audit()]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"lead": ""}, "Only members of a team"),
        ({"lead": "lead:other"}, "Only members of a team"),
        ({"tools": []}, "names tools, and seconds above 0"),
        ({"tools": "read_file"}, "names tools, and seconds above 0"),
        ({"seconds": 0}, "names tools, and seconds above 0"),
        ({"seconds": -1}, "names tools, and seconds above 0"),
        ({"seconds": "60"}, "names tools, and seconds above 0"),
        ({"tools": ["read_file", "gone"]}, "lender does not lend the tool gone"),
    ],
)
async def test_a_lease_that_is_asked_for_wrongly_is_refused_and_written_down(facts: dict[str, Any], said: str) -> None:
    house = House()
    told = await house.lease(**facts)
    assert isinstance(told, Trouble)
    assert (told.kind, said in told.message) == ("denied", True)
    assert house.lender.leases() == ()
    assert [(line.step, line.borrower) for line in house.lender.audit()] == [("denied", "ann")]
    assert said in house.lender.audit()[0].reason


@pytest.mark.parametrize(
    ("ceiling", "able"), [(READ_ONLY, ("read_file",)), (AgentCeiling(tools=frozenset({"shell"})), ("shell",))]
)
async def test_only_what_the_lender_itself_may_do_is_lent(ceiling: AgentCeiling, able: tuple[str, ...]) -> None:
    house = House(ceiling=ceiling)
    bid = await house.ask(ContextRequest("capability"))
    assert isinstance(bid, Bid)
    assert tuple(bid.tools) == able
    lent = [name for name in ("read_file", "shell") if isinstance(await house.lease(tools=[name]), Share)]
    assert tuple(lent) == able


async def test_a_lease_tells_how_its_tools_are_called_and_ends_within_the_hour() -> None:
    house = House()
    before = time.time()
    lease = await house.lease(tools=["read_file", "shell"], seconds=10 * LONGEST)
    assert isinstance(lease, Share)
    assert before + LONGEST <= lease.value["until"] <= time.time() + LONGEST
    described = lease.value["described"]
    assert (described["shell"]["effect"], described["read_file"]["effect"]) == ("execute", "read")
    assert described["shell"]["schema"] == '{"title": "Prüfe"}'
    assert len(described["read_file"]["description"]) < 4_100
    assert len(described["read_file"]["schema"]) < 4_100
    await asyncio.sleep(0)
    (told,) = [content(Share, each) for each in house.bus.sent if each.receiver == "lead:t"]
    assert told.kind == LEASED
    assert (told.value["step"], told.value["borrower"], told.value["tool"]) == ("leased", "ann", "read_file, shell")


async def test_a_lender_gives_so_many_leases_at_a_time() -> None:
    house = House()
    for _ in range(AT_ONCE):
        assert isinstance(await house.lease(), Share)
    told = await house.lease()
    assert isinstance(told, Trouble)
    assert f"has given {AT_ONCE} leases" in told.message
    assert await house.lender.revoke(house.lender.leases()[0].id)
    assert isinstance(await house.lease(), Share)
    await house.lender.close()
    assert house.lender.leases() == ()
    assert house.steps().count("revoked") == AT_ONCE + 1
    told_lead = [each for each in house.bus.sent if each.receiver == "lead:t"]
    assert len(told_lead) == house.steps().count("revoked") + house.steps().count("leased")
    await asyncio.sleep(0)
    assert not house.lender._telling


async def test_a_lease_that_ran_out_is_listed_no_more() -> None:
    house = House()
    lease = await house.lease(seconds=0.001)
    assert isinstance(lease, Share)
    while time.time() <= lease.value["until"]:  # noqa: ASYNC110 - the clock has no event
        await asyncio.sleep(0)
    assert house.lender.leases() == ()
    assert house.steps() == ["leased", "expired"]
    told = await house.call(lease)
    assert isinstance(told, Trouble)
    assert "does not hold any more" in told.message
    assert house.given == []


async def test_a_lender_leaves_though_nobody_can_be_told() -> None:
    house = House()
    for _ in range(2):
        await house.lease()
    errors: list[Mapping[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: errors.append(context))
    house.bus.full = True
    await house.lender.close()
    assert house.lender.leases() == ()
    assert house.steps() == ["leased", "leased", "revoked", "revoked"]
    short = Lease("short", "lender", "ann", ("shell",), 0.0, "lead:t")
    house.lender._note("expired", short, "shell")
    for _ in range(3):
        await asyncio.sleep(0)
    gc.collect()
    assert errors == []


async def until(reached: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not reached():  # noqa: ASYNC110 - what it waits for has no event
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("step", ["revoked", "expired", "team", "close"])
async def test_a_call_stops_with_its_lease(step: str) -> None:
    house = House()
    house.gate.clear()
    lease = await house.lease(seconds=0.5 if step == "expired" else 60)
    assert isinstance(lease, Share)
    call = asyncio.create_task(house.call(lease))
    await until(lambda: bool(house.running))
    match step:
        case "revoked":
            await house.lender.revoke(lease.key)
        case "team":
            assert await house.lender.handle(message(Share("t", kind=ENDED), "other", "lender", team="other"))
            assert house.lender.leases(), "the end of another team ends nothing"
            assert await house.lender.handle(message(Share("t", kind=ENDED), "lead:t", "lender", team="t"))
        case "close":
            await house.lender.close()
        case _:
            pass
    told = await call
    assert not house.running
    assert isinstance(told, Trouble)
    assert (told.kind, told.task, "it was stopped" in told.message) == ("denied", lease.key, True)
    assert house.steps() == ["leased", "called", "expired" if step == "expired" else "revoked"]
    assert house.lender.leases() == ()


async def test_a_lender_that_leaves_stops_all_calls_though_a_borrower_cannot_be_told() -> None:
    house = House()
    house.gate.clear()
    calls = [asyncio.create_task(house.call(await house.lease())) for _ in range(2)]
    await until(lambda: len(house.running) == 2)
    house.bus.stuck = "ann"
    closing = asyncio.create_task(house.lender.close())
    await until(lambda: not house.running)
    for task in (closing, *calls):
        task.cancel()
    await asyncio.gather(closing, *calls, return_exceptions=True)


async def test_a_borrower_is_told_of_the_end_and_why() -> None:
    house = House()
    lease = await house.lease()
    assert isinstance(lease, Share)
    await house.lender.revoke(lease.key, "Too much.")
    told = next(each for each in reversed(house.bus.sent) if each.receiver == "ann")
    assert content(Share, told).value == {"reason": "Too much."}
    borrower = Borrower(Requests("ann", house.bus))
    mine = Lease(lease.key, "lender", "ann", ("read_file",), time.time() + 60, "lead:t")
    assert borrower.holds(mine)
    assert not borrower.holds(replace(mine, until=time.time()))
    assert not borrower.take(message(Share(lease.key, kind="other"), "lender", "ann"))
    assert borrower.holds(mine)
    assert borrower.take(message(Share(lease.key, {"reason": "x"}, kind="revoked"), "thief", "ann"))
    assert borrower.holds(mine), "only its lender takes a lease back"
    assert borrower.take(told)
    assert not borrower.holds(mine)
    with pytest.raises(LeaseDenied, match=r"lender took the lease back. Too much\.$"):
        await borrower.call(mine, "read_file", {}, UNLIMITED)
    assert borrower.take(message(Share("other", "nothing", kind="revoked"), "lender", "ann"))
    with pytest.raises(LeaseDenied, match=r"lender took the lease back\.$"):
        await borrower.call(replace(mine, id="other"), "read_file", {}, UNLIMITED)


async def test_a_call_that_is_made_again_under_its_key_is_made_once_and_forgotten_at_last() -> None:
    house = House()
    lease = await house.lease()
    for _ in range(3):
        assert isinstance(await house.call(lease, key="one"), Share)
    assert len(house.given) == 1
    await house.call(lease, key="two")
    await house.call(lease, key="one", sender="bob")
    assert len(house.given) == 2, "another sender's key is another key, and holds no lease"
    for number in range(ANSWERS):
        await house.ask(ContextRequest("capability"), key=f"more-{number}")
    await house.call(lease, key="one")
    assert len(house.given) == 3
    assert not any(house.lender._running.values())


async def test_a_long_call_gives_signs_of_life_and_a_result_is_bounded() -> None:
    house = House(beat=0.01)
    house.text = "x" * (2 * LARGEST)
    lease = await house.lease()
    house.gate.clear()
    call = asyncio.create_task(house.call(lease))
    while not any(each.type == "status_update" for each in house.bus.sent):  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    sign = next(each for each in house.bus.sent if each.type == "status_update")
    assert content(StatusUpdate, sign).activity == "acting"
    house.gate.set()
    result = await call
    assert isinstance(result, Share)
    assert (result.kind, result.value["is_error"]) == ("result", False)
    assert LARGEST <= len(result.value["text"]) < LARGEST + 200
    house.text = "wrong"
    again = await house.call(lease)
    assert isinstance(again, Share)
    assert again.value == {"text": "wrong", "is_error": True}


@pytest.mark.parametrize(
    ("facts", "said"),
    [({"args": "x"}, "does not cover"), ({"ceiling": None}, "does not say"), ({"ceiling": {}}, "does not say")],
)
async def test_a_call_that_says_too_little_is_refused(facts: dict[str, Any], said: str) -> None:
    house = House()
    told = await house.call(await house.lease(), **facts)
    assert isinstance(told, Trouble)
    assert said in told.message
    assert house.given == []


async def test_a_call_runs_within_the_ceilings_of_both_and_may_end_its_turn() -> None:
    house = House(ceiling=AgentCeiling(without=frozenset({"web"})))
    lease = await house.lease()
    theirs = AgentCeiling(frozenset({Effect.READ}), frozenset({"read_file"}), outside=False)
    assert isinstance(await house.call(lease, ceiling=ceiling_out(theirs)), Share)
    assert house.ceilings == [AgentCeiling(theirs.effects, theirs.tools, False, frozenset({"web"}))]
    house.text = "stop"
    told = await house.call(lease)
    assert isinstance(told, Trouble)
    assert (told.kind, told.message, told.hint) == ("denied", "Enough.", "Ask later.")


@pytest.mark.parametrize(
    ("query", "ceiling", "bid"),
    [(" ", UNLIMITED, Bid(tools=("read_file", "shell"))), ("runs", READ_ONLY, Bid(reason="nothing that fits"))],
)
async def test_what_fits_is_offered_and_all_where_nothing_is_named(query: str, ceiling: AgentCeiling, bid: Bid) -> None:
    assert await House(ceiling=ceiling).ask(ContextRequest("capability", query)) == bid


async def test_what_is_no_business_of_leases_is_left_to_others() -> None:
    house = House()
    for ours in ("capability", "lease", "call"):
        assert asks_lender(message(ContextRequest(ours), "ann", "lender"))
    for other in ("context", "bids", "question"):
        assert not asks_lender(message(ContextRequest(other), "ann", "lender"))
    assert not await house.lender.handle(message(Share("key", "value"), "ann", "lender"))
    assert house.bus.sent == []


@pytest.mark.parametrize(
    "ceiling", [UNLIMITED, READ_ONLY, AgentCeiling(tools=frozenset({"a"}), without=frozenset({"b"}))]
)
def test_a_ceiling_is_the_same_at_the_other_end(ceiling: AgentCeiling) -> None:
    assert ceiling_in(ceiling_out(ceiling)) == ceiling


@pytest.mark.parametrize(
    "change", [{"outside": 1}, {"tools": "all"}, {"effects": ["fly"]}, {"effects": None}, {"without": 3}]
)
def test_a_ceiling_that_is_not_understood_allows_nothing(change: dict[str, Any]) -> None:
    with pytest.raises(LeaseDenied):
        ceiling_in(ceiling_out(UNLIMITED) | change)
