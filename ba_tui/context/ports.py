"""Interfaces that features and rooms of the same floor implement for prompts: files, data, server prompts, consents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

from ba_tui.context.mentions import MentionLines
from ba_tui.core.messages import Message
from ba_tui.core.ports.context import CommandLine
from ba_tui.core.results import ToolResult
from ba_tui.core.turn import Branch
from ba_tui.ingress import Owner

Speaker: TypeAlias = Owner | Literal["person"]
"""Who names something: the user, or a file with its owner."""


class AttachedFiles(Protocol):
    """Files that prompts mention, judged by rules and read by tools. ``kept``: the folder for copies from elsewhere."""

    kept: Path | None

    def resolve(self, text: str) -> Path:
        """Return the path behind all links. Raises BaError."""
        ...

    def shown(self, path: Path) -> str: ...

    def inside(self, path: Path) -> bool:
        """Whether ``path`` can be read as ``shown`` writes it."""
        ...

    def refused(self, text: str, by: Speaker) -> str:
        """Return why ``by`` may not have a path read; empty when allowed."""
        ...

    def secret(self, path: Path) -> bool:
        """Whether a file has secrets under another name. Blocks."""
        ...

    async def read(self, path: str, lines: MentionLines | None) -> ToolResult: ...

    async def listing(self, path: str) -> ToolResult: ...

    async def clean(self, name: str, result: ToolResult, branch: Branch) -> ToolResult:
        """Return a result without secrets, or with those that the user allows."""
        ...


class MentionedData(Protocol):
    """The datasets and results of a session."""

    async def names(self, text: str) -> bool:
        """Whether ``text`` names a table, or a column or cells of one. Starts nothing."""
        ...

    def remote(self, text: str) -> bool:
        """Whether ``text`` names a resource of a server, which is asked when it is read."""
        ...

    async def names_files(self, text: str) -> bool:
        """Whether ``text`` names data files by a pattern, or a sheet or table of one. Reads no file."""
        ...

    async def read(self, text: str) -> ToolResult:
        """Return the content of the table, column or cells. Raises BaError."""
        ...

    async def register(self, text: str) -> ToolResult:
        """Register data files and return the profiles of their tables. Raises BaError."""
        ...


class ServerPrompts(Protocol):
    """Prompts of MCP servers, called ``/server:name``."""

    def lines(self) -> Sequence[CommandLine]: ...

    def has(self, name: str) -> bool: ...

    async def text(self, name: str, arguments: str) -> str:
        """Return the text of the prompt. Raises BaError."""
        ...


class PromptHooks(Protocol):
    """The user's hooks on prompts and on compression."""

    async def admit(self, prompt: Message, branch: Branch) -> Sequence[Message]:
        """Return notes to send with ``prompt``. Raises PromptRefused when a hook blocks the prompt."""
        ...

    async def before_compress(self, trigger: str, focus: str = "") -> str | None:
        """Return why the conversation must not be compressed now, or None."""
        ...


class Confirmations(Protocol):
    """The tools that the user let a file use without asking, by its content."""

    def has(self, id: str, digest: str, tools: Iterable[str]) -> bool: ...

    def add(self, id: str, digest: str, tools: Sequence[str]) -> None:
        """Raises StorageError."""
        ...
