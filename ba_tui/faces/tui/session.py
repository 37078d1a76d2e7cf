"""The open session, its running turn, and the queue of prompts: sending, steering, taking back and pausing.

No widgets: the owner follows the turns and shows the queue. ``assemble`` is slow and meant for a thread.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from ba_tui.core.calls import OwnShell
from ba_tui.core.conversation import Conversation
from ba_tui.core.errors import BaError, PromptRefused, UsageError
from ba_tui.core.events import MAIN, AgentStarted, Event, Mode, Notice, ToolFinished, TurnEnded
from ba_tui.core.ports.agents import Work
from ba_tui.core.ports.sessions import unsaved
from ba_tui.core.provider import ModelInfo
from ba_tui.core.questions import Reply
from ba_tui.core.services import Connect, Services, begin, open_or_view
from ba_tui.core.start import Start
from ba_tui.core.turn import Turn
from ba_tui.faces.tui.roster import PASSING

MEANING: dict[Mode, str] = {
    "default": "Asks before edits and commands.",
    "accept-edits": "Edits files in this folder without asking; commands still ask.",
    "plan": "Only reads. The model ends with a plan that you approve.",
    "auto": "Runs sandboxed commands without asking.",
    "bypass": "Never asks; deny rules still apply.",
}


class OpenSession:
    """The open session. Choices made before the first prompt are written with it: without a prompt there is no file."""

    def __init__(self, connect: Connect, start: Start) -> None:
        self._connect = connect
        self.start = start
        self.services: Services | None = None
        self.conversation: Conversation | None = None
        self.started = False
        """Whether the session has a turn, or a command of the user's own."""
        self.ran = False
        """Whether it has such a command."""
        self.refused: set[Path] = set()
        """Folders that the user refused to trust in this run."""
        self.reads_only = False
        """Whether the folder of this session is not trusted."""
        self.folders: list[Path] = []
        """Folders that the user added to the workspace."""
        self.untold: list[Notice] = []
        """Notices from before the session was open."""
        self.remembered: list[tuple[str, ...]] = []
        """Changes of memory while this session is open, by the ids of their entries, newest last: for undo."""
        self.news: list[tuple[str, float]] = []
        """Background agents that have ended, and when the user was notified, by the monotonic clock."""
        self._mode: Mode | None = None
        self._model: str | None = None

    @property
    def cwd(self) -> Path:
        return self.conversation.cwd if self.conversation else Path.cwd()

    @property
    def mode(self) -> Mode:
        return self.conversation.permissions.mode if self.conversation else "default"

    @property
    def read_only(self) -> str:
        """The process that writes the session, if it is read-only here."""
        return self.conversation.read_only if self.conversation else ""

    @property
    def marks(self) -> Sequence[str]:
        """Unusual facts about the session, one word for each."""
        private = self.conversation is not None and self.conversation.transcript.private
        lost = unsaved(self.conversation) is not None
        unusual = {
            "not trusted": self.reads_only,
            "read-only": bool(self.read_only),
            "private": private,
            "NOT SAVED": lost,
        }
        return [word for word, holds in unusual.items() if holds]

    @property
    def live(self) -> tuple[Services, Conversation]:
        """The services and the conversation. Raises UsageError until ``assemble`` has returned."""
        if self.services is None or self.conversation is None:
            raise UsageError("ba is still starting.", "Try again in a moment.")
        return self.services, self.conversation

    def resume_hint(self) -> str:
        """Return how to resume this session; empty when there is nothing to resume."""
        if self.conversation is None or not self.started or not self.start.kept:
            return ""
        if (lost := unsaved(self.conversation)) and not lost.partly:
            return ""
        hint = f"Resume with: ba -r {self.conversation.id}"
        with suppress(OSError):
            # ba -c searches the folder of the shell, which --cwd can differ from.
            if self.conversation.cwd.samefile("."):
                return f"{hint}  (or ba -c: the newest session in this folder)"
        return hint

    def assemble(self) -> list[Notice]:
        """Create the services and the first conversation; return notices for the user.

        Raises:
            BaError: creation failed; another call tries again.
        """
        services = self.services or self._connect()
        notices = list(services.notices)
        try:
            conversation, started = self._first(services)
        except BaError as error:
            notices.append(Notice(str(error), "warning", f"A new session is open instead. {error.hint}".strip()))
            conversation, started = services.library.create(), False
        self.services, self.conversation, self.started = services, conversation, started
        return notices

    def _first(self, services: Services) -> tuple[Conversation, bool]:
        if self.start.resume in {None, "pick"}:
            return services.library.create(), False
        return begin(services.library, self.start, view=True), True

    async def change(self, id: str | None) -> None:
        """Open another session, or a new one, and close this one. A new session keeps the mode and the model.

        Raises:
            StorageError: the other session can't be opened; this one stays open.
        """
        services, old = self.live
        if id is not None and id == old.id:
            return
        work = services.library.create if id is None else partial(open_or_view, services.library, id)
        mode, model = self.mode, old.model
        new = await asyncio.to_thread(work)
        await old.close()
        self.conversation, self.started, self.ran = new, id is not None, False
        self._mode = self._model = None
        if id is None:
            new.permissions.set_mode(mode)
            self._mode = mode if mode != "default" else None
            if model != new.model:
                self.use_model(model)

    async def reopen(self) -> Sequence[Notice]:
        """Recreate the services and open the same session again, because its folders or their trust have changed.

        Raises:
            BaError: creation failed; the session stays open unchanged.
        """
        _, old = self.live
        services = await asyncio.to_thread(self._renewed)
        notices = list(services.notices)
        await old.close()
        try:
            work = partial(open_or_view, services.library, old.id) if self.started else services.library.create
            new = await asyncio.to_thread(work)
        except BaError as error:
            notices.append(Notice(str(error), "warning", f"A new session is open instead. {error.hint}".strip()))
            new, self.started = await asyncio.to_thread(services.library.create), False
        self.services, self.conversation = services, new
        if self._mode:
            new.permissions.set_mode(self._mode)
        if self._model:
            self.use_model(self._model)
        return notices

    def _renewed(self) -> Services:
        widen = self.services.with_folders if self.services else None
        return widen(self.folders) if widen and self.folders else self._connect()

    def set_mode(self, mode: Mode) -> None:
        _, conversation = self.live
        if self.started:
            conversation.set_mode(mode)
        else:
            conversation.permissions.set_mode(mode)
            self._mode = mode

    def use_model(self, name: str) -> ModelInfo:
        """Select a model for the next turns. Raises UsageError for one that can't be used."""
        _, conversation = self.live
        if self.started:
            return conversation.use_model(name)
        before, conversation.model = conversation.model, name
        try:
            info = conversation.model_info()
        except UsageError:
            conversation.model = before
            raise
        conversation.model = self._model = info.id
        return info

    def say(self, prompt: str, work: Work | None = None) -> Turn:
        """Start a turn with ``prompt``; ``work`` answers instead of the model.

        Raises UsageError, or StorageError when earlier choices can't be written.
        """
        turn = self._chosen().say(prompt, work)
        self.started = True
        return turn

    def run(self, begin: Callable[[OwnShell], Turn]) -> Turn:
        """Start a command or query of the user's own. Raises as ``say`` does."""
        turn = begin(self._chosen().shell)
        self.started = self.ran = True
        return turn

    def _chosen(self) -> Conversation:
        """Return the conversation after applying choices from before its first prompt."""
        _, conversation = self.live
        if self._model:
            conversation.use_model(self._model)
        if self._mode:
            conversation.set_mode(self._mode)
        self._mode = self._model = None
        return conversation

    def taken_back(self) -> None:
        """Note that the prompt was refused, so that a session it would have started has not started."""
        if self.conversation:
            self.started = self.ran or bool(self.conversation.transcript.messages)


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
