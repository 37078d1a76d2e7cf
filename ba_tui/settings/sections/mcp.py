"""MCP servers: how each is started or reached, and what of it is used."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from annotated_types import Ge, Le

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.settings.fields import FieldCheck, Seconds, Whole, about, web_address
from ba_tui.settings.sections.group import SettingsGroup

Transport: TypeAlias = Literal["stdio", "http", "sse"]
SERVER_NAME = regex(r"[A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*_?")
LONGEST_NAME = 64


def server_name(name: str) -> str:
    """Return ``name``. Raises ValueError when the names of tools could not hold it."""
    if len(name) > LONGEST_NAME or not SERVER_NAME.fullmatch(name):
        raise ValueError("expected a name of letters, digits, - and single _, such as github")
    return name


def server_url(url: str) -> str:
    """Return ``url``. Raises ValueError for one that is no web address, unless a variable may make it one."""
    return url if "${" in url else web_address(url)


@frozen
class OAuthSettings(SettingsGroup):
    """How to sign in to a server that asks for OAuth; by default ba registers itself there."""

    client_id: str = field(default="", metadata=about("The id of an app that is registered with the server."))
    client_secret: str = field(default="", metadata=about("Its secret, as ${VARIABLE} or ${keyring:NAME}."), repr=False)
    scopes: tuple[str, ...] = field(default=(), metadata=about("Scopes to ask for; by default what the server names."))
    callback_port: Annotated[Whole, Ge(1), Le(65_535)] | None = field(
        default=None, metadata=about("Port on 127.0.0.1 that the browser comes back to; by default any free one.")
    )


@frozen
class ServerSettings(SettingsGroup):
    """One MCP server: a command to start, or an address."""

    type: Transport | None = field(
        default=None, metadata=about("stdio (a command), http or sse; by default stdio with command, http with url.")
    )
    command: str = field(default="", metadata=about("The program to start."))
    args: tuple[str, ...] = field(default=(), metadata=about("Its arguments."))
    env: dict[str, str] = field(
        default_factory=dict[str, str],
        metadata=about("Its environment variables, beside those that commands get; ${NAME} and ${keyring:NAME} work."),
        repr=False,
    )
    cwd: Path | None = field(default=None, metadata=about("The folder to start it in; by default the project."))
    url: Annotated[str, FieldCheck(server_url)] | None = field(
        default=None, metadata=about("The address of a server that runs already.")
    )
    headers: dict[str, str] = field(
        default_factory=dict[str, str],
        metadata=about("HTTP headers of each request to it, such as Authorization: Bearer ${TOKEN}."),
        repr=False,
    )
    startup_timeout: Seconds = field(default=30, metadata=about("Timeout for connecting, in seconds."))
    timeout: Seconds = field(default=120, metadata=about("Timeout for a call of one of its tools, in seconds."))
    enabled: bool = field(default=True, metadata=about("Whether the server is used."))
    disabled_tools: tuple[str, ...] = field(default=(), metadata=about("Tools of it that are not used."))
    sandbox: bool = field(default=True, metadata=about("Whether its program runs in the sandbox, as commands do."))
    network: bool = field(default=True, metadata=about("Whether its program reaches the network from the sandbox."))
    sampling: bool = field(
        default=False, metadata=about("Whether it may ask your model; each request still asks you first.")
    )
    oauth: OAuthSettings = field(default=OAuthSettings(), metadata=about("How to sign in, where it asks for OAuth."))

    def __post_init__(self) -> None:
        if bool(self.command.strip()) == bool(self.url):
            raise ValueError("expected either a command or a url")
        if self.type is not None and (self.type == "stdio") != bool(self.command):
            raise ValueError(f"type {self.type} goes with {'a command' if self.type == 'stdio' else 'a url'}")

    @property
    def transport(self) -> Transport:
        """How the server is talked to."""
        return self.type or ("stdio" if self.command else "http")


@frozen
class McpSettings(SettingsGroup):
    """MCP servers, and where else ba looks for them."""

    servers: dict[Annotated[str, FieldCheck(server_name)], ServerSettings] = field(
        default_factory=dict[str, ServerSettings], metadata=about("Your MCP servers, by name (guide: mcp).")
    )
    claude: bool = field(
        default=True, metadata=about("Whether the servers that Claude Code has in ~/.claude.json are used too.")
    )
    config: tuple[str, ...] = field(
        default=(), metadata=about("More files with servers, written as .mcp.json is, or such JSON itself.")
    )
    strict: bool = field(default=False, metadata=about("Whether only the servers in mcp.config are used."))
