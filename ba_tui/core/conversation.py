"""A session, live: its turns, its followers, and its compression."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ba_tui.core.agent import Agent
from ba_tui.core.calls import OwnShell
from ba_tui.core.errors import (
    BaError,
    ErrorInfo,
    PromptRefused,
    SessionLocked,
    StopTurn,
    UsageError,
    no_thread,
)
from ba_tui.core.events import (
    MAIN,
    TRANSIENT,
    Event,
    Mode,
    ModeChanged,
    ModelChanged,
    Notice,
    Rewound,
    Steered,
    Titled,
    ToolFinished,
    TurnEnded,
    TurnResumed,
    TurnStarted,
)
from ba_tui.core.messages import Message, clean_text, user
from ba_tui.core.ports.agents import Work
from ba_tui.core.ports.brain import Brain
from ba_tui.core.ports.context import Condenser, ContextPart
from ba_tui.core.ports.sessions import Journal, SessionInfo, SessionSaving, title_of
from ba_tui.core.provider import ModelInfo
from ba_tui.core.transcript import OpenTurn, Transcript, WaitingCalls
from ba_tui.core.turn import Branch, Listener, Turn
from ba_tui.core.values import Once, late

if TYPE_CHECKING:
    from ba_tui.core.rewinding import Past

LAG = 10_000
"""Maximum number of events waiting for a watcher; beyond it, the watcher misses deltas and progress but no journaled
event."""
PASSING = 2_000
"""Number of deltas and progress lines since the newest journaled event that are kept for late watchers."""


class Watcher:
    """The queued events of one watcher; ``passing`` are transient events from before it joined."""

    def __init__(self, passing: Sequence[Event]) -> None:
        self._passing = passing
        self._waiting: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._closed = False

    def hear(self, event: Event) -> None:
        if len(self._waiting) < LAG or not isinstance(event, TRANSIENT):
            self._waiting.append(event)
            self._arrived.set()

    def close(self) -> None:
        self._closed = True
        self._arrived.set()

    async def after(self, replay: Sequence[Event]) -> AsyncIterator[Event]:
        """Yield ``replay``, read from the journal after the watcher joined, then the events that are not in it."""
        # An event and its copy from the journal are equal. Their equal times make the lookup fast.
        copies = {event.at: event for event in replay[-len(self._waiting) :]} if self._waiting else {}
        known = [place for place, event in enumerate(self._waiting, 1) if copies.get(event.at) == event]
        for _ in range(known[-1] if known else 0):
            self._waiting.popleft()
        for event in (*replay, *(() if known else self._passing)):
            yield event
        while True:
            while self._waiting:
                yield self._waiting.popleft()
            if self._closed:
                return
            self._arrived.clear()
            await self._arrived.wait()


class Followers:
    """The watchers of one conversation."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self._passing: deque[Event] = deque(maxlen=PASSING)

    @contextlib.contextmanager
    def joined(self) -> Generator[Watcher]:
        watcher = Watcher(tuple(self._passing))
        self._watchers.append(watcher)
        try:
            yield watcher
        finally:
            self._watchers.remove(watcher)

    def share(self, event: Event) -> None:
        """Pass an event to all watchers. A core.turn.Listener."""
        if isinstance(event, TRANSIENT):
            self._passing.append(event)
        else:
            self._passing.clear()
        for watcher in self._watchers:
            watcher.hear(event)

    def close(self) -> None:
        """Let watchers read their queued events, then end."""
        for watcher in self._watchers:
            watcher.close()


log = logging.getLogger(__name__)
WATCH = 1.0
"""Seconds between reads of a session that another process writes."""
LOGGED = "The log says more; ba doctor names its file."


class Conversation:
    """A live session. Turns run one after the other; the journal stores each event before faces see it. ``transcript``
    is the one to fold events into, for readers that bypass the conversation."""

    def __init__(self, info: SessionInfo, journal: Journal, brain: Brain, transcript: Transcript | None = None) -> None:
        self.id = info.id
        self.cwd = info.cwd
        self.title = info.title
        self.model = info.model
        self.created = info.created
        self.read_only = info.locked_by
        """The process that writes the session, so that it is read-only here; empty if it can be written."""
        self.transcript = transcript or Transcript()
        self.inventory = brain.inventory
        self.permissions = brain.permissions
        self.condenser = brain.condenser
        files, cwd = brain.inventory.checkpoints, str(info.cwd)
        # Few sessions are rewound.
        past = late("ba_tui.core.rewinding:Past")
        self._past: Once[Past] = Once(lambda: past(journal.read, self._rewound, self._rewindable, files, cwd))
        shell, query = brain.inventory.own_shell, brain.inventory.own_query
        self.shell = OwnShell(shell, query, self._new_command, self.transcript, self.history)
        self._journal = journal
        self.saving = SessionSaving(journal, self._tell)
        self._brain = brain
        self._agents: dict[str, Agent] = {}
        self._making = asyncio.Lock()
        self._renewed = False
        self._folded: asyncio.Task[list[Event]] | None = None
        self._turn: Turn | None = None
        self._open = OpenTurn()
        self._left: frozenset[str] | None = None
        """Ids of the calls that stay open because the session is closed at a question; None until then."""
        self._followers = Followers()
        self._mode: Mode | None = None
        self._imported = info.imported

    @property
    def past(self) -> Past:
        return self._past()

    @property
    def busy(self) -> bool:
        rewinding = self._past.made is not None and self._past.made.rewinding
        return rewinding or (self._turn is not None and not self._turn.ended)

    def tail(self, limit: int) -> list[Event]:
        """Return the newest events, for a first paint before all are folded."""
        return self._journal.tail(limit)

    async def follow(self) -> AsyncGenerator[Event]:
        """Yield all events of the session so far, then each new one until the conversation is closed.

        Any number of followers may run besides the face that writes. A slow one misses deltas and progress. If another
        process writes the session, only the events in its file are visible.

        Raises:
            StorageError: the file can no longer be read.
        """
        if self.read_only:
            async for event in self._file():
                yield event
        with self._followers.joined() as watcher:
            async for event in watcher.after(await asyncio.to_thread(self._journal.read)):
                yield event

    async def _file(self) -> AsyncGenerator[Event]:
        """Yield the events that another process wrote and writes. Reads the file once a second."""
        place = 0
        while True:
            events, place = await asyncio.to_thread(self._journal.later, place)
            for event in events:
                if isinstance(event, Rewound):
                    # A rewind changes earlier messages.
                    self._folded = None
                yield event
            await asyncio.sleep(WATCH)

    async def history(self) -> list[Event]:
        """Return the events of the session since it was opened or last rewound. Folds them in a thread, once."""
        if self._folded is None:
            self._folded = asyncio.create_task(self._fold())
        return await asyncio.shield(self._folded)

    async def _fold(self) -> list[Event]:
        def work() -> tuple[list[Event], Transcript, OpenTurn]:
            events, open_turn = self._journal.read(), OpenTurn()
            for event in events:
                open_turn.apply(event)
            return events, Transcript(events=events), open_turn

        events, folded, self._open = await asyncio.to_thread(work)
        self.transcript.become(folded)
        # An imported file may name any mode, so its mode is not restored.
        kept = None if self._imported else self.transcript.mode
        if kept and not self._mode and kept in self.permissions.modes():
            self.permissions.set_mode(kept)
        return events

    async def warm(self) -> None:
        """Prepare the first prompt: fold the history, and start to connect to the model."""
        await self.history()
        if not self.busy:
            await self._agent()

    def say(self, prompt: str | Message, work: Work | None = None) -> Turn:
        """Start a turn, which ``work`` answers instead of the main agent.

        Raises:
            UsageError: a turn is running, or the prompt is empty. SessionLocked.
        """
        self._check_writable()
        if self.busy:
            raise UsageError("A turn is running.", "Steer it, or wait for its end.")
        message = user(clean_text(prompt)) if isinstance(prompt, str) else prompt
        if not message.text.strip() and len(message.blocks) < 2:
            raise UsageError("The prompt is empty.", "Type what you want to know or have done.")
        return self._begin(partial(self._run, message, work))

    def beside(self, work: Callable[[Branch], Awaitable[None]]) -> Turn:
        """Run background work that can be awaited and cancelled like a turn but is not journaled as one.

        Raises:
            UsageError: a turn is running. SessionLocked: the session is read-only.
        """
        self._check_writable()
        if self.busy:
            raise UsageError("A turn is running.", "Interrupt it, or wait for its end.")

        async def closing(branch: Branch) -> None:
            self._close_left()
            await work(branch)

        async def run(turn: Turn) -> None:
            self._deliver(turn, await self._ending(turn, closing))

        turn = self._begin(run)
        turn.listens = False
        return turn

    def go_on(self) -> Turn | None:
        """Ask again about the calls that were open when ba ended; the turn continues after the answers. Returns None if
        none was open. Call it after ``history``."""
        waiting = None if self.busy or self.read_only else self._open.waiting()
        return None if waiting is None else self._begin(partial(self._go_on, waiting))

    async def _go_on(self, waiting: WaitingCalls, turn: Turn) -> None:
        unanswered = False

        async def work(branch: Branch) -> None:
            nonlocal unanswered
            agent = await self._agent()
            turn.opened = True
            branch.emit(TurnResumed(tuple([use.id for use, _ in waiting.ask]), waiting.checkpointed))
            unanswered = not await agent.go_on(waiting, branch)

        ending = await self._ending(turn, work)
        if turn.opened:
            await self._end(turn, TurnEnded("interrupted") if unanswered else ending)
        else:
            # Without a model the turn cannot continue: the question stays open for a later run.
            self._deliver(turn, ending)

    def _begin(self, run: Callable[[Turn], Coroutine[None, None, None]]) -> Turn:
        turn = self._turn = Turn(self._keep, *map(_shielded, self._brain.listeners), self._followers.share)
        turn.run(asyncio.get_running_loop().create_task(run(turn)))
        return turn

    def _new_command(self) -> Turn:
        """Return a turn for a command of the user."""
        return Turn(self._keep, *map(_shielded, self._brain.listeners), self._followers.share, self.transcript.apply)

    async def _run(self, prompt: Message, instead: Work | None, turn: Turn) -> None:
        async def work(branch: Branch) -> None:
            admitted = await self._brain.admit(prompt, branch)
            turn.opened = True
            self._close_left()
            self._open_turn(branch, prompt, admitted.notes)
            # Other work needs the agent too: it uses the chosen model and is bound by the main agent's ceiling.
            agent = await self._agent(admitted.model)
            branch.ceiling = branch.ceiling.within(agent.ceiling)
            await (agent.run(branch) if instead is None else instead(branch))

        ending = await self._ending(turn, work)
        if not turn.opened:
            # The journal has no open turn.
            why = ending.error or PromptRefused("Interrupted before the prompt was sent.").info()
            self._deliver(turn, TurnEnded(ending.reason, why))
            return
        await self._end(turn, ending)

    async def _end(self, turn: Turn, ending: TurnEnded) -> None:
        Branch(turn, self.transcript).emit(ending)
        await self.saving.sync()

    def _check_writable(self) -> None:
        """Raise SessionLocked in a session that another process writes."""
        if self.read_only:
            message = f"This session is open in {self.read_only}, so it is read-only here."
            raise SessionLocked(message, "Continue in a copy: /fork")

    def _rewindable(self) -> None:
        """Raise SessionLocked or UsageError if the session cannot be rewound now."""
        self._check_writable()
        if self.busy:
            raise UsageError("A turn or a rewind is running.", "Interrupt it, or wait for its end.")

    def _close_left(self) -> None:
        """End the turn that an earlier run left open, because other work begins."""
        if self._open.begun:
            self._record(TurnEnded("interrupted"))

    async def _ending(self, turn: Turn, work: Callable[[Branch], Awaitable[None]]) -> TurnEnded:
        """Run ``work`` and return how it ended, including any error."""
        try:
            await self.history()
            await work(Branch(turn, self.transcript))
        except asyncio.CancelledError:
            return TurnEnded("cancelled", ErrorInfo("interrupted", turn.stopped_by) if turn.stopped_by else None)
        except StopTurn as stop:
            return TurnEnded("limit", stop.info())
        except BaError as error:
            return TurnEnded("error", error.info())
        except Exception as error:
            log.exception("turn failed")
            if refused := no_thread(error):
                return TurnEnded("error", refused.info())
            return TurnEnded("error", ErrorInfo("internal_error", f"{type(error).__name__}: {error}", LOGGED))
        return TurnEnded("done")

    def _keep(self, event: Event) -> None:
        if isinstance(event, TRANSIENT) or self._withdraws(event):
            return
        self._open.apply(event)
        self.saving.keep(event)

    def _withdraws(self, event: Event) -> bool:
        """Return whether ``event`` only reports that closing the session cancelled the turn or one of its open calls.
        Such an event in the journal would answer the open question."""
        if self._left is None or event.agent != MAIN:
            return False
        return isinstance(event, TurnEnded) or (isinstance(event, ToolFinished) and event.call_id in self._left)

    def _tell(self, notice: Notice) -> bool:
        """Deliver a notice to the face; returns False if none is attached."""
        if self._turn is None or self._turn.ended:
            return False
        self._deliver(self._turn, notice)
        return True

    def _open_turn(self, branch: Branch, prompt: Message, notes: Sequence[Message]) -> None:
        branch.emit(TurnStarted(prompt))
        if not self.title:
            self.title = title_of(prompt.said)
            branch.emit(Titled(self.title))
        for note in (*self._brain.reminders(self.transcript), *notes):
            branch.emit(Steered(note))

    async def _agent(self, model: str = "") -> Agent:
        model = model or self.model
        # The first prompt may arrive while ``warm`` makes the agent.
        async with self._making:
            if self._renewed or model not in self._agents:
                await self._dismiss()
                self._renewed = False
                self._agents = {model: await asyncio.to_thread(self._brain.agent, model)}
            agent = self._agents[model]
        agent.provider.connect()
        return agent

    async def _dismiss(self) -> None:
        for agent in self._agents.values():
            await agent.provider.close()
        self._agents = {}

    def use_model(self, name: str) -> ModelInfo:
        """Use another model from the next turn on, over a new connection, because its key may be new.

        Raises:
            UsageError: the model is unknown. SessionLocked: the session is read-only.
        """
        self._check_writable()
        info = self._brain.model(name)
        self.model, self._renewed = info.id, True
        self._record(ModelChanged(info.id))
        return info

    def model_info(self) -> ModelInfo:
        return self._brain.model(self.model)

    def set_mode(self, mode: Mode) -> None:
        """Set the permission mode. Raises SessionLocked."""
        self._check_writable()
        self.permissions.set_mode(mode)
        self._mode = mode
        self._record(ModeChanged(mode))

    def rename(self, title: str) -> None:
        """Set the title. Raises SessionLocked."""
        self._check_writable()
        self.title = clean_text(title).strip()[:200]
        self._record(Titled(self.title))

    def context(self) -> Sequence[ContextPart]:
        return self._brain.context(self.transcript, self.model)

    def _rewound(self, event: Event) -> None:
        self._record(event)
        self._folded = None

    async def close(self, why: str = "") -> None:
        """Stop running work, then close connections and the file. A later run can answer an open question. ``why``: the
        reason that ends the turn, unless the user ended it."""
        if self._past.made:
            await self._past.made.wait()
        await self.shell.close()
        if self._turn:
            waiting = self._open.waiting()
            self._left = waiting and waiting.open_calls
            self._turn.stopped_by = why
            self._turn.close()
            await self._turn.wait()
        await self._dismiss()
        await self._brain.close()
        self._followers.close()
        await self.saving.close()

    def _record(self, event: Event) -> None:
        self._keep(event)
        self.transcript.apply(event)
        for listener in self._brain.listeners:
            _shielded(listener)(event)
        self._followers.share(event)

    def _deliver(self, turn: Turn, event: Event) -> None:
        """Deliver an event to faces without journaling it."""
        turn.deliver(event)
        self._followers.share(event)


def _shielded(listener: Listener) -> Listener:
    def observe(event: Event) -> None:
        try:
            listener(event)
        except Exception:
            log.exception("observer failed")

    return observe


def compact(conversation: Conversation, focus: str = "") -> Turn:
    """Compress the conversation now, with attention to ``focus``. Raises UsageError if a turn is running."""
    return _condense(conversation, lambda condenser, branch: condenser.now(branch, focus))


def undo_compact(conversation: Conversation) -> Turn:
    """Undo the last compression, keeping later messages. Raises UsageError if a turn is running."""
    return _condense(conversation, lambda condenser, branch: condenser.undo(branch))


def _condense(conversation: Conversation, work: Callable[[Condenser, Branch], Awaitable[None]]) -> Turn:
    condenser = conversation.condenser
    if condenser is None:
        raise UsageError("This conversation can't be compressed.")

    async def warmed(branch: Branch) -> None:
        await conversation.warm()
        await work(condenser, branch)

    return conversation.beside(warmed)
