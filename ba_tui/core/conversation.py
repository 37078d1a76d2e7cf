"""A session to talk to: turns run one after the other, and everything that they bring is in the journal first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from functools import partial

from ba_tui.core.agent import Agent
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
from ba_tui.core.following import Followers
from ba_tui.core.messages import Message, clean_text, user
from ba_tui.core.open_turn import OpenTurn, WaitingCalls
from ba_tui.core.own_shell import OwnShell, OwnTools
from ba_tui.core.ports.brain import Brain
from ba_tui.core.ports.context import ContextPart
from ba_tui.core.ports.delegation import Work
from ba_tui.core.ports.sessions import Journal, SessionInfo, SessionSaving, title_of
from ba_tui.core.provider import ModelInfo
from ba_tui.core.rewinding import Past
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Listener, Turn

log = logging.getLogger(__name__)
WATCH = 1.0
"""Seconds between two looks at a session that another process writes."""
LOGGED = "The log says more; ba doctor names its file."


class Conversation:
    """One session, live. Turns run one after the other; everything they bring is in the journal first.

    ``transcript`` is the one to fold into, for those who look at it without going through the conversation.
    """

    def __init__(self, info: SessionInfo, journal: Journal, brain: Brain, transcript: Transcript | None = None) -> None:
        self.id = info.id
        self.cwd = info.cwd
        self.title = info.title
        self.model = info.model
        self.created = info.created
        self.read_only = info.locked_by
        """Who writes the session, so that it can only be read here; empty where it can be written."""
        self.transcript = transcript or Transcript()
        self.inventory = brain.inventory
        self.permissions = brain.permissions
        self.condenser = brain.condenser
        self.past = Past(journal.read, self._rewound, self._rewindable, brain.inventory.checkpoints, str(info.cwd))
        own = OwnTools(brain.inventory.own_shell, brain.inventory.own_query)
        self.shell = OwnShell(own, self._new_command, self.transcript, self.history)
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
        """The ids of the calls that stay open because the session is closed at a question; None while it is not."""
        self._followers = Followers()
        self._mode: Mode | None = None
        self._imported = info.imported

    @property
    def busy(self) -> bool:
        return self.past.rewinding or (self._turn is not None and not self._turn.ended)

    def tail(self, limit: int = 400) -> list[Event]:
        """The newest events, for a first paint before all of it is folded."""
        return self._journal.tail(limit)

    async def follow(self) -> AsyncGenerator[Event]:
        """All events of the session so far, then each one as it comes, until the conversation is closed.

        Any number may follow it beside the face that writes. One that does not keep up misses deltas and progress.
        Of a session that another process writes, only what is in its file can be followed.

        Raises:
            StorageError: the file can't be read any more.
        """
        if self.read_only:
            async for event in self._file():
                yield event
        with self._followers.joined() as watcher:
            async for event in watcher.after(await asyncio.to_thread(self._journal.read)):
                yield event

    async def _file(self) -> AsyncGenerator[Event]:
        """All that another process wrote into the session, then what it writes. Looks once a second."""
        place = 0
        while True:
            events, place = await asyncio.to_thread(self._journal.later, place)
            for event in events:
                if isinstance(event, Rewound):
                    # What stands further up changes.
                    self._folded = None
                yield event
            await asyncio.sleep(WATCH)

    async def history(self) -> list[Event]:
        """All events of the session when it was opened or last rewound. Folds them off the loop, once."""
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
        # The file that a session was imported from may name any mode.
        kept = None if self._imported else self.transcript.mode
        if kept and not self._mode and kept in self.permissions.modes():
            self.permissions.set_mode(kept)
        return events

    async def warm(self) -> None:
        """Do ahead what the first prompt needs: fold the history, and start to connect to the model."""
        await self.history()
        if not self.busy:
            await self._agent()

    def say(self, prompt: str | Message, work: Work | None = None) -> Turn:
        """Start a turn, which ``work`` answers in place of the main agent. Raises UsageError when one is running or the
        prompt is empty, SessionLocked."""
        self._check_writable()
        if self.busy:
            raise UsageError("A turn is running.", "Steer it, or wait for its end.")
        message = user(clean_text(prompt)) if isinstance(prompt, str) else prompt
        if not message.text.strip() and len(message.blocks) < 2:
            raise UsageError("The prompt is empty.", "Type what you want to know or have done.")
        return self._begin(partial(self._run, message, work))

    def beside(self, work: Callable[[Branch], Awaitable[None]]) -> Turn:
        """Work that can be waited for and stopped as a turn can, but is none: the journal has nothing to close.

        Raises:
            UsageError: a turn is running. SessionLocked: the session can only be read.
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
        """Ask again what was open when ba ended; the turn continues once that is answered. None when nothing was open.
        Known once the history is read."""
        waiting = None if self.busy or self.read_only else self._open.waiting()
        return None if waiting is None else self._begin(partial(self._go_on, waiting))

    async def _go_on(self, waiting: WaitingCalls, turn: Turn) -> None:
        answered = False

        async def work(branch: Branch) -> None:
            nonlocal answered
            agent = await self._agent()
            turn.opened = True
            branch.emit(TurnResumed(tuple([use.id for use, _ in waiting.ask]), waiting.checkpointed))
            answered = await agent.go_on(waiting, branch)

        ending = await self._ending(turn, work)
        if turn.opened:
            settled = ending.reason != "done" or answered
            await self._end(turn, ending if settled else TurnEnded("interrupted"))
        else:
            # Without a model nothing can go on: it can be asked once there is one.
            self._deliver(turn, ending)

    def _begin(self, run: Callable[[Turn], Coroutine[None, None, None]]) -> Turn:
        turn = self._turn = Turn(self._keep, *map(_shielded, self._brain.listeners), self._followers.share)
        turn.run(asyncio.get_running_loop().create_task(run(turn)))
        return turn

    def _new_command(self) -> Turn:
        """A turn for a command of the person's own."""
        return Turn(self._keep, *map(_shielded, self._brain.listeners), self._followers.share, self.transcript.apply)

    async def _run(self, prompt: Message, instead: Work | None, turn: Turn) -> None:
        async def work(branch: Branch) -> None:
            admitted = await self._brain.admit(prompt, branch)
            turn.opened = True
            self._close_left()
            self._open_turn(branch, prompt, admitted.notes)
            # Also for other work: it asks the model that was chosen last, and does no more than the main agent may.
            agent = await self._agent(admitted.model)
            branch.ceiling = branch.ceiling.within(agent.ceiling)
            await (agent.run(branch) if instead is None else instead(branch))

        ending = await self._ending(turn, work)
        if not turn.opened:
            # The journal has none to close.
            why = ending.error or PromptRefused("Interrupted before the prompt was sent.").info()
            self._deliver(turn, TurnEnded(ending.reason, why))
            return
        await self._end(turn, ending)

    async def _end(self, turn: Turn, ending: TurnEnded) -> None:
        Branch(turn, self.transcript).emit(ending)
        await self.saving.sync()

    def _check_writable(self) -> None:
        """Raises SessionLocked in a session that another process writes."""
        if self.read_only:
            message = f"This session is open in {self.read_only}, so it is read-only here."
            raise SessionLocked(message, "Continue in a copy: /fork")

    def _rewindable(self) -> None:
        """Raises SessionLocked, UsageError."""
        self._check_writable()
        if self.busy:
            raise UsageError("A turn or a rewind is running.", "Interrupt it, or wait for its end.")

    def _close_left(self) -> None:
        """Something else begins than the turn that an earlier run left open: that one is over."""
        if self._open.begun:
            self._record(TurnEnded("interrupted"))

    async def _ending(self, turn: Turn, work: Callable[[Branch], Awaitable[None]]) -> TurnEnded:
        """How ``work`` ended; whatever went wrong is in it."""
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
        """Return whether ``event`` says no more than that closing the session cancelled the turn or one of its open
        calls. A journal with such an event would answer the question."""
        if self._left is None or event.agent != MAIN:
            return False
        return isinstance(event, TurnEnded) or (isinstance(event, ToolFinished) and event.call_id in self._left)

    def _tell(self, notice: Notice) -> bool:
        """To those who look; False when nobody does now."""
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
        # The first prompt may come while the agent is made ahead.
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
        """From the next turn on, over a new connection: its key may be new.

        Raises:
            UsageError: the model is unknown. SessionLocked: the session can only be read.
        """
        self._check_writable()
        info = self._brain.model(name)
        self.model, self._renewed = info.id, True
        self._record(ModelChanged(info.id))
        return info

    def model_info(self) -> ModelInfo:
        return self._brain.model(self.model)

    def set_mode(self, mode: Mode) -> None:
        """Raises SessionLocked."""
        self._check_writable()
        self.permissions.set_mode(mode)
        self._mode = mode
        self._record(ModeChanged(mode))

    def rename(self, title: str) -> None:
        """Raises SessionLocked."""
        self._check_writable()
        self.title = clean_text(title).strip()[:200]
        self._record(Titled(self.title))

    def context(self) -> Sequence[ContextPart]:
        return self._brain.context(self.transcript, self.model)

    def _rewound(self, event: Event) -> None:
        self._record(event)
        self._folded = None

    async def close(self, why: str = "") -> None:
        """Stop what runs, then let go of connections and the file. An open question can be answered in a later run.
        ``why``: what ends the turn, where the user did not."""
        await self.past.wait()
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
        """To those who look, and not into the journal."""
        turn.deliver(event)
        self._followers.share(event)


def _shielded(listener: Listener) -> Listener:
    def observe(event: Event) -> None:
        try:
            listener(event)
        except Exception:
            log.exception("observer failed")

    return observe
