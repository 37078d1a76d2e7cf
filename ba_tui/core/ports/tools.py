"""The tools of a conversation: which there are, which it uses, how they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol, TypeAlias

from ba_tui.core.values import frozen

ToolState: TypeAlias = Literal["core", "on", "off", "deferred", "broken", "lacking"]
"""``off``: found but not shown to the model; ``deferred``: shown once it is searched for; ``lacking``: what it needs is
not there."""


@frozen
class ToolFigures:
    """How a tool did in this conversation; ``average`` and ``p95`` in seconds."""

    calls: int = 0
    failures: int = 0
    retries: int = 0
    cached: int = 0
    average: float = 0.0
    p95: float = 0.0


@frozen
class ToolLine:
    """A tool as lists show it. ``source`` says where it comes from (``built in``, a path, an entry point);
    ``trouble`` why it is broken, with file and line, or what it lacks.

    ``breaker``: ``opened`` while it is left alone after failures, for ``rest`` seconds. ``slow``: it timed out often.
    """

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
    """Every tool that was found, and which of them this conversation uses."""

    def lines(self) -> Sequence[ToolLine]:
        """In stable order. May read files: call it off the loop."""
        ...

    def switch(self, name: str, *, on: bool) -> None:
        """From the next turn on. Raises UsageError for what can't be: a core tool is off, a broken one on."""
        ...
