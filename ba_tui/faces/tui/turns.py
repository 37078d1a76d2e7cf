"""The turn that runs and the prompts that wait for it: what is sent when, steered, taken back or paused.

No widgets. Whoever owns it follows the turns and shows the queue.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence

from ba_tui.core.errors import BaError, PromptRefused
from ba_tui.core.events import MAIN, AgentStarted, Event, ToolFinished, TurnEnded
from ba_tui.core.questions import Reply
from ba_tui.core.turn import Turn
from ba_tui.faces.tui.agents.roster import PASSING
from ba_tui.faces.tui.session import OpenSession

BELOW = f"{MAIN}/"
TWICE = 1.0
REST = 1 / 60
"""Seconds, about a frame of the screen."""


async def paced(turn: Turn) -> AsyncIterator[Event]:
    """The events of a turn. Steps can follow each other within milliseconds: behind each is a rest, so that the panes
    hear of those that came meanwhile in one go."""
    async for event in turn:
        yield event
        if isinstance(event, ToolFinished) and turn.heard:
            await asyncio.sleep(REST)


class FollowedTurns:
    """The turns whose events are shown. One that has ended stays while agents in the background work on: they ask, and
    end, through the turn that started them."""

    def __init__(self, session: OpenSession) -> None:
        self._session = session
        self._running: dict[Turn, set[str]] = {}
        """Each turn with its agents in the background that run."""

    @property
    def outlived(self) -> bool:
        """Whether agents in the background outlive their turn."""
        return any(self._running.values())

    def answer(self, ask_id: str, reply: Reply) -> bool:
        """Answer the turn that asks; False when none of them does any more."""
        return any(turn.answer(ask_id, reply) for turn in self._running)

    async def events(self, turn: Turn) -> AsyncIterator[Event]:
        """The events of ``turn``, then those of its agents in the background, while the session is open; without the
        words that sub-agents stream."""
        running = self._running[turn] = set[str]()
        conversation = self._session.conversation
        try:
            async for event in paced(turn):
                if not _unseen(event):
                    _count(running, event)
                    yield event
            if not running:
                return
            # The end of the last one may be told in another event.
            async for event in turn:
                if self._session.conversation is not conversation:
                    return
                if not _unseen(event):
                    _count(running, event)
                    yield event
        finally:
            del self._running[turn]


def _unseen(event: Event) -> bool:
    """Whether the conversation does not show it. Twenty agents stream thousands of pieces a second, which only the
    transcript of an agent shows; that follows the session by itself."""
    return event.agent.startswith(BELOW) and isinstance(event, PASSING)


def _count(running: set[str], event: Event) -> None:
    """Keep count of the agents in the background."""
    if isinstance(event, AgentStarted) and event.background:
        running.add(event.agent)
    elif isinstance(event, TurnEnded):
        running.discard(event.agent)


class RunningTurns:
    """The turn, and commands of the person's own beside it, in the order in which they began."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []

    def add(self, turn: Turn) -> None:
        self._turns = [each for each in self._turns if not each.ended]
        self._turns.append(turn)

    @property
    def newest(self) -> Turn | None:
        return next((each for each in reversed(self._turns) if not each.ended), None)


class Turns:
    """``follow`` is called with each new turn, ``refused`` with a prompt that could not be sent, and why."""

    def __init__(
        self,
        session: OpenSession,
        follow: Callable[[Turn], None],
        refused: Callable[[str, BaError | None], None],
    ) -> None:
        self._session = session
        self._follow = follow
        self._refused = refused
        self.current: Turn | None = None
        self.running = RunningTurns()
        self.followed = FollowedTurns(session)
        self.waiting: deque[str] = deque()
        self.paused = False
        self.opened = asyncio.Event()
        """Set once the session is there; what is sent before waits."""
        self.questioned = False
        """Whether ba asked about the folder before the session was there: what was sent before that question was typed
        without knowing it, so it goes back to the input."""
        self._restored = False
        """Whether prompts of an earlier run wait for the person to send something."""
        self._sent = ""
        self.missing = ""
        """Why the model can't be asked yet."""
        self.alone: Callable[[str], bool] = lambda _: False
        """Whether a prompt needs a turn of its own, and so can't steer another."""

    @property
    def ready(self) -> bool:
        """Whether the session is there."""
        return self.opened.is_set()

    @property
    def busy(self) -> bool:
        return self.current is not None and not self.current.ended

    @property
    def unsent(self) -> list[str]:
        """All prompts that are in no session yet: the one that is being sent, words that join, and those that wait."""
        opening, joining = self.sent
        return [*opening, *joining, *self.waiting]

    @property
    def sent(self) -> tuple[list[str], list[str]]:
        """The prompt that has opened no turn yet, and the messages to the running turn that the model has not read."""
        if self.current is None:
            return [], []
        opening = [self._sent] if self._sent and not self.current.opened else []
        return opening, [word.text for word in self.current.inbox if word.origin == "steer"]

    def restore(self, prompts: Sequence[str]) -> None:
        """Queue ``prompts`` of an earlier run; they are held until the person sends something."""
        if prompts:
            self._restored = True
            self.paused = not self.waiting
            self.waiting.extend(prompts)

    def forget(self) -> None:
        """Drop what waits: another session is open."""
        self.waiting.clear()
        self.paused = self._restored = False

    def submit(self, text: str) -> None:
        """Send ``text``, or queue it behind what runs."""
        self.waiting.append(text)
        self.paused = self._restored = False
        self.send_next()

    def nudge(self) -> None:
        """Enter on empty input: steer with the next waiting prompt, or go on with a paused queue."""
        if not self.waiting:
            return
        self._restored = False
        if not self.busy:
            self.paused = False
            self.send_next()
        elif self.current and not self.alone(self.waiting[0]) and self.current.steer(self.waiting[0]):
            self.waiting.popleft()

    def take_back(self) -> str:
        """The newest waiting prompt, no longer waiting; empty when there is none."""
        return self.waiting.pop() if self.waiting else ""

    def send_next(self) -> None:
        """Open a turn with the next waiting prompt, if one may be opened now."""
        if not self.waiting or not self.ready or self.busy or self.paused:
            return
        text = self.waiting.popleft()
        if self.missing:
            self._refused(text, None)
            return
        try:
            self.current = self._session.say(text)
        except BaError as error:
            self._refused(text, error)
            return
        self._sent = text
        self.running.add(self.current)
        self._follow(self.current)

    def go_on(self) -> bool:
        """Continue a turn that an earlier run of ba left at a question; False when there is none."""
        conversation = self._session.conversation
        turn = conversation.go_on() if conversation else None
        if turn:
            self.watch(turn)
        return turn is not None

    def watch(self, turn: Turn) -> None:
        """Follow work beside the turns; what is sent meanwhile waits for its end."""
        self._sent = ""
        self.current = turn
        self.running.add(turn)
        self._follow(turn)

    def over(self, event: TurnEnded) -> None:
        """The turn ended: go on with the queue, or hold it when the person or an error stopped the turn."""
        opened = bool(self.current and self.current.opened)
        # Words that joined too late to be heard are still to be sent.
        self.waiting.extendleft(reversed(self.sent[1]))
        self.current = None
        if self._sent and event.error and not opened:
            self._session.taken_back()
            self._refused(self._sent, PromptRefused(event.error.message, event.error.hint))
        stopped = self._restored or event.reason in {"cancelled", "error", "interrupted"}
        self.paused = bool(self.waiting) and stopped
        self.send_next()

    def cancel(self) -> bool:
        """Interrupt what began last: the turn, or a command of the person's own. False when nothing runs."""
        newest = self.running.newest
        if newest:
            newest.cancel()
        return newest is not None


class Presses:
    """Whether a key was pressed just before."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def said_once(self, key: str) -> bool:
        """True from the second time on, however long ago the first one was."""
        before = key in self._last
        self._last[key] = time.monotonic()
        return before

    def again(self, key: str) -> bool:
        """True for the second press within a second; a third one counts as a first again."""
        now = time.monotonic()
        before = self._last.pop(key, None)
        if before is not None and now - before < TWICE:
            return True
        self._last[key] = now
        return False
