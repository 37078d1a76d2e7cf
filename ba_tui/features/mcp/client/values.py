"""What connections are made with, and what comes of calls: values between the rooms."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ba_tui.core.ports.mcp import RemotePrompt, RemoteResource, ServerConfig
from ba_tui.core.tool import Call
from ba_tui.core.values import frozen
from ba_tui.features.mcp.client.authority import Authority
from ba_tui.processes.supervised import Program

if TYPE_CHECKING:
    import httpx2

PartKind: TypeAlias = Literal["text", "image", "audio", "resource", "link"]
Sample: TypeAlias = Callable[[str, str, Call], Awaitable[tuple[str, str]]]
"""Gives the answer of a model to a system prompt and a text, and the name of the model. Raises BaError."""
CurrentCall: TypeAlias = Callable[[], Call | None]
"""The call of a server that runs, which can ask the person."""


@frozen
class RemotePart:
    """A part of a result. ``data`` is base64; ``text`` and ``data`` are never both there."""

    kind: PartKind
    text: str = ""
    data: str = ""
    media_type: str = ""
    uri: str = ""
    speaker: str = ""
    """In a prompt: whose words it is."""


@frozen
class RemoteResult:
    """``structured``: the result as JSON where the server gave it so, else None."""

    parts: tuple[RemotePart, ...]
    structured: Any = None
    is_error: bool = False


@frozen
class Offered:
    """What a server offers, as it said; ``tools`` as plain JSON. ``notes``: a line for each listing that failed.
    ``left_out``: one for each item that can't be read."""

    tools: tuple[Mapping[str, Any], ...] = ()
    resources: tuple[RemoteResource, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


@frozen
class ServerMeans:
    """What servers are started and asked with; values from the floors above.

    ``program`` makes what is started for a stdio server, and raises McpError; ``http`` the way out for requests, with
    proxies and certificates. ``store``: the folder that keeps approved definitions; None: nothing is kept. ``keep``
    saves a switch (server, tool, on) for later sessions; it blocks.
    """

    program: Callable[[ServerConfig, CurrentCall], Awaitable[Program]]
    http: Callable[[ServerConfig], Awaitable[httpx2.AsyncBaseTransport]]
    roots: Callable[[], Sequence[Path]] = tuple[Path]
    authority: Authority | None = None
    sample: Sample | None = None
    store: Path | None = None
    keep: Callable[[str, str, bool], None] | None = None
