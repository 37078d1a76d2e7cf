"""Rewinding: the turns of a session, their checkpoints, and the way back. The folds are pure."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import Checkpointed, Event, Rewound, TurnStarted
from ba_tui.core.messages import Message
from ba_tui.core.ports.sessions import Checkpoints, RestoreResult
from ba_tui.core.results import StateChange
from ba_tui.core.transcript import Transcript
from ba_tui.core.values import frozen

_UNCHANGED = "No file was changed since then."
RewindScope: TypeAlias = Literal["both", "conversation", "files"]


@frozen
class RewindStop:
    """A turn to rewind to: its ``number`` in the whole session, its ``checkpoint``, empty for none."""

    number: int
    prompt: Message
    at: float
    before: int
    """The last turn in effect when this one began, 0 for none."""
    index: int
    """Index of its first event."""
    checkpoint: str = ""


@frozen
class Rewind:
    """The newest rewind: the index of its event, and the last turn in effect before it."""

    index: int
    event: Rewound
    last: int


@frozen
class TurnHistory:
    """``stops``: the turns in effect, oldest first; ``first``: the first checkpoint of the session, empty for none."""

    stops: tuple[RewindStop, ...] = ()
    newest: Rewind | None = None
    first: str = ""

    def find(self, number: int) -> RewindStop:
        """Return a turn by number. Raises UsageError if it is not in effect."""
        for stop in self.stops:
            if stop.number == number:
                return stop
        raise UsageError(f"There is no turn {number} to go back to.", "See the turns: /rewind.")

    def since(self, number: int) -> list[tuple[int, str]]:
        """Return the checkpoints of the turns from ``number`` on."""
        return [(stop.number, stop.checkpoint) for stop in self.stops if stop.number >= number and stop.checkpoint]

    def files_before(self, number: int) -> str:
        """Return the checkpoint of the files before turn ``number``; empty if nothing changed since."""
        return next((id for _, id in self.since(number)), "")


def turn_history(events: Sequence[Event]) -> TurnHistory:
    """Return the turns in effect, and the newest rewind."""
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
                # A rewind begins; without a Rewound event it was interrupted.
                newest = Rewind(index, Rewound(undo=id, at=event.at), last)
            case Checkpointed(id=id, turn=turn):
                first = first or id
                if (stop := every.get(turn)) is None:
                    # Expanding a command into a prompt may change files before its turn begins.
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
    """Return messages and state before the event at ``index``."""
    was = Transcript(events=events[:index])
    return tuple(was.messages), StateChange(was.todos, was.cwd or cwd, was.skills)


@frozen
class RewindResult:
    """A finished rewind: the ``event`` for the journal, the ``prompt`` taken back, and the outcome for files."""

    event: Rewound
    prompt: Message | None = None
    restored: RestoreResult = field(default_factory=RestoreResult)


@frozen
class RewindPlan:
    """A rewind to run: the checkpoint ``to`` restore, empty for none; the ``event`` for the journal; the ``prompt`` to
    take back."""

    to: str
    event: Rewound
    prompt: Message | None = None


def plan_rewind(events: Sequence[Event], turn: int | None, scope: RewindScope, cwd: str) -> RewindPlan:
    """Return the plan to go back to before ``turn``; None undoes the newest rewind. Raises UsageError."""
    known = turn_history(events)
    if turn is None:
        return _undone(events, known, scope, cwd)
    stop = known.find(turn)
    to = known.files_before(stop.number) if scope != "conversation" else ""
    if scope == "files":
        if not to:
            raise UsageError(_UNCHANGED, "Rewind the conversation, or choose an earlier turn.")
        return RewindPlan(to, Rewound(files=to))
    messages, state = prefix(events, stop.index, cwd)
    return RewindPlan(to, Rewound(messages, state, stop.before, to), stop.prompt)


def _undone(events: Sequence[Event], known: TurnHistory, scope: RewindScope, cwd: str) -> RewindPlan:
    if known.newest is None:
        raise UsageError("Nothing was rewound in this session.")
    was = known.newest
    to = was.event.undo if scope != "conversation" else ""
    if was.event.turns is None or scope == "files":
        if not to:
            raise UsageError(_UNCHANGED, "Undo the rewind of the conversation, if there was one.")
        return RewindPlan(to, Rewound(files=to))
    messages, state = prefix(events, was.index, cwd)
    return RewindPlan(to, Rewound(messages, state, was.last, to))


class Past:
    """The history of one conversation. ``read`` returns its events, ``keep`` journals the events of a rewind. ``check``
    raises BaError while rewinding is not allowed."""

    def __init__(
        self,
        read: Callable[[], Sequence[Event]],
        keep: Callable[[Event], None],
        check: Callable[[], None],
        files: Callable[[], Checkpoints] | None = None,
        cwd: str = "",
    ) -> None:
        self._files = files
        self._read = read
        self._keep = keep
        self._check = check
        self._cwd = cwd
        self._running: asyncio.Task[RewindResult] | None = None

    @property
    def files(self) -> Checkpoints | None:
        """The saved files; None if the conversation has none."""
        return self._files() if self._files else None

    @property
    def rewinding(self) -> bool:
        return self._running is not None and not self._running.done()

    async def history(self) -> TurnHistory:
        """Return the turns in effect, and the newest rewind."""
        return await asyncio.to_thread(lambda: turn_history(self._read()))

    async def rewind(self, turn: int | None, scope: RewindScope = "both") -> RewindResult:
        """Return to the state before turn ``turn``; None undoes the newest rewind. Continues if the caller is
        cancelled.

        Raises:
            UsageError: a turn or a rewind is running, or there is nothing to go back to. SessionLocked.
            StorageError: the files cannot be restored; nothing was changed.
        """
        self._check()
        self._running = asyncio.create_task(self._rewind(turn, scope))
        return await asyncio.shield(self._running)

    async def _rewind(self, turn: int | None, scope: RewindScope) -> RewindResult:
        plan = await asyncio.to_thread(lambda: plan_rewind(self._read(), turn, scope, self._cwd))
        outcome = RewindResult(plan.event, plan.prompt)
        if plan.to:
            if self.files is None:
                raise StorageError("This session has no checkpoints.", "Rewind the conversation alone.")
            undo = await asyncio.to_thread(self.files.begin, plan.to)
            # From here on it can be undone, even if it is interrupted.
            self._keep(Checkpointed(undo, 0))
            restored = await asyncio.to_thread(self.files.restore, plan.to, undo)
            outcome = RewindResult(replace(plan.event, undo=undo), plan.prompt, restored)
        self._keep(outcome.event)
        return outcome

    async def wait(self) -> None:
        """Wait for the end of a running rewind."""
        if self._running:
            await asyncio.wait([self._running])
