"""Turn and Branch: the two ends of the one channel between faces and agents.

A face holds the Turn: it iterates, answers, steers, cancels. An agent holds a Branch: it emits and asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import replace
from typing import Any, TypeVar

from ba_tui.core.effects import UNLIMITED, Ceiling
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
from ba_tui.core.events.activity import Activities
from ba_tui.core.events.failures import Failures
from ba_tui.core.ledger import Account
from ba_tui.core.messages import Message, Usage, user
from ba_tui.core.questions import Question, Reply, unanswered
from ba_tui.core.teamwork.pauses import Pauses
from ba_tui.core.transcript import Transcript

T = TypeVar("T")
Listener = Callable[[Event], None]
Meanwhile = Callable[[], Awaitable[Reply]]
"""Comes to an answer by itself, or never."""


class Turn:
    """One request of the person and all that follows, until TurnEnded. Iterate it once."""

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
        """Whether the prompt was let through; else it goes back to the person."""
        self.ended = False
        self.closed = False
        self.stopped_by = ""
        """What makes ``cancel`` end it, where the user does not."""
        """Whether the session was closed while it ran."""
        self.listens = True
        """Whether words can join it; False for work that asks no model."""

    def run(self, task: asyncio.Task[Any], agent: str = MAIN) -> None:
        """Bind the work of an agent, which ``cancel`` stops. An agent that goes on later does not begin paused."""
        self._tasks[agent] = task
        self.pauses.end(agent)

    def publish(self, event: Event, *, planning: bool = False) -> None:
        """To every listener first (the journal is one), then to the face. A listener's error reaches the agent.

        The change of state that follows from the event comes next; before the end of a turn, which nothing follows.
        ``planning``: the agent's mode is plan.
        """
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
        """To the face alone: for the end of a turn whose journal has failed."""
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
        """Whether the face has been given all that was published."""
        return not self._events

    def ask(self, ask_id: str) -> asyncio.Future[Reply]:
        future = asyncio.get_running_loop().create_future()
        self._questions[ask_id] = future
        return future

    def answer(self, ask_id: str, reply: Reply) -> bool:
        """False when the question was answered before or is gone: the first answer wins."""
        future = self._questions.pop(ask_id, None)
        if future is None or future.done():
            return False
        future.set_result(reply)
        return True

    def steer(self, text: str) -> bool:
        """Hand words to the running turn; False when it has ended or hears none: they should open a new one."""
        if self.ended or not self.listens:
            return False
        self.inbox.append(user(text, origin="steer"))
        return True

    def close(self) -> None:
        """Stop all work as ``cancel`` does, because the session is closed."""
        self.closed = True
        self.cancel()

    def cancel(self, agent: str = MAIN) -> None:
        """Stop the work of an agent and of all below it. Returns at once; the end arrives as TurnEnded("cancelled")."""
        task = self._tasks.get(agent)
        if task and not task.done():
            # After its first step: a task that never began could not tell of its end.
            task.get_loop().call_soon(task.cancel)

    def pause(self, agent: str = MAIN) -> bool:
        """Let an agent, and all below it, stand still before its next request; False when it has no work.

        Each says AgentPaused when it stands still, and when it goes on. What runs by then goes on to its end; words
        that come meanwhile wait, and ``cancel`` works as always.
        """
        task = self._tasks.get(agent)
        if task is None or task.done() or (self.ended and agent == MAIN):
            return False
        self.pauses.begin(agent)
        return True

    def resume(self, agent: str = MAIN) -> bool:
        """Let a paused agent go on; False when it was not paused. Below an agent that is still paused, it waits."""
        return self.pauses.end(agent)

    async def wait(self) -> None:
        """Until the work is over, also when nobody iterates."""
        if task := self._tasks.get(MAIN):
            await asyncio.wait([task])


def _ends(event: Event) -> bool:
    """Return whether ``event`` ends the turn; a sub-agent's end is one more event of it."""
    return isinstance(event, TurnEnded) and event.agent == MAIN


class Branch:
    """An agent's end: everything it says goes out signed with its name and into its own transcript.

    A message joins whole and in one step of the loop, so that nothing need be locked; ``inbox`` holds those that wait.
    ``ceiling``: the most that its calls may do. ``account``: what it has spent in this turn, with all agents below it.
    """

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
        """Return what ``kind`` (a class or another factory) keeps for this agent during this turn.

        It is made when it is first asked for. What guards and interceptors remember from one step to the next belongs
        here: they may serve several agents at once.
        """
        if kind not in self._states:
            self._states[kind] = kind()
        return self._states[kind]

    @property
    def closed(self) -> bool:
        """Whether the session was closed while the turn ran: nobody interrupted it."""
        return self._turn.closed

    @contextlib.contextmanager
    def calling(self) -> Generator[None]:
        """While calls run, what would join waits in line: it would come between them and their results."""
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

    def fork(self, name: str, ceiling: Ceiling = UNLIMITED, transcript: Transcript | None = None) -> Branch:
        """The branch of a new sub-agent in the same turn, with a transcript and an inbox of its own.

        It is called ``main/explore-1``, with a number that no other child of this agent has had in the session; one
        that goes on has the name of its ``transcript``. Its ceiling is ``ceiling`` as far as this agent's own allows.
        """
        new = transcript or Transcript(f"{self.name}/{self.transcript.new_child(name)}")
        child = self._beside(new)
        child.ceiling = self.ceiling.within(ceiling)
        return child

    def aside(self, name: str) -> Branch:
        """A branch for calls that are no part of the conversation; it begins with the folder and list of this one."""
        other = self._beside(Transcript(name))
        other.transcript.cwd, other.transcript.todos = self.transcript.cwd, self.transcript.todos
        other.ceiling = self.ceiling
        return other

    def _beside(self, transcript: Transcript) -> Branch:
        other = Branch(self._turn, transcript, deque())
        other._parent = self
        return other

    def runs(self, task: asyncio.Task[Any]) -> None:
        """Bind the task that does this agent's work, so that it can be cancelled by the agent's name."""
        self._turn.run(task, self.name)

    def stop(self) -> None:
        """Cancel this agent's work, and that of all agents below it."""
        self._turn.cancel(self.name)

    def pause(self, agent: str, *, on: bool) -> bool:
        """Pause any agent of the turn by its name, or let it go on: see ``Turn.pause`` and ``Turn.resume``."""
        return self._turn.pause(agent) if on else self._turn.resume(agent)

    async def unpaused(self) -> None:
        """Stand still while this agent, or one above it, is paused. Between two steps of work, never within one."""
        if self.pauses.now(self.name):
            self.emit(AgentPaused(paused=True))
            await self.pauses.over(self.name)
            self.emit(AgentPaused(paused=False))

    def _spend(self, event: MessageDone | Compressed | SideRequest) -> None:
        """Count the tokens and the price of ``event`` for this agent and for all above it."""
        usage, cost, estimate = event.usage or Usage(), event.cost, event.estimate
        if isinstance(event, Compressed):
            cost = (cost or 0.0) if event.priced else None
        elif isinstance(event, SideRequest):
            # An agent's own budget must not end because nobody knows the price of a small model.
            cost = cost or estimate or 0.0
        elif event.usage is None:
            # An answer that broke off: what it cost is not known, and little.
            return
        branch: Branch | None = self
        while branch is not None:
            branch.account.answer(usage, cost, estimate)
            branch = branch._parent

    async def ask(self, question: Question, meanwhile: Meanwhile | None = None) -> Reply:
        """Wait for the person, or as long as the question says. Cancelling withdraws the question.

        ``meanwhile`` may answer in their place while it is awaited; whoever answers first wins.
        """
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
                waits = f"{question.text} Nobody has answered for {question.timeout:g} s."
                self.emit(Notice(waits, "warning", "Answer it; it is denied after as long again."))
                await _settled(future, question.timeout)
            # The person's answer wins when it came just now.
            self._turn.answer(ask_id, unanswered(question))
        try:
            reply = await future
        except asyncio.CancelledError:
            if self.name != MAIN:
                # The turn goes on, so faces must hear that nobody waits for the answer.
                self.emit(Answered(ask_id, Reply("deny", "The question was withdrawn.", by="nobody")))
            raise
        self.emit(Answered(ask_id, reply))
        return reply

    def post(self, message: Message) -> None:
        """Leave a note that joins before the next request."""
        self._inbox.append(message)

    @property
    def waiting(self) -> bool:
        """True when notes wait to join."""
        return bool(self._inbox)

    def drain(self) -> bool:
        """Let waiting notes join the conversation; True when there were any."""
        waiting = bool(self._inbox)
        while self._inbox and not self._calling:
            self.emit(Steered(self._inbox.popleft()))
        return waiting


async def _settled(future: asyncio.Future[Reply], seconds: float) -> bool:
    done, _ = await asyncio.wait([future], timeout=seconds)
    return bool(done)
