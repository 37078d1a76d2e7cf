"""Hooks as faces see them: a line for each, and how its last run went. Values and a protocol only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from ba_tui.core.values import frozen


@frozen
class HookRun:
    """The last run of a hook: when it ended, in seconds since the epoch, how long it took, and what came of it in a few
    words. ``count``: how often it ran in this session."""

    at: float
    seconds: float
    outcome: str
    failed: bool = False
    count: int = 1


@frozen
class HookListing:
    """A hook as lists show it. ``matcher``: the tools that it is for, empty for all; ``source`` the file and line.

    ``owner``: whose settings it is in. ``last``: its last run in this session. ``off``: why it does not run.
    """

    event: str
    text: str
    matcher: str = ""
    source: str = ""
    owner: Literal["user", "project"] = "user"
    seconds: float = 0.0
    kind: Literal["command", "prompt"] = "command"
    last: HookRun | None = None
    off: str = ""


class HookList(Protocol):
    """The hooks of a conversation."""

    def lines(self) -> Sequence[HookListing]:
        """By event, in the order in which they run. Reads files: call it off the loop."""
        ...

    def problems(self) -> Sequence[str]:
        """A sentence for each hook or file of hooks that does not count, and why."""
        ...
