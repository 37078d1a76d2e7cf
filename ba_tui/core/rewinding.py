"""The history of a session: its turns, where each begins, and the way back. The folds are pure.

How files are kept and brought back is the business of whoever implements Checkpoints.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Checkpointed, Event, Rewound, TurnStarted
from ba_tui.core.messages import Message
from ba_tui.core.results import Diffs, StateChange
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen

_UNCHANGED = "No file was changed since then."
RewindScope: TypeAlias = Literal["both", "conversation", "files"]


@frozen
class FileChange:
    """What a rewind does to one file. Lines, None for what is no text; ``by_hand``: changed outside of the turns;
    ``stays``: another program wrote it during a turn, so a rewind leaves it as it is."""

    path: str
    kind: Literal["new", "changed", "gone"]
    added: int | None = 0
    removed: int | None = 0
    by_hand: bool = False
    stays: bool = False


@frozen
class Restored:
    """``left`` are the files that stay as they are, and why."""

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

    def did(self, before: str) -> Sequence[FileChange]:
        """What the turn changed that began with the checkpoint ``before``; nothing when that is not known."""
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

    def begin(self, to: str) -> str:
        """See that ``to`` can be restored, and keep the files as they are now; that checkpoint's id."""
        ...

    def restore(self, to: str, undo: str) -> Restored:
        """Bring the files back. What is no more as in ``undo`` stays as it is."""
        ...


@frozen
class RewindStop:
    """A turn that stands, and what came before it: ``number`` in the whole session, ``checkpoint`` empty for none."""

    number: int
    prompt: Message
    at: float
    before: int
    """The turn that stood last when this one began, 0 for none."""
    index: int
    """Where it begins among the events."""
    checkpoint: str = ""


@frozen
class Rewind:
    """The newest rewind: where its event is, which turn stood last before it."""

    index: int
    event: Rewound
    last: int


@frozen
class TurnHistory:
    """``stops`` that stand, oldest first; ``first`` is the first checkpoint of the session, empty for none."""

    stops: tuple[RewindStop, ...] = ()
    newest: Rewind | None = None
    first: str = ""

    def find(self, number: int) -> RewindStop:
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


def turn_history(events: Sequence[Event]) -> TurnHistory:
    """Where a session stands."""
    every: dict[int, RewindStop] = {}
    early: dict[int, str] = {}
    last, newest, first = 0, None, ""
    for index, event in enumerate(events):
        match event:
            case TurnStarted(agent="main", prompt=prompt, at=at):
                number = len(every) + 1
                every[number] = RewindStop(number, prompt, at, last, index, early.get(number, ""))
                last = number
            case Checkpointed(id=id, turn=0):
                # A rewind begins; when nothing follows, it was cut off.
                newest = Rewind(index, Rewound(undo=id, at=event.at), last)
            case Checkpointed(id=id, turn=turn):
                first = first or id
                if (stop := every.get(turn)) is None:
                    # What makes a prompt out of a command may change files before its turn begins.
                    early.setdefault(turn, id)
                elif stop.checkpoint in ("", early.pop(turn, "")):
                    every[turn] = replace(stop, checkpoint=id)
            case Rewound(agent="main", turns=turns):
                newest = Rewind(index, event, last)
                last = last if turns is None else turns
            case _:
                pass
    current: list[RewindStop] = []
    while stop := every.get(last):
        current.append(stop)
        last = stop.before
    return TurnHistory(tuple(reversed(current)), newest, first)


def prefix(events: Sequence[Event], index: int, cwd: str) -> tuple[tuple[Message, ...], StateChange]:
    """Messages and state as they were before the event at ``index``."""
    was = Transcript(events=events[:index])
    return tuple(was.messages), StateChange(was.todos, was.cwd or cwd, was.skills)


@frozen
class RewindRequest:
    """``turn``: stand again as before it; None takes the newest rewind back."""

    turn: int | None
    scope: RewindScope = "both"
    cwd: str = ""


@frozen
class RewindResult:
    """What was done: the ``event`` for the journal, the ``prompt`` that was taken back, and what became of files."""

    event: Rewound
    prompt: Message | None = None
    restored: Restored = field(default_factory=Restored)


@frozen
class Plan:
    """What is to be done: the checkpoint ``to`` restore, empty for none; the ``event`` that says it; the ``prompt``
    that is taken back."""

    to: str
    event: Rewound
    prompt: Message | None = None


def planned(events: Sequence[Event], wanted: RewindRequest) -> Plan:
    """Where the conversation stands after the rewind, and which files with it. Raises UsageError when it can't be."""
    known = turn_history(events)
    if wanted.turn is None:
        return _undone(events, known, wanted)
    stop = known.find(wanted.turn)
    to = known.files_before(stop.number) if wanted.scope != "conversation" else ""
    if wanted.scope == "files":
        if not to:
            raise UsageError(_UNCHANGED, "Rewind the conversation, or choose an earlier turn.")
        return Plan(to, Rewound(files=to))
    messages, state = prefix(events, stop.index, wanted.cwd)
    return Plan(to, Rewound(messages, state, stop.before, to), stop.prompt)


def _undone(events: Sequence[Event], known: TurnHistory, wanted: RewindRequest) -> Plan:
    if known.newest is None:
        raise UsageError("Nothing was rewound in this session.")
    was = known.newest
    to = was.event.undo if wanted.scope != "conversation" else ""
    if was.event.turns is None or wanted.scope == "files":
        if not to:
            raise UsageError(_UNCHANGED, "Take the conversation back, if it was rewound.")
        return Plan(to, Rewound(files=to))
    messages, state = prefix(events, was.index, wanted.cwd)
    return Plan(to, Rewound(messages, state, was.last, to))


class Past:
    """The history of one conversation: ``read`` its events, ``keep`` the events of a rewind. ``check`` raises BaError
    while nothing may be rewound."""

    def __init__(
        self,
        read: Callable[[], Sequence[Event]],
        keep: Callable[[Event], None],
        check: Callable[[], None],
        files: Checkpoints | None = None,
        cwd: str = "",
    ) -> None:
        self.files = files
        self._read = read
        self._keep = keep
        self._check = check
        self._cwd = cwd
        self._running: asyncio.Task[RewindResult] | None = None

    @property
    def rewinding(self) -> bool:
        return self._running is not None and not self._running.done()

    async def history(self) -> TurnHistory:
        """The turns that stand, and what can be taken back."""
        return await asyncio.to_thread(lambda: turn_history(self._read()))

    async def rewind(self, turn: int | None, scope: RewindScope = "both") -> RewindResult:
        """Stand again as before turn ``turn``; None takes the newest rewind back. Goes on when the caller is cancelled.

        Raises:
            UsageError: a turn or a rewind is running, or there is nothing to go back to. SessionLocked.
            StorageError: the files can't be restored; nothing was changed.
        """
        self._check()
        self._running = asyncio.create_task(self._rewind(RewindRequest(turn, scope, self._cwd)))
        return await asyncio.shield(self._running)

    async def _rewind(self, wanted: RewindRequest) -> RewindResult:
        plan = await asyncio.to_thread(lambda: planned(self._read(), wanted))
        outcome = RewindResult(plan.event, plan.prompt)
        if plan.to:
            if self.files is None:
                raise StorageError("This session has no checkpoints.", "Rewind the conversation alone.")
            undo = await asyncio.to_thread(self.files.begin, plan.to)
            # From here on it can be taken back, also when it is cut off.
            self._keep(Checkpointed(undo, 0))
            restored = await asyncio.to_thread(self.files.restore, plan.to, undo)
            outcome = RewindResult(replace(plan.event, undo=undo), plan.prompt, restored)
        self._keep(outcome.event)
        return outcome

    async def wait(self) -> None:
        """Until a rewind that runs is done."""
        if self._running:
            await asyncio.wait([self._running])
