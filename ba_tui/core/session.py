"""What a conversation is made of and knows of itself: its file, its brain, its rules. Protocols and values only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ba_tui.core.agent import Agent
from ba_tui.core.events import Event, Mode
from ba_tui.core.messages import Message
from ba_tui.core.provider import ModelInfo
from ba_tui.core.results import Artifact, Hit, Page
from ba_tui.core.transcript import Transcript

TITLE_LENGTH = 60


@dataclass(frozen=True, slots=True)
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


class Journal(Protocol):
    """The session's file. ``append`` raises StorageError; what it could not write goes out with the next append."""

    def append(self, event: Event) -> None: ...

    def read(self) -> list[Event]:
        """All of it, healed, oldest first."""
        ...

    def tail(self, limit: int) -> list[Event]:
        """The newest events, at most about ``limit``, starting with a TurnStarted; cheap for any length."""
        ...

    def sync(self) -> None:
        """fsync; slow, call it off the loop."""
        ...

    def close(self) -> None: ...


class Reader(Protocol):
    """Stored results, a part at a time. All of it may take as long as a disk does: call it off the loop.

    Raises:
        StorageError: the reference is none of this session, or its file has expired; the message says which.
    """

    def about(self, ref: str) -> Artifact:
        """What is known of it; does not raise for one that has expired."""
        ...

    def read(self, ref: str, offset: int = 0, limit: int = 65_536) -> Page:
        """From byte ``offset`` on, at most ``limit`` bytes, never half a character."""
        ...

    def lines(self, ref: str, start: int = 1, count: int = 200, limit: int = 65_536) -> Page:
        """From line ``start`` on, at most ``count`` lines and ``limit`` bytes; a longer line is cut there."""
        ...

    def search(self, ref: str, words: str, limit: int = 100, start: int = 1) -> Sequence[Hit]:
        """The first lines, from ``start`` on, that hold every one of the words in whatever case."""
        ...


@dataclass(frozen=True, slots=True)
class RuleLine:
    """One permission rule as shown: ``shell(git status)``, its verdict, where it stands and how often it hit."""

    rule: str
    verdict: str
    source: str
    hits: int = 0


class Permissions(Protocol):
    @property
    def mode(self) -> Mode: ...

    def set_mode(self, mode: Mode) -> None: ...

    def rules(self) -> Sequence[RuleLine]: ...


@dataclass(frozen=True, slots=True)
class ContextPart:
    """A share of the window: ``tokens`` are an estimate unless ``exact``; ``detail`` says what is in it and why."""

    label: str
    tokens: int
    detail: str = ""
    exact: bool = False


class Brain(Protocol):
    """What assembly gives a conversation: the agent for a model and what is said beside a prompt."""

    @property
    def permissions(self) -> Permissions: ...

    def model(self, name: str) -> ModelInfo:
        """Raises UsageError, naming the nearest, when ``name`` can't be a model."""
        ...

    def agent(self, model: str) -> Agent:
        """May import an SDK: call it off the loop. Raises AuthFailed when there is no key."""
        ...

    def reminders(self, transcript: Transcript) -> Sequence[Message]:
        """Hidden notes that go with a new prompt: the time, project instructions not yet said."""
        ...

    def context(self, transcript: Transcript, model: str) -> Sequence[ContextPart]: ...


def title_of(prompt: str) -> str:
    """A session's title from its first prompt: the first line with words, at most 60 characters."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "Untitled")
    line = " ".join(line.lstrip("#>-* ").split()) or "Untitled"
    if len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"
