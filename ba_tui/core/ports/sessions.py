"""Sessions as lists show them, the file of one, and what of a session is not in its file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ba_tui.core.errors import SessionNotSaved, off_loop
from ba_tui.core.events import Event, Notice
from ba_tui.core.messages import Usage
from ba_tui.core.values import frozen

TITLE_LENGTH = 60
SAVED_AGAIN = "The session is saved again, with all that was missing."


@frozen
class SessionInfo:
    """What lists show of a session. Times are seconds since the epoch; ``cost`` None when any part is unknown."""

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
    """Who writes it now (``pid 123``); empty when nobody does."""
    found: str = ""
    """What stands around the words that were searched for."""
    unattended: bool = False
    """Only ``ba -p`` wrote it: lists for people leave it out unless they ask."""
    left_open: bool = False
    """The ba that wrote it last ended without closing it: a crash, a kill, a power cut."""
    imported: bool = False
    """Made from a file, or forked from such a session: it opens in the user's default mode. Lists do not set it."""


@frozen
class TurnLine:
    """A turn as lists show it; ``ended`` is empty while it goes on."""

    number: int
    at: float
    prompt: str
    calls: int = 0
    ended: str = ""


@frozen
class SavedRequest:
    """A request to a model that is kept byte for byte. Sizes in bytes; ``received`` 0 without a response."""

    number: int
    at: float
    model: str
    size: int
    received: int = 0


@frozen
class Outline:
    """A session's turns, oldest first, and what all its answers used."""

    usage: Usage
    turns: tuple[TurnLine, ...] = ()


@frozen
class Imported:
    """A session that was made from a file of another program. ``source`` names the original; ``remarks`` say what
    of it was left out."""

    info: SessionInfo
    source: str
    remarks: tuple[str, ...] = ()


class Journal(Protocol):
    """The session's file. ``append`` and ``sync`` raise SessionNotSaved; what was not written
    goes out with the next append."""

    def append(self, event: Event) -> None: ...

    def read(self) -> list[Event]:
        """All of it, healed, oldest first."""
        ...

    def tail(self, limit: int) -> list[Event]:
        """The newest events, at most about ``limit``, starting with a TurnStarted; cheap for any length."""
        ...

    def later(self, place: int) -> tuple[list[Event], int]:
        """The events in the file behind ``place``, 0 at first, and the place behind them. Reads a file: call it off the
        loop. Raises StorageError."""
        ...

    def sync(self) -> None:
        """fsync; slow, call it off the loop."""
        ...

    def close(self) -> None: ...


class SessionSaving:
    """Keeps a session's events in its ``journal``. When that fails, work goes on in memory, and the user is told
    when it begins and when all is saved again. ``tell`` shows a notice, and returns False when nobody looks now."""

    def __init__(self, journal: Journal, tell: Callable[[Notice], bool]) -> None:
        self._journal = journal
        self._tell = tell
        self._told = False
        self._unsynced = False
        """The system took entries and could not write them out: they may be gone, whatever is written later."""
        self.missing: SessionNotSaved | None = None
        """Why the newest entries are not on the disk; None while all of them are."""

    def keep(self, event: Event) -> None:
        try:
            self._journal.append(event)
        except SessionNotSaved as error:
            self._lost(error)
        else:
            if self.missing and self._unsynced:
                # Nobody may have looked when it happened.
                self._lost(self.missing)
            elif self.missing:
                self.missing = None
                self._told = self._told and not self._tell(Notice(SAVED_AGAIN))

    async def sync(self) -> None:
        """Have the system write out what it has."""
        try:
            await off_loop(self._journal.sync)
        except SessionNotSaved as error:
            self._unsynced = self._unsynced or self.missing is None
            self._lost(error)

    async def retry(self) -> None:
        """Write what is missing if that is possible by now."""
        if self.missing:
            try:
                await off_loop(self._journal.sync)
                self.missing = self.missing if self._unsynced else None
            except SessionNotSaved as error:
                self.missing = error

    async def close(self) -> None:
        """Close the file after another try."""
        await self.retry()
        await off_loop(self._journal.close)

    def _lost(self, error: SessionNotSaved) -> None:
        self.missing = error
        self._told = self._told or self._tell(Notice(f"{error} Work goes on, but is not saved.", "error", error.hint))


class SavedConversation(Protocol):
    """What ``unsaved`` asks: a conversation."""

    @property
    def saving(self) -> SessionSaving: ...


def unsaved(conversation: SavedConversation | None) -> SessionNotSaved | None:
    """Why the newest part of an open session is in memory alone; None while all of it is on the disk."""
    return conversation.saving.missing if conversation else None


def title_of(prompt: str) -> str:
    """A session's title from its first prompt: the first line with words, at most 60 characters."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "Untitled")
    line = " ".join(line.lstrip("#>-* ").split()) or "Untitled"
    if len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"
