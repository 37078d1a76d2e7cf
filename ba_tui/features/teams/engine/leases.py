"""Lending of tools: other members ask for tools, lease them for a time, and call them here until the lease ends.

The lender runs each call itself, within its own guards and within the permissions of both members: a lease never allows
more than the lender or the borrower may do. Each step is logged and reported to the lead.
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
from ba_tui.core.effects import AgentCeiling, Effect
from ba_tui.core.errors import BaError, StopTurn, UsageError
from ba_tui.core.messages import ToolUse
from ba_tui.core.teamwork import AgentMessage
from ba_tui.core.text.wording import clipped, matching, one_line
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.approvals import NoAnswer, Requests
from ba_tui.features.teams.engine.bus import MessageBus
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
"""Maximum duration of a lease in seconds."""
AT_ONCE = 100
"""Maximum number of simultaneous leases of one lender."""
AUDITED = 1_000
ANSWERS = 200
"""Number of results that are kept for repeated requests."""
OFFERED = 10
LARGEST = 50_000
"""Maximum characters of one result, and of a tool's description."""
DESCRIBED = 4_000
NAMED = 60
"""Maximum characters of a tool's name in a refusal."""
NOTED = 200
"""Maximum characters of names, and of a call's subject, in one audit line."""
LEASED, ENDED = "leases", "team_ended"
"""Kinds of shared information: a lease step reported to the lead, and the lead's report that its team has ended."""
At: TypeAlias = Callable[[Callable[[Branch], Awaitable[Content]]], Coroutine[Any, Any, Content]]
Step: TypeAlias = Literal["leased", "called", "denied", "expired", "revoked"]


@frozen
class Lease:
    """A lease. ``until``: seconds since the epoch on the lender's clock. ``lead``: the lead that the borrower works
    for. ``described``: description and schema of each tool.
    """

    id: str
    lender: str
    borrower: str
    tools: tuple[str, ...]
    until: float
    lead: str = ""
    described: Mapping[str, Any] = field(default_factory=dict[str, Any])


@frozen
class AuditLine:
    """One step of a lease; ``about``: the subject of a call, such as a path."""

    step: Step
    borrower: str
    lease: str = ""
    tool: str = ""
    about: str = ""
    reason: str = ""
    at: float = field(default_factory=time.time)


class LeaseDenied(UsageError):
    """A tool is not lent, or a lease is no longer valid."""

    kind = "denied"


@frozen
class LenderTools:
    """What a member lends: the tools of ``lent`` that ``tool`` finds, inside the lender's guards. ``at`` runs work on a
    branch of the lender. ``beat``: seconds between two signs that a call still runs.
    """

    tool: Callable[[str], Tool | None]
    lent: tuple[str, ...]
    ceiling: AgentCeiling
    at: At
    beat: float = 5.0


def asks_lender(received: AgentMessage) -> bool:
    """Return whether the message is a request to a lender."""
    kind = received.content.get("kind")
    asked = received.type == "context_request" and kind in {"capability", "lease", "call"}
    return asked or (received.type == "information_share" and kind == ENDED)


class Lender:
    """Lends the tools of the member ``name``."""

    def __init__(self, name: str, bus: MessageBus, lending: LenderTools) -> None:
        self._name = name
        self._bus = bus
        self._lending = lending
        self._leases: dict[str, Lease] = {}
        self._running: dict[str, set[asyncio.Task[Content]]] = {}
        self._answers: OrderedDict[tuple[str, str], asyncio.Task[Content]] = OrderedDict()
        self._audit: deque[AuditLine] = deque(maxlen=AUDITED)
        self._telling: set[asyncio.Task[None]] = set()

    def audit(self) -> Sequence[AuditLine]:
        """Return all requests to this lender and their outcomes, oldest first."""
        return tuple(self._audit)

    def leases(self) -> Sequence[Lease]:
        """Return the leases that are valid now."""
        for lease in [each for each in self._leases.values() if each.until <= time.time()]:
            self._end(lease, "expired")
        return tuple(self._leases.values())

    async def handle(self, received: AgentMessage) -> bool:
        """Answer another member's request; return False if it is not about leases. A repeated request with the same key
        gets the same answer, and its call runs only once.
        """
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
        """Revoke the leases of a team that has ended."""
        team = team_of(received.sender)
        for lease in [each for each in self._leases.values() if team_of(each.lead) == team]:
            await self.revoke(lease.id, "The team has ended.")

    async def revoke(self, lease: str, reason: str = "") -> bool:
        """Revoke a lease: stop its calls and notify its borrower. Return False if there is no such lease."""
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
        """Revoke all leases. All calls are stopped before the first borrower is notified, as the bus may be slow."""
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
        except LeaseDenied as error:
            known = self._leases.get(asked.task)
            tool = one_line(asked.query, NOTED)
            line = AuditLine("denied", received.sender, asked.task, tool, reason=str(error))
            self._record(line, known.lead if known else "")
            return Trouble("denied", str(error), error.hint, asked.task)

    def _offer(self, query: str) -> Bid:
        able = [tool for name in self._lending.lent if (tool := self._able(name))]
        fitting = matching(query, able, lambda tool: (tool.name, tool.description)) if query.strip() else able
        return Bid(tools=tuple(tool.name for tool in fitting[:OFFERED]), reason="" if fitting else "nothing that fits")

    def _granted(self, received: AgentMessage, facts: Mapping[str, Any]) -> Share:
        """Return a new lease. Raises LeaseDenied."""
        borrower, lead = received.sender, str(facts.get("lead", ""))
        if not team_of(lead) or team_of(lead) != received.team:
            raise LeaseDenied("Only members of a team borrow tools, while they work for its lead.")
        wanted, seconds = facts.get("tools"), facts.get("seconds", LONGEST)
        if not isinstance(wanted, list) or not wanted or not isinstance(seconds, int | float) or not seconds > 0:
            raise LeaseDenied("A lease names tools, and seconds above 0.")
        names = [str(each) for each in cast("list[object]", wanted)]
        for name in names:
            if self._able(name) is None:
                raise LeaseDenied(f"{self._name} does not lend the tool {one_line(name, NAMED)}.")
        if len(self.leases()) >= AT_ONCE:
            raise LeaseDenied(f"{self._name} has given {AT_ONCE} leases: no more at the same time.")
        until = time.time() + min(float(seconds), LONGEST)
        described = {name: _described(tool) for name in names if (tool := self._able(name))}
        lease = Lease(uuid.uuid4().hex, self._name, borrower, tuple(described), until, lead, described)
        self._leases[lease.id] = lease
        self._note("leased", lease, ", ".join(lease.tools))
        value = {"tools": list(lease.tools), "until": until, "described": described}
        return Share(lease.id, value, by=self._name, kind="lease")

    async def _called(self, received: AgentMessage, asked: ContextRequest) -> Content:
        """Run a call under a lease. Raises LeaseDenied."""
        lease = next((each for each in self.leases() if each.id == asked.task), None)
        # The message is the same for a lease of another borrower, so that ids can't be guessed.
        if lease is None or lease.borrower != received.sender:
            raise LeaseDenied("This lease does not hold any more.", "Ask for a new one.")
        tool, args = self._able(asked.query), asked.facts.get("args")
        if asked.query not in lease.tools or tool is None or not isinstance(args, dict):
            raise LeaseDenied(f"The lease does not cover the tool {one_line(asked.query, NAMED)}.")
        given = cast("dict[str, Any]", args)
        theirs = ceiling_in(asked.facts.get("ceiling"))
        if not theirs.may_call(tool.name) or tool.effect_of(given) not in theirs.effects:
            raise LeaseDenied(
                f"{lease.borrower} itself may not do what {tool.name} does, so it may not borrow that either."
            )
        work = asyncio.create_task(self._lending.at(lambda branch: self._run(branch, tool, (given, theirs), lease)))
        self._running.setdefault(lease.id, set()).add(work)
        try:
            await asyncio.wait({work}, timeout=lease.until - time.time())
            if not work.done():
                self._end(lease, "expired")
            return await work
        except asyncio.CancelledError:
            if lease.id in self._leases:
                # The lender itself is cancelled.
                raise
            return Trouble("denied", "The lease ended while the call ran; it was stopped.", "", lease.id)
        finally:
            work.cancel()
            self._running.get(lease.id, set()).discard(work)

    async def _run(
        self, branch: Branch, tool: Tool, asked: tuple[Mapping[str, Any], AgentCeiling], lease: Lease
    ) -> Content:
        args, theirs = asked
        id = uuid.uuid4().hex
        aside = branch.aside(f"{branch.name}/lent-{id[:8]}")
        aside.ceiling = branch.ceiling.within(self._lending.ceiling).within(theirs)
        use = ToolUse(f"lent-{id}", tool.name, dict(args))
        self._note("called", lease, tool.name, about=one_line(tool.target(args), NOTED))
        try:
            result = await run_call(tool, use, Call(use.id, aside))
        except StopTurn as stop:
            return Trouble("denied", str(stop), stop.hint, lease.id)
        value = {"text": clipped(result.text, LARGEST), "is_error": result.is_error}
        return Share(lease.id, value, by=self._name, kind="result")

    def _able(self, name: str) -> Tool | None:
        """Return the tool if it is lent and the lender itself may call it. Tools that start agents are never lent."""
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
        """Record a step of ``lease``."""
        self._record(AuditLine(step, lease.borrower, lease.id, one_line(tool, NOTED), about, reason), lease.lead)

    def _record(self, line: AuditLine, lead: str) -> None:
        """Add ``line`` to the audit log and send it to ``lead``, if there is one."""
        self._audit.append(line)
        log.info("lease %s: %s %s to %s", line.lease[:8], line.step, line.tool, line.borrower)
        if lead:
            task = asyncio.create_task(self._tell(line, lead))
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


def ceiling_out(ceiling: AgentCeiling) -> dict[str, Any]:
    """Return a permission ceiling as JSON."""
    return {
        "effects": sorted(each.value for each in ceiling.effects),
        "tools": None if ceiling.tools is None else sorted(ceiling.tools),
        "outside": ceiling.outside,
        "without": sorted(ceiling.without),
    }


def ceiling_in(value: Any) -> AgentCeiling:
    """Return the permission ceiling from another process. Raises LeaseDenied for an invalid one: nothing may be allowed
    by mistake.
    """
    told = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    outside, tools = told.get("outside"), told.get("tools", "")
    if isinstance(outside, bool) and (tools is None or isinstance(tools, list)):
        with contextlib.suppress(ValueError, TypeError, KeyError):
            able = frozenset(Effect(each) for each in told["effects"])
            names = None if tools is None else frozenset(str(each) for each in cast("list[object]", tools))
            return AgentCeiling(able, names, outside, frozenset(str(each) for each in told["without"]))
    raise LeaseDenied("The call does not say what its borrower may do.", "All members need the same version of ba.")


class Borrower:
    """Borrows tools for a member through its ``requests``: finds lenders, takes leases, calls leased tools. Pass every
    inbox message to ``take``. ``lead``: the lead that the member works for now.

    Results of another process are data. A call without an answer is repeated under the same key, so that its lender
    does not run it twice.
    """

    def __init__(self, requests: Requests) -> None:
        self.name = requests.name
        self.bus = requests.bus
        self._requests = requests
        self._revoked: dict[str, str] = {}
        self._open: dict[str, str] = {}
        """Keys of calls that got no answer, by what was asked."""
        self.lead = ""

    def take(self, received: AgentMessage) -> bool:
        """Return whether the message answers a waiting request or revokes a lease."""
        if received.type == "information_share" and received.content.get("kind") == "revoked":
            value = received.content.get("value")
            reason = cast("dict[str, Any]", value).get("reason") if isinstance(value, dict) else ""
            # Only its lender can revoke a lease.
            self._revoked[f"{received.sender} {received.content.get('key')}"] = str(reason or "")
            return True
        return self._requests.take(received)

    async def lenders(self) -> Sequence[str]:
        """Return the names of lenders that the lead knows. Raises UsageError."""
        share = _shared(await self._ask(ContextRequest("capability"), self.lead), "lenders")
        return [str(each) for each in cast("list[Any]", share.value)] if isinstance(share.value, list) else []

    async def offers(self, query: str, lenders: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the tools that match ``query`` by lender. Lenders that do not answer in time are left out."""
        asked = ContextRequest("capability", query)
        found = await asyncio.gather(*(self._ask(asked, each) for each in lenders), return_exceptions=True)
        offers: dict[str, tuple[str, ...]] = {}
        for name, each in zip(lenders, found, strict=True):
            if isinstance(each, AgentMessage) and each.type == "bid" and (tools := content(Bid, each).tools):
                offers[name] = tools
        return offers

    async def borrow(self, lender: str, tools: Sequence[str], seconds: float) -> Lease:
        """Return a lease for tools of ``lender``. Raises LeaseDenied, and UsageError without an answer."""
        facts: dict[str, Any] = {"tools": list(tools), "seconds": seconds, "lead": self.lead}
        share = _shared(await self._ask(ContextRequest("lease", facts=facts), lender), "lease")
        given = cast("dict[str, Any]", share.value) if isinstance(share.value, dict) else {}
        names, until = given.get("tools"), given.get("until")
        if not isinstance(names, list) or not isinstance(until, int | float):
            raise UsageError(f"{lender} answered with a wrong lease.")
        covered = tuple(str(each) for each in cast("list[object]", names))
        described = given.get("described")
        told = cast("dict[str, Any]", described) if isinstance(described, dict) else {}
        return Lease(share.key, lender, self.name, covered, float(until), self.lead, told)

    def holds(self, lease: Lease) -> bool:
        return lease.until > time.time() and self._revocation(lease) is None

    def _revocation(self, lease: Lease) -> str | None:
        return self._revoked.get(f"{lease.lender} {lease.id}")

    async def call(self, lease: Lease, tool: str, args: Mapping[str, Any], ceiling: AgentCeiling) -> tuple[str, bool]:
        """Return the text of the result and whether it is an error. ``ceiling``: the permissions of the borrower
        itself.

        Raises:
            LeaseDenied: the lease has ended or does not cover the call. NoAnswer: the lender is gone.
        """
        if (why := self._revocation(lease)) is not None:
            raise LeaseDenied(f"{lease.lender} took the lease back. {why}".strip(), "Ask for a new one.")
        same = json.dumps([lease.lender, tool, args], sort_keys=True, default=str)
        key = self._open.setdefault(same, uuid.uuid4().hex)
        asked = ContextRequest("call", tool, lease.id, {"args": dict(args), "ceiling": ceiling_out(ceiling)})
        try:
            share = _shared(await self._ask(asked, lease.lender, key), "result")
        except NoAnswer:
            raise
        except UsageError:
            del self._open[same]
            raise
        del self._open[same]
        match share.value:
            case {"text": str(text), "is_error": bool(wrong)}:
                return clipped(text, LARGEST), wrong
            case _:
                raise UsageError(f"{lease.lender} answered with a wrong result.")

    async def _ask(self, asked: ContextRequest, member: str, key: str = "") -> AgentMessage:
        request = message(asked, self.name, member, team=team_of(self.lead))
        answer = await self._requests.ask(replace(request, idempotency_key=key))
        if answer.type == "error":
            trouble = content(Trouble, answer)
            raise LeaseDenied(trouble.message, trouble.hint)
        return answer


def _shared(answer: AgentMessage, kind: str) -> Share:
    share = content(Share, answer)
    if share.kind != kind:
        raise UsageError(f"{answer.sender} answered with something else than a {kind}.")
    return share
