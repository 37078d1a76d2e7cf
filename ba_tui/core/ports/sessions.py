"""Sessions as lists show them, and the file of one."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from ba_tui.core.events import Event
from ba_tui.core.messages import Usage
from ba_tui.core.values import frozen

TITLE_LENGTH = 60


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
    """The session's file. ``append`` raises StorageError; what it could not write goes out with the next append."""

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


def title_of(prompt: str) -> str:
    """A session's title from its first prompt: the first line with words, at most 60 characters."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "Untitled")
    line = " ".join(line.lstrip("#>-* ").split()) or "Untitled"
    if len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"
