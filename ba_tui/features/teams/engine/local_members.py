"""A member in this process: pulls work of its role from the bus, runs an agent on it, and answers; and the seat through
which any member reaches its team: shared items, questions, lent tools.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from ba_tui.core.agent import ChildResult
from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.ports.agents import RunningAgent
from ba_tui.core.teamwork import EVERYBODY, AgentActivity, AgentMessage, MessageType, Role
from ba_tui.core.text.patterns import regex
from ba_tui.features.teams.engine.bus import Delivery, MessageBus
from ba_tui.features.teams.engine.conflicts import facts_in, key_of
from ba_tui.features.teams.engine.leases import Borrower, Lease, Lender, asks_lender
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
    check_protocol,
    content,
    inbox,
    may_send,
    message,
    team_of,
    team_topic,
    work_topic,
)
from ba_tui.features.teams.engine.messages import Outcome as MessageOutcome
from ba_tui.features.teams.engine.shared_context import Item, SharedContext

NEWS = 100
"""Maximum changes that are reported to a member in one message; older ones are dropped."""


class Seat:
    """The seat of one member. ``lead``: the lead that the member works for now; empty between two tasks."""

    def __init__(self, borrower: Borrower, role: Role, team: str, shared: SharedContext) -> None:
        self.borrower = borrower
        self.member = borrower.name
        self.role = role
        self._team = team
        self._bus = borrower.bus
        self._shared = shared
        self._news: deque[Share] = deque(maxlen=NEWS)
        self.lead = ""
        self._task = ""
        self.leases: dict[tuple[str, str], Lease] = {}
        """What it borrowed, by lender and tool."""

    def begin(self, lead: str, task: str) -> None:
        """Begin work on ``task`` for ``lead``."""
        self.lead, self._task = lead, task
        self._news.clear()
        self.borrower.lead = lead
        self.leases.clear()

    def may(self, type: MessageType) -> bool:
        """Return whether its role may send messages of that type."""
        return may_send(self.role, type)

    async def share(self, key: str, value: Any, version: int = 0) -> Item:
        """Write an item over ``version``, 0 for a new one, and report it to the lead.

        Raises:
            StaleWrite: the item has another version by now. UsageError: it can't be stored, or the role may not share.
            StorageError: the server is unreachable.
        """
        self._check("information_share")
        item = await self._shared.write(key_of(key), value, version)
        await self._tell(Share(item.key, item.value, item.version, item.by))
        return item

    async def ask(self, words: str) -> Sequence[Item]:
        """Return the items that match ``words``; the lead records that the member's work depends on them.

        Raises:
            UsageError: the role may not ask. StorageError: the server is unreachable.
        """
        self._check("context_request")
        found = await self._shared.query(words)
        await self._tell(ContextRequest("context", words, self._task, {"keys": [item.key for item in found]}))
        return found

    def hear(self, share: Share) -> None:
        """Record the lead's report that an item has changed."""
        self._news.append(share)

    def news(self) -> Sequence[Share]:
        """Return the changes since the last call: the newest state of each item."""
        newest = {share.key: share for share in self._news}
        self._news.clear()
        return list(newest.values())

    def _check(self, type: MessageType) -> None:
        if not self.may(type):
            raise UsageError(f"Members of the role {self.role.name} may not send {type}.", "Go on without it.")

    async def _tell(self, said: Content) -> None:
        if self.lead:
            await self._bus.publish(inbox(self.lead), message(said, self.member, self.lead, team=self._team))


WITHDRAWN = 1_000
"""Maximum number of withdrawn requests that are remembered because they may still wait in a topic."""


RunTask: TypeAlias = Callable[[Role, TaskRequest, str, Seat | None], Coroutine[Any, Any, ChildResult]]
"""Runs an agent on a request; the text describes it in lists. Raises UsageError if there is no such agent."""


@dataclass
class _Now:
    """The current work of a member."""

    request: AgentMessage
    task: str
    label: str
    work: asyncio.Task[ChildResult]
    renew: Callable[[], Awaitable[None]]
    """Extends the lease of the delivery, so that the bus does not give the work to another member."""
    withdrawn: bool = False


class LocalMember:
    """A member ``seat`` of this process. ``running`` lists the session's agents, to report the activity of its own.
    ``lender`` answers borrowers of its tools; None if it lends nothing.
    """

    def __init__(
        self,
        seat: Seat,
        bus: MessageBus,
        do: RunTask,
        running: Callable[[], Sequence[RunningAgent]],
        lender: Lender | None = None,
    ) -> None:
        self.name = seat.member
        self.role = seat.role
        self._bus = bus
        self._do = do
        self._running = running
        self._lender = lender
        self._seat = seat
        self._team = ""
        self._now: _Now | None = None
        self._one = asyncio.Lock()
        self._withdrawn: deque[str] = deque(maxlen=WITHDRAWN)

    async def serve(self, team: str, heartbeat: float) -> None:
        """Work until cancelled. A failing bus ends this with its error."""
        self._team = team
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pull(work_topic(self.role.name), TAKERS))
                group.create_task(self._pull(inbox(self.name), self.name, group))
                group.create_task(self._pull(team_topic(team), self.name))
                group.create_task(self._beat(team, heartbeat))
        finally:
            if self._lender:
                await self._lender.close()

    async def _pull(self, topic: str, group: str, beside: asyncio.TaskGroup | None = None) -> None:
        """Pull messages. ``beside``: run the work in the background, so that other messages are read meanwhile."""
        async for delivery in self._bus.subscribe(topic, group, self.name):
            if beside and delivery.message.type in {"task_request", "context_request"}:
                beside.create_task(self._taken(delivery, group))
            else:
                await self._taken(delivery, group)

    async def _taken(self, delivery: Delivery, group: str) -> None:
        if delivery.message.sender != self.name:
            await self._handle(delivery.message, delivery, group)
        await self._bus.ack(delivery, group)

    async def _handle(self, received: AgentMessage, delivery: Delivery, group: str) -> None:
        try:
            check_protocol(received)
            if received.team == self._team and await self._of_leases(received, delivery, group):
                return
            if team_of(received.sender) != self._team:
                # Otherwise members communicate through the lead alone.
                return
            match received.type:
                case "task_request":
                    request = content(TaskRequest, received)
                    async with self._one:
                        await self._work(received, request, partial(self._bus.renew, delivery, group))
                case "status_update" if content(StatusUpdate, received).activity == "cancelled":
                    self._withdraw(received)
                case "context_request" if content(ContextRequest, received).kind == "bids":
                    await self._bid(received, content(ContextRequest, received))
                case "information_share":
                    self._seat.hear(content(Share, received))
                case _:
                    pass
        except UsageError as error:
            await self._bus.dead(delivery, group, str(error))

    async def _of_leases(self, received: AgentMessage, delivery: Delivery, group: str) -> bool:
        """Process the message if it is about lent tools; return whether it was. Raises UsageError."""
        if self._seat.borrower.take(received):
            return True
        if not self._lender or not asks_lender(received):
            return False
        # A running call is not delivered again: a borrower without an answer repeats its request under the same key.
        await self._bus.ack(delivery, group)
        return await self._lender.handle(received)

    def _withdraw(self, received: AgentMessage) -> None:
        self._withdrawn.append(received.correlation_id)
        if self._now and self._now.request.id == received.correlation_id:
            self._now.withdrawn = True
            self._now.work.cancel()

    async def _work(self, received: AgentMessage, request: TaskRequest, renew: Callable[[], Awaitable[None]]) -> None:
        if received.id in self._withdrawn or (request.deadline and request.deadline <= time.time()):
            return
        label = f"{self.name}: {request.description or request.task}"
        began = time.monotonic()
        # A task of its own can be cancelled while the member continues.
        self._seat.begin(received.sender, request.task)
        work = asyncio.create_task(self._do(self.role, request, label, None if request.apart else self._seat))
        self._now = now = _Now(received, request.task, label, work, renew)
        try:
            status = StatusUpdate(request.task, "thinking", request.description or request.task)
            await self._answer(message(status, self.name, received.sender, about=received), received)
            await asyncio.wait({work})
            if now.withdrawn:
                return
            response = response_of(request, work, self.name, time.monotonic() - began)
            await self._answer(message(response, self.name, received.sender, about=received), received)
        finally:
            self._now = None
            if not work.done():
                work.cancel()
                await asyncio.gather(work, return_exceptions=True)

    async def _answer(self, answer: AgentMessage, received: AgentMessage) -> None:
        # The desk identifies its requests by their ids.
        await self._bus.publish(inbox(received.sender), replace(answer, correlation_id=received.id))

    async def _bid(self, received: AgentMessage, asked: ContextRequest) -> None:
        if not may_send(self.role, "bid"):
            return
        bid = offer(self.role, asked.task, asked.query, busy=self._now is not None)
        await self._answer(message(bid, self.name, received.sender, about=received), received)

    async def _beat(self, team: str, heartbeat: float) -> None:
        while True:
            beat = Heartbeat(
                self.role.name, self.activity, self._now.label if self._now else "",
                self.role.capabilities, lends=self._lender is not None,
            )  # fmt: skip
            with contextlib.suppress(BaError):
                await self._bus.publish(WORKERS, message(beat, self.name, EVERYBODY, team=team))
                if self._now:
                    await self._now.renew()
            await asyncio.sleep(heartbeat)

    @property
    def activity(self) -> AgentActivity:
        if self._now is None:
            return "idle"
        for each in reversed(self._running()):
            if each.description == self._now.label:
                return each.activity
        return "thinking"


def response_of(request: TaskRequest, work: asyncio.Task[ChildResult], name: str, seconds: float) -> TaskResponse:
    """Return the outcome of the agent's work as a message. Never raises."""
    if work.cancelled():
        return TaskResponse(request.task, "cancelled", error="its agent was cancelled", worker=name, seconds=seconds)
    if error := work.exception():
        said = str(error) if isinstance(error, BaError) else f"{type(error).__name__}: {error}"
        return TaskResponse(request.task, "error", error=said, worker=name, seconds=seconds)
    result = work.result()
    body, facts = facts_in(result.message.text)
    claims = {each.key: {"value": each.value, "confidence": each.confidence} for each in facts}
    outcome: MessageOutcome = "cancelled" if result.status == "interrupted" else result.status
    return TaskResponse(
        request.task,
        outcome,
        body or result.message.text,
        {each.key: each.value for each in facts} or None,
        claims,
        error=result.error.message if result.error else "",
        worker=name,
        agent_id=result.agent_id,
        tokens=result.usage.prompt + result.usage.output,
        seconds=seconds,
    )


LOOP_SECONDS = 8.0
"""Estimated seconds of one model request; used only to compare bids."""
_WORD = regex(r"[^\W_]{3,}")


def offer(role: Role, task: str, work: str, *, busy: bool) -> Bid:
    """Return the bid of a member of ``role`` for ``work``: how well its words fit, and its maximum duration.

    ``cost`` is 1 for the session's model, else the limit of the role's budget.
    """
    wanted = {word.casefold() for word in _WORD.findall(work)}
    offered = [word.casefold() for word in _WORD.findall(" ".join((role.name, *role.capabilities)))]
    described = {word.casefold() for word in _WORD.findall(role.description)}
    exact = {word for word in wanted if any(_alike(word, other) for other in offered)}
    loose = {word for word in wanted - exact if any(_alike(word, other) for other in described)}
    fit = (len(exact) + len(loose) / 2) / (1 + len(exact) + len(loose))
    quality = min(1.0, 0.8 * fit + 0.2 * role.authority)
    seconds = role.max_loops * LOOP_SECONDS * (2 if busy else 1)
    cost = role.budget.cost if role.budget and role.budget.cost is not None else 1.0
    return Bid(task, cost, quality, seconds, reason=", ".join(sorted(exact | loose)) or "no word of the task fits")


def _alike(one: str, other: str) -> bool:
    return one == other or (len(one) > 3 and len(other) > 3 and (one.startswith(other) or other.startswith(one)))
