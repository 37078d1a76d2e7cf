"""``ba worker``: joins the teams on a Redis server and does their work of one role, until it is stopped.

``ba_tui.features.teams.engine.worker`` pulls and answers the work.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ba_tui import __version__
from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.cli.application import Allow, Model, WorkingFolder, option
from ba_tui.cli.config import folder_of, print_line
from ba_tui.core.agent import ChildResult
from ba_tui.core.conversation import Conversation
from ba_tui.core.effects import Effect
from ba_tui.core.errors import BaError, UsageError, run_loop
from ba_tui.core.events import Answered, Asked, Event, MessageDone, TurnEnded
from ba_tui.core.messages import Message, Text, Usage
from ba_tui.core.ports.agents import Delegation, Order
from ba_tui.core.services import Services
from ba_tui.core.teamwork import AgentSpec, Budget, Role
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, one_line, with_hint
from ba_tui.core.turn import Branch, Turn
from ba_tui.faces.headless import denial
from ba_tui.features.teams.engine.jobs import continued
from ba_tui.features.teams.engine.leases import Lender, LenderTools
from ba_tui.features.teams.engine.local_members import Seat, response_of
from ba_tui.features.teams.engine.messages import Content, TaskRequest, TaskResponse, Trouble
from ba_tui.features.teams.engine.over_redis.membership import open_worker_bus
from ba_tui.features.teams.engine.over_redis.state import RedisAccepted, RedisItems
from ba_tui.features.teams.engine.roles import Roles, member_spec
from ba_tui.features.teams.engine.worker import Ask, Worker, WorkerFacts
from ba_tui.features.teams.session import TeamSession
from ba_tui.flags import FLAGS, ChatFlags
from ba_tui.permissions.secrets.scanner import redact
from ba_tui.permissions.trust.grants import Trust
from ba_tui.processes.signals import interrupts
from ba_tui.resources import open_places, project_root
from ba_tui.settings import load_settings

if TYPE_CHECKING:
    from ba_tui.settings.sections.agents import TeamSettings

TITLE = 80
ASKS = 10
"""Maximum unanswered questions that a response repeats."""
Mode = Literal["default", "accept-edits", "plan", "auto"]


def worker(
    role: Annotated[str, typer.Option(metavar="NAME", help="The role to work in: ba team roles lists them.")],
    bus_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The Redis server of the team; by default the setting team.bus_url."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End after one task.")] = False,
    model: Model = None,
    permission_mode: Annotated[Mode | None, option(FLAGS["--permission-mode"])] = None,
    allow: Allow = None,
    cwd: WorkingFolder = None,
) -> int:
    """Do a team's work of one role, on this machine: pull tasks from the team's Redis server and answer them.

    Nobody attends, so whatever would ask for approval is denied: your rules and the mode decide what runs. With the
    setting team.worker_questions: ask, the user at the team's lead is asked. Ctrl+C ends after the current task, a
    second one at once; another worker then does the task.

    \b
    Exit codes:
      0 ok · 1 usage or configuration · 2 the server can't be used
    """
    from ba_tui.assembly import connect  # noqa: PLC0415 - a quarter of a second, and --help needs none

    folder = folder_of(cwd)
    flags = ChatFlags(model=model, permission_mode=permission_mode, allow=allow or None).settings()
    flags |= {"team.bus_url": bus_url} if bus_url else {}
    settings = team_settings(flags, folder)
    if settings.bus_url is None:
        hint = "Set team.bus_url in your settings, or pass --bus-url redis://HOST:6379/0."
        raise UsageError("A worker needs the Redis server of its team.", hint)
    services = connect(flags, folder, strict=True)
    for notice in services.notices:
        if notice.level != "info":
            say(with_hint(notice.text, notice.hint))
    return run_loop(_work(services, settings, role, once=once))


async def _work(services: Services, settings: TeamSettings, role: str, *, once: bool) -> int:

    sessions = await asyncio.to_thread(TaskSessions, services, role)

    def tell(text: str) -> None:
        # Its lines may be written to a log file.
        say(redact(text))

    host = socket.gethostname()
    bus = open_worker_bus(settings, host, redact, tell)
    found = sessions.role
    name = f"{found.name}@{bus.signing.identity.member.name}-{os.getpid()}-{secrets.token_hex(2)}"
    lending = await asyncio.to_thread(sessions.lending, settings.heartbeat)
    lender = Lender(name, bus, lending) if lending else None
    facts = WorkerFacts(
        name, found.name, found.capabilities, host, os.getpid(), __version__, sessions.model,
        settings.heartbeat, settings.lease, sessions.reads,
        found.messages, partial(RedisItems, bus), settings.patience, lender, settings.worker_questions == "ask",
    )  # fmt: skip
    member = Worker(facts, bus, RedisAccepted(bus), sessions.do, tell)
    try:
        if await bus.reach(waits=not once):
            if found.lends and not lender:
                say("It lends no tools: its role may not send bids and shared information.")
            say(f"{name} waits for work of the role {found.name} at {bus.server.place}. Ctrl+C ends it.")
        with interrupts(member.stop):
            done = await member.run(once=once)
        say(f"Ended: {count(done, 'task')} done.")
    finally:
        await sessions.close()
        await bus.close()
    return 0


def team_settings(flags: dict[str, object], folder: Path) -> TeamSettings:
    """Return the team settings. Raises UsageError for a wrong flag or settings file."""
    where, root = open_places(), project_root(folder)
    loaded = load_settings(flags, where, root, trusted=Trust(where).trusted(root))
    loaded.check()
    return loaded.settings.team


def say(text: str) -> None:
    """Print a line of the worker's log, with the time. Text of other processes can't send control codes."""
    print_line(f"{time.strftime('%H:%M:%S')}  {paintable(text, newlines=False)}")
    sys.stdout.flush()


class TaskSessions:
    """``role``: its name. The first session is created immediately, because it describes the role."""

    def __init__(self, services: Services, role: str) -> None:
        self._services = services
        self._next: Conversation | None = services.library.create()
        self._lending: Conversation | None = None
        self._one = asyncio.Lock()
        self.role: Role = Roles(_files(self._next)).named((role,))[0]
        self.spec: AgentSpec = member_spec(self.role, _files(self._next))
        self.model = self.spec.model or self._next.model
        if missing := services.setup.missing(self._next.model):
            raise UsageError(missing)
        agents = self._next.inventory.feature(Delegation)
        effect = agents.effect(self.role.agent) if agents else Effect.EXECUTE
        self.reads = effect is Effect.READ or self.spec.ceiling.effects <= {Effect.READ}
        """Whether an agent of the role can change nothing."""

    async def do(self, request: TaskRequest, key: str, seat: Seat | None, ask: Ask | None) -> TaskResponse:
        """Have an agent of the role do the task. ``ask`` answers approvals; without it they are denied, like all other
        questions. The response lists the unanswered ones.
        """
        conversation, self._next = self._next or self._services.library.create(), None
        try:
            with _seated(conversation, request, seat):
                return await self._done(conversation, request, key, ask)
        except BaError as error:
            return TaskResponse(request.task, "error", error=str(error), hint=error.hint, session=conversation.id)
        finally:
            await conversation.close()

    async def close(self) -> None:
        for each in (self._next, self._lending):
            if each:
                await each.close()

    def lending(self, beat: float) -> LenderTools | None:
        """Return what this worker lends, within the rules of a session of its own, which records the calls; None for
        nothing.

        Creates that session: call it in a thread.
        """
        if not self.role.lends:
            return None
        self._lending = self._services.library.create()
        teams = self._lending.inventory.feature(TeamSession)
        return teams.lending(self.role, beat, self._lent) if teams else None

    async def _lent(self, work: Callable[[Branch], Awaitable[Content]]) -> Content:
        """Run ``work`` in a turn. Calls that need approval are denied: this machine has no user."""
        assert self._lending
        said: list[Content] = []

        async def within(branch: Branch) -> None:
            said.append(await work(branch))

        async with self._one:
            turn = self._lending.say("A member of a team borrowed a tool.", within)
            error = "The call was stopped."
            try:
                async for event in turn:
                    if isinstance(event, Asked):
                        turn.answer(event.ask_id, denial(event.question))
                    if isinstance(event, TurnEnded) and event.agent == "main" and event.error:
                        error = event.error.with_hint
            except asyncio.CancelledError:
                turn.cancel()
                await turn.wait()
                raise
        return said[0] if said else Trouble("denied", error)

    async def _done(self, conversation: Conversation, request: TaskRequest, key: str, ask: Ask | None) -> TaskResponse:
        running: list[asyncio.Task[ChildResult]] = []

        async def work(branch: Branch) -> None:
            agents = conversation.inventory.feature(Delegation)
            if agents is None:
                raise UsageError("This session can start no agents.")
            running.append(asyncio.create_task(agents.run(self._order(request, key), branch)))
            result = await running[0]
            said = result.message.text or (result.error.message if result.error else "")
            # The agent's tokens are counted already.
            answer = Message("assistant", (Text(said),), usage=Usage(), stop="end_turn", origin="assistant")
            branch.emit(MessageDone(answer, 0.0))

        # Text of another process is for the agent alone: in a prompt of this session it could name files or commands.
        title = one_line(request.description or request.task, TITLE).replace("@", " ")
        turn = conversation.say(f"Team task, {self.role.name}: {title}", work)
        questions, error = _Questions(turn, ask), ""
        try:
            async for event in turn:
                questions.apply(event)
                if isinstance(event, TurnEnded) and event.agent == "main" and event.error:
                    error = event.error.with_hint
        except asyncio.CancelledError:
            turn.cancel()
            await turn.wait()
            raise
        finally:
            await questions.close()
        if not running:
            return TaskResponse(
                request.task, "error", error=error or "The task was not begun.", session=conversation.id
            )
        response = response_of(request, running[0], "", 0.0)
        return replace(response, asks=tuple(questions.unanswered[:ASKS]), session=conversation.id)

    def _order(self, request: TaskRequest, key: str) -> Order:
        """Return the order with the stricter limits of role and request."""
        left = max(1.0, request.deadline - time.time()) if request.deadline else None
        loops = min(request.max_loops, self.spec.max_loops)
        return Order(
            self.spec, _prompt(request, key, once=not self.reads), request.description or request.task,
            deadline=left, max_loops=loops, budget=_least(self.spec.budget, request),
        )  # fmt: skip


class _Questions:
    """The questions of a task's agent. ``ask`` answers them, or None. ``unanswered``: questions that were denied
    without an answer.
    """

    def __init__(self, turn: Turn, ask: Ask | None) -> None:
        self._turn = turn
        self._ask = ask
        self._asking: dict[str, asyncio.Task[None]] = {}
        self.unanswered: list[str] = []

    def apply(self, event: Event) -> None:
        if isinstance(event, Asked):
            self._asking[event.ask_id] = asyncio.create_task(self._answer(event))
        elif isinstance(event, Answered) and (asking := self._asking.pop(event.ask_id, None)):
            # The question's own deadline may have settled it: the user at the lead need not be asked any more.
            asking.cancel()

    async def close(self) -> None:
        for each in self._asking.values():
            each.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    async def _answer(self, event: Asked) -> None:
        question = event.question
        if self._ask and question.kind == "permission":
            reply = await self._ask(question, event.agent.removeprefix("main/"))
        else:
            reply = denial(question)
        if reply.by == "nobody":
            self.unanswered.append(one_line(f"{question.text} {question.reason}", 300))
        self._turn.answer(event.ask_id, reply)


def _seated(conversation: Conversation, request: TaskRequest, seat: Seat | None) -> AbstractContextManager[object]:
    """Give the task's agent a seat in the team, so that it can share items."""
    teams = conversation.inventory.feature(TeamSession)
    if seat is None or teams is None:
        return contextlib.nullcontext()
    return teams.seats.taken(request.description or request.task, seat)


def _prompt(request: TaskRequest, key: str, *, once: bool) -> str:
    parts = [request.prompt]
    if request.expected_output:
        parts.append(f"Expected: {request.expected_output}")
    if request.partial:
        parts.append(continued(request.partial))
    if once:
        parts.append(f"Idempotency key of this task, for tools and services that take one: {key}")
    return "\n\n".join(parts)


def _least(budget: Budget | None, request: TaskRequest) -> Budget | None:
    def least(mine: float | None, theirs: float) -> float | None:
        given = [each for each in (mine, theirs or None) if each is not None]
        return min(given, default=None)

    own = budget or Budget()
    tokens = least(own.tokens, request.max_tokens)
    made = Budget(least(own.cost, request.max_cost), None if tokens is None else int(tokens))
    return made if made != Budget() else None


def _files(conversation: Conversation) -> AgentFiles:
    found = conversation.inventory.agents
    if not isinstance(found, AgentFiles):
        raise UsageError("This folder describes no agents.")
    return found
