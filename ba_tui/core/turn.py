"""Turn and Branch: the two ends of the channel between faces and agents.

A face has the Turn: it iterates, answers, steers, cancels. An agent has a Branch: it emits and asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import replace
from typing import Any, TypeVar

from ba_tui.core.activity import Activities, Failures
from ba_tui.core.effects import UNLIMITED, AgentCeiling
from ba_tui.core.events import (
    MAIN,
    AgentPaused,
    Answered,
    Asked,
    Compressed,
    Event,
    MessageDone,
    Notice,
    SideRequest,
    Steered,
    TurnEnded,
)
from ba_tui.core.ledger import Account
from ba_tui.core.messages import Message, Usage, user
from ba_tui.core.questions import Question, Reply, unanswered
from ba_tui.core.transcript import Transcript


class Pauses:
    """Paused agents of a turn by name, and the duration of pauses. Agents below a paused one are paused too."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._over: list[tuple[str, float, float]] = []
        """Ended pauses: agent, start, end."""
        self._resumed = asyncio.Event()

    def begin(self, agent: str) -> None:
        self._since.setdefault(agent, time.monotonic())

    def end(self, agent: str) -> bool:
        """Resume ``agent``; returns whether it was paused itself. All waiting agents check again whether they may
        continue."""
        since = self._since.pop(agent, None)
        if since is None:
            return False
        self._over.append((agent, since, time.monotonic()))
        self._resumed.set()
        self._resumed = asyncio.Event()
        return True

    def now(self, agent: str) -> bool:
        """Return whether ``agent`` has to pause."""
        return bool(self._since) and any(_within(agent, each) for each in self._since)

    async def over(self, agent: str) -> None:
        """Wait until ``agent`` may continue."""
        while self.now(agent):
            await self._resumed.wait()

    def seconds(self, agent: str) -> float:
        """Return how long ``agent`` was paused so far; overlapping pauses count once."""
        now = time.monotonic()
        open_ones = [(name, since, now) for name, since in self._since.items()]
        total, until = 0.0, 0.0
        for name, since, end in sorted([*self._over, *open_ones], key=lambda pause: pause[1]):
            if _within(agent, name) and end > until:
                total += end - max(since, until)
                until = end
        return total


def _within(agent: str, other: str) -> bool:
    """Return whether ``agent`` is ``other`` or below it."""
    return agent == other or agent.startswith(f"{other}/")


T = TypeVar("T")
Listener = Callable[[Event], None]
Meanwhile = Callable[[], Awaitable[Reply]]
"""Returns an answer from another source, or never returns."""


class Turn:
    """One request of the user and all events until TurnEnded. Iterate it once."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners
        self._events: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._questions: dict[str, asyncio.Future[Reply]] = {}
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self.pauses = Pauses()
        self.activities = Activities()
        """What its agents are doing."""
        self.failures = Failures()
        self.inbox: deque[Message] = deque()
        self.opened = False
        """Whether the prompt was admitted; otherwise it goes back to the user."""
        self.ended = False
        self.closed = False
        """Whether the session was closed while the turn ran."""
        self.stopped_by = ""
        """The reason for ``cancel``, unless the user cancelled."""
        self.listens = True
        """Whether messages can join; False for work that asks no model."""

    def run(self, task: asyncio.Task[Any], agent: str = MAIN) -> None:
        """Register an agent's task, which ``cancel`` stops. A continued agent does not start paused."""
        self._tasks[agent] = task
        self.pauses.end(agent)

    def publish(self, event: Event, *, planning: bool = False) -> None:
        """Send an event to all listeners (the journal first), then to the face. An error of a listener reaches the
        agent. The change of state that follows from the event is sent next; before the end of a turn, because nothing
        may follow that. ``planning``: the agent's mode is plan."""
        self.failures.apply(event)
        change = self.activities.apply(event, planning=planning)
        if change is None:
            self._publish(event)
            return
        first, then = (change, event) if isinstance(event, TurnEnded) else (event, change)
        self._publish(first)
        self._publish(then)

    def _publish(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)
        self.deliver(event)

    def deliver(self, event: Event) -> None:
        """Send an event only to the face: for the end of a turn whose journal failed."""
        self.ended = self.ended or _ends(event)
        self._events.append(event)
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            while self._events:
                event = self._events.popleft()
                yield event
                if _ends(event):
                    return
            self._arrived.clear()
            await self._arrived.wait()

    @property
    def heard(self) -> bool:
        """Return whether the face has read all events."""
        return not self._events

    def ask(self, ask_id: str) -> asyncio.Future[Reply]:
        future = asyncio.get_running_loop().create_future()
        self._questions[ask_id] = future
        return future

    def answer(self, ask_id: str, reply: Reply) -> bool:
        """Answer a question; the first answer wins. Returns False if it was answered before or is gone."""
        future = self._questions.pop(ask_id, None)
        if future is None or future.done():
            return False
        future.set_result(reply)
        return True

    def steer(self, text: str) -> bool:
        """Send a message to the running turn. Returns False if it has ended or takes none: open a new turn instead."""
        if self.ended or not self.listens:
            return False
        self.inbox.append(user(text, origin="steer"))
        return True

    def close(self) -> None:
        """Cancel all work because the session is closed."""
        self.closed = True
        self.cancel()

    def cancel(self, agent: str = MAIN) -> None:
        """Cancel an agent and all agents below it. Does not wait; the end arrives as TurnEnded("cancelled")."""
        task = self._tasks.get(agent)
        if task and not task.done():
            # Cancel after its first step: a task that never started could not emit its end.
            task.get_loop().call_soon(task.cancel)

    def pause(self, agent: str = MAIN) -> bool:
        """Pause an agent and all agents below it before their next request. Returns False if the agent is not working.
        Each emits AgentPaused when it pauses and when it resumes. Running calls finish; messages that arrive meanwhile
        wait, and ``cancel`` still works."""
        task = self._tasks.get(agent)
        if task is None or task.done() or (self.ended and agent == MAIN):
            return False
        self.pauses.begin(agent)
        return True

    def resume(self, agent: str = MAIN) -> bool:
        """Resume a paused agent. Returns False if it was not paused. Below a paused agent it still waits."""
        return self.pauses.end(agent)

    async def wait(self) -> None:
        """Wait for the end of the work, even if no face iterates."""
        if task := self._tasks.get(MAIN):
            await asyncio.wait([task])


def _ends(event: Event) -> bool:
    """Return whether ``event`` ends the turn; the end of a sub-agent does not."""
    return isinstance(event, TurnEnded) and event.agent == MAIN


class Branch:
    """An agent's end of the channel: its events are signed with its name and applied to its own transcript. A message
    joins as a whole in one step of the event loop, so no lock is needed; ``inbox`` has waiting ones. ``ceiling``: the
    most that its calls may do. ``account``: usage and cost of this turn, including all agents below it."""

    def __init__(self, turn: Turn, transcript: Transcript, inbox: deque[Message] | None = None) -> None:
        self._turn = turn
        self._inbox = turn.inbox if inbox is None else inbox
        self._calling = 0
        self._parent: Branch | None = None
        self._states: dict[Callable[[], object], Any] = {}
        self.transcript = transcript
        self.name = transcript.agent
        self.ceiling = UNLIMITED
        self.account = Account()
        self.pauses = turn.pauses
        self.failures = turn.failures

    def state(self, kind: Callable[[], T]) -> T:
        """Return the state object that ``kind`` (a class or another factory) makes for this agent and turn. It is
        created on first use. Guards and interceptors keep state between steps here, because they may serve several
        agents concurrently."""
        if kind not in self._states:
            self._states[kind] = kind()
        return self._states[kind]

    @property
    def closed(self) -> bool:
        """Return whether the session was closed while the turn ran, so that the user did not interrupt it."""
        return self._turn.closed

    @contextlib.contextmanager
    def calling(self) -> Generator[None]:
        """While calls run, hold back messages, which would come between the calls and their results."""
        self._calling += 1
        try:
            yield
        finally:
            self._calling -= 1

    def emit(self, event: Event) -> None:
        if self._calling and isinstance(event, Steered):
            self.post(event.message)
            return
        if event.agent != self.name:
            event = replace(event, agent=self.name)
        self._turn.publish(event, planning=self.transcript.mode == "plan")
        self.transcript.apply(event)
        if isinstance(event, MessageDone | Compressed | SideRequest):
            self._spend(event)

    def fork(self, name: str, ceiling: AgentCeiling = UNLIMITED, transcript: Transcript | None = None) -> Branch:
        """Return the branch of a new sub-agent in the same turn, with its own transcript and inbox. Its name is like
        ``main/explore-1``, with a number unused by other children of this agent in the session; a resumed one has the
        name of its ``transcript``. Its ceiling is ``ceiling`` limited by this agent's own."""
        new = transcript or Transcript(f"{self.name}/{self.transcript.new_child(name)}")
        child = self._beside(new)
        child.ceiling = self.ceiling.within(ceiling)
        return child

    def aside(self, name: str) -> Branch:
        """Return a branch for calls outside the conversation; it starts with this one's folder and todo list."""
        other = self._beside(Transcript(name))
        other.transcript.cwd, other.transcript.todos = self.transcript.cwd, self.transcript.todos
        other.ceiling = self.ceiling
        return other

    def _beside(self, transcript: Transcript) -> Branch:
        other = Branch(self._turn, transcript, deque())
        other._parent = self
        return other

    def runs(self, task: asyncio.Task[Any]) -> None:
        """Register the task of this agent, so that it can be cancelled by the agent's name."""
        self._turn.run(task, self.name)

    def stop(self) -> None:
        """Cancel this agent and all agents below it."""
        self._turn.cancel(self.name)

    def pause(self, agent: str, *, on: bool) -> bool:
        """Pause or resume any agent of the turn by name: see ``Turn.pause`` and ``Turn.resume``."""
        return self._turn.pause(agent) if on else self._turn.resume(agent)

    async def unpaused(self) -> None:
        """Wait while this agent, or one above it, is paused. Called between steps of work, never within one."""
        if self.pauses.now(self.name):
            self.emit(AgentPaused(paused=True))
            await self.pauses.over(self.name)
            self.emit(AgentPaused(paused=False))

    def _spend(self, event: MessageDone | Compressed | SideRequest) -> None:
        """Add the usage and cost of ``event`` to this agent and all above it."""
        usage, cost, estimate = event.usage or Usage(), event.cost, event.estimate
        if isinstance(event, Compressed):
            cost = (cost or 0.0) if event.priced else None
        elif isinstance(event, SideRequest):
            # An unknown price of a small model must not end an agent's budget.
            cost = cost or estimate or 0.0
        elif event.usage is None:
            # The cost of an interrupted answer is unknown, and small.
            return
        branch: Branch | None = self
        while branch is not None:
            branch.account.answer(usage, cost, estimate)
            branch = branch._parent

    async def ask(self, question: Question, meanwhile: Meanwhile | None = None) -> Reply:
        """Ask the user, and wait for the answer or the question's timeout. Cancelling withdraws the question.
        ``meanwhile`` may answer instead; the first answer wins."""
        ask_id = uuid.uuid4().hex
        future = self._turn.ask(ask_id)
        self.emit(Asked(ask_id, question))
        if meanwhile is None:
            return await self._reply(ask_id, question, future)
        other = asyncio.create_task(self._answer_with(ask_id, meanwhile))
        try:
            return await self._reply(ask_id, question, future)
        finally:
            other.cancel()
            await asyncio.gather(other, return_exceptions=True)

    async def _answer_with(self, ask_id: str, meanwhile: Meanwhile) -> None:
        self._turn.answer(ask_id, await meanwhile())

    async def _reply(self, ask_id: str, question: Question, future: asyncio.Future[Reply]) -> Reply:
        if question.timeout is not None and not await _settled(future, question.timeout):
            if question.on_timeout == "escalate":
                waits = f"{question.text} No answer for {question.timeout:g} s."
                self.emit(Notice(waits, "warning", "Answer it, or it is denied after the same time again."))
                await _settled(future, question.timeout)
            # An answer of the user that arrived just now wins.
            self._turn.answer(ask_id, unanswered(question))
        try:
            reply = await future
        except asyncio.CancelledError:
            if self.name != MAIN:
                # The turn continues, so tell faces that the question is withdrawn.
                self.emit(Answered(ask_id, Reply("deny", "The question was withdrawn.", by="nobody")))
            raise
        self.emit(Answered(ask_id, reply))
        return reply

    def post(self, message: Message) -> None:
        """Post a note that joins before the next request."""
        self._inbox.append(message)

    @property
    def waiting(self) -> bool:
        """Return whether notes are waiting to join."""
        return bool(self._inbox)

    def drain(self) -> bool:
        """Let waiting notes join the conversation; returns True if there were any."""
        waiting = bool(self._inbox)
        while self._inbox and not self._calling:
            self.emit(Steered(self._inbox.popleft()))
        return waiting


async def _settled(future: asyncio.Future[Reply], seconds: float) -> bool:
    done, _ = await asyncio.wait([future], timeout=seconds)
    return bool(done)
