"""Which folders a person trusts, and what trusting one vouches for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

from ba_tui.core.results import Diff
from ba_tui.core.values import frozen

ASKS_AGAIN = "/trust asks about each again."
"""What a notice says to do about settings of a project that the user has not allowed."""


@frozen
class TrustedItems:
    """What of one ``kind`` (tools, hooks, MCP servers …) a folder would bring with it."""

    kind: str
    names: tuple[str, ...]


@frozen
class AskedSetting:
    """A value in a project's settings that needs the user's yes besides trust: the dotted ``setting``, its ``value``,
    what the project ``wants`` ("to work in /data too"), and where the value is written."""

    setting: str
    value: str
    wants: str
    source: str
    allowed: bool = False

    @property
    def question(self) -> str:
        """The question that lets the project have the value."""
        return f"This project asks {self.wants}. Allow?"


@frozen
class ToolWrite:
    """A file that a tool wrote and the user has not accepted: what wrote it, and when, empty where nobody knows.
    ``runs``: it runs something or decides what runs; else it instructs models. ``digest`` is of what is there now."""

    path: Path
    name: str
    by: str
    at: str = ""
    runs: bool = True
    digest: str = ""

    @property
    def line(self) -> str:
        """The file and what wrote it, for people."""
        return f"{self.name}: written by {self.by}{f', {self.at}' if self.at else ''}"


@frozen
class TrustState:
    """How a folder stands with the person, as it was when looked at. ``unknown``: nobody was asked yet; ``changed``:
    it was trusted, and what it runs is not what it was. ``written``: files that tools wrote and the user has not
    accepted; those that instruct models are not read, also where the folder is trusted.

    ``links`` with their targets. ``files``: what trusting vouches for, whole, or since then. ``trouble``: why it can't.
    ``refused``: lines of its settings that will not count once it is trusted, each with its file and line. In a folder
    that is trusted they are warnings of its settings.
    """

    root: Path
    state: Literal["trusted", "unknown", "changed"]
    fingerprint: str = ""
    holds: tuple[TrustedItems, ...] = ()
    files: tuple[Diff, ...] = ()
    gone: tuple[str, ...] = ()
    warning: str = ""
    trouble: str = ""
    links: tuple[str, ...] = ()
    written: tuple[ToolWrite, ...] = ()
    refused: tuple[str, ...] = ()


class Trusting(Protocol):
    """Which folders a person trusts. All of it reads or writes files: call it off the loop."""

    def look(self, root: Path) -> TrustState:
        """Never raises: what is wrong is in ``trouble``."""
        ...

    def grant(self, seen: TrustState) -> None:
        """Trust the folder as the user saw it, with what tools wrote. Raises UsageError when it can't be trusted,
        StorageError."""
        ...

    def revoke(self, root: Path) -> bool:
        """False when it was not trusted. Raises StorageError."""
        ...

    def asked(self, root: Path) -> Sequence[AskedSetting]:
        """What the settings of the project ask for, allowed or not. Never raises."""
        ...

    def allow(self, root: Path, asked: AskedSetting) -> None:
        """Let the project have this value. Raises StorageError."""
        ...
