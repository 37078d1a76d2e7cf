"""A lead and many workers with scripted models on one bus: each agent has one task at a time until all are done."""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass, field
from statistics import quantiles

import psutil

from ba_tui.core.agent import Agent, StepLimit, run_child
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.teams.engine.bus import AcceptedResults, MessageBus
from ba_tui.features.teams.engine.messages import TaskRequest, TaskResponse, inbox, message, work_topic
from ba_tui.features.teams.engine.worker import Worker, WorkerFacts
from tests.script import Script, says

ROLE = "analyst"
PROMPT = "Count the orders of March in sales.csv, by region, and say which region is the best one. " * 5
ANSWER = "North has 412 orders, South 380, East 295, West 301. North is the best one. " * 8


@dataclass
class Figures:
    """``delays`` of messages from publishing to delivery and ``rounds`` from request to response, in seconds."""

    messages: int = 0
    seconds: float = 0.0
    delays: list[float] = field(default_factory=list[float])
    rounds: list[float] = field(default_factory=list[float])
    megabytes: float = 0.0

    def row(self, name: str) -> str:
        rate = self.messages / self.seconds
        tasks = f"{len(self.rounds) / self.seconds:,.0f}" if self.rounds else "—"
        delay = f"{_p95(self.delays) * 1000:.1f} ms"
        return f"| {name} | {rate:,.0f} | {tasks} | {delay} | {self.megabytes:.0f} MB |"


def _p95(values: list[float]) -> float:
    return quantiles(values, n=20)[-1] if len(values) > 1 else 0.0


def megabytes() -> float:
    return psutil.Process().memory_info().rss / 1e6


async def piped(bus: MessageBus, most: int) -> Figures:
    """One sender and one reader, with at most 64 messages between them."""
    found, room = Figures(), asyncio.Semaphore(64)
    reader = bus.subscribe("pipe", "reader", "reader")

    async def read() -> None:
        for _ in range(most):
            delivery = await anext(reader)
            found.delays.append(time.time() - delivery.message.at)
            await bus.ack(delivery, "reader")
            room.release()

    start, reading = time.perf_counter(), asyncio.create_task(read())
    for number in range(most):
        await room.acquire()
        await bus.publish("pipe", message(TaskRequest(str(number), PROMPT), "lead", "pipe"))
    await reading
    found.messages, found.seconds, found.megabytes = most, time.perf_counter() - start, megabytes()
    return found


async def answered(request: TaskRequest, key: str, seat: object, ask: object) -> TaskResponse:
    """An agent with a scripted model works on the request, in a transcript of its own."""
    branch = Branch(Turn(), Transcript())
    agent = Agent(Script(says(ANSWER)), (), "You are an analyst.", (StepLimit(10),))
    result = await run_child(agent, branch.fork(ROLE, agent.ceiling), request.prompt)
    return TaskResponse(request.task, "done", result.message.text, agent_id=result.agent_id)


async def work(bus: MessageBus, accepted: AcceptedResults, agents: int, prefix: str) -> None:
    """So many workers until cancelled."""
    facts = [WorkerFacts(f"{prefix}-{number}", ROLE, heartbeat=5, reads=True) for number in range(agents)]
    workers = [Worker(each, bus, accepted, answered, lambda text: None) for each in facts]
    await asyncio.gather(*(each.run() for each in workers))


async def led(bus: MessageBus, agents: int, tasks: int) -> Figures:
    """Hand out ``tasks``, as many at a time as there are agents, and wait for all responses."""
    found, sent = Figures(), dict[str, float]()
    answers = bus.subscribe(inbox("lead"), "lead", "lead")

    async def send(number: int) -> None:
        request = message(TaskRequest(str(number), PROMPT), "lead", f"role:{ROLE}")
        sent[request.id] = time.perf_counter()
        await bus.publish(work_topic(ROLE), request)

    start, begun = time.perf_counter(), min(agents, tasks)
    for number in range(begun):
        await send(number)
    while len(found.rounds) < tasks:
        delivery = await anext(answers)
        await bus.ack(delivery, "lead")
        found.delays.append(time.time() - delivery.message.at)
        if delivery.message.type == "task_response":
            found.rounds.append(time.perf_counter() - sent.pop(delivery.message.correlation_id))
            if begun < tasks:
                await send(begun)
                begun += 1
    found.seconds = time.perf_counter() - start
    found.messages = tasks + len(found.delays)
    found.megabytes = megabytes()
    return found


async def together(bus: MessageBus, accepted: AcceptedResults, agents: int, tasks: int) -> Figures:
    """The lead and all workers in this process."""
    working = asyncio.create_task(work(bus, accepted, agents, "w"))
    found = await led(bus, agents, tasks)
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working
    return found
