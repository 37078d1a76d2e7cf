"""A worker: a member in a process of its own, which pulls work of its role, does one task at a time, and answers.

A task runs at least once, and its first stored result is final: a second worker sends that result again. A task that
may have changed something is not begun a second time without ``again`` in its request.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeAlias

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.questions import Question, Reply
from ba_tui.core.teamwork import EVERYBODY, PROTOCOL, AgentActivity, AgentMessage, MessageType, Role
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.approvals import Approvals, Requests
from ba_tui.features.teams.engine.bus import AcceptedResults, Deliveries, Delivery, MessageBus
from ba_tui.features.teams.engine.leases import Borrower, Lender, asks_lender
from ba_tui.features.teams.engine.local_members import Seat
from ba_tui.features.teams.engine.messages import (
    TAKERS,
    WORKERS,
    Bid,
    Content,
    ContextRequest,
    Heartbeat,
    Share,
    StatusUpdate,
    TaskRequest,
    TaskResponse,
    Trouble,
    check_protocol,
    content,
    inbox,
    message,
    team_of,
    work_topic,
)
from ba_tui.features.teams.engine.shared_context import Items, SharedContext

Ask: TypeAlias = Callable[[Question, str], Awaitable[Reply]]
"""Asks the user at the lead a question of the agent with the given name."""
Do: TypeAlias = Callable[[TaskRequest, str, Seat | None, Ask | None], Awaitable[TaskResponse]]
"""Does a task, given its idempotency key, the seat in the team, and who answers questions: None if all are denied. The
response reports every outcome, including failures.
"""
Tell: TypeAlias = Callable[[str], object]
LINE = 80
"""Maximum characters of a description in a log line."""


@frozen
class WorkerFacts:
    """``name`` is unique on the server. ``heartbeat`` and ``lease`` in seconds. ``reads``: the agent of the role is
    read-only, so a task may be begun again. ``messages``: the types that its role may send; ``items`` returns a team's
    shared items. ``patience``: see Borrower; ``lender`` answers borrowers. ``asks``: approvals are requested from the
    lead, else they are denied.
    """

    name: str
    role: str
    capabilities: tuple[str, ...] = ()
    host: str = ""
    pid: int = 0
    version: str = ""
    model: str = ""
    heartbeat: float = 5.0
    lease: float = 30.0
    reads: bool = False
    messages: tuple[MessageType, ...] = ()
    items: Callable[[str], Items] | None = None
    patience: float = 30.0
    lender: Lender | None = None
    asks: bool = False


class OtherVersion(UsageError):
    """The server has messages of a newer ba."""

    kind = "protocol"


class Worker:
    """Does the work of one role. ``tell`` gets a line for each step."""

    def __init__(self, facts: WorkerFacts, bus: MessageBus, accepted: AcceptedResults, do: Do, tell: Tell) -> None:
        self._facts = facts
        self._bus = bus
        self._accepted = accepted
        self._do = do
        self._tell = tell
        self._held: dict[str, tuple[Delivery, str]] = {}
        """What is worked on or waits here, by token: its lease is renewed."""
        self._direct: asyncio.Queue[Delivery] = asyncio.Queue()
        self._stopping = asyncio.Event()
        self._now: tuple[AgentMessage, TaskRequest] | None = None
        self._work: asyncio.Task[TaskResponse] | None = None
        self._seat: Seat | None = None
        self._requests = Requests(facts.name, bus, facts.patience)
        self._approvals: Approvals | None = None
        self._withdrawn = False
        self._done = 0
        self._lent: set[asyncio.Task[None]] = set()

    async def run(self, *, once: bool = False) -> int:
        """Work until stopped, or until one task is done. Return the number of tasks done.

        Raises:
            OtherVersion: other members use a newer protocol. StorageError: the server can't be used.
        """
        shared = self._bus.subscribe(work_topic(self._facts.role), TAKERS, self._facts.name)
        own = self._bus.subscribe(inbox(self._facts.name), self._facts.name, self._facts.name)
        beside = [self._beat(), self._renew(), self._listen(own)]
        tasks = [asyncio.create_task(each) for each in beside]
        try:
            await self._take(shared, tasks[-1], once=once)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if self._facts.lender:
                await self._facts.lender.close()
            with contextlib.suppress(BaError):
                # Unfinished work goes to another worker immediately.
                await shared.aclose()
                await own.aclose()
                await self._sign_of_life("finished")
        return self._done

    def stop(self) -> None:
        """End after the current task; a second call ends it immediately."""
        if self._stopping.is_set() and self._work:
            self._work.cancel()
            return
        self._stopping.set()
        if self._now:
            self._tell("Stopping after this task. Press Ctrl+C again to stop now; another worker then does it.")

    async def _take(self, shared: Deliveries, listening: asyncio.Task[None], *, once: bool) -> None:
        async def work() -> tuple[Delivery, str]:
            return await anext(shared), TAKERS

        async def direct() -> tuple[Delivery, str]:
            return await self._direct.get(), self._facts.name

        stop = asyncio.create_task(self._stopping.wait())
        sources: dict[asyncio.Task[tuple[Delivery, str]], Callable[[], Coroutine[Any, Any, tuple[Delivery, str]]]] = {}
        sources |= {asyncio.create_task(each()): each for each in (work, direct)}
        try:
            while not self._stopping.is_set():
                await asyncio.wait({*sources, stop, listening}, return_when=asyncio.FIRST_COMPLETED)
                if listening.done():
                    listening.result()
                for task in [each for each in sources if each.done()]:
                    again = sources.pop(task)
                    await self._handled(*task.result())
                    if once and self._done:
                        return
                    sources[asyncio.create_task(again())] = again
        except StopAsyncIteration:
            return
        finally:
            ending: list[asyncio.Task[Any]] = [*sources, stop]
            for task in ending:
                task.cancel()
            await asyncio.gather(*ending, return_exceptions=True)

    async def _handled(self, delivery: Delivery, group: str) -> None:
        """Process a delivery and acknowledge it. Raises OtherVersion, StorageError."""
        received = delivery.message
        if self._stopping.is_set():
            # The withdrawal arrived during the previous task.
            return
        try:
            check_protocol(received)
            request = content(TaskRequest, received)
        except UsageError as error:
            await self._refuse(delivery, group, error)
            return
        self._held[delivery.token] = (delivery, group)
        try:
            if await self._answered(received, request):
                await self._bus.ack(delivery, group)
        except UsageError as error:
            # Its result is too large for a message, for example: other workers would fail in the same way.
            self._tell(error.with_hint)
            name = self._facts.name
            failed = TaskResponse(request.task, "error", error=str(error), hint=error.hint, worker=name)
            await self._send(failed, received)
            await self._bus.ack(delivery, group)
        finally:
            del self._held[delivery.token]

    async def _refuse(self, delivery: Delivery, group: str, error: UsageError) -> None:
        received = delivery.message
        other = received.protocol != PROTOCOL
        self._tell(error.with_hint)
        await self._send(Trouble("protocol" if other else "invalid", str(error), error.hint), received)
        if received.protocol > PROTOCOL:
            # A worker with that version can do the task; this one must not consume it.
            raise OtherVersion(str(error), error.hint) from error
        await self._bus.dead(delivery, group, str(error))

    async def _answered(self, received: AgentMessage, request: TaskRequest) -> bool:
        """Answer a request; return whether it is settled."""
        key = received.idempotency_key or received.id
        what = f"task {one_line(request.task, LINE)} of {received.sender}"
        if earlier := await self._accepted.find(key):
            self._tell(f"Result of {what} was there already; sent again.")
            await self._bus.publish(inbox(received.sender), _readdressed(earlier, received))
            return True
        if request.deadline and request.deadline <= time.time():
            self._tell(f"The deadline of {what} has passed.")
            late = TaskResponse(request.task, "limit", error="Its deadline had passed.", worker=self._facts.name)
            await self._send(late, received)
            return True
        before = await self._accepted.begin(key, self._facts.name)
        if before and not (self._facts.reads or request.again):
            self._tell(f"Refused {what}: {before} had begun it and may have changed something.")
            await self._send(self._unsafe(request, before), received)
            return True
        self._tell(f"Took {what}: {one_line(request.description or request.prompt, LINE)}")
        return await self._performed(received, request, key, what)

    async def _performed(self, received: AgentMessage, request: TaskRequest, key: str, what: str) -> bool:
        self._now, self._withdrawn, began = (received, request), False, time.monotonic()
        self._seat = self._seated(received, request)
        role = Role(self._facts.role, messages=self._facts.messages)
        self._approvals = Approvals(self._requests, role, received, self._tell) if self._facts.asks else None
        ask = self._approvals.ask if self._approvals else None
        self._work = asyncio.ensure_future(self._do(request, key, self._seat, ask))
        doing = StatusUpdate(request.task, "thinking", one_line(request.description or request.task, LINE))
        try:
            await self._send(doing, received)
            await asyncio.wait({self._work})
            if self._work.cancelled():
                self._tell(f"Stopped {what}{': it was taken back' if self._withdrawn else '; another worker does it'}.")
                if self._withdrawn:
                    await self._accepted.ended(key)
                return self._withdrawn
            response = replace(self._work.result(), worker=self._facts.name, seconds=time.monotonic() - began)
        finally:
            if not self._work.done():
                self._work.cancel()
                await asyncio.gather(self._work, return_exceptions=True)
            self._now = self._work = self._seat = self._approvals = None
        answer = replace(self._said(response, received), correlation_id=received.id)
        if response.outcome == "done":
            answer = _readdressed(await self._accepted.first(key, answer), received)
        await self._bus.publish(inbox(received.sender), answer)
        await self._accepted.ended(key)
        self._done += 1
        why = f": {one_line(response.error, 200)}" if response.error else ""
        self._tell(f"Ended {what} in {response.seconds:.1f} s, {response.outcome}{why}")
        return True

    def _seated(self, received: AgentMessage, request: TaskRequest) -> Seat | None:
        """Return the worker's seat in the requesting team; None if its members share nothing."""
        team, facts = team_of(received.sender), self._facts
        if facts.items is None or not team or request.apart:
            return None
        shared = SharedContext(facts.items(team), self._bus, team, facts.name)
        seat = Seat(Borrower(self._requests), Role(facts.role, messages=facts.messages), team, shared)
        seat.begin(received.sender, request.task)
        return seat

    def _unsafe(self, request: TaskRequest, before: str) -> TaskResponse:
        text = f"{before} had begun this task and did not end it; it may have changed something."
        hint = "Look at what it changed, then hand the task out again."
        return TaskResponse(
            request.task, "refused", error=text, hint=hint, asks=(f"{text} Do it again?",), worker=self._facts.name
        )

    async def _listen(self, own: Deliveries) -> None:
        """Read the worker's inbox: work, requests for bids, withdrawals."""
        name = self._facts.name
        async for delivery in own:
            received = delivery.message
            if received.type == "task_request":
                self._held[delivery.token] = (delivery, name)
                await self._direct.put(delivery)
                continue
            with contextlib.suppress(UsageError):
                check_protocol(received)
                if self._of_leases(received):
                    await self._bus.ack(delivery, name)
                    continue
                match received.type:
                    case "status_update" if content(StatusUpdate, received).activity == "cancelled":
                        self._withdraw(received)
                    case "context_request" if (asked := content(ContextRequest, received)).kind == "bids":
                        await self._send(self._bid(asked), received)
                    case "information_share" if self._seat and received.sender == self._seat.lead:
                        self._seat.hear(content(Share, received))
                    case _:
                        pass
            await self._bus.ack(delivery, name)

    def _of_leases(self, received: AgentMessage) -> bool:
        """Process the message if it is about lent tools; return whether it was. A call runs in the background and is
        not delivered again meanwhile.
        """
        if (self._seat and self._seat.borrower.take(received)) or self._requests.take(received):
            return True
        if self._facts.lender is None or not asks_lender(received):
            return False
        task = asyncio.create_task(self._lend(self._facts.lender, received))
        self._lent.add(task)
        task.add_done_callback(self._lent.discard)
        return True

    async def _lend(self, lender: Lender, received: AgentMessage) -> None:
        asked = received.content
        if asked.get("kind") == "call":
            self._tell(f"Calls {one_line(str(asked.get('query')), LINE)} for {received.sender}, which borrowed it.")
        with contextlib.suppress(BaError):
            await lender.handle(received)

    def _withdraw(self, received: AgentMessage) -> None:
        """Stop the task when its sender withdraws it."""
        now = self._now[0] if self._now else None
        if now and self._work and (now.id, now.sender) == (received.correlation_id, received.sender):
            self._withdrawn = True
            self._work.cancel()

    def _bid(self, asked: ContextRequest) -> Bid:
        """Bid by how well its capabilities fit, and whether it is busy; a worker knows no prices."""
        words = {word.casefold() for word in asked.query.replace(",", " ").split()}
        fits = sum(each.casefold() in words for each in self._facts.capabilities)
        busy = 60.0 if self._now else 0.0
        return Bid(asked.task, 0.0, min(1.0, 0.5 + 0.1 * fits), busy, reason="busy" if busy else "")

    async def _beat(self) -> None:
        while True:
            with contextlib.suppress(BaError):
                await self._sign_of_life()
            await asyncio.sleep(self._facts.heartbeat)

    async def _sign_of_life(self, last: AgentActivity | None = None) -> None:
        facts, now = self._facts, self._now
        asks = self._approvals is not None and self._approvals.waits
        activity: AgentActivity = last or ("awaiting_approval" if asks else "thinking" if now else "idle")
        beat = Heartbeat(
            facts.role, activity, one_line(now[1].description, LINE) if now else "", facts.capabilities, facts.host,
            facts.pid, facts.version, facts.model, self._done, lends=facts.lender is not None,
        )  # fmt: skip
        team = now[0].team if now else ""
        await self._bus.publish(WORKERS, message(beat, facts.name, EVERYBODY, team=team))

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._facts.lease / 3)
            for delivery, group in list(self._held.values()):
                with contextlib.suppress(BaError):
                    await self._bus.renew(delivery, group)

    async def _send(self, said: Content, about: AgentMessage) -> None:
        answer = replace(self._said(said, about), correlation_id=about.id)
        await self._bus.publish(inbox(about.sender), answer)

    def _said(self, said: Content, about: AgentMessage) -> AgentMessage:
        return message(said, self._facts.name, about.sender, about=about)


def _readdressed(accepted: AgentMessage, received: AgentMessage) -> AgentMessage:
    """Return the accepted response as the answer to ``received``, unchanged if it already answers that request."""
    if accepted.correlation_id == received.id and accepted.receiver == received.sender:
        return accepted
    made = {"receiver": received.sender, "correlation_id": received.id, "team": received.team}
    return replace(accepted, id=uuid.uuid4().hex, **made)
