"""A worker asks its lead whether a call may run. The person there answers for this one call; nothing is remembered.

Only what the question shows in full is asked: a call that is too long is denied, never shown in part. What the other
side says is data, and everything that is not a clear yes is a no.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field, replace
from typing import Any, TypeAlias, cast, get_args

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.ports.bus import MessageBus
from ba_tui.core.questions import Question, Reply, Risk
from ba_tui.core.teamwork.teams import AgentMessage, Role
from ba_tui.core.text.wording import clipped, one_line
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.asking.requests import Requests
from ba_tui.features.teams.engine.messages import (
    ContextRequest,
    Share,
    StatusUpdate,
    content,
    inbox,
    may_send,
    message,
    team_of,
)

LONGEST = 300.0
"""Seconds that a worker waits for the person at its lead."""
GRACE = 5.0
"""Seconds after which a worker gives up a question that its lead should have denied by then."""
LARGEST = 20_000
"""Characters of the arguments of a call that a person is asked about."""
LINE, WORDS = 300, 2_000
"""Characters of a line in a question, and of what the person says to a no."""
ANSWER = "answer"
"""The kind of shared information that answers a question."""
HINT = "Allow it in the rules of the worker's machine, or do without it."
_RISKS: tuple[object, ...] = get_args(Risk)


@frozen
class CallQuestion:
    """May this call of ``tool`` run at ``member``? ``agent`` wants it, for the subtask ``task``; ``text`` and
    ``reason`` are the words of the worker's ba. Denied after ``seconds``."""

    member: str
    agent: str
    task: str
    tool: str
    text: str = ""
    reason: str = ""
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    risks: tuple[Risk, ...] = ()
    seconds: float = LONGEST


Attending: TypeAlias = Callable[[CallQuestion], Awaitable[Reply]]
"""Asks the person at the lead."""
Tell: TypeAlias = Callable[[str], object]


async def nobody(asked: CallQuestion) -> Reply:
    """Where nobody is asked."""
    return Reply("deny", "Nobody is asked there.", by="nobody")


class Approvals:
    """Asks the lead that sent ``about`` for what its task needs. ``tell`` hears a line for each question."""

    def __init__(self, requests: Requests, role: Role, about: AgentMessage, tell: Tell) -> None:
        self._requests = requests
        self._role = role
        self._about = about
        self._tell = tell
        self._one = asyncio.Lock()

    async def ask(self, question: Question, agent: str) -> Reply:
        """What the person at the lead says: once, or no. Never raises BaError: what can't be asked is denied."""
        tool, lead = one_line(question.tool or question.text, LINE), self._about.sender
        try:
            async with self._one:
                reply = await self._answered(question, one_line(agent, LINE), lead)
        except BaError as error:
            reply = Reply("deny", str(error), by="nobody")
        except TimeoutError:
            reply = Reply("deny", f"Nobody answered at {lead} in time.", by="nobody")
        who = "the user at" if reply.by == "person" else "asking"
        said = "Allowed" if reply.choice == "once" else "Denied"
        self._tell(f"{said} {tool} ({who} {lead}){': ' if reply.text else '.'}{one_line(reply.text, LINE)}")
        return reply

    @property
    def waits(self) -> bool:
        """Whether the person is asked now."""
        return self._one.locked()

    async def _answered(self, question: Question, agent: str, lead: str) -> Reply:
        """Raises BaError, TimeoutError."""
        # What needs more than the arguments to be judged can't be shown elsewhere, such as a secret in a result.
        if question.kind != "permission" or question.fixed or not question.tool:
            raise UsageError("This question can be answered at the worker's machine only.")
        if not team_of(lead) or team_of(lead) != self._about.team:
            raise UsageError("The task came from no lead of a team.")
        if not may_send(self._role, "context_request"):
            raise UsageError(f"Members of the role {self._role.name} may not send context_request.")
        length = len(json.dumps(question.args, default=str))
        if length > LARGEST:
            raise UsageError(f"The call has {length:,} characters; the lead is asked about {LARGEST:,} at most.")
        seconds = min(LONGEST, question.timeout or LONGEST)
        facts = {
            "agent": agent, "text": one_line(question.text, LINE), "reason": one_line(question.reason, LINE),
            "args": dict(question.args), "risks": list(question.risks), "seconds": seconds,
        }  # fmt: skip
        asked = ContextRequest("question", question.tool, str(self._about.content.get("task", "")), facts)
        request = message(asked, self._requests.name, lead, about=self._about)
        self._tell(f"Asks {lead} whether {one_line(question.tool, LINE)} may run.")
        try:
            async with asyncio.timeout(seconds + GRACE):
                return reply_in(await self._requests.ask(request))
        except (asyncio.CancelledError, TimeoutError):
            back = message(StatusUpdate(asked.task, "cancelled"), self._requests.name, lead, about=self._about)
            with contextlib.suppress(BaError):
                await self._requests.bus.publish(inbox(lead), replace(back, correlation_id=request.id))
            raise


def reply_in(answer: AgentMessage) -> Reply:
    """The answer of a lead. Raises UsageError for what is none."""
    share = content(Share, answer)
    match share.value:
        case {"choice": "once" | "deny" as choice, "text": str(text), "person": bool(person)} if share.kind == ANSWER:
            allowed = choice == "once" and person
            return Reply("once" if allowed else "deny", one_line(text, WORDS), by="person" if person else "nobody")
        case _:
            raise UsageError(f"{answer.sender} answered with something else than yes or no.")


def question_in(received: AgentMessage, asked: ContextRequest) -> CallQuestion:
    """What a worker asks, checked. Raises UsageError."""
    facts = asked.facts
    args, seconds, risks = facts.get("args"), facts.get("seconds"), facts.get("risks")
    if not isinstance(args, dict) or len(json.dumps(args)) > LARGEST or not asked.query.strip():
        raise UsageError(f"{received.sender} asks about a call that can't be shown in full.", HINT)
    if not isinstance(seconds, int | float) or not 0 < seconds <= LONGEST:
        raise UsageError(f"{received.sender} asks without a time.")
    named = cast("list[object]", risks) if isinstance(risks, list) else []
    told = cast("tuple[Risk, ...]", tuple(each for each in named if each in _RISKS))
    lines = {key: one_line(str(facts.get(key, "")), LINE) for key in ("agent", "text", "reason")}
    return CallQuestion(
        received.sender, lines["agent"], one_line(asked.task, LINE), one_line(asked.query, LINE), lines["text"],
        lines["reason"], cast("dict[str, Any]", args), told, float(seconds),
    )  # fmt: skip


class Answers:
    """The lead ``name`` asks its person what workers want to know, one question of a worker at a time. ``beat``:
    seconds between two signs that the person is still asked."""

    def __init__(self, name: str, bus: MessageBus, attending: Attending, beat: float) -> None:
        self._name = name
        self._bus = bus
        self._attending = attending
        self._beat = beat
        self._open: dict[str, tuple[str, asyncio.Task[None]]] = {}
        """Of a worker: the id of its question, and what asks it."""

    def take(self, received: AgentMessage, asked: ContextRequest, *, holds: bool) -> None:
        """Ask the person, and answer. ``holds``: the worker does a task of this lead now; nobody else is heard."""
        if not holds or received.sender in self._open:
            return
        task = asyncio.create_task(self._answer(received, asked))
        self._open[received.sender] = (received.id, task)
        task.add_done_callback(lambda _: self._open.pop(received.sender, None))

    def withdraw(self, member: str, question: str = "") -> None:
        """The work of ``member`` has ended, or it waits no longer for the answer to ``question``."""
        found = self._open.get(member)
        if found and question in {"", found[0]}:
            found[1].cancel()

    async def close(self) -> None:
        tasks = [task for _, task in self._open.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _answer(self, received: AgentMessage, asked: ContextRequest) -> None:
        try:
            question = question_in(received, asked)
        except UsageError as error:
            await self._reply(Reply("deny", str(error), by="nobody"), received)
            return
        work = asyncio.ensure_future(self._attending(question))
        try:
            while not (await asyncio.wait({work}, timeout=self._beat))[0]:
                await self._send(StatusUpdate(asked.task, "awaiting_approval"), received)
            await self._reply(work.result(), received)
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _reply(self, reply: Reply, received: AgentMessage) -> None:
        person = reply.by == "person"
        choice = "once" if person and reply.choice in {"once", "session", "always"} else "deny"
        value = {"choice": choice, "text": clipped(reply.text.strip(), WORDS), "person": person}
        await self._send(Share(received.id, value, by=self._name, kind=ANSWER), received)

    async def _send(self, said: Share | StatusUpdate, received: AgentMessage) -> None:
        made = message(said, self._name, received.sender, about=received)
        with contextlib.suppress(BaError):
            await self._bus.publish(inbox(received.sender), replace(made, correlation_id=received.id))
