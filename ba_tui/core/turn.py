"""Turn and Branch: the two ends of the one channel between faces and agents.

A face holds the Turn: it iterates, answers, steers, cancels. An agent holds a Branch: it emits and asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Generator
from dataclasses import replace

from ba_tui.core.events import Answered, Asked, Event, Notice, Steered, TurnEnded
from ba_tui.core.messages import Message, user
from ba_tui.core.questions import Question, Reply, unanswered
from ba_tui.core.transcript import Transcript

Listener = Callable[[Event], None]


class Turn:
    """One request of the person and all that follows, until TurnEnded. Iterate it once."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners
        self._events: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._questions: dict[str, asyncio.Future[Reply]] = {}
        self._task: asyncio.Task[None] | None = None
        self.inbox: deque[Message] = deque()
        self.opened = False
        """Whether the prompt was let through; else it goes back to the person."""
        self.ended = False
        self.listens = True
        """Whether words can join it; False for work that asks no model."""

    def run(self, task: asyncio.Task[None]) -> None:
        """Bind the work that ``cancel`` stops."""
        self._task = task

    def publish(self, event: Event) -> None:
        """To every listener first (the journal is one), then to the face. A listener's error reaches the agent."""
        for listener in self._listeners:
            listener(event)
        self.deliver(event)

    def deliver(self, event: Event) -> None:
        """To the face alone: for the end of a turn whose journal has failed."""
        self.ended = self.ended or isinstance(event, TurnEnded)
        self._events.append(event)
        self._arrived.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            while self._events:
                event = self._events.popleft()
                yield event
                if isinstance(event, TurnEnded):
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

    def cancel(self) -> None:
        """Stop the work. Returns at once; the end arrives as TurnEnded("cancelled")."""
        if self._task and not self._task.done():
            # After its first step: a task that never began could not tell of its end.
            self._task.get_loop().call_soon(self._task.cancel)

    async def wait(self) -> None:
        """Until the work is over, also when nobody iterates."""
        if self._task:
            await asyncio.wait([self._task])


class Branch:
    """An agent's end: everything it says goes out signed with its name and into its own transcript.

    A message joins whole and in one step of the loop, so that nothing need be locked; ``inbox`` holds those that wait.
    """

    def __init__(self, turn: Turn, transcript: Transcript, inbox: deque[Message] | None = None) -> None:
        self._turn = turn
        self._inbox = turn.inbox if inbox is None else inbox
        self._calling = 0
        self.transcript = transcript
        self.name = transcript.agent

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
        self._turn.publish(event)
        self.transcript.apply(event)

    def fork(self, name: str) -> Branch:
        """The end of another agent in the same turn, with a transcript and an inbox of its own."""
        return Branch(self._turn, Transcript(name), deque())

    async def ask(self, question: Question) -> Reply:
        """Wait for the person, or as long as the question says. Cancelling withdraws the question."""
        ask_id = uuid.uuid4().hex
        future = self._turn.ask(ask_id)
        self.emit(Asked(ask_id, question))
        if question.timeout is not None and not await _settled(future, question.timeout):
            if question.on_timeout == "escalate":
                waits = f"{question.text} Nobody has answered for {question.timeout:g} s."
                self.emit(Notice(waits, "warning", "Answer it; it is denied after as long again."))
                await _settled(future, question.timeout)
            # The person's answer wins when it came just now.
            self._turn.answer(ask_id, unanswered(question))
        reply = await future
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
