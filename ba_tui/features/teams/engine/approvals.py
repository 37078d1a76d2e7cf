"""Approvals of a worker's tool calls by the user at its lead. An answer is valid for one call; nothing is remembered.

The user sees every question in full: a call that is too long is denied, never shown in part. Text from the other
process is data, and everything except a clear yes counts as no.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast, get_args

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.messages import clean_json
from ba_tui.core.questions import Question, Reply, Risk
from ba_tui.core.teamwork import AgentMessage, Role
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import clipped, one_line, sentence
from ba_tui.core.turn import Branch
from ba_tui.core.values import frozen
from ba_tui.features.teams.engine.bus import MessageBus
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
from ba_tui.permissions.lookalikes import warnings_of

NAME = 80


class NoAnswer(UsageError):
    """The other member did not answer. Whether it did the work is unknown."""

    kind = "timeout"


@dataclass
class _PendingQuestion:
    member: str
    answer: asyncio.Future[AgentMessage]
    heard: float = field(default_factory=time.monotonic)


class Requests:
    """Sends the requests of member ``name`` to other members and waits for their answers. Pass every inbox message to
    ``take``. ``patience``: seconds without a sign of life after which the other member counts as gone.
    """

    def __init__(self, name: str, bus: MessageBus, patience: float = 30.0) -> None:
        self.name = name
        self.bus = bus
        self._patience = patience
        self._waiting: dict[str, _PendingQuestion] = {}

    def take(self, received: AgentMessage) -> bool:
        """Return whether the message answers a waiting request and comes from the member that was asked."""
        found = self._waiting.get(received.correlation_id)
        if found is None or found.answer.done() or received.sender != found.member:
            return False
        found.heard = time.monotonic()
        if received.type != "status_update":
            found.answer.set_result(received)
        return True

    async def ask(self, request: AgentMessage) -> AgentMessage:
        """Send the request and return its answer.

        Raises:
            NoAnswer: the receiver is silent. UsageError: the request can't be sent.
        """
        member = request.receiver
        found = _PendingQuestion(member, asyncio.get_running_loop().create_future())
        self._waiting[request.id] = found
        try:
            await self.bus.publish(inbox(member), request)
            while (left := found.heard + self._patience - time.monotonic()) > 0:
                if (await asyncio.wait({found.answer}, timeout=left))[0]:
                    break
            else:
                text = f"{member} gives no sign of life for {self._patience:g} s: it may be gone."
                raise NoAnswer(text, "Ask another member.")
            return found.answer.result()
        finally:
            del self._waiting[request.id]


LONGEST = 300.0
"""Seconds that a worker waits for the user at its lead."""
GRACE = 5.0
"""Seconds after LONGEST until a worker gives up; the lead should have denied the call by then."""
LARGEST = 20_000
"""Maximum length of a call's arguments, in characters, that the user can be asked about."""
LINE, WORDS = 300, 2_000
"""Maximum characters of a line in a question, and of the user's comment on a denial."""
ANSWER = "answer"
"""Kind of the shared information that answers a question."""
HINT = "Allow it in the rules of the worker's machine, or do without it."
_RISKS: tuple[object, ...] = get_args(Risk)


@frozen
class CallQuestion:
    """A worker's question whether this call of ``tool`` may run at ``member``. ``agent`` wants the call for the subtask
    ``task``; ``text`` and ``reason`` come from the worker's permission check. Denied after ``seconds``.
    """

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
"""Asks the user at the lead."""
Tell: TypeAlias = Callable[[str], object]


async def nobody(asked: CallQuestion) -> Reply:
    """Deny the call: no user can be asked here."""
    return Reply("deny", "Nobody is asked there.", by="nobody")


class Approvals:
    """Asks the lead that sent the request ``about`` for approvals its task needs. ``tell`` gets one line per
    question.
    """

    def __init__(self, requests: Requests, role: Role, about: AgentMessage, tell: Tell) -> None:
        self._requests = requests
        self._role = role
        self._about = about
        self._tell = tell
        self._one = asyncio.Lock()

    async def ask(self, question: Question, agent: str) -> Reply:
        """Return the answer of the user at the lead: allow once, or deny. Never raises BaError: calls that can't be
        asked about are denied.
        """
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
        """Return whether a question waits for the user now."""
        return self._one.locked()

    async def _answered(self, question: Question, agent: str, lead: str) -> Reply:
        """Return the lead's answer. Raises BaError, TimeoutError."""
        # A question that needs more than the arguments, such as a secret in a result, can't be shown on another
        # machine.
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
    """Return the reply in a lead's answer. Raises UsageError for any other message."""
    share = content(Share, answer)
    match share.value:
        case {"choice": "once" | "deny" as choice, "text": str(text), "person": bool(person)} if share.kind == ANSWER:
            allowed = choice == "once" and person
            return Reply("once" if allowed else "deny", one_line(text, WORDS), by="person" if person else "nobody")
        case _:
            raise UsageError(f"{answer.sender} answered with something else than yes or no.")


def question_in(received: AgentMessage, asked: ContextRequest) -> CallQuestion:
    """Return a worker's question after checking it. Raises UsageError."""
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
    """Shows workers' questions to the user of the lead ``name``, one per worker at a time. ``beat``: seconds between
    two signs that the user is still being asked.
    """

    def __init__(self, name: str, bus: MessageBus, attending: Attending, beat: float) -> None:
        self._name = name
        self._bus = bus
        self._attending = attending
        self._beat = beat
        self._open: dict[str, tuple[str, asyncio.Task[None]]] = {}
        """Of a worker: the id of its question, and what asks it."""

    def take(self, received: AgentMessage, asked: ContextRequest, *, holds: bool) -> None:
        """Ask the user and answer. ``holds``: whether the worker does a task of this lead now; other workers are
        ignored.
        """
        if not holds or received.sender in self._open:
            return
        task = asyncio.create_task(self._answer(received, asked))
        self._open[received.sender] = (received.id, task)
        task.add_done_callback(lambda _: self._open.pop(received.sender, None))

    def withdraw(self, member: str, question: str = "") -> None:
        """Cancel the questions of ``member``: its work has ended, or it stopped waiting for ``question``."""
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


async def approved(asked: CallQuestion, branch: Branch) -> Reply:
    """Return the user's answer. Cancelling withdraws the question."""
    question = await asyncio.to_thread(_question, asked)
    # Asked under the worker's name, so that the dialog shows it and the question can be withdrawn.
    aside = branch.aside(f"{branch.name}/{_line(asked.member).replace('/', ' ')}")
    return await aside.ask(question)


def _question(asked: CallQuestion) -> Question:
    tool, member = _line(asked.tool), _line(asked.member)
    why = f" It says: {sentence(paintable(asked.reason, newlines=False))}" if asked.reason else ""
    needs = f"The agent {_line(asked.agent)} of {member} needs it for the subtask {_line(asked.task)}."
    reason = f"{needs}{why} A yes counts once."
    return Question(
        "permission",
        f"Allow {tool} on another machine?",
        tool=tool,
        args=clean_json(dict(asked.args)),
        reason=reason,
        risks=asked.risks,
        warnings=warnings_of(asked.args),
        timeout=asked.seconds,
        # The answer is not remembered, and the arguments stay as the worker's rules judged them.
        fixed=True,
    )


def _line(text: str) -> str:
    return one_line(paintable(text, newlines=False), NAME)
