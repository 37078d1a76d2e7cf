"""What a worker does with a task: an agent of its role works in a session of its own. Nobody attends it
here; the person at the lead may answer what it asks."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from ba_tui.agent_files.catalog import AgentFiles
from ba_tui.core.agent_spec import AgentSpec, Budget
from ba_tui.core.conversation import Conversation
from ba_tui.core.effects import Effect
from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Answered, Asked, Event, MessageDone, TurnEnded
from ba_tui.core.messages import Message, Text, Usage
from ba_tui.core.ports.delegation import Delegation, Order
from ba_tui.core.ports.teams import Teams
from ba_tui.core.services import Services
from ba_tui.core.spawning import ChildResult
from ba_tui.core.teamwork.teams import Role
from ba_tui.core.text.wording import one_line
from ba_tui.core.turn import Branch, Turn
from ba_tui.faces.headless import denial
from ba_tui.features.teams.engine.leases import Lending
from ba_tui.features.teams.engine.local_members import response_of
from ba_tui.features.teams.engine.member_spec import member_spec
from ba_tui.features.teams.engine.messages import Content, TaskRequest, TaskResponse, Trouble
from ba_tui.features.teams.engine.prompts import continued
from ba_tui.features.teams.engine.roles import Roles
from ba_tui.features.teams.engine.seats import Seat
from ba_tui.features.teams.engine.worker import Ask
from ba_tui.features.teams.session import TeamSession

TITLE = 80
ASKS = 10
"""Questions that a response repeats."""


class TaskSessions:
    """``role`` by its name. The first session is made at once: it says what the role is."""

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
        """Have an agent of the role do the task. ``ask`` answers approvals; without it they are denied, as all other
        questions are. The response repeats what nobody answered."""
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

    def lending(self, beat: float) -> Lending | None:
        """What this worker lends, within the rules of a session of its own, which keeps the calls. None for nothing.

        Makes that session: off the loop.
        """
        if not self.role.lends:
            return None
        self._lending = self._services.library.create()
        teams = self._lending.inventory.feature(Teams)
        return teams.lending(self.role, beat, self._lent) if isinstance(teams, TeamSession) else None

    async def _lent(self, work: Callable[[Branch], Awaitable[Content]]) -> Content:
        """Have ``work`` done in a turn. What asks is denied: nobody attends."""
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

        # The words of another process are for the agent alone: here they could name files or commands.
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
        """No more than both the role and the request allow."""
        left = max(1.0, request.deadline - time.time()) if request.deadline else None
        loops = min(request.max_loops, self.spec.max_loops)
        return Order(
            self.spec, _prompt(request, key, once=not self.reads), request.description or request.task,
            deadline=left, max_loops=loops, budget=_least(self.spec.budget, request),
        )  # fmt: skip


class _Questions:
    """What the agent of a task asks for, and who answers: ``ask``, or nobody. ``unanswered``: what was denied as nobody
    answered it."""

    def __init__(self, turn: Turn, ask: Ask | None) -> None:
        self._turn = turn
        self._ask = ask
        self._asking: dict[str, asyncio.Task[None]] = {}
        self.unanswered: list[str] = []

    def apply(self, event: Event) -> None:
        if isinstance(event, Asked):
            self._asking[event.ask_id] = asyncio.create_task(self._answer(event))
        elif isinstance(event, Answered) and (asking := self._asking.pop(event.ask_id, None)):
            # Its own deadline may have settled it: the person at the lead need not be asked any more.
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
    """Lets the agent of the task share what the team knows."""
    teams = conversation.inventory.feature(Teams)
    if seat is None or not isinstance(teams, TeamSession):
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
