"""Agents as faces see them: a line for each file that describes one. A protocol and a value only.

Where the files are found and what they mean is the business of the room team; who runs an agent, of delegation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from ba_tui.core.values import frozen

AgentState: TypeAlias = Literal["ready", "partly", "broken", "off", "shadowed"]
"""``partly``: some of what its file asks for is not supported; ``off``: its file switches it off; ``shadowed``: another
of that name counts."""


@frozen
class AgentLine:
    """An agent as lists show it. ``source`` is ``bundled``, ``user`` or ``project``, ``path`` its file.

    ``model``: empty for that of the session. ``tools``: None for all of them but ``without``; ``limit`` says what else
    bounds it. ``unsupported`` and ``ignored``: what of its file is not done here, and fields that nobody knows.
    ``trouble`` says why it can't be used.
    """

    name: str
    state: AgentState
    source: str
    path: str
    description: str = ""
    model: str = ""
    tools: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    limit: str = ""
    max_loops: int = 0
    color: str = ""
    unsupported: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    trouble: str = ""


class Agents(Protocol):
    """Every agent that a file describes."""

    def lines(self) -> Sequence[AgentLine]:
        """By name, those that count first. Reads files: call it off the loop."""
        ...

    def search(self, words: str) -> Sequence[AgentLine]:
        """Those that can be used and share words with ``words``, the best first. Reads files, as ``lines``."""
        ...

    def prompt(self, path: str) -> str:
        """The instructions in the file of a line, as Markdown. Reads a file. Raises UsageError."""
        ...
