"""A lead's desk: distributes work over the bus, watches its members, and takes the first valid result.

A team of more than eight members has several desks, each with its own inbox; members pull from the topics of their
roles, regardless of the desk that sent the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import glob
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from ba_tui.core.errors import BaError, StorageError, UsageError
from ba_tui.core.teamwork import AgentMessage, Member, MessageType
from ba_tui.core.text.wording import one_line
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.approvals import Answers, Attending, nobody
from ba_tui.features.teams.engine.bus import AcceptedResults, Delivery, MemoryAccepted, MessageBus
from ba_tui.features.teams.engine.conflicts import LONGEST_VALUE, ConflictSettler, StatedFact, as_fact
from ba_tui.features.teams.engine.jobs import HandingOut, JobOutcome, TeamJob, claim_of, outcome_of
from ba_tui.features.teams.engine.leases import ENDED, LEASED
from ba_tui.features.teams.engine.messages import (
    WORKERS,
    Bid,
    ContextRequest,
    Heartbeat,
    Share,
    StatusUpdate,
    TaskRequest,
    TaskResponse,
    check_protocol,
    content,
    inbox,
    message,
    team_topic,
    work_topic,
)
from ba_tui.features.teams.engine.shared_context import Item, SharedContext, checked_item
from ba_tui.features.teams.engine.watching import LONGEST, TeamWatch

LISTED = 50
"""Maximum number of item names in a member's prompt."""


class Board:
    """The lead's view of shared items: reports changes to the members whose work depends on them, and compares facts.

    A number, a boolean or one line of text is a fact: the statements of several members are compared, and the item
    gets the settled value. Every other item can be changed by any member that read its newest version. ``sent`` is
    called with each message to a member.
    """

    def __init__(
        self, shared: SharedContext, bus: MessageBus, settling: ConflictSettler, sent: Callable[[AgentMessage], object]
    ) -> None:
        self._shared = shared
        self._bus = bus
        self._settling = settling
        self._sent = sent
        self._needs: dict[str, set[str]] = {}

    def needs(self, member: str, keys: Sequence[str]) -> None:
        """Record that the work of ``member`` depends on these items until it ends."""
        held = self._needs.setdefault(member, set())
        held.update(keys)
        self._shared.cares(member, *(glob.escape(key) for key in held))

    def ended(self, member: str) -> None:
        """Forget the dependencies of ``member``, whose work has ended."""
        self._needs.pop(member, None)
        self._shared.cares(member)

    def heard(self, member: str, share: Share) -> None:
        """Process an item that ``member`` wrote. Follow-up work runs in the background."""
        self.needs(member, (share.key,))
        self._settling.beside(self._written(member, share, self._shared.told(share, member)))

    async def _written(self, member: str, share: Share, told: Sequence[AgentMessage]) -> None:
        with contextlib.suppress(BaError):
            for each in told:
                self._sent(await self._bus.publish(inbox(each.receiver), each))
        if fact := fact_of(share):
            await self._settling.state(member, (fact,))
            await self.keep((share.key,))

    async def keep(self, keys: Sequence[str]) -> None:
        """Write the settled values of these keys into their items, for example the winner of a conflict."""
        if self._settling.held:
            return
        for key in keys:
            found = self._settling.claims.counts(key)
            now = None if found is None else await self._shared.read(key)
            if found is None or (now and now.value == found.value):
                continue
            value = found.value

            async def changed(before: object, value: object = value) -> object:
                return value

            # A value that no item can store is still settled, and every prompt includes it.
            with contextlib.suppress(BaError):
                await self._shared.change(key, changed, found.member)

    async def listed(self) -> Sequence[str]:
        """Return one line for each item that is not a settled fact; prompts include settled facts in full."""
        known = set(self._settling.claims.keys)
        with contextlib.suppress(BaError):
            items = [item for item in await self._shared.all() if item.key not in known]
            return [f"- {item.key} (version {item.version}, by {item.by})" for item in items[:LISTED]]
        return ()


def shared_before(messages: Sequence[AgentMessage]) -> tuple[Item, ...]:
    """Return the items that members shared in an earlier run, read from its messages. Texts that were cut in the
    messages are left out, because a cut value would be wrong.
    """
    found: dict[str, Item | None] = {}
    for each in messages:
        with contextlib.suppress(UsageError):
            share = content(Share, each)
            if share.kind == "item" and share.version:
                whole = not (isinstance(share.value, str) and len(share.value) >= LONGEST)
                item = {"key": share.key, "value": share.value, "version": share.version, "by": share.by, "at": each.at}
                found[share.key] = checked_item(item) if whole else None
    return tuple(item for item in found.values() if item)


def fact_of(share: Share) -> StatedFact | None:
    """Return the fact that an item states; None for lists, objects and texts of several lines."""
    if isinstance(share.value, str) and ("\n" in share.value or len(share.value) > LONGEST_VALUE):
        return None
    return as_fact({"key": share.key, "value": share.value})


DOING = 80
"""Maximum characters of a member's current activity in lists."""
CLIP = 4_000
"""Maximum characters of an earlier attempt's findings in the next attempt's prompt."""
MOST_HEARD, MOST_MEMBERS = 10_000, 500
"""Limits for names whose heartbeats are remembered and for members shown: any process with access to the server can
invent names.
"""
LOOKS = 8
"""Number of checks on the holder of a task within its allowed silence."""


Confirming: TypeAlias = Callable[[str], Awaitable[bool]]


async def no(text: str) -> bool:
    """Deny: no user can be asked here."""
    return False


@frozen
class DeskMeans:
    """Callbacks of a desk. ``heard`` is called with a member and its statements outside of responses. ``confirm`` asks
    whether to repeat work that may have changed something before its member vanished. ``accepted`` decides which result
    of a job is final, also after a lead is resumed. ``may``: whether a member may send a message type. ``attending``
    shows the user questions from workers on other machines.
    """

    bus: MessageBus
    heard: Callable[[str, Sequence[StatedFact]], None]
    confirm: Confirming = no
    accepted: AcceptedResults = field(default_factory=MemoryAccepted)
    board: Board | None = None
    may: Callable[[str, MessageType], bool] = lambda member, type: True
    attending: Attending = nobody


@dataclass
class _Open:
    """A request that waits for its answer."""

    request: AgentMessage
    holder: str = ""
    partial: str = ""
    since: float = field(default_factory=time.monotonic)


class _Bids:
    """Bids for one task; complete once all ``members`` have answered. Other members were not asked."""

    def __init__(self, members: Sequence[str]) -> None:
        self._waiting = set(members)
        self.offers: list[tuple[str, Bid]] = []
        self.complete = asyncio.Event()

    def add(self, member: str, bid: Bid) -> None:
        if member not in self._waiting:
            return
        self._waiting.discard(member)
        self.offers.append((member, bid))
        if not self._waiting:
            self.complete.set()


class LeadDesk:
    """One lead; ``name`` is its inbox."""

    def __init__(self, name: str, means: DeskMeans, watch: TeamWatch, rules: HandingOut) -> None:
        self.name = name
        self._means = means
        self._bus = means.bus
        self._stated = means.heard
        self._confirm = means.confirm
        self._watch = watch
        self._rules = rules
        self._requests: dict[str, _Open] = {}
        self._answers: dict[str, asyncio.Future[tuple[AgentMessage, TaskResponse]]] = {}
        self._bids: dict[str, _Bids] = {}
        self._heard: dict[str, float] = {}
        self._roles: dict[str, str] = {}
        self._refused: set[tuple[str, MessageType]] = set()
        self._lenders: set[str] = set()
        self._leased: set[str] = set()
        """Who gave leases to members."""
        self._questions = Answers(name, means.bus, means.attending, rules.patience / LOOKS)
        self._beside: set[asyncio.Task[None]] = set()
        self.listening: list[asyncio.Task[None]] = []
        """What hears the messages. It fails with StorageError when those of this team can't be read."""

    @property
    def open(self) -> int:
        """Return the number of tasks that wait for an answer."""
        return len(self._requests)

    def start(self) -> None:
        topics = (inbox(self.name), WORKERS, team_topic(self._watch.team.id))
        self.listening = [asyncio.create_task(self._listen(topic)) for topic in topics]

    async def close(self) -> None:
        """Withdraw open requests and stop listening."""
        for waiting in list(self._requests.values()):
            with contextlib.suppress(BaError):
                await self._withdraw(waiting)
        await self._questions.close()
        for lender in self._leased:
            ended = message(Share(self._watch.team.id, kind=ENDED), self.name, lender, team=self._watch.team.id)
            with contextlib.suppress(BaError):
                await self._bus.publish(inbox(lender), ended)
        for task in self.listening:
            task.cancel()
        await asyncio.gather(*self.listening, return_exceptions=True)

    async def do(self, job: TeamJob) -> JobOutcome:
        """Have a member do ``job``; when the member fails or falls silent, another one continues from its findings.

        A job with an accepted result is not repeated. Raises BaError when the bus can't be used.
        """
        if found := await self._accepted(job.key):
            return found
        partial, errors, last = "", list[str](), JobOutcome(ok=False)
        for attempt in range(1, self._rules.attempts + 1):
            last = await self._attempt(job, attempt, partial)
            if last.ok:
                return replace(last, attempts=attempt)
            partial = last.report or partial
            errors.append(f"{last.member or 'nobody'}: {last.error}")
            if last.asks:
                if not await self._confirm(last.asks):
                    break
                job = replace(job, again=True)
            if job.to:
                # The winning bidder failed: any member may continue.
                job = replace(job, to="")
        return replace(last, report=partial, error="; ".join(dict.fromkeys(errors)), attempts=self._rules.attempts)

    async def bids(self, job: TeamJob, members: Sequence[str], seconds: float = 1.0) -> Sequence[tuple[str, Bid]]:
        """Return the bids of ``members`` for ``job`` that arrive within ``seconds``."""
        self._bids[job.task] = found = _Bids(members)
        asked = ContextRequest("bids", job.description, job.task)
        for member in members:
            await self._send(message(asked, self.name, member, team=self._watch.team.id), inbox(member))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(found.complete.wait(), seconds)
        del self._bids[job.task]
        return found.offers

    async def _attempt(self, job: TeamJob, attempt: int, partial: str) -> JobOutcome:
        end = time.time() + self._rules.deadline
        made = TaskRequest(
            job.task, job.prompt, job.description, job.expected, job.role,
            context=job.context, partial=partial[:CLIP], deadline=end, chain=(*job.chain, self.name),
            attempt=attempt, critical=job.critical, again=job.again, apart=job.apart, max_loops=job.max_loops,
        )  # fmt: skip
        able = sum(each.role == job.role and each.activity != "error" for each in self._watch.team.members)
        copies = 2 if job.critical and attempt == 1 and not job.to and able > 1 else 1
        sent = [await self._request(made, job, number) for number in range(copies)]
        try:
            return await self._first_valid(job.key, sent, end)
        finally:
            for request in sent:
                self._answers.pop(request.id, None)
                if waiting := self._requests.pop(request.id, None):
                    self._questions.withdraw(waiting.holder)
                    if self._means.board and waiting.holder:
                        self._means.board.ended(waiting.holder)
                    with contextlib.suppress(BaError):
                        await asyncio.shield(self._withdraw(waiting))

    async def _request(self, made: TaskRequest, job: TeamJob, number: int) -> AgentMessage:
        to = message(made, self.name, job.to or job.role, team=self._watch.team.id)
        # Two members work independently, and one result is accepted.
        to = replace(to, idempotency_key=f"{job.key}/{number}" if number else job.key)
        self._requests[to.id] = _Open(to, holder=job.to)
        self._answers[to.id] = asyncio.get_running_loop().create_future()
        await self._send(to, inbox(job.to) if job.to else work_topic(job.role))
        return to

    async def _first_valid(self, key: str, sent: Sequence[AgentMessage], end: float) -> JobOutcome:
        waiting, last = {self._answers[each.id]: each.id for each in sent}, JobOutcome(ok=False)
        stood = self._watch.stood()
        while waiting:
            left = end - time.time() + self._watch.stood() - stood
            if left <= 0:
                return replace(last, error=last.error or f"no answer within {self._rules.deadline:g} s")
            pause = min(left, self._rules.patience / LOOKS)
            done, _ = await asyncio.wait(waiting, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            for future in done:
                self._requests.pop(waiting.pop(future), None)
                last = outcome_of(*future.result())
                if last.ok:
                    return await self._first(key, last, future.result()[0])
            for future, id in list(waiting.items()):
                if silent := self._silent(id):
                    del waiting[future]
                    last = silent
        return last

    async def _accepted(self, key: str) -> JobOutcome | None:
        """Return the job's earlier accepted result: from this lead, or from the run that it resumes."""
        with contextlib.suppress(StorageError, UsageError):
            if found := await self._means.accepted.find(key):
                outcome = outcome_of(found, content(TaskResponse, found))
                return outcome if outcome.ok else None
        return None

    async def _first(self, key: str, outcome: JobOutcome, response: AgentMessage) -> JobOutcome:
        """Return the accepted result: ``outcome``, unless another member's was stored before."""
        with contextlib.suppress(StorageError, UsageError):
            winner = await self._means.accepted.first(key, response)
            if winner.id != response.id:
                before = outcome_of(winner, content(TaskResponse, winner))
                return before if before.ok else outcome
        return outcome

    def _silent(self, request: str) -> JobOutcome | None:
        """Return why no answer to a request can be expected any more; None while a member works on it or may still take
        it.
        """
        found, now = self._requests[request], time.monotonic()
        since = self._heard.get(found.holder, found.since) if found.holder else found.since
        if now - max(since, found.since) <= self._rules.patience:
            return None
        if found.holder:
            self._watch.member(found.holder, activity="error", doing="does not answer")
            silent = f"no sign of life for {self._rules.patience:g} s"
            return JobOutcome(ok=False, report=found.partial, member=found.holder, error=silent)
        role = str(found.request.content.get("role", ""))
        if self._alive(role):
            return None
        return JobOutcome(ok=False, error=f"no member of the role {role} answers")

    def _alive(self, role: str) -> int:
        least = time.monotonic() - self._rules.patience
        return sum(self._roles.get(name) == role and at >= least for name, at in self._heard.items())

    async def _withdraw(self, waiting: _Open) -> None:
        task = str(waiting.request.content.get("task", ""))
        to = waiting.holder or str(waiting.request.content.get("role", ""))
        taken_back = message(StatusUpdate(task, "cancelled"), self.name, to, about=waiting.request)
        taken_back = replace(taken_back, correlation_id=waiting.request.id)
        topic = inbox(waiting.holder) if waiting.holder else team_topic(self._watch.team.id)
        await self._send(taken_back, topic)

    async def _send(self, to: AgentMessage, topic: str) -> None:
        self._watch.message(await self._bus.publish(topic, to))

    async def _listen(self, topic: str) -> None:
        async for delivery in self._bus.subscribe(topic, self.name, self.name):
            self._take(delivery)
            with contextlib.suppress(BaError):
                await self._bus.ack(delivery, self.name)

    def _take(self, delivery: Delivery) -> None:
        """Process a message. Another process may have written anything: an invalid message changes nothing."""
        received = delivery.message
        if received.sender == self.name:
            return
        # Other teams may use the same server; a worker's heartbeat belongs to no team.
        if received.team not in {self._watch.team.id, ""}:
            return
        if received.sender in self._heard or len(self._heard) < MOST_HEARD:
            self._heard[received.sender] = time.monotonic()
        if not self._means.may(received.sender, received.type):
            self._refuse(received)
            return
        with contextlib.suppress(UsageError):
            self._understood(received)
        if delivery.topic == inbox(self.name):
            self._watch.message(received)

    def _refuse(self, received: AgentMessage) -> None:
        """Report once that a member sent a message type that its role may not send."""
        if (received.sender, received.type) not in self._refused:
            self._refused.add((received.sender, received.type))
            self._watch.say(f"{received.sender} sent {received.type}, which its role may not send: it does not count.")

    def _understood(self, received: AgentMessage) -> None:
        """Return the content of a message. Raises UsageError when it does not fit its type or has another protocol
        version.
        """
        check_protocol(received)
        sender = received.sender
        match received.type:
            case "heartbeat":
                beat = content(Heartbeat, received)
                if sender in self._heard:
                    self._roles[sender] = beat.role
                if beat.lends and len(self._lenders) < MOST_MEMBERS:
                    self._lenders.add(sender)
                self._watch.member(sender, heard=received.at, activity=beat.activity)
            case "status_update":
                self._status(received, content(StatusUpdate, received))
            case "task_response":
                self._answered(received, content(TaskResponse, received))
            case "information_share":
                share = content(Share, received)
                if share.kind == "claim" and (fact := claim_of(share.key, share.value, 0.5)):
                    self._stated(sender, (fact,))
                elif share.kind == LEASED and len(self._leased) < MOST_MEMBERS:
                    self._leased.add(sender)
                elif share.kind == "item" and self._means.board:
                    self._means.board.heard(sender, share)
            case "context_request":
                asked = content(ContextRequest, received)
                keys = asked.facts.get("keys")
                if asked.kind == "context" and self._means.board and isinstance(keys, list):
                    self._means.board.needs(sender, [str(each) for each in cast("list[object]", keys)])
                elif asked.kind == "capability":
                    self._name_lenders(received)
                elif asked.kind == "question":
                    found = self._requests.get(received.correlation_id)
                    self._questions.take(received, asked, holds=found is not None and found.holder == sender)
            case "bid":
                bid = content(Bid, received)
                if bid.task in self._bids:
                    self._bids[bid.task].add(sender, bid)
            case _:
                pass

    def _name_lenders(self, received: AgentMessage) -> None:
        """Send a member the names of the current lenders."""
        least = time.monotonic() - self._rules.patience
        alive = [each for each in self._lenders if each != received.sender and self._heard.get(each, 0.0) >= least]
        said = message(Share(self.name, sorted(alive), kind="lenders"), self.name, received.sender, about=received)

        async def answer() -> None:
            with contextlib.suppress(BaError):
                await self._send(replace(said, correlation_id=received.id), inbox(received.sender))

        task = asyncio.create_task(answer())
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    def _status(self, received: AgentMessage, status: StatusUpdate) -> None:
        found = self._requests.get(received.correlation_id)
        if status.activity == "cancelled" and not found:
            self._questions.withdraw(received.sender, received.correlation_id)
            return
        if found:
            found.holder, found.partial = received.sender, status.partial or found.partial
            if self._means.board:
                self._means.board.needs(received.sender, list(cast("dict[str, Any]", found.request.content["context"])))
            if len(self._watch.team.members) < MOST_MEMBERS:
                role = str(found.request.content.get("role", ""))
                self._watch.join(Member(received.sender, self._roles.get(received.sender, role)))
        doing = one_line(status.doing, DOING)
        self._watch.member(received.sender, activity=status.activity, doing=doing, heard=received.at)

    def _answered(self, received: AgentMessage, response: TaskResponse) -> None:
        waiting = self._answers.get(received.correlation_id)
        # A second answer, or one to work that was reassigned meanwhile, is ignored.
        if waiting is not None and not waiting.done():
            waiting.set_result((received, response))
            self._questions.withdraw(received.sender)
            if self._means.board:
                self._means.board.ended(received.sender)
            activity = "error" if response.outcome in {"error", "refused"} else "idle"
            agent = {"agent_id": response.agent_id} if response.agent_id else {}
            self._watch.member(received.sender, activity=activity, doing="", heard=received.at, **agent)
