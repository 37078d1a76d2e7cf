"""The files that instruct the model, as faces see them. A value and a protocol only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from ba_tui.core.values import frozen


@frozen
class ContextFile:
    """A context file as lists show it: ``shown`` is its name for people, ``tokens`` the estimate of what the model
    reads of it. ``state``: ``read``, ``off`` with the reason in ``note``, or ``missing`` where one could be written.

    ``note`` may also say what of it was left out; ``details`` are more lines, such as its imports.
    """

    path: Path
    shown: str
    owner: Literal["user", "project"]
    state: Literal["read", "off", "missing"] = "read"
    tokens: int = 0
    note: str = ""
    details: tuple[str, ...] = ()


class ContextFiles(Protocol):
    """The context files of a conversation."""

    def files(self) -> Sequence[ContextFile]:
        """The person's first, then the project's; those that could be written come last. Reads files: call it off the
        loop."""
        ...
