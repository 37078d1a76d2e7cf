"""Port of MCP servers: configuration, connection state, and what each server offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.values import frozen

TransportKind: TypeAlias = Literal["stdio", "http", "sse"]
ServerScope: TypeAlias = Literal["user", "project", "local", "flag", "plugin"]
ServerPhase: TypeAlias = Literal["off", "untrusted", "idle", "connecting", "ready", "waiting", "login", "failed"]
"""``idle``: the first call connects; ``waiting``: a restart is scheduled; ``login``: the user has to log in;
``untrusted``: it belongs to a project that the user does not trust."""
ToolStanding: TypeAlias = Literal["on", "off", "changed", "refused"]
"""``changed``: its definition differs from the approved one, so the next call asks; ``refused``: it cannot be used."""


class McpError(BaError):
    """A server is unreachable, or a request to it failed. The message is one line."""

    kind = "transient_error"


class LoginNeeded(McpError):
    """The server requires the user to log in."""

    kind = "permission_denied"


class ToolChanged(McpError):
    """A tool differs from the approved definition, so it was not called."""

    kind = "permission_denied"

    def __init__(self, server: str, tool: str) -> None:
        text = f"The MCP server {server} changed its tool {tool} after you approved it, so it was not called."
        super().__init__(text, "Call it again: the user is asked first, and sees what changed.")


@frozen
class ServerConfig:
    """Configuration of a server, with every ``${NAME}`` expanded. Times in seconds."""

    name: str
    """The configured name; unique. Tools are called ``mcp__NAME__TOOL``, with ``_`` for characters that names may not
    contain."""
    transport: TransportKind = "stdio"
    command: tuple[str, ...] = ()
    """stdio: the program and its arguments."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """stdio: extra variables besides the few that every server gets (PATH, HOME, LANG …)."""
    folder: str = ""
    """stdio: the working directory; empty for the project root."""
    sandboxed: bool = True
    """stdio: confined as commands are. False only if the user chose so for this server."""
    network: bool = False
    """stdio, sandboxed: whether it may reach any host; otherwise hosts are allowed one by one, as for commands."""
    url: str = ""
    """http, sse: the endpoint."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """http, sse: sent with every request. Never shown, because they may contain secrets."""
    oauth: Mapping[str, str] = field(default_factory=dict[str, str])
    """http, sse: the configured ``client_id``, ``client_secret``, ``scope`` and ``redirect_port``."""
    scope: ServerScope = "user"
    source: str = ""
    """Display name of the file that configures it."""
    enabled: bool = True
    trusted: bool = True
    """False for a server of an untrusted project: it is listed but never started."""
    tools_off: frozenset[str] = frozenset()
    """Names, as the server uses them, of disabled tools."""
    trouble: str = ""
    """Why it cannot be started, in one line, such as an unset variable."""
    sampling: bool = False
    """Whether it may ask a model through ba; the user still confirms each request."""
    connect_timeout: float = 30.0
    call_timeout: float = 120.0

    written: str = ""
    """The command line, or the address without password and query, before ``${NAME}`` was expanded."""

    @property
    def address(self) -> str:
        """Return the command line or address in one line, without values of variables."""
        return self.written or (" ".join(self.command) if self.transport == "stdio" else self.url.partition("?")[0])


@frozen
class RemoteTool:
    """A tool of a server. ``name`` is the server's own name, ``full_name`` the one that models call. Hints are claims
    of the server: they are shown, and allow nothing. ``trouble``: why it is refused, or how it changed."""

    name: str
    full_name: str
    title: str = ""
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict[str, Any])
    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True
    standing: ToolStanding = "on"
    trouble: str = ""


@frozen
class RemoteResource:
    """A resource of a server; prompts mention it as ``@server:uri``. ``template``: ``uri`` has ``{parts}`` to fill
    in."""

    uri: str
    name: str = ""
    description: str = ""
    media_type: str = ""
    size: int | None = None
    template: bool = False


@frozen
class PromptArgument:
    name: str
    description: str = ""
    required: bool = False


@frozen
class RemotePrompt:
    """A prompt of a server; the user sends it as ``/server:name``."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


@frozen
class ServerState:
    """State of one server. ``trouble`` says in one line why it cannot be used, ``fix`` how to solve it."""

    config: ServerConfig
    phase: ServerPhase = "idle"
    trouble: str = ""
    fix: str = ""
    title: str = ""
    """Name and version as reported by the server."""
    protocol: str = ""
    """The negotiated protocol version, such as ``2026-07-28``."""
    instructions: str = ""
    """Usage instructions of the server. Treated as data, with a size limit."""
    tools: tuple[RemoteTool, ...] = ()
    """Tools of the newest connection, or of an earlier one while ``cached``."""
    cached: bool = False
    resources: tuple[RemoteResource, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    notes: tuple[str, ...] = ()
    """One line for each item left out or changed: invalid schemas, hidden characters, duplicate names."""
    restarts: int = 0
    left_out: tuple[str, ...] = ()
    """Those ``notes`` about a tool, prompt or resource that ba cannot use."""

    @property
    def name(self) -> str:
        return self.config.name


class McpServers(Protocol):
    """The servers of a session. For the event loop; no method blocks. Unknown names raise UsageError with the nearest
    name; failures of a server raise McpError with one line."""

    def listed(self) -> Sequence[ServerState]:
        """Return all configured servers in order, including disabled and untrusted ones."""
        ...

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """Call ``changed`` on the event loop after each state change. Returns a function that stops it."""
        ...

    def begin(self) -> None:
        """Start connecting in the background to the servers whose tools are unknown."""
        ...

    async def connect(self, name: str) -> ServerState:
        """Connect if necessary, and wait for the result. Raises McpError, LoginNeeded."""
        ...

    async def reconnect(self, name: str) -> ServerState:
        """Replace the connection and reset the failure count. Raises McpError, LoginNeeded."""
        ...

    async def enable(self, name: str, tool: str = "", *, on: bool) -> None:
        """Enable or disable a server, or one ``tool`` of it (by the server's name for it). Raises StorageError if the
        choice could not be saved and applies to this session only."""
        ...

    async def approve(self, name: str, tool: str) -> None:
        """Accept the changed definition of a tool."""
        ...

    def difference(self, name: str, tool: str) -> tuple[str, str]:
        """Return the approved and the current definition of a tool as text; both empty if unchanged."""
        ...

    def logs(self, name: str) -> Sequence[str]:
        """Return the newest lines that the server printed or logged, with ba's remarks; safe to paint."""
        ...

    async def login(self, name: str, show: Callable[[str], None]) -> None:
        """Log in by OAuth and connect. ``show`` receives the address to open. Raises McpError."""
        ...

    async def logout(self, name: str) -> None:
        """Delete the tokens of a server and close its connection."""
        ...
