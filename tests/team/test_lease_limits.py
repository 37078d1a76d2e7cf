"""Leases at their limits: what is no request, when they end, what is refused, what is told, and a lender that stops."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ba_tui.core.effects import READ_ONLY, UNLIMITED, AgentCeiling, Effect
from ba_tui.core.results import ToolResult
from ba_tui.core.teamwork import AgentMessage
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.teams.engine.leases import (
    ANSWERS,
    ENDED,
    LEASED,
    LONGEST,
    NAMED,
    Lender,
    LenderTools,
    asks_lender,
    ceiling_out,
)
from ba_tui.features.teams.engine.messages import Bid, ContextRequest, Share, Trouble, content, message
from tests.team.test_lending import Bus, House, until


class Shop:
    """A lender of the tools in ``tools``, which the test may change."""

    def __init__(self, *names: str) -> None:
        self.house = House()
        self.branches: list[str] = []
        self.tools: dict[str, Tool] = {}
        branch = Branch(Turn(), Transcript())

        async def at(work: Any) -> Any:
            return await work(branch)

        lent = names or ("copy",)
        self.house.lender = Lender("lender", self.house.bus, LenderTools(self.tools.get, lent, UNLIMITED, at, 60.0))
        self.add("copy")

    def add(self, name: str, **facts: Any) -> None:
        about = ToolFacts(target="path", **facts)
        self.tools[name] = Tool(name, "Copies.", {}, self._run, Effect.READ, facts=about)

    async def _run(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        self.branches.append(call.branch.name)
        return ToolResult("done")


def told(bus: Bus, receiver: str = "lead:t") -> list[dict[str, Any]]:
    """What the lead was told of leases."""
    shares = [content(Share, each) for each in bus.sent if each.receiver == receiver]
    return [share.value for share in shares if share.kind == LEASED]


async def passed(steps: int = 3) -> None:
    for _ in range(steps):
        await asyncio.sleep(0)


@pytest.mark.parametrize("kind", ["capability", "lease", "call", ENDED])
def test_only_requests_and_the_end_of_a_team_are_for_lenders(kind: str) -> None:
    shared = message(Share("key", kind=kind), "ann", "lender")
    assert asks_lender(shared) == (kind == ENDED)
    asked = message(ContextRequest("call"), "ann", "lender")
    assert asks_lender(replace(asked, content={**asked.content, "kind": kind})) == (kind != ENDED)


async def test_a_lease_ends_at_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    house = House()
    now = [1_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    lease = await house.lease(seconds=0.5)
    assert isinstance(lease, Share)
    assert lease.value["until"] == 1_000.5
    whole = await house.lease(seconds=2 * LONGEST)
    assert isinstance(whole, Share)
    assert whole.value["until"] == 1_000 + LONGEST
    now[0] = 1_000.25
    assert [each.id for each in house.lender.leases()] == [lease.key, whole.key]
    now[0] = 1_000.5
    assert [each.id for each in house.lender.leases()] == [whole.key]
    assert house.steps() == ["leased", "leased", "expired"]
    await passed()
    assert [each["step"] for each in told(house.bus)] == ["leased", "leased", "expired"]


async def test_answers_are_kept_for_just_so_many_requests() -> None:
    house = House()
    lease = await house.lease()
    for _ in range(2):
        await house.call(lease, key="one")
    # The answers to the lease and to the call are two of them.
    for number in range(ANSWERS - 2):
        await house.ask(ContextRequest("capability"), key=f"more-{number}")
    await house.call(lease, key="one")
    assert len(house.given) == 1
    for number in range(2):
        await house.ask(ContextRequest("capability"), key=f"last-{number}")
    await house.call(lease, key="one")
    assert len(house.given) == 2


async def test_a_lease_that_there_is_not_can_not_be_revoked() -> None:
    house = House()
    lease = await house.lease()
    assert isinstance(lease, Share)
    assert await house.lender.revoke("another") is False
    assert [each.id for each in house.lender.leases()] == [lease.key]
    assert await house.lender.revoke(lease.key, "Enough.") is True
    assert await house.lender.revoke(lease.key) is False
    assert house.steps() == ["leased", "revoked"]
    await passed()
    assert (told(house.bus)[-1]["step"], told(house.bus)[-1]["reason"]) == ("revoked", "Enough.")


async def test_the_end_of_a_team_ends_its_leases_alone() -> None:
    house = House()
    mine = await house.lease()
    theirs = await house.ask(
        ContextRequest("lease", facts={"tools": ["shell"], "seconds": 60, "lead": "lead:u.2"}), "bob", team="u"
    )
    assert isinstance(theirs, Share)
    assert isinstance(mine, Share)
    for sender in ("ann", "", "lead:", "lead:v"):
        assert await house.lender.handle(message(Share("t", kind=ENDED), sender, "lender"))
    assert len(house.lender.leases()) == 2
    assert await house.lender.handle(message(Share("u", kind=ENDED), "lead:u", "lender", team="u"))
    assert [each.id for each in house.lender.leases()] == [mine.key]
    last = next(each for each in reversed(house.bus.sent) if each.receiver == "bob")
    assert content(Share, last).value == {"reason": "The team has ended."}


async def test_what_is_refused_is_told_the_lead_of_the_lease() -> None:
    house = House()
    lease = await house.lease()
    assert isinstance(lease, Share)
    for refused in (
        await house.call(lease, sender="bob"),
        await house.call(lease, "shell"),
        await house.call(lease, "x" * 900),
        await house.call(lease, args=None),
        await house.call(Share("guessed")),
    ):
        assert isinstance(refused, Trouble)
        assert len(refused.message) < NAMED + 60
    lines = [(line.borrower, line.lease, line.tool[:9]) for line in house.lender.audit() if line.step == "denied"]
    assert lines == [
        ("bob", lease.key, "read_file"),
        ("ann", lease.key, "shell"),
        ("ann", lease.key, "x" * 9),
        ("ann", lease.key, "read_file"),
        ("ann", "guessed", "read_file"),
    ]
    await passed()
    steps = [(each["step"], each["borrower"]) for each in told(house.bus)]
    assert steps == [("leased", "ann"), ("denied", "bob"), *[("denied", "ann")] * 3], (
        "no lead is known of the guessed one"
    )
    assert house.given == []


@pytest.mark.parametrize(
    "ceiling", [READ_ONLY, AgentCeiling(tools=frozenset({"read_file"})), AgentCeiling(without=frozenset({"shell"}))]
)
async def test_who_may_not_use_a_tool_may_not_borrow_it(ceiling: AgentCeiling) -> None:
    house = House()
    lease = await house.lease(tools=["shell", "read_file"])
    refused = await house.call(lease, "shell", ceiling=ceiling_out(ceiling))
    assert isinstance(refused, Trouble)
    assert refused.message == "ann itself may not do what shell does, so it may not borrow that either."
    assert isinstance(await house.call(lease, ceiling=ceiling_out(ceiling)), Share)
    assert len(house.given) == 1


async def test_a_tool_that_is_gone_or_starts_agents_is_not_lent() -> None:
    shop = Shop("copy", "asks", "below")
    for name, facts in (("mine", {}), ("asks", {"subagents": False}), ("below", {"below": lambda args: Effect.READ})):
        shop.add(name, **facts)
        refused = await shop.house.lease(tools=[name])
        assert isinstance(refused, Trouble)
        assert refused.message == f"lender does not lend the tool {name}."
    assert await shop.house.ask(ContextRequest("capability")) == Bid(tools=("copy",))
    lease = await shop.house.lease(tools=["copy"])
    assert isinstance(await shop.house.call(lease, "copy"), Share)
    del shop.tools["copy"]
    refused = await shop.house.call(lease, "copy")
    assert isinstance(refused, Trouble)
    assert refused.message == "The lease does not cover the tool copy."


async def test_a_call_says_what_it_is_about_and_has_a_branch_of_its_own() -> None:
    shop = Shop()
    lease = await shop.house.lease(tools=["copy"])
    for _ in range(2):
        assert isinstance(await shop.house.call(lease, "copy", args={"path": "a\nb.csv"}), Share)
    line = shop.house.lender.audit()[-1]
    assert (line.step, line.tool, line.about, line.reason) == ("called", "copy", "a b.csv", "")
    await passed()
    assert told(shop.house.bus)[-1]["about"] == "a b.csv"
    assert all(re.fullmatch(r"main/lent-[0-9a-f]{8}", name) for name in shop.branches)
    assert len(set(shop.branches)) == 2


async def test_a_call_ends_when_the_lender_itself_is_stopped() -> None:
    house = House()
    house.gate.clear()
    lease = await house.lease()
    call = asyncio.create_task(house.call(lease))
    await until(lambda: bool(house.running))
    (answering,) = [each for each in house.lender._answers.values() if not each.done()]
    answering.cancel()
    await asyncio.wait({call})
    assert call.cancelled()
    await until(lambda: not house.running)
    assert len(house.lender.leases()) == 1, "the lease stays"
    assert house.steps() == ["leased", "called"]
    assert not any(house.lender._running.values())


class Broken(Bus):
    """A bus that fails in a way that no bus should, once it is ``broken``."""

    broken = False

    async def publish(self, topic: str, message: AgentMessage, *rest: Any, **options: Any) -> Any:
        if self.broken and message.receiver == "lead:t":
            raise ZeroDivisionError
        return await super().publish(topic, message, *rest, **options)


async def test_a_lender_leaves_though_the_bus_is_broken() -> None:
    house = House()
    bus = Broken()
    house.bus = house.lender._bus = bus
    for _ in range(2):
        await house.lease()
    await passed()
    bus.broken = True
    await house.lender.close()
    assert house.lender.leases() == ()
    revoked = [content(Share, each).kind for each in bus.sent if each.receiver == "ann"]
    assert revoked.count("revoked") == 2


async def test_a_lender_that_leaves_has_told_the_lead_all() -> None:
    house = House()
    gate = asyncio.Event()
    slow: list[str] = []
    publish = house.bus.publish

    class Slow(Bus):
        async def publish(self, topic: str, message: AgentMessage, *rest: Any, **options: Any) -> Any:
            if message.receiver == "lead:t":
                await gate.wait()
                slow.append(content(Share, message).value["step"])
            return await publish(topic, message, *rest, **options)

    house.lender._bus = Slow()
    for _ in range(2):
        await house.ask(ContextRequest("lease", facts={"tools": ["shell"], "seconds": 60, "lead": "lead:t"}))
    closing = asyncio.create_task(house.lender.close())
    await passed()
    assert not closing.done()
    gate.set()
    await closing
    assert sorted(slow) == ["leased", "leased", "revoked", "revoked"]
