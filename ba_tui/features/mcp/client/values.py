"""Values that connections are made with, and values that they return."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ba_tui.core.ports.mcp import RemotePrompt, RemoteResource, ServerConfig
from ba_tui.core.tool import Call
from ba_tui.core.values import frozen
from ba_tui.processes.values import Program

if TYPE_CHECKING:
    import httpx2

    from ba_tui.features.mcp.client.logins import Logins


PartKind: TypeAlias = Literal["text", "image", "audio", "resource", "link"]
Sample: TypeAlias = Callable[[str, str, Call], Awaitable[tuple[str, str]]]
"""Sends a system prompt and a text to a model; returns the answer and the model's name. Raises BaError."""
CurrentCall: TypeAlias = Callable[[], Call | None]
"""Returns the server's running call, through which the user can be asked."""


@frozen
class RemotePart:
    """A part of a result. ``data`` is base64; only one of ``text`` and ``data`` is set."""

    kind: PartKind
    text: str = ""
    data: str = ""
    media_type: str = ""
    uri: str = ""
    speaker: str = ""
    """In a prompt: the speaker."""


@frozen
class RemoteResult:
    """``structured``: the result as JSON if the server sent it, else None."""

    parts: tuple[RemotePart, ...]
    structured: Any = None
    is_error: bool = False


@frozen
class ServerOffer:
    """A server's listing. ``tools`` as plain JSON. ``notes``: a line for each listing that failed. ``left_out``: one
    for each unreadable item.
    """

    tools: tuple[Mapping[str, Any], ...] = ()
    resources: tuple[RemoteResource, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@frozen
class ServerMeans:
    """Callbacks that servers are started and queried with.

    ``program`` returns the command of a stdio server, and raises McpError; ``http`` returns the HTTP client, with
    proxies and certificates. ``store``: the folder of approved definitions; None: nothing is stored. ``keep`` saves a
    switch (server, tool, on) for later sessions; it blocks.
    """

    program: Callable[[ServerConfig, CurrentCall], Awaitable[Program]]
    http: Callable[[ServerConfig], Awaitable[httpx2.AsyncBaseTransport]]
    roots: Callable[[], Sequence[Path]] = tuple[Path]
    logins: Logins | None = None
    sample: Sample | None = None
    store: Path | None = None
    keep: Callable[[str, str, bool], None] | None = None
