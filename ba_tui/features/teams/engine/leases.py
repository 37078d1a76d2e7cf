"""What a member lends: tools that others ask for, lease for a time and call here, until the lease is taken back.

The lender runs each call itself, within its own guards and within the ceilings of both: a lease is a permission to ask,
never one to do more than the lender or the borrower may. Each step is written down, and told to the lead.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.calls import run_call
from ba_tui.core.effects import Ceiling, Effect
from ba_tui.core.errors import BaError, StopTurn, UsageError
from ba_tui.core.messages import ToolUse
from ba_tui.core.ports.bus import MessageBus
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.core.text.ranking import matching
from ba_tui.core.text.wording import clipped, one_line
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.messages import (
    Bid,
    Content,
    ContextRequest,
    Share,
    StatusUpdate,
    Trouble,
    content,
    inbox,
    message,
    team_of,
)

log = logging.getLogger(__name__)
LONGEST = 3_600.0
"""Seconds of the longest lease."""
AT_ONCE = 100
"""Leases that a member has given at the same time."""
AUDITED = 1_000
ANSWERS = 200
"""Results that are kept for requests that are made again."""
OFFERED = 10
LARGEST = 50_000
"""Characters of one result, and of what describes a tool."""
DESCRIBED = 4_000
LEASED, ENDED = "leases", "team_ended"
"""Kinds of shared information: a step of a lease, told to the lead; and the lead says that its team has ended."""
At: TypeAlias = Callable[[Callable[[Branch], Awaitable[Content]]], Coroutine[Any, Any, Content]]
Step: TypeAlias = Literal["leased", "called", "denied", "expired", "revoked"]


@frozen
class Lease:
    """``until`` in seconds since the epoch, on the lender's clock. ``lead``: for whom the borrower works.
    ``described``: what a borrower must know of each tool."""

    id: str
    lender: str
    borrower: str
    tools: tuple[str, ...]
    until: float
    lead: str = ""
    described: Mapping[str, Any] = field(default_factory=dict[str, Any])


@frozen
class AuditLine:
    """What became of a lease; ``about``: what a call was about, such as a path."""

    step: Step
    borrower: str
    lease: str = ""
    tool: str = ""
    about: str = ""
    reason: str = ""
    at: float = field(default_factory=time.time)


class Denied(UsageError):
    """A tool is not lent, or a lease does not hold any more."""

    kind = "denied"


@frozen
class Lending:
    """What a member lends: those of ``lent`` that ``tool`` finds, which stand within the lender's guards. ``at`` lets
    work be done on a branch of the lender's. ``beat``: seconds between two signs that a call still runs."""

    tool: Callable[[str], Tool | None]
    lent: tuple[str, ...]
    ceiling: Ceiling
    at: At
    beat: float = 5.0


def asks_lender(received: AgentMessage) -> bool:
    """Whether the message is for who lends tools."""
    kind = received.content.get("kind")
    asked = received.type == "context_request" and kind in {"capability", "lease", "call"}
    return asked or (received.type == "information_share" and kind == ENDED)


class Lender:
    """``name`` is the member's."""

    def __init__(self, name: str, bus: MessageBus, lending: Lending) -> None:
        self._name = name
        self._bus = bus
        self._lending = lending
        self._leases: dict[str, Lease] = {}
        self._running: dict[str, set[asyncio.Task[Content]]] = {}
        self._answers: OrderedDict[tuple[str, str], asyncio.Task[Content]] = OrderedDict()
        self._audit: deque[AuditLine] = deque(maxlen=AUDITED)
        self._telling: set[asyncio.Task[None]] = set()

    def audit(self) -> Sequence[AuditLine]:
        """What was asked of this lender and what became of it, oldest first."""
        return tuple(self._audit)

    def leases(self) -> Sequence[Lease]:
        """Those that hold now."""
        for lease in [each for each in self._leases.values() if each.until <= time.time()]:
            self._end(lease, "expired")
        return tuple(self._leases.values())

    async def handle(self, received: AgentMessage) -> bool:
        """Answer a request of another member; False for what is no business of leases. A request that is made again
        under its key gets the same answer, and its call is not made twice."""
        if not asks_lender(received):
            return False
        if received.type == "information_share":
            await self._ended(received)
            return True
        asked = content(ContextRequest, received)
        key = (received.sender, received.idempotency_key or received.id)
        if key not in self._answers:
            self._answers[key] = asyncio.create_task(self._answer(received, asked))
            while len(self._answers) > ANSWERS:
                self._answers.popitem(last=False)
        while not (await asyncio.wait({self._answers[key]}, timeout=self._lending.beat))[0]:
            await self._reply(StatusUpdate(asked.task, "acting"), received)
        await self._reply(await self._answers[key], received)
        return True

    async def _reply(self, said: Content, received: AgentMessage) -> None:
        answer = replace(message(said, self._name, received.sender, about=received), correlation_id=received.id)
        await self._bus.publish(inbox(received.sender), answer)

    async def _ended(self, received: AgentMessage) -> None:
        """Take back what the members of a team hold that has ended."""
        team = team_of(received.sender)
        for lease in [each for each in self._leases.values() if team and team_of(each.lead) == team]:
            await self.revoke(lease.id, "The team has ended.")

    async def revoke(self, lease: str, reason: str = "") -> bool:
        """Take a lease back: what runs under it is stopped, and its borrower is told. False when there is none."""
        found = self._leases.get(lease)
        if found is None:
            return False
        self._end(found, "revoked", reason)
        await self._tell_borrower(found, reason)
        return True

    async def _tell_borrower(self, lease: Lease, reason: str) -> None:
        told = Share(lease.id, {"reason": reason}, kind="revoked", by=self._name)
        team = team_of(lease.lead)
        await self._bus.publish(inbox(lease.borrower), message(told, self._name, lease.borrower, team=team))

    async def close(self) -> None:
        """Take all leases back. Every call is stopped before the first borrower is told, as the bus may be slow."""
        leases, reason = list(self._leases.values()), "The lender leaves."
        for lease in leases:
            self._end(lease, "revoked", reason)
        for lease in leases:
            with contextlib.suppress(BaError):
                await self._tell_borrower(lease, reason)
        await asyncio.gather(*self._telling, return_exceptions=True)

    async def _answer(self, received: AgentMessage, asked: ContextRequest) -> Content:
        try:
            if asked.kind == "capability":
                return self._offer(asked.query)
            if asked.kind == "lease":
                return self._granted(received, asked.facts)
            return await self._called(received, asked)
        except Denied as error:
            lease = self._leases.get(asked.task) or Lease(asked.task, self._name, received.sender, (), 0.0)
            self._note("denied", replace(lease, borrower=received.sender), asked.query, reason=str(error))
            return Trouble("denied", str(error), error.hint, asked.task)

    def _offer(self, query: str) -> Bid:
        able = [tool for name in self._lending.lent if (tool := self._able(name))]
        fitting = matching(query, able, lambda tool: (tool.name, tool.description)) if query.strip() else able
        return Bid(tools=tuple(tool.name for tool in fitting[:OFFERED]), reason="" if fitting else "nothing that fits")

    def _granted(self, received: AgentMessage, facts: Mapping[str, Any]) -> Share:
        """Raises Denied."""
        borrower, lead = received.sender, str(facts.get("lead", ""))
        if not team_of(lead) or team_of(lead) != received.team:
            raise Denied("Only members of a team borrow tools, while they work for its lead.")
        wanted, seconds = facts.get("tools"), facts.get("seconds", LONGEST)
        if not isinstance(wanted, list) or not wanted or not isinstance(seconds, int | float) or not seconds > 0:
            raise Denied("A lease names tools, and seconds above 0.")
        names = [str(each) for each in cast("list[object]", wanted)]
        for name in names:
            if self._able(name) is None:
                raise Denied(f"{self._name} does not lend the tool {one_line(name, 60)}.")
        if len(self.leases()) >= AT_ONCE:
            raise Denied(f"{self._name} has given {AT_ONCE} leases: no more at the same time.")
        until = time.time() + min(float(seconds), LONGEST)
        described = {name: _described(tool) for name in names if (tool := self._able(name))}
        lease = Lease(uuid.uuid4().hex, self._name, borrower, tuple(described), until, lead, described)
        self._leases[lease.id] = lease
        self._note("leased", lease, ", ".join(lease.tools))
        value = {"tools": list(lease.tools), "until": until, "described": described}
        return Share(lease.id, value, by=self._name, kind="lease")

    async def _called(self, received: AgentMessage, asked: ContextRequest) -> Content:
        """Raises Denied."""
        lease = next((each for each in self.leases() if each.id == asked.task), None)
        # The same words for a lease of another borrower: ids must not be guessed.
        if lease is None or lease.borrower != received.sender:
            raise Denied("This lease does not hold any more.", "Ask for a new one.")
        tool, args = self._able(asked.query), asked.facts.get("args")
        if asked.query not in lease.tools or tool is None or not isinstance(args, dict):
            raise Denied(f"The lease does not cover the tool {one_line(asked.query, 60)}.")
        given = cast("dict[str, Any]", args)
        theirs = ceiling_in(asked.facts.get("ceiling"))
        if not theirs.may_call(tool.name) or tool.effect_of(given) not in theirs.effects:
            raise Denied(f"{lease.borrower} itself may not do what {tool.name} does, so it may not borrow that either.")
        work = asyncio.create_task(self._lending.at(lambda branch: self._run(branch, tool, (given, theirs), lease)))
        self._running.setdefault(lease.id, set()).add(work)
        try:
            await asyncio.wait({work}, timeout=lease.until - time.time())
            if not work.done():
                self._end(lease, "expired")
            return await work
        except asyncio.CancelledError:
            if lease.id in self._leases:
                # The lender itself is stopped.
                raise
            return Trouble("denied", "The lease ended while the call ran; it was stopped.", "", lease.id)
        finally:
            work.cancel()
            self._running.get(lease.id, set()).discard(work)

    async def _run(self, branch: Branch, tool: Tool, asked: tuple[Mapping[str, Any], Ceiling], lease: Lease) -> Content:
        args, theirs = asked
        id = uuid.uuid4().hex
        aside = branch.aside(f"{branch.name}/lent-{id[:8]}")
        aside.ceiling = branch.ceiling.within(self._lending.ceiling).within(theirs)
        use = ToolUse(f"lent-{id}", tool.name, dict(args))
        self._note("called", lease, tool.name, about=one_line(tool.target(args), 200))
        try:
            result = await run_call(tool, use, Call(use.id, aside))
        except StopTurn as stop:
            return Trouble("denied", str(stop), stop.hint, lease.id)
        value = {"text": clipped(result.text, LARGEST), "is_error": result.is_error}
        return Share(lease.id, value, by=self._name, kind="result")

    def _able(self, name: str) -> Tool | None:
        """The tool, if it is lent and the lender itself may call it. What starts agents is never lent."""
        tool, ceiling = self._lending.tool(name), self._lending.ceiling
        if name not in self._lending.lent or tool is None or not tool.facts.subagents or tool.facts.below:
            return None
        return tool if ceiling.may_call(name) and tool.effect in ceiling.effects else None

    def _end(self, lease: Lease, step: Step, reason: str = "") -> None:
        self._leases.pop(lease.id, None)
        for work in self._running.pop(lease.id, set()):
            work.cancel()
        self._note(step, lease, ", ".join(lease.tools), reason=reason)

    def _note(self, step: Step, lease: Lease, tool: str, *, about: str = "", reason: str = "") -> None:
        """Write a step down, and tell the lead."""
        line = AuditLine(step, lease.borrower, lease.id, one_line(tool, 200), about, reason)
        self._audit.append(line)
        log.info("lease %s: %s %s to %s", lease.id[:8], step, line.tool, lease.borrower)
        if lease.lead:
            task = asyncio.create_task(self._tell(line, lease.lead))
            self._telling.add(task)
            task.add_done_callback(self._telling.discard)

    async def _tell(self, line: AuditLine, lead: str) -> None:
        told = {"step": line.step, "borrower": line.borrower, "tool": line.tool, "about": line.about}
        share = Share(line.lease, told | {"reason": line.reason}, by=self._name, kind=LEASED)
        with contextlib.suppress(BaError):
            await self._bus.publish(inbox(lead), message(share, self._name, lead, team=team_of(lead)))


def _described(tool: Tool) -> dict[str, Any]:
    schema = json.dumps(tool.input_schema, ensure_ascii=False, default=str)
    return {
        "description": clipped(tool.description, DESCRIBED),
        "schema": clipped(schema, DESCRIBED),
        "effect": tool.effect.value,
    }


def ceiling_out(ceiling: Ceiling) -> dict[str, Any]:
    """A ceiling as JSON."""
    return {
        "effects": sorted(each.value for each in ceiling.effects),
        "tools": None if ceiling.tools is None else sorted(ceiling.tools),
        "outside": ceiling.outside,
        "without": sorted(ceiling.without),
    }


def ceiling_in(value: Any) -> Ceiling:
    """The ceiling that another process told. Raises Denied when it is none: nothing is allowed by mistake."""
    told = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    outside, tools = told.get("outside"), told.get("tools", "")
    if isinstance(outside, bool) and (tools is None or isinstance(tools, list)):
        with contextlib.suppress(ValueError, TypeError, KeyError):
            able = frozenset(Effect(each) for each in told["effects"])
            names = None if tools is None else frozenset(str(each) for each in cast("list[object]", tools))
            return Ceiling(able, names, outside, frozenset(str(each) for each in told["without"]))
    raise Denied("The call does not say what its borrower may do.", "All members need the same version of ba.")
