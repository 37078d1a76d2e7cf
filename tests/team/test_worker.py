"""A worker on a bus in memory: what it takes, answers, refuses, and what it leaves to others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from ba_tui.core.teamwork import PROTOCOL, AgentMessage
from ba_tui.features.teams.engine.bus import MemoryAccepted, MemoryBus
from ba_tui.features.teams.engine.messages import (
    WORKERS,
    BusLimits,
    ContextRequest,
    Heartbeat,
    StatusUpdate,
    TaskRequest,
    TaskResponse,
    content,
    inbox,
    message,
    work_topic,
)
from ba_tui.features.teams.engine.worker import OtherVersion, Worker, WorkerFacts

LEAD = "lead-1"
QUICK = BusLimits(lease=0.5)


class Place:
    """A bus, what is accepted, an inbox of the orchestrator, and workers that are let go by ``gate``."""

    def __init__(self) -> None:
        self.bus = MemoryBus(QUICK)
        self.accepted = MemoryAccepted()
        self.inbox = self.bus.subscribe(inbox(LEAD), LEAD, LEAD)
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun = asyncio.Event()
        self.told: list[str] = []
        self.did: list[tuple[str, str]] = []

    def worker(self, name: str, *, reads: bool = True, outcome: str = "done") -> Worker:
        async def do(request: TaskRequest, key: str, seat: object, ask: object) -> TaskResponse:
            self.did.append((name, request.task))
            self.begun.set()
            await self.gate.wait()
            text = f"by {name}" if request.task != "long" else "x" * 1_400_000
            return TaskResponse(request.task, "done" if outcome == "done" else "error", text)

        facts = WorkerFacts(name, "analyst", ("sql",), heartbeat=0.1, lease=QUICK.lease, reads=reads)
        return Worker(facts, self.bus, self.accepted, do, self.told.append)

    async def send(self, task: str, key: str = "", to: str = "", **more: object) -> AgentMessage:
        made = message(replace(TaskRequest(task, "count"), **more), LEAD, to or "role:analyst")  # pyright: ignore[reportArgumentType]
        topic = inbox(to) if to else work_topic("analyst")
        return await self.bus.publish(topic, replace(made, idempotency_key=key))

    async def answer(self, kind: str = "task_response") -> AgentMessage:
        async for delivery in self.inbox:
            await self.bus.ack(delivery, LEAD)
            if delivery.message.type == kind:
                return delivery.message
        raise AssertionError


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    made = Place()
    yield made
    await made.bus.close()


async def test_a_worker_pulls_works_and_answers(place: Place) -> None:
    watch = place.bus.subscribe(WORKERS, "watch", "watch")
    sent = [await place.send("1"), await place.send("2", key="k2")]
    work = asyncio.create_task(place.worker("w").run())
    found = [await place.answer(), await place.answer()]
    assert [each.correlation_id for each in found] == [each.id for each in sent]
    assert [content(TaskResponse, each).worker for each in found] == ["w", "w"]
    beat = content(Heartbeat, (await anext(watch)).message)
    assert (beat.role, beat.capabilities) == ("analyst", ("sql",))
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert place.bus.waiting(work_topic("analyst")) == 0


async def test_the_first_result_of_a_task_counts_and_is_sent_again(place: Place) -> None:
    """Its request was handed out twice: one worker did it, and the answer is the same for both."""
    first, again = await place.send("1", key="k"), await place.send("1", key="k")
    assert await place.worker("a").run(once=True) == 1
    one = await place.answer()
    work = asyncio.create_task(place.worker("b").run())
    other = await place.answer()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    assert [each.correlation_id for each in (one, other)] == [first.id, again.id]
    assert [content(TaskResponse, each).result for each in (one, other)] == ["by a", "by a"]
    assert place.did == [("a", "1")]


async def test_two_that_did_the_same_work_agree_on_one_result(place: Place) -> None:
    await place.send("1", key="k")
    await place.send("1", key="k")
    place.gate.clear()
    work = [asyncio.create_task(place.worker(name).run(once=True)) for name in ("a", "b")]
    for _ in work:
        await place.answer("status_update")
    place.gate.set()
    results = {content(TaskResponse, await place.answer()).result for _ in range(2)}
    await asyncio.gather(*work)
    assert len(results) == 1


@pytest.mark.parametrize("reads", [True, False])
async def test_what_may_have_changed_something_is_not_begun_twice(place: Place, reads: bool) -> None:
    place.gate.clear()
    sent = await place.send("1")
    gone = asyncio.create_task(place.worker("gone", reads=reads).run())
    await place.begun.wait()
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    place.gate.set()
    other = asyncio.create_task(place.worker("other", reads=reads).run())
    found = content(TaskResponse, await place.answer())
    if reads:
        assert (found.outcome, found.result) == ("done", "by other")
    else:
        assert found.outcome == "refused"
        assert "gone had begun this task" in found.error
        await place.send("1", key=sent.id, again=True)
        assert content(TaskResponse, await place.answer()).result == "by other"
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)


async def test_a_failure_that_was_told_lets_another_try(place: Place) -> None:
    await place.send("1", key="k")
    await place.worker("a", reads=False, outcome="error").run(once=True)
    assert content(TaskResponse, await place.answer()).outcome == "error"
    await place.send("1", key="k")
    await place.worker("b", reads=False).run(once=True)
    assert content(TaskResponse, await place.answer()).result == "by b"


async def test_long_work_keeps_its_lease(place: Place) -> None:
    place.gate.clear()
    await place.send("1")
    work = [asyncio.create_task(place.worker(name).run()) for name in ("a", "b")]
    await place.begun.wait()
    # Three leases long.
    await asyncio.sleep(QUICK.lease * 3)
    place.gate.set()
    await place.answer()
    assert len(place.did) == 1
    for each in work:
        each.cancel()
    await asyncio.gather(*work, return_exceptions=True)


async def test_a_stop_ends_after_the_task_and_a_second_one_at_once(place: Place) -> None:
    place.gate.clear()
    await place.send("1")
    await place.send("2")
    worker = place.worker("a")
    work = asyncio.create_task(worker.run())
    await place.begun.wait()
    worker.stop()
    assert any("Ctrl+C again" in line for line in place.told)
    place.gate.set()
    assert await work == 1
    place.gate.clear()
    place.begun.clear()
    second = place.worker("b")
    work = asyncio.create_task(second.run())
    await place.begun.wait()
    second.stop()
    second.stop()
    assert await work == 0
    place.gate.set()
    assert await place.worker("c").run(once=True) == 1
    assert [content(TaskResponse, await place.answer()).result for _ in range(2)] == ["by a", "by c"]


async def test_work_that_is_taken_back_ends_without_an_answer(place: Place) -> None:
    place.gate.clear()
    sent = await place.send("1", to="w")
    work = asyncio.create_task(place.worker("w").run())
    await place.begun.wait()
    back = replace(message(StatusUpdate("1", "cancelled"), LEAD, "w"), correlation_id=sent.id)
    await place.bus.publish(inbox("w"), back)
    place.gate.set()
    await place.send("2", to="w")
    assert content(TaskResponse, await place.answer()).task == "2"
    await place.bus.publish(inbox("w"), message(ContextRequest("bids", "sql", "3"), LEAD, "w"))
    assert (await place.answer("bid")).content["task"] == "3"
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)


@pytest.mark.parametrize("newer", [True, False])
async def test_another_version_is_said_on_both_sides(place: Place, newer: bool) -> None:
    made = message(TaskRequest("1", "count"), LEAD, "role:analyst")
    protocol = PROTOCOL + 1 if newer else PROTOCOL - 1
    await place.bus.publish(work_topic("analyst"), replace(made, protocol=protocol))
    work = asyncio.create_task(place.worker("w").run())
    told = await place.answer("error")
    assert told.content["kind"] == "protocol"
    assert f"version {protocol} of the team protocol" in told.content["message"]
    assert any(f"version {protocol} of the team protocol" in line for line in place.told)
    if newer:
        # Another worker may understand it, so this one leaves.
        with pytest.raises(OtherVersion):
            await work
        assert place.bus.waiting(work_topic("analyst")) == 1
    else:
        assert (await place.answer("error")).content["kind"] == "dead_letter"
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def test_what_is_wrong_or_late_is_answered(place: Place) -> None:
    bad = AgentMessage(LEAD, "role:analyst", "task_request", {"task": 1})
    await place.bus.publish(work_topic("analyst"), bad)
    work = asyncio.create_task(place.worker("w").run())
    assert (await place.answer("error")).content["kind"] == "invalid"
    await place.send("1", deadline=1.0)
    assert content(TaskResponse, await place.answer()).outcome == "limit"
    assert place.did == []
    await place.send("long")
    found = content(TaskResponse, await place.answer())
    assert found.outcome == "error"
    assert found.error == "The message is 1.4 MB, at most 1 MB."
    await place.send("2")
    assert content(TaskResponse, await place.answer()).result == "by w"
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
