"""Ports of sessions: lists, the journal and whether it is saved, recorded model requests, and checkpoints."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.errors import SessionNotSaved, off_loop
from ba_tui.core.events import Event, Notice
from ba_tui.core.messages import Usage
from ba_tui.core.results import Diffs
from ba_tui.core.values import frozen

TITLE_LENGTH = 60
SAVED_AGAIN = "The session is saved again, including the missing part."


@frozen
class SessionInfo:
    """A session in a list. Times are seconds since the epoch; ``cost`` is None if a part is unknown."""

    id: str
    title: str
    cwd: Path
    created: float
    updated: float
    turns: int = 0
    cost: float | None = None
    model: str = ""
    preview: str = ""
    locked_by: str = ""
    """The process that writes it now (``pid 123``); empty if none does."""
    found: str = ""
    """Text around the words of a search."""
    unattended: bool = False
    """Only ``ba -p`` wrote it. Lists for people leave it out by default."""
    left_open: bool = False
    """The last ba that wrote it ended without closing it: a crash, a kill, a power cut."""
    imported: bool = False
    """Made from a file, or forked from such a session: it opens in the user's default mode. Lists do not set this."""


@frozen
class TurnLine:
    """A turn in a list; ``ended`` is empty while it runs."""

    number: int
    at: float
    prompt: str
    calls: int = 0
    ended: str = ""


@frozen
class SavedRequest:
    """A model request stored byte for byte. Sizes in bytes; ``received`` is 0 without a response."""

    number: int
    at: float
    model: str
    size: int
    received: int = 0


@frozen
class Outline:
    """A session's turns, oldest first, and the token usage of all its answers."""

    usage: Usage
    turns: tuple[TurnLine, ...] = ()


@frozen
class ImportedSession:
    """A session made from a file of another program. ``source`` names the original; ``remarks`` list what was left
    out."""

    info: SessionInfo
    source: str
    remarks: tuple[str, ...] = ()


class Journal(Protocol):
    """The session's file. ``append`` and ``sync`` raise SessionNotSaved; the next append retries what was not
    written."""

    def append(self, event: Event) -> None: ...

    def read(self) -> list[Event]:
        """Return all events, repaired, oldest first."""
        ...

    def tail(self, limit: int) -> list[Event]:
        """Return about the newest ``limit`` events, starting with a TurnStarted; fast for any length."""
        ...

    def later(self, place: int) -> tuple[list[Event], int]:
        """Return the events after position ``place`` (0 at first), and the position after them. Reads a file: call it
        off the event loop. Raises StorageError."""
        ...

    def sync(self) -> None:
        """Call fsync. Slow: call it off the event loop."""
        ...

    def close(self) -> None: ...


class SessionSaving:
    """Write a session's events to its ``journal``. If that fails, the session continues in memory. The user is notified
    when saving fails and when everything is saved again. ``tell`` shows a notice; it returns False if no face is
    attached."""

    def __init__(self, journal: Journal, tell: Callable[[Notice], bool]) -> None:
        self._journal = journal
        self._tell = tell
        self._told = False
        self._unsynced = False
        """The system accepted entries and failed to write them: they may be lost, whatever is written later."""
        self.missing: SessionNotSaved | None = None
        """Why the newest entries are not on disk; None while all are."""

    def keep(self, event: Event) -> None:
        try:
            self._journal.append(event)
        except SessionNotSaved as error:
            self._lost(error)
        else:
            if self.missing and self._unsynced:
                # The first notice may have been shown to no face.
                self._lost(self.missing)
            elif self.missing:
                self.missing = None
                self._told = self._told and not self._tell(Notice(SAVED_AGAIN))

    async def sync(self) -> None:
        """Flush the journal to disk."""
        lacked = self.missing is not None
        try:
            await off_loop(self._journal.sync)
        except SessionNotSaved as error:
            if lacked and self.missing is None:
                # The same entries were saved while this attempt failed.
                return
            self._unsynced = self._unsynced or self.missing is None
            self._lost(error)

    async def retry(self) -> None:
        """Retry writing unsaved entries."""
        if self.missing:
            try:
                await off_loop(self._journal.sync)
                self.missing = self.missing if self._unsynced else None
            except SessionNotSaved as error:
                self.missing = error

    async def close(self) -> None:
        """Close the file after a last retry."""
        await self.retry()
        await off_loop(self._journal.close)

    def _lost(self, error: SessionNotSaved) -> None:
        self.missing = error
        self._told = self._told or self._tell(
            Notice(f"{error} The session continues, but is not saved.", "error", error.hint)
        )


class SavedConversation(Protocol):
    """What ``unsaved`` asks: a conversation."""

    @property
    def saving(self) -> SessionSaving: ...


def unsaved(conversation: SavedConversation | None) -> SessionNotSaved | None:
    """Return why the newest part of an open session is only in memory; None while everything is on disk."""
    return conversation.saving.missing if conversation else None


def title_of(prompt: str) -> str:
    """Return a session title from its first prompt: the first line with words, at most 60 characters."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "Untitled")
    line = " ".join(line.lstrip("#>-* ").split()) or "Untitled"
    if len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"


class Exchange(Protocol):
    """One request while its response arrives."""

    def received(self, data: bytes) -> None:
        """Record bytes of the response, in order."""
        ...

    def end(self) -> None:
        """Finish: the response is complete, failed or no longer needed."""
        ...


class Recorder(Protocol):
    """Records the requests and responses of one provider. Methods never raise and never wait for the disk."""

    def sent(self, body: bytes, kept: int, tail: int) -> Exchange:
        """Record that ``body`` is sent. Its first ``kept`` bytes equal those of the previous body; its last ``tail``
        bytes will not be part of the next one."""
        ...


@frozen
class FileChange:
    """The effect of a rewind on one file. ``added`` and ``removed`` count lines, None for binary files. ``by_hand``:
    changed outside turns. ``stays``: another program wrote it during a turn, so the rewind leaves it alone."""

    path: str
    kind: Literal["new", "changed", "gone"]
    added: int | None = 0
    removed: int | None = 0
    by_hand: bool = False
    stays: bool = False


@frozen
class RestoreResult:
    """``left``: the files that were not restored, and why."""

    done: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()


class Checkpoints(Protocol):
    """Snapshots of the files of a conversation. All methods run git and read the disk: call them off the event loop.

    Raises:
        StorageError: the store is unusable or in use, or a checkpoint is gone; no file was touched.
    """

    def take(self, turn: int) -> str:
        """Save the files before turn ``turn`` changes them; returns the checkpoint id."""
        ...

    def changes(self, before: str, after: str = "") -> Sequence[FileChange]:
        """Return the differences between two checkpoints; an empty id means the current files."""
        ...

    def did(self, before: str) -> Sequence[FileChange]:
        """Return the changes of the turn that began with checkpoint ``before``; empty if unknown."""
        ...

    def undoing(self, to: str, since: Sequence[tuple[int, str]]) -> Sequence[FileChange]:
        """Return what ``restore(to)`` would do now. ``since``: the turns after it, with their checkpoints."""
        ...

    def diffs(self, before: str, after: str = "") -> Diffs:
        """Return ``changes`` with texts; only the first ones if there are many."""
        ...

    def patch(self, before: str, after: str = "", *, stat: bool = False) -> bytes:
        """Return the changes as a patch or, with ``stat``, as a line for each file."""
        ...

    def begin(self, to: str) -> str:
        """Check that ``to`` can be restored, and save the current files; returns that checkpoint's id."""
        ...

    def restore(self, to: str, undo: str) -> RestoreResult:
        """Restore the files of ``to``. Files that changed since checkpoint ``undo`` stay as they are."""
        ...


ReadHistory: TypeAlias = Callable[[], Awaitable[Sequence[Event]]]
"""Returns all events of the session so far, oldest first."""


async def nothing_said() -> Sequence[Event]:
    """Return the empty history of no session."""
    return ()
