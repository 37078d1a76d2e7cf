"""The Python session of a conversation as faces see it: variables, files, and a way to begin anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ba_tui.core.values import frozen


@frozen
class Variable:
    """``shape`` is its size, or its value where that is short."""

    name: str
    type: str
    shape: str = ""


@frozen
class PythonFile:
    """A file that Python code wrote, by its path in the folder for files, or its copy. ``size`` in bytes."""

    name: str
    size: int


@frozen
class PythonState:
    """``running``: a process holds variables. ``busy``: code runs, so they are not listed."""

    running: bool = False
    busy: bool = False
    variables: Sequence[Variable] = ()
    files: Sequence[PythonFile] = ()


class PythonSession(Protocol):
    """For the event loop. All may raise BaError, whose words are one line for people."""

    async def state(self) -> PythonState:
        """What there is. Starts nothing."""
        ...

    async def keep(self, name: str) -> str:
        """Keep the DataFrame in the variable ``name`` as a result of the session, and return its handle."""
        ...

    async def reset(self) -> bool:
        """End the process; its variables are gone. False when none ran."""
        ...

    async def save(self, name: str, path: str = "") -> PythonFile:
        """Copy the file ``name`` to a new file ``path`` of the session's folders, by default under its own name."""
        ...
