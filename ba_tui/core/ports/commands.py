"""The person's own commands as faces see them: a line for each. A protocol and a value only.

What a command stands for is found out when it is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from ba_tui.core.values import frozen


@frozen
class CommandLine:
    """``name`` stands behind the slash, and ``hint`` says what may follow it. ``path`` is the file as people know it;
    ``trouble`` says why it can't be used, with file and line."""

    name: str
    source: Literal["bundled", "user", "project", "server"] = "user"
    description: str = ""
    hint: str = ""
    path: str = ""
    trouble: str = ""


class OwnCommands(Protocol):
    """The person's own commands. All of it reads files: call it off the loop."""

    def lines(self) -> Sequence[CommandLine]:
        """By name; of two with one name only the one that counts."""
        ...

    def check(self, text: str) -> None:
        """Raises UsageError when ``text`` calls a command, or a skill, that there is none of or that is broken."""
        ...
