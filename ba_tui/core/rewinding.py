"""The course of a session: its turns, where each stands, and the way back. The folds are pure.

How files are kept and brought back is the business of whoever implements Checkpoints.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Checkpointed, Event, Rewound, TurnStarted
from ba_tui.core.messages import Message
from ba_tui.core.results import Diffs, StateChange
from ba_tui.core.transcript import Transcript

_UNCHANGED = "No file was changed since then."
Scope: TypeAlias = Literal["both", "conversation", "files"]


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a rewind does to one file. Lines, None for what is no text; ``by_hand``: changed outside of the turns."""

    path: str
    kind: Literal["new", "changed", "gone"]
    added: int | None = 0
    removed: int | None = 0
    by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Restored:
    """``undo`` is the checkpoint of what was before; ``left`` are the files that stay as they are, and why."""

    undo: str
    done: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()


class Checkpoints(Protocol):
    """The files of a conversation as they were. All of it runs git and reads the disk: call it off the loop.

    Raises:
        StorageError: the store can't be used, is in use, or a checkpoint is gone; no file was touched.
    """

    def take(self, turn: int) -> str:
        """Keep the files as they are before turn ``turn`` changes them; the checkpoint's id."""
        ...

    def changes(self, before: str, after: str = "") -> Sequence[FileChange]:
        """What differs between two checkpoints; an empty one means the files as they are now."""
        ...

    def did(self, turn: int, before: str) -> Sequence[FileChange]:
        """What turn ``turn`` changed, which began with the checkpoint ``before``; nothing when that is not known."""
        ...

    def undoing(self, to: str, since: Sequence[tuple[int, str]]) -> Sequence[FileChange]:
        """What ``restore(to)`` would do now. ``since``: the turns that were, with their checkpoints."""
        ...

    def diffs(self, before: str, after: str = "") -> Diffs:
        """As ``changes``, with texts; only of the first ones when there are many."""
        ...

    def patch(self, before: str, after: str = "", *, stat: bool = False) -> bytes:
        """The same as a patch or, with ``stat``, as a line a file."""
        ...

    def restore(self, to: str) -> Restored:
        """Bring the files back, after a checkpoint of the present was taken."""
        ...


@dataclass(frozen=True, slots=True)
class Stop:
    """A turn that stands, and what came before it: ``number`` in the whole session, ``checkpoint`` empty for none."""

    number: int
    prompt: Message
    at: float
    before: int
    """The turn that stood last when this one began, 0 for none."""
    index: int
    """Where it begins among the events."""
    checkpoint: str = ""


@dataclass(frozen=True, slots=True)
class Rewind:
    """The newest rewind: where its event is, which turn stood last before it."""

    index: int
    event: Rewound
    last: int


@dataclass(frozen=True, slots=True)
class Course:
    """``stops`` that stand, oldest first; ``first`` is the first checkpoint of the session, empty for none."""

    stops: tuple[Stop, ...] = ()
    newest: Rewind | None = None
    first: str = ""

    def find(self, number: int) -> Stop:
        """Raises UsageError when that turn does not stand."""
        for stop in self.stops:
            if stop.number == number:
                return stop
        raise UsageError(f"There is no turn {number} to go back to.", "See the turns: /rewind.")

    def since(self, number: int) -> list[tuple[int, str]]:
        """Checkpoints of the turns from ``number`` on."""
        return [(stop.number, stop.checkpoint) for stop in self.stops if stop.number >= number and stop.checkpoint]

    def files_before(self, number: int) -> str:
        """The checkpoint that holds the files as before turn ``number``; empty when nothing was changed since."""
        return next((id for _, id in self.since(number)), "")


def course(events: Sequence[Event]) -> Course:
    """Where a session stands."""
    every: dict[int, Stop] = {}
    last, newest, first = 0, None, ""
    for index, event in enumerate(events):
        match event:
            case TurnStarted(agent="main", prompt=prompt, at=at):
                number = len(every) + 1
                every[number] = Stop(number, prompt, at, last, index)
                last = number
            case Checkpointed(id=id, turn=turn):
                first = first or id
                if (stop := every.get(turn)) and not stop.checkpoint:
                    every[turn] = replace(stop, checkpoint=id)
            case Rewound(agent="main", turns=turns):
                newest = Rewind(index, event, last)
                last = last if turns is None else turns
            case _:
                pass
    standing: list[Stop] = []
    while stop := every.get(last):
        standing.append(stop)
        last = stop.before
    return Course(tuple(reversed(standing)), newest, first)


def prefix(events: Sequence[Event], index: int, cwd: str) -> tuple[tuple[Message, ...], StateChange]:
    """Messages and state as they were before the event at ``index``."""
    was = Transcript(events=events[:index])
    return tuple(was.messages), StateChange(was.todos, was.cwd or cwd, was.skills)


@dataclass(frozen=True, slots=True)
class Wanted:
    """``turn``: stand again as before it; None takes the newest rewind back."""

    turn: int | None
    scope: Scope = "both"
    cwd: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done: the ``event`` for the journal, the ``prompt`` that was taken back, and what became of files."""

    event: Rewound
    prompt: Message | None = None
    restored: Restored = field(default_factory=lambda: Restored(""))


def rewound(read: Callable[[], Sequence[Event]], files: Checkpoints | None, wanted: Wanted) -> Outcome:
    """Restore files as wanted, and work out where the conversation stands then. Slow: call it off the loop.

    Raises:
        UsageError: there is nothing to go back to. StorageError: the files can't be restored; nothing was changed.
    """
    events = read()
    known = course(events)
    if wanted.turn is None:
        return _undone(events, known, files, wanted)
    stop = known.find(wanted.turn)
    to = known.files_before(stop.number) if wanted.scope != "conversation" else ""
    if wanted.scope == "files" and not to:
        raise UsageError(_UNCHANGED, "Rewind the conversation, or choose an earlier turn.")
    restored = _restored(files, to)
    if wanted.scope == "files":
        return Outcome(Rewound(files=to, undo=restored.undo), None, restored)
    messages, state = prefix(events, stop.index, wanted.cwd)
    event = Rewound(messages, state, stop.before, to, restored.undo)
    return Outcome(event, stop.prompt, restored)


def _undone(events: Sequence[Event], known: Course, files: Checkpoints | None, wanted: Wanted) -> Outcome:
    if known.newest is None:
        raise UsageError("Nothing was rewound in this session.")
    was = known.newest
    to = was.event.undo if wanted.scope != "conversation" else ""
    alone = was.event.turns is None or wanted.scope == "files"
    if alone and not to:
        raise UsageError(_UNCHANGED, "Take the conversation back, if it was rewound.")
    restored = _restored(files, to)
    if alone:
        return Outcome(Rewound(files=to, undo=restored.undo), None, restored)
    messages, state = prefix(events, was.index, wanted.cwd)
    return Outcome(Rewound(messages, state, was.last, to, restored.undo), None, restored)


def _restored(files: Checkpoints | None, to: str) -> Restored:
    if not to:
        return Restored("")
    if files is None:
        raise StorageError("This session has no checkpoints.", "Rewind the conversation alone.")
    return files.restore(to)


class Past:
    """The course of one conversation: ``read`` its events, ``keep`` the event of a rewind, ``busy`` with a turn."""

    def __init__(
        self,
        read: Callable[[], Sequence[Event]],
        keep: Callable[[Rewound], None],
        busy: Callable[[], bool],
        files: Checkpoints | None = None,
        cwd: str = "",
    ) -> None:
        self.files = files
        self._read = read
        self._keep = keep
        self._busy = busy
        self._cwd = cwd
        self._running: asyncio.Task[Outcome] | None = None

    @property
    def rewinding(self) -> bool:
        return self._running is not None and not self._running.done()

    async def course(self) -> Course:
        """The turns that stand, and what can be taken back."""
        return await asyncio.to_thread(lambda: course(self._read()))

    async def rewind(self, turn: int | None, scope: Scope = "both") -> Outcome:
        """Stand again as before turn ``turn``; None takes the newest rewind back. Goes on when the caller is cancelled.

        Raises:
            UsageError: a turn or a rewind is running, or there is nothing to go back to.
            StorageError: the files can't be restored; nothing was changed.
        """
        if self._busy():
            raise UsageError("A turn or a rewind is running.", "Interrupt it, or wait for its end.")
        self._running = asyncio.create_task(self._rewind(Wanted(turn, scope, self._cwd)))
        return await asyncio.shield(self._running)

    async def _rewind(self, wanted: Wanted) -> Outcome:
        outcome = await asyncio.to_thread(rewound, self._read, self.files, wanted)
        self._keep(outcome.event)
        return outcome

    async def wait(self) -> None:
        """Until a rewind that runs is done."""
        if self._running:
            await asyncio.wait([self._running])
