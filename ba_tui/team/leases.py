"""Tools that one member lends to another: asked for, offered, leased for a time, called at the lender's, taken back.

The lender runs each call itself, within its own guards and on a branch with its own ceiling: a lease is a permission to
ask, never one to do more than the lender may. Each step is written down.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.calls import run_call
from ba_tui.core.errors import StopTurn, UsageError
from ba_tui.core.messages import ToolUse
from ba_tui.core.ports.bus import MessageBus
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.core.text.ranking import matching
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Call, Tool
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.team.messages import Bid, Content, ContextRequest, Share, Trouble, content, inbox, message

log = logging.getLogger(__name__)
LONGEST = 3_600.0
"""Seconds of the longest lease."""
AT_ONCE = 100
"""Leases that a member has given at the same time."""
AUDITED = 1_000
ANSWERS = 1_000
"""Results that are kept for requests that are delivered again."""
OFFERED = 10
Step: TypeAlias = Literal["leased", "called", "denied", "expired", "revoked"]


@frozen
class Lease:
    """``until`` in seconds since the epoch, on the lender's clock."""

    id: str
    lender: str
    borrower: str
    tools: tuple[str, ...]
    until: float


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


class Lender:
    """Lends those of ``lent`` that are among ``tools``, which stand within the lender's guards. Calls run on branches
    beside ``branch``, with its ceiling."""

    def __init__(
        self, name: str, bus: MessageBus, branch: Branch, tools: Callable[[], Mapping[str, Tool]], lent: Sequence[str]
    ) -> None:
        self._name = name
        self._bus = bus
        self._branch = branch
        self._tools = tools
        self._lent = tuple(lent)
        self._leases: dict[str, Lease] = {}
        self._running: dict[str, set[asyncio.Task[Content]]] = {}
        self._answers: OrderedDict[str, asyncio.Task[Content]] = OrderedDict()
        self._audit: deque[AuditLine] = deque(maxlen=AUDITED)

    def audit(self) -> Sequence[AuditLine]:
        """What was asked of this lender and what became of it, oldest first."""
        return tuple(self._audit)

    def leases(self) -> Sequence[Lease]:
        """Those that hold now."""
        for lease in [each for each in self._leases.values() if each.until <= time.time()]:
            self._end(lease, "expired")
        return tuple(self._leases.values())

    async def handle(self, received: AgentMessage) -> bool:
        """Answer a request of another member; False for what is no business of leases. A request that is delivered
        again gets the same answer, and its call is not made twice."""
        if received.type != "context_request":
            return False
        asked = content(ContextRequest, received)
        if asked.kind not in {"capability", "lease", "call"}:
            return False
        if received.id not in self._answers:
            self._answers[received.id] = asyncio.create_task(self._answer(received, asked))
            while len(self._answers) > ANSWERS:
                self._answers.popitem(last=False)
        said = await self._answers[received.id]
        answer = replace(message(said, self._name, received.sender, about=received), correlation_id=received.id)
        await self._bus.publish(inbox(received.sender), answer)
        return True

    async def revoke(self, lease: str, reason: str = "") -> bool:
        """Take a lease back: what runs under it is stopped, and its borrower is told. False when there is none."""
        found = self._leases.get(lease)
        if found is None:
            return False
        self._end(found, "revoked", reason)
        told = Share(found.id, {"reason": reason}, kind="revoked", by=self._name)
        await self._bus.publish(inbox(found.borrower), message(told, self._name, found.borrower))
        return True

    async def close(self) -> None:
        """Take all leases back."""
        for lease in list(self._leases):
            await self.revoke(lease, "The lender leaves.")

    async def _answer(self, received: AgentMessage, asked: ContextRequest) -> Content:
        try:
            if asked.kind == "capability":
                return self._offer(asked.query)
            if asked.kind == "lease":
                return self._granted(received.sender, asked.facts)
            return await self._called(received, asked)
        except Denied as error:
            self._note("denied", received.sender, asked.task, asked.query, reason=str(error))
            return Trouble("denied", str(error), error.hint, asked.task)

    def _offer(self, query: str) -> Bid:
        able = [tool for name in self._lent if (tool := self._able(name))]
        fitting = matching(query, able, lambda tool: (tool.name, tool.description)) if query.strip() else able
        return Bid(tools=tuple(tool.name for tool in fitting[:OFFERED]), reason="" if fitting else "nothing that fits")

    def _granted(self, borrower: str, facts: Mapping[str, Any]) -> Share:
        """Raises Denied."""
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
        lease = Lease(uuid.uuid4().hex, self._name, borrower, tuple(dict.fromkeys(names)), until)
        self._leases[lease.id] = lease
        self._note("leased", borrower, lease.id, ", ".join(lease.tools))
        return Share(lease.id, {"tools": list(lease.tools), "until": until}, by=self._name, kind="lease")

    async def _called(self, received: AgentMessage, asked: ContextRequest) -> Content:
        """Raises Denied."""
        lease = next((each for each in self.leases() if each.id == asked.task), None)
        # The same words for a lease of another borrower: ids must not be guessed.
        if lease is None or lease.borrower != received.sender:
            raise Denied("This lease does not hold any more.", "Ask for a new one.")
        tool = self._able(asked.query)
        if asked.query not in lease.tools or tool is None:
            raise Denied(f"The lease does not cover the tool {one_line(asked.query, 60)}.")
        work = asyncio.create_task(self._run(tool, received.id, asked.facts, lease))
        self._running.setdefault(lease.id, set()).add(work)
        try:
            await asyncio.wait({work}, timeout=max(0.0, lease.until - time.time()))
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

    async def _run(self, tool: Tool, id: str, args: Mapping[str, Any], lease: Lease) -> Content:
        branch = self._branch.aside(f"{self._branch.name}/lent-{id[:8]}")
        use = ToolUse(f"lent-{id}", tool.name, dict(args))
        self._note("called", lease.borrower, lease.id, tool.name, about=one_line(tool.target(args), 200))
        try:
            result = await run_call(tool, use, Call(use.id, branch))
        except StopTurn as stop:
            return Trouble("denied", str(stop), stop.hint, lease.id)
        value = {"text": result.text, "is_error": result.is_error}
        return Share(lease.id, value, by=self._name, kind="result")

    def _able(self, name: str) -> Tool | None:
        """The tool, if it is lent and the lender itself may call it."""
        tool, ceiling = self._tools().get(name), self._branch.ceiling
        if name not in self._lent or tool is None or not tool.facts.subagents:
            return None
        return tool if ceiling.may_call(name) and tool.effect in ceiling.effects else None

    def _end(self, lease: Lease, step: Step, reason: str = "") -> None:
        self._leases.pop(lease.id, None)
        for work in self._running.pop(lease.id, set()):
            work.cancel()
        self._note(step, lease.borrower, lease.id, ", ".join(lease.tools), reason=reason)

    def _note(self, step: Step, borrower: str, lease: str, tool: str, about: str = "", reason: str = "") -> None:  # noqa: PLR0913 - the fields of a line
        line = AuditLine(step, borrower, lease, one_line(tool, 200), about, reason)
        self._audit.append(line)
        log.info("lease %s: %s %s to %s", lease[:8], step, line.tool, borrower)


class Borrower:
    """Asks other members for tools. Hand it what comes to its inbox with ``take``."""

    def __init__(self, name: str, bus: MessageBus, patience: float = 30.0) -> None:
        self._name = name
        self._bus = bus
        self._patience = patience
        self._waiting: dict[str, asyncio.Future[AgentMessage]] = {}
        self._revoked: set[str] = set()

    def take(self, received: AgentMessage) -> bool:
        """Whether the message was an answer that is waited for, or takes a lease back."""
        if received.type == "information_share" and received.content.get("kind") == "revoked":
            self._revoked.add(str(received.content.get("key")))
            return True
        future = self._waiting.get(received.correlation_id)
        if future is None or future.done():
            return False
        future.set_result(received)
        return True

    async def offers(self, query: str, lenders: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The tools that fit ``query``, by their lender; those who do not answer in time are left out."""
        asked = ContextRequest("capability", query)
        found = await asyncio.gather(*(self._ask(asked, each) for each in lenders), return_exceptions=True)
        offers: dict[str, tuple[str, ...]] = {}
        for name, each in zip(lenders, found, strict=True):
            if isinstance(each, AgentMessage) and each.type == "bid" and (tools := content(Bid, each).tools):
                offers[name] = tools
        return offers

    async def borrow(self, lender: str, tools: Sequence[str], seconds: float) -> Lease:
        """Raises Denied, UsageError when no answer comes."""
        facts: dict[str, Any] = {"tools": list(tools), "seconds": seconds}
        share = _shared(await self._ask(ContextRequest("lease", facts=facts), lender), "lease")
        given = cast("dict[str, Any]", share.value) if isinstance(share.value, dict) else {}
        names, until = given.get("tools"), given.get("until")
        if not isinstance(names, list) or not isinstance(until, int | float):
            raise UsageError(f"{lender} answered with a wrong lease.")
        covered = tuple(str(each) for each in cast("list[object]", names))
        return Lease(share.key, lender, self._name, covered, float(until))

    async def call(self, lease: Lease, tool: str, args: Mapping[str, Any]) -> tuple[str, bool]:
        """The text of the result, and whether it is an error. What another process returns is data.

        Raises:
            Denied: the lease does not hold, or does not cover it. UsageError: no answer came.
        """
        if lease.id in self._revoked:
            raise Denied(f"{lease.lender} took the lease back.", "Ask for a new one.")
        asked = ContextRequest("call", tool, lease.id, dict(args))
        share = _shared(await self._ask(asked, lease.lender), "result")
        match share.value:
            case {"text": str(text), "is_error": bool(wrong)}:
                return text, wrong
            case _:
                raise UsageError(f"{lease.lender} answered with a wrong result.")

    async def _ask(self, asked: ContextRequest, lender: str) -> AgentMessage:
        request = message(asked, self._name, lender)
        self._waiting[request.id] = future = asyncio.get_running_loop().create_future()
        try:
            await self._bus.publish(inbox(lender), request)
            answer = await asyncio.wait_for(future, self._patience)
        except TimeoutError as error:
            raise UsageError(f"{lender} did not answer within {self._patience:g} s.", "Ask another member.") from error
        finally:
            del self._waiting[request.id]
        if answer.sender != lender:
            raise UsageError(f"{answer.sender} answered in the place of {lender}.")
        if answer.type == "error":
            trouble = content(Trouble, answer)
            raise Denied(trouble.message, trouble.hint)
        return answer


def _shared(answer: AgentMessage, kind: str) -> Share:
    share = content(Share, answer)
    if share.kind != kind:
        raise UsageError(f"{answer.sender} answered with something else than a {kind}.")
    return share
