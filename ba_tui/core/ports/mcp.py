"""MCP servers as faces and tools see them: how each is configured, how its connection stands, what it offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, Protocol, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.values import frozen

TransportKind: TypeAlias = Literal["stdio", "http", "sse"]
ServerScope: TypeAlias = Literal["user", "project", "local", "flag", "plugin"]
ServerPhase: TypeAlias = Literal["off", "untrusted", "idle", "connecting", "ready", "waiting", "login", "failed"]
"""``idle``: not connected yet, the first call connects; ``waiting``: a restart is due; ``login``: the person has to log
in; ``untrusted``: it belongs to a project that the person does not trust."""
ToolStanding: TypeAlias = Literal["on", "off", "changed", "refused"]
"""``changed``: its definition differs from the approved one, so the next call asks; ``refused``: it can't be used."""


class McpError(BaError):
    """A server could not be reached, or a request to it failed. The text is one line for people."""

    kind = "transient_error"


class LoginNeeded(McpError):
    """The server wants the person to log in before it answers."""

    kind = "permission_denied"


class ToolChanged(McpError):
    """A tool is not what the person approved or was asked about, so it was not called."""

    kind = "permission_denied"

    def __init__(self, server: str, tool: str) -> None:
        text = f"The MCP server {server} changed its tool {tool} after you approved it, so it was not called."
        super().__init__(text, "Call it again: the person is asked first, and sees what changed.")


@frozen
class ServerConfig:
    """One configured server. Values are expanded: no ``${NAME}`` is left. Times in seconds."""

    name: str
    """As the person wrote it; unique. Tools are called ``mcp__NAME__TOOL``, with what a name may not hold as ``_``."""
    transport: TransportKind = "stdio"
    command: tuple[str, ...] = ()
    """stdio: the program and its arguments."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """stdio: variables it is given beside the few that every server gets (PATH, HOME, LANG …)."""
    folder: str = ""
    """stdio: where it starts; empty for the root of the project."""
    sandboxed: bool = True
    """stdio: confined as commands are. False only where the person said so for this server."""
    network: bool = False
    """stdio, sandboxed: whether it may reach any host; else hosts are allowed one by one, as for commands."""
    url: str = ""
    """http, sse: the endpoint."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """http, sse: sent with every request; may hold secrets, so they are never shown."""
    oauth: Mapping[str, str] = field(default_factory=dict[str, str])
    """http, sse: ``client_id``, ``client_secret``, ``scope``, ``redirect_port`` where they were configured."""
    scope: ServerScope = "user"
    source: str = ""
    """The file that names it, as people know it."""
    enabled: bool = True
    trusted: bool = True
    """False for a server of a project that is not trusted: it is listed, and never started."""
    tools_off: frozenset[str] = frozenset()
    """The server's own names of tools that are not to be used."""
    trouble: str = ""
    """Why it can't be started, in one line, such as a variable that is not set."""
    sampling: bool = False
    """Whether it may ask a model through ba; each request still asks the person."""
    connect_timeout: float = 30.0
    call_timeout: float = 120.0

    written: str = ""
    """The command line, or the address without its password and query, with every ``${NAME}`` as it stands."""

    @property
    def address(self) -> str:
        """What it is, in one line without the value of a variable."""
        return self.written or (" ".join(self.command) if self.transport == "stdio" else self.url.partition("?")[0])


@frozen
class RemoteTool:
    """A tool of a server. ``name`` is the server's own, ``full_name`` what models call. The hints are the server's
    word: they are shown, and allow nothing by themselves. ``trouble``: why it is refused, or how it changed."""

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
    """What a server lets be read; a prompt names it ``@server:uri``. ``template``: ``uri`` has ``{parts}`` to fill."""

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
    """A prompt that a server offers; the person sends it as ``/server:name``."""

    name: str
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


@frozen
class ServerState:
    """One server as it stands. ``trouble`` says in one line why it can't be used now, ``fix`` what to do about it."""

    config: ServerConfig
    phase: ServerPhase = "idle"
    trouble: str = ""
    fix: str = ""
    title: str = ""
    """Its own name and version, as it says."""
    protocol: str = ""
    """The version of the protocol that was agreed on, such as ``2026-07-28``."""
    instructions: str = ""
    """What the server says on its use. Data, and bounded."""
    tools: tuple[RemoteTool, ...] = ()
    """From the newest connection, or remembered from an earlier one while ``cached``."""
    cached: bool = False
    resources: tuple[RemoteResource, ...] = ()
    prompts: tuple[RemotePrompt, ...] = ()
    notes: tuple[str, ...] = ()
    """One line for each thing that was left out or changed: invalid schemas, hidden characters, duplicate names."""
    restarts: int = 0
    retry_in: float = 0.0
    """Seconds until the restart that is due."""
    left_out: tuple[str, ...] = ()
    """The notes that name a tool, prompt or resource which the server offers and ba can't use."""

    @property
    def name(self) -> str:
        return self.config.name


class McpServers(Protocol):
    """The servers of a session. For the event loop; nothing here blocks. Unknown names raise UsageError with the
    nearest one; what a server does wrong raises McpError, in one line."""

    def listed(self) -> Sequence[ServerState]:
        """All configured servers in their order, also those that are off or not trusted."""
        ...

    def listen(self, changed: Callable[[], None]) -> Callable[[], object]:
        """Call ``changed`` on the event loop whenever a state changes; what comes back stops it."""
        ...

    def begin(self) -> None:
        """Connect, in the background, to the servers whose tools are not known yet. Returns at once."""
        ...

    async def connect(self, name: str) -> ServerState:
        """Connect unless it is, and wait for it. Raises McpError, LoginNeeded."""
        ...

    async def reconnect(self, name: str) -> ServerState:
        """Close the connection and make a new one; its failures are forgotten. Raises McpError, LoginNeeded."""
        ...

    async def enable(self, name: str, tool: str = "", *, on: bool) -> None:
        """Switch a server, or one ``tool`` of it (by the server's own name). Raises StorageError when the choice holds
        for this session only, as it could not be kept."""
        ...

    async def approve(self, name: str, tool: str) -> None:
        """Accept the changed definition of a tool."""
        ...

    def difference(self, name: str, tool: str) -> tuple[str, str]:
        """The approved definition of a changed tool and the present one, as text; both empty when it is unchanged."""
        ...

    def logs(self, name: str) -> Sequence[str]:
        """The newest lines that the server printed or logged, and what ba noticed; safe to paint."""
        ...

    async def login(self, name: str, show: Callable[[str], None]) -> None:
        """Log in by OAuth: ``show`` is given the address to open. Connects afterwards. Raises McpError."""
        ...

    async def logout(self, name: str) -> None:
        """Forget the tokens of a server, and close its connection."""
        ...
