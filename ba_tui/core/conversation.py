"""What faces are given: a Conversation to talk to, a Library to find conversations in, and what surrounds them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from ba_tui.core.agent import Agent
from ba_tui.core.errors import (
    BaError,
    ErrorInfo,
    PromptRefused,
    SessionNotFound,
    StopTurn,
    StorageError,
    UsageError,
)
from ba_tui.core.events import (
    TRANSIENT,
    Event,
    Mode,
    ModeChanged,
    ModelChanged,
    Notice,
    Steered,
    Titled,
    TurnEnded,
    TurnStarted,
)
from ba_tui.core.following import Followers
from ba_tui.core.messages import Message, clean_text, user
from ba_tui.core.own_shell import OwnShell
from ba_tui.core.ports.brain import Brain
from ba_tui.core.ports.context import ContextPart
from ba_tui.core.ports.sessions import Imported, Journal, Outline, SavedRequest, SessionInfo, title_of
from ba_tui.core.ports.setup import Catalogue, Setup
from ba_tui.core.ports.trust import Trusting
from ba_tui.core.provider import ModelInfo
from ba_tui.core.rewinding import Past
from ba_tui.core.start import Start
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Listener, Turn
from ba_tui.core.values import frozen

log = logging.getLogger(__name__)
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
        self.transcript = transcript or Transcript()
        self.inventory = brain.inventory
        self.permissions = brain.permissions
        self.condenser = brain.condenser
        self.past = Past(journal.read, self._rewound, lambda: self.busy, brain.inventory.checkpoints, str(info.cwd))
        self.shell = OwnShell(brain.inventory.own_shell, self._new_command, self.transcript, self.history)
        self._journal = journal
        self._brain = brain
        self._agents: dict[str, Agent] = {}
        self._making = asyncio.Lock()
        self._renewed = False
        self._folded: asyncio.Task[list[Event]] | None = None
        self._turn: Turn | None = None
        self._followers = Followers()
        self._saved = True
        self._mode: Mode | None = None

    @property
    def busy(self) -> bool:
        return self.past.rewinding or (self._turn is not None and not self._turn.ended)

    def tail(self, limit: int = 400) -> list[Event]:
        """The newest events, for a first paint before all of it is folded."""
        return self._journal.tail(limit)

    async def follow(self) -> AsyncGenerator[Event]:
        """All events of the session so far, then each one as it comes, until the conversation is closed.

        Any number may follow it beside the face that writes. One that does not keep up misses deltas and progress.
        """
        with self._followers.joined() as watcher:
            async for event in watcher.after(await asyncio.to_thread(self._journal.read)):
                yield event

    async def history(self) -> list[Event]:
        """All events of the session when it was opened or last rewound. Folds them off the loop, once."""
        if self._folded is None:
            self._folded = asyncio.create_task(self._fold())
        return await asyncio.shield(self._folded)

    async def _fold(self) -> list[Event]:
        def work() -> tuple[list[Event], Transcript]:
            events = self._journal.read()
            return events, Transcript(events=events)

        events, folded = await asyncio.to_thread(work)
        self.transcript.become(folded)
        kept = self.transcript.mode
        if kept and not self._mode and kept in self.permissions.modes():
            self.permissions.set_mode(kept)
        return events

    async def warm(self) -> None:
        """Do ahead what the first prompt needs: fold the history, and start to connect to the model."""
        await self.history()
        if not self.busy:
            await self._agent()

    def say(self, prompt: str | Message) -> Turn:
        """Start a turn. Raises UsageError when one is running or the prompt is empty."""
        if self.busy:
            raise UsageError("A turn is running.", "Steer it, or wait for its end.")
        message = user(clean_text(prompt)) if isinstance(prompt, str) else prompt
        if not message.text.strip() and len(message.blocks) < 2:
            raise UsageError("The prompt is empty.", "Type what you want to know or have done.")
        return self._begin(partial(self._run, message))

    def beside(self, work: Callable[[Branch], Awaitable[None]]) -> Turn:
        """Work that can be waited for and stopped as a turn can, but is none: the journal has nothing to close.

        Raises:
            UsageError: a turn is running.
        """
        if self.busy:
            raise UsageError("A turn is running.", "Interrupt it, or wait for its end.")

        async def run(turn: Turn) -> None:
            self._deliver(turn, await self._ending(turn, work))

        turn = self._begin(run)
        turn.listens = False
        return turn

    def _begin(self, run: Callable[[Turn], Coroutine[None, None, None]]) -> Turn:
        turn = self._turn = Turn(self._keep, *map(_shielded, self._brain.listeners), self._followers.share)
        turn.run(asyncio.get_running_loop().create_task(run(turn)))
        return turn

    def _new_command(self) -> Turn:
        """A turn for a command of the person's own."""
        return Turn(self._keep, *map(_shielded, self._brain.listeners), self._followers.share, self.transcript.apply)

    async def _run(self, prompt: Message, turn: Turn) -> None:
        async def work(branch: Branch) -> None:
            admitted = await self._brain.admit(prompt, branch)
            turn.opened = True
            self._open_turn(branch, prompt, admitted.notes)
            agent = await self._agent(admitted.model)
            await agent.run(branch)

        ending = await self._ending(turn, work)
        if not turn.opened:
            # The journal has none to close.
            why = ending.error or PromptRefused("Interrupted before the prompt was sent.").info()
            self._deliver(turn, TurnEnded(ending.reason, why))
            return
        Branch(turn, self.transcript).emit(ending)
        with contextlib.suppress(StorageError):
            await asyncio.to_thread(self._journal.sync)

    async def _ending(self, turn: Turn, work: Callable[[Branch], Awaitable[None]]) -> TurnEnded:
        """How ``work`` ended; whatever went wrong is in it."""
        try:
            await self.history()
            await work(Branch(turn, self.transcript))
        except asyncio.CancelledError:
            return TurnEnded("cancelled")
        except StopTurn as stop:
            return TurnEnded("limit", stop.info())
        except BaError as error:
            return TurnEnded("error", error.info())
        except Exception as error:
            log.exception("turn failed")
            return TurnEnded("error", ErrorInfo("internal_error", f"{type(error).__name__}: {error}", LOGGED))
        return TurnEnded("done")

    def _keep(self, event: Event) -> None:
        """Into the journal; when that fails the work goes on in memory, and the person is told once."""
        if isinstance(event, TRANSIENT):
            return
        try:
            self._journal.append(event)
        except StorageError as error:
            if self._saved and self._turn:
                lost = Notice(f"{error} Work goes on, but is not saved.", "error", error.hint)
                self._deliver(self._turn, lost)
            self._saved = False
        else:
            self._saved = True

    def _open_turn(self, branch: Branch, prompt: Message, notes: Sequence[Message]) -> None:
        branch.emit(TurnStarted(prompt))
        if not self.title:
            self.title = title_of(prompt.text)
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
        """From the next turn on, over a new connection: its key may be new. Raises UsageError for an unknown model."""
        info = self._brain.model(name)
        self.model, self._renewed = info.id, True
        self._record(ModelChanged(info.id))
        return info

    def model_info(self) -> ModelInfo:
        return self._brain.model(self.model)

    def set_mode(self, mode: Mode) -> None:
        self.permissions.set_mode(mode)
        self._mode = mode
        self._record(ModeChanged(mode))

    def rename(self, title: str) -> None:
        self.title = clean_text(title).strip()[:200]
        self._record(Titled(self.title))

    def notify(self, notice: Notice) -> None:
        """Keep a line for the person with the session."""
        self._record(notice)

    def context(self) -> Sequence[ContextPart]:
        return self._brain.context(self.transcript, self.model)

    def _rewound(self, event: Event) -> None:
        self._record(event)
        self._folded = None

    async def close(self) -> None:
        """Stop what runs, then let go of connections and the file."""
        await self.past.wait()
        await self.shell.close()
        if self._turn:
            self._turn.cancel()
            await self._turn.wait()
        await self._dismiss()
        await self._brain.close()
        self._followers.close()
        await asyncio.to_thread(self._journal.close)

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


class Library(Protocol):
    """Sessions on disk. Every ``id`` may be shortened as long as it stays unambiguous."""

    def sessions(self, *, everywhere: bool = False) -> Sequence[SessionInfo]:
        """Newest first; those of this folder, or of all folders."""
        ...

    def search(self, text: str, *, everywhere: bool = False) -> Sequence[SessionInfo]: ...

    def find(self, key: str) -> SessionInfo:
        """By id, part of an id, or words. Raises SessionNotFound."""
        ...

    def create(self) -> Conversation:
        """Nothing is on disk before the first event."""
        ...

    def open(self, id: str) -> Conversation:
        """Raises SessionLocked, SessionNotFound, NewerSchema, StorageError."""
        ...

    def fork(self, id: str, upto: int | None = None) -> SessionInfo:
        """A new session with the first ``upto`` turns of another (all of them by default)."""
        ...

    def rename(self, id: str, title: str) -> None: ...

    def delete(self, id: str) -> None: ...

    def outline(self, id: str) -> Outline:
        """Reads all of it: call it off the loop."""
        ...

    def requests(self, id: str) -> Sequence[SavedRequest]:
        """What the session sent to models, oldest first."""
        ...

    def request(self, id: str, number: int, *, response: bool = False) -> bytes:
        """One request, or its response, byte for byte. Raises UsageError when there is none, StorageError."""
        ...

    def export(self, id: str, format: str, *, with_secrets: bool = False, for_model: bool = False) -> Iterator[str]:
        """``md``, ``html``, ``json``, ``jsonl`` or ``workflow``, in pieces: a session may be of any size. Reading them
        takes as long as a disk does. ``for_model``: without commands of the person's own. Raises UsageError for another
        format.
        """
        ...

    def take_in(self, path: Path) -> Imported:
        """A session from a file of another program. Raises UsageError, StorageError, NewerSchema."""
        ...


Upkeep = Callable[[], Coroutine[None, None, None]]


@frozen
class Services:
    """All that a face is given. ``notices``: what start-up has to say (unknown settings, files not loaded)."""

    library: Library
    catalogue: Catalogue
    setup: Setup
    notices: Sequence[Notice] = ()
    output_format: str = "text"
    upkeep: Upkeep | None = None
    """Work to be done now and then while a face is open; ends when cancelled."""
    tidy: Callable[[], object] | None = None
    """The same once, for a run that ends. Blocks for seconds at most."""
    trust: Trusting | None = None
    """Asked before the first prompt in a folder; None where nobody need be asked."""
    notify: str = "bell"
    """How a person who looks elsewhere is called: ``bell``, ``osc9``, ``osc777`` or ``off``."""


Connect = Callable[[], Services]


def _shielded(listener: Listener) -> Listener:
    def observe(event: Event) -> None:
        try:
            listener(event)
        except Exception:
            log.exception("observer failed")

    return observe


def begin(library: Library, start: Start) -> Conversation:
    """The conversation that ``start`` names, or a new one.

    Raises:
        SessionNotFound, SessionLocked, NewerSchema, StorageError: as Library.open does.
    """
    if start.resume is None:
        return library.create()
    if start.resume == "last":
        sessions = library.sessions()
        if not sessions:
            raise SessionNotFound("No session was saved in this folder yet.", "Start one: ba.")
        info = sessions[0]
    else:
        info = library.find(start.resume)
    return library.open(library.fork(info.id).id if start.fork else info.id)
