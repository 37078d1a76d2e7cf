"""Ports of tools: the tools of a conversation, its stored results, and its background shells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol, TypeAlias

from ba_tui.core.results import Artifact, Kind, LineMatch, TextPage
from ba_tui.core.values import frozen

ToolState: TypeAlias = Literal["core", "on", "off", "deferred", "broken", "lacking"]
"""``off``: hidden from the model; ``deferred``: shown after a search finds it; ``lacking``: its requirements are
missing."""


@frozen
class ToolFigures:
    """Statistics of a tool in this conversation; ``average`` and ``p95`` in seconds."""

    calls: int = 0
    failures: int = 0
    retries: int = 0
    cached: int = 0
    average: float = 0.0
    p95: float = 0.0


@frozen
class ToolLine:
    """A tool in a list. ``source`` is its origin (``built in``, a path, an entry point); ``trouble`` says why it is
    broken, with file and line, or what it requires. ``breaker``: ``opened`` while it is disabled after failures, for
    ``rest`` seconds. ``slow``: it often timed out."""

    name: str
    state: ToolState
    source: str = "built in"
    description: str = ""
    category: str = "other"
    tags: tuple[str, ...] = ()
    effect: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    trouble: str = ""
    figures: ToolFigures = field(default_factory=ToolFigures)
    breaker: Literal["closed", "opened", "half-opened"] = "closed"
    rest: float = 0.0
    slow: bool = False


class Tools(Protocol):
    """All tools, and the ones that this conversation uses."""

    def lines(self) -> Sequence[ToolLine]:
        """Return the tools in stable order. May read files: call it off the event loop."""
        ...

    def switch(self, name: str, *, on: bool) -> None:
        """Enable or disable a tool from the next turn on. Raises UsageError for disabling a core tool or enabling a
        broken one."""
        ...


class Reader(Protocol):
    """Reads stored results in parts. Methods may block on the disk: call them off the event loop.

    Raises:
        StorageError: the reference is unknown in this session, or its file has expired; the message says which.
    """

    def about(self, ref: str) -> Artifact:
        """Return what is known of a result; does not raise if it has expired."""
        ...

    def read(self, ref: str, offset: int = 0, limit: int = 65_536) -> TextPage:
        """Return at most ``limit`` bytes from byte ``offset`` on, in whole characters."""
        ...

    def lines(self, ref: str, start: int = 1, count: int = 200, limit: int = 65_536) -> TextPage:
        """Return at most ``count`` lines and ``limit`` bytes from line ``start`` on; longer lines are cut."""
        ...

    def search(self, ref: str, words: str, limit: int = 100, start: int = 1) -> Sequence[LineMatch]:
        """Return the first lines from ``start`` on that contain all of the words, ignoring case."""
        ...


@frozen
class Job:
    """A background shell in a list. Times are seconds since the epoch, ``size`` is the number of bytes printed.
    ``ref``: the stored output if large; ``failed``: it ended with a failure."""

    id: str
    command: str
    since: float
    until: float | None
    state: Literal["running", "ended", "killed"]
    exit_code: int | None
    size: int
    ref: str | None
    failed: bool = False


class Jobs(Protocol):
    """The background shells of a conversation. For the event loop; methods are fast."""

    def list(self) -> Sequence[Job]:
        """Return the shells, oldest first."""
        ...

    def output(self, id: str) -> str:
        """Return the retained output, with colours. Raises UsageError for an unknown shell."""
        ...

    async def end(self, id: str) -> None:
        """End a shell and all processes that it started, within seconds. Raises UsageError for an unknown shell."""
        ...

    def detach(self, call_id: str) -> bool:
        """Move the command that a call waits for to the background. Returns False if the call waits for none."""
        ...

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call ``listener`` when a shell starts or ends. Returns a function that stops it."""
        ...


class OutputSpill(Protocol):
    """A file for large output while it arrives. Each method may raise OSError or StorageError."""

    @property
    def largest(self) -> int: ...

    @property
    def left_out(self) -> int: ...

    def write(self, data: bytes) -> None: ...

    def finish(self, kind: Kind) -> Artifact: ...

    def drop(self) -> None: ...
