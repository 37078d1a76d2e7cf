"""The running turn and the queue of prompts: sending, steering, taking back and pausing.

No widgets. The owner follows the turns and shows the queue.
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
from ba_tui.faces.tui.roster import PASSING
from ba_tui.faces.tui.session import OpenSession

BELOW = f"{MAIN}/"
TWICE = 1.0
REST = 1 / 60
"""Seconds, about a frame of the screen."""


async def paced(turn: Turn) -> AsyncIterator[Event]:
    """Yield the events of a turn and pause after each tool result, so that panes handle fast calls together."""
    async for event in turn:
        yield event
        if isinstance(event, ToolFinished) and turn.heard:
            await asyncio.sleep(REST)


class FollowedTurns:
    """The turns whose events are shown. A turn that has ended stays while its background agents run: their questions
    and their end arrive through it."""

    def __init__(self, session: OpenSession) -> None:
        self._session = session
        self._running: dict[Turn, set[str]] = {}
        """Each turn with its running background agents."""

    @property
    def outlived(self) -> bool:
        """Whether background agents have outlived their turn."""
        return any(self._running.values())

    def answer(self, ask_id: str, reply: Reply) -> bool:
        """Answer the turn that asks; False when no turn asks this any more."""
        return any(turn.answer(ask_id, reply) for turn in self._running)

    async def events(self, turn: Turn) -> AsyncIterator[Event]:
        """Yield the events of ``turn``, then those of its background agents while the session is open; streamed text of
        sub-agents is left out."""
        running = self._running[turn] = set[str]()
        conversation = self._session.conversation
        try:
            async for event in paced(turn):
                if not _unseen(event):
                    _count(running, event)
                    yield event
            if not running:
                return
            # Another event may report the end of the last agent.
            async for event in turn:
                if self._session.conversation is not conversation:
                    return
                if not _unseen(event):
                    _count(running, event)
                    yield event
        finally:
            del self._running[turn]


def _unseen(event: Event) -> bool:
    """Return whether the conversation hides ``event``. Twenty agents stream thousands of deltas a second, which only
    the transcript of an agent shows; that transcript follows the session separately."""
    return event.agent.startswith(BELOW) and isinstance(event, PASSING)


def _count(running: set[str], event: Event) -> None:
    """Update the set of running background agents."""
    if isinstance(event, AgentStarted) and event.background:
        running.add(event.agent)
    elif isinstance(event, TurnEnded):
        running.discard(event.agent)


class RunningTurns:
    """The turn, and the user's own commands that run alongside it, in the order in which they started."""

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
        """Set once the session is open; prompts sent earlier wait for it."""
        self.questioned = False
        """Whether ba asked about the folder before the session was open. Prompts sent before that question go back to
        the input, because the user did not know of it."""
        self._restored = False
        """Whether prompts of an earlier run wait until the user sends something."""
        self._sent = ""
        self.missing = ""
        """Why no request can be sent to the model yet."""
        self.alone: Callable[[str], bool] = lambda _: False
        """Whether a prompt must start a new turn instead of steering the running one."""

    @property
    def ready(self) -> bool:
        """Whether the session is open."""
        return self.opened.is_set()

    @property
    def busy(self) -> bool:
        return self.current is not None and not self.current.ended

    @property
    def unsent(self) -> list[str]:
        """All prompts that no session has stored yet: the one being sent, steering messages, and the queue."""
        opening, joining = self.sent
        return [*opening, *joining, *self.waiting]

    @property
    def sent(self) -> tuple[list[str], list[str]]:
        """Return prompts that have started no turn yet, and steering messages that the model has not read."""
        if self.current is None:
            return [], []
        opening = [self._sent] if self._sent and not self.current.opened else []
        return opening, [word.text for word in self.current.inbox if word.origin == "steer"]

    def restore(self, prompts: Sequence[str]) -> None:
        """Queue ``prompts`` of an earlier run; they wait until the user sends something."""
        if prompts:
            self._restored = True
            self.paused = not self.waiting
            self.waiting.extend(prompts)

    def forget(self) -> None:
        """Clear the queue because another session is open."""
        self.waiting.clear()
        self.paused = self._restored = False

    def submit(self, text: str) -> None:
        """Send ``text``, or queue it while a turn runs."""
        self.waiting.append(text)
        self.paused = self._restored = False
        self.send_next()

    def nudge(self) -> None:
        """Handle Enter on empty input: steer with the next queued prompt, or resume a paused queue."""
        if not self.waiting:
            return
        self._restored = False
        if not self.busy:
            self.paused = False
            self.send_next()
        elif self.current and not self.alone(self.waiting[0]) and self.current.steer(self.waiting[0]):
            self.waiting.popleft()

    def take_back(self) -> str:
        """Remove the newest prompt from the queue and return it; empty when there is none."""
        return self.waiting.pop() if self.waiting else ""

    def send_next(self) -> None:
        """Start a turn with the next queued prompt if a turn may start now."""
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
        """Continue a turn that an earlier run of ba left at a question; return False without such a turn."""
        conversation = self._session.conversation
        turn = conversation.go_on() if conversation else None
        if turn:
            self.watch(turn)
        return turn is not None

    def watch(self, turn: Turn) -> None:
        """Follow work that is not a turn; prompts sent meanwhile wait for its end."""
        self._sent = ""
        self.current = turn
        self.running.add(turn)
        self._follow(turn)

    def over(self, event: TurnEnded) -> None:
        """Handle the end of a turn: send the next prompt, or pause the queue after an interrupt or an error."""
        opened = bool(self.current and self.current.opened)
        # Steering messages that arrived too late for the model must still be sent.
        self.waiting.extendleft(reversed(self.sent[1]))
        self.current = None
        if self._sent and event.error and not opened:
            self._session.taken_back()
            self._refused(self._sent, PromptRefused(event.error.message, event.error.hint))
        stopped = self._restored or event.reason in {"cancelled", "error", "interrupted"}
        self.paused = bool(self.waiting) and stopped
        self.send_next()

    def cancel(self) -> bool:
        """Interrupt whichever started last: the turn or a command of the user's own. Return False when nothing runs."""
        newest = self.running.newest
        if newest:
            newest.cancel()
        return newest is not None


class Presses:
    """Remembers recent key presses, to detect double presses."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def said_once(self, key: str) -> bool:
        """Return True from the second call for ``key`` on, however long ago the first one was."""
        before = key in self._last
        self._last[key] = time.monotonic()
        return before

    def again(self, key: str) -> bool:
        """Return True for the second press within a second; a third press is a first one again."""
        now = time.monotonic()
        before = self._last.pop(key, None)
        if before is not None and now - before < TWICE:
            return True
        self._last[key] = now
        return False
