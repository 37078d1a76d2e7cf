"""A configured MCP server: as it is written, and as the value that a connection is made from."""

from __future__ import annotations

import shlex
from urllib.parse import urlsplit, urlunsplit

from ba_tui.core.ports.mcp import ServerConfig, ServerScope
from ba_tui.core.values import frozen
from ba_tui.settings.mcp.expansion import REFERENCE, Unresolved, Values, expanded
from ba_tui.settings.sections.mcp import OAuthSettings, ServerSettings

SCOPES: dict[ServerScope, str] = {
    "flag": "--mcp-config",
    "local": "you, in this project",
    "user": "you, in every project",
    "project": "this project",
}
"""Whose servers they are, the strongest first: of two with one name the first is used."""


@frozen
class ConfiguredServer:
    """``written``: its settings, every ``${…}`` as it stands in the file. ``hides``: the files of servers with the same
    name that are not used because of this one. ``off``: why it is not used; empty when it is."""

    config: ServerConfig
    written: ServerSettings
    hides: tuple[str, ...] = ()
    off: str = ""

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def target(self) -> str:
        """Its command line or address for people, with no value of a variable in it."""
        return target(self.written)


@frozen
class Origin:
    """Where a server is written. ``trusted``: False for a project that the person does not trust."""

    scope: ServerScope
    source: str
    trusted: bool = True


def configured(name: str, written: ServerSettings, origin: Origin, values: Values) -> ConfiguredServer:
    """The server ``name``. What its variables lack stands in ``trouble`` of its config."""
    trouble, used = "", written
    try:
        # An untrusted project never starts one, so none of the person's variables is looked up for it.
        used = expanded(written, values) if origin.trusted else written
    except Unresolved as error:
        trouble = str(error)
    config = ServerConfig(
        name,
        used.transport,
        command=(used.command, *used.args) if used.command else (),
        environment=used.env,
        folder=str(used.cwd) if used.cwd else "",
        sandboxed=used.sandbox,
        network=used.network,
        url=used.url or "",
        headers=used.headers,
        oauth=_oauth(used.oauth),
        scope=origin.scope,
        source=origin.source,
        enabled=used.enabled,
        trusted=origin.trusted,
        tools_off=frozenset(used.disabled_tools),
        trouble=trouble,
        sampling=used.sampling,
        connect_timeout=used.startup_timeout,
        call_timeout=used.timeout,
        written=target(written),
    )
    return ConfiguredServer(config, written, off="" if used.enabled else f"enabled is false in {origin.source}")


def _oauth(given: OAuthSettings) -> dict[str, str]:
    named = {
        "client_id": given.client_id,
        "client_secret": given.client_secret,
        "scope": " ".join(given.scopes),
        "redirect_port": str(given.callback_port or ""),
    }
    return {name: value for name, value in named.items() if value}


def target(settings: ServerSettings) -> str:
    """The command line or the address in ``settings`` as one text, without the secrets of an address."""
    if settings.command:
        return " ".join([settings.command, *(shlex.quote(each) for each in settings.args)])
    return plain_address(settings.url or "")


def given_variables(settings: ServerSettings) -> tuple[str, ...]:
    """The variables whose values its environment or headers take, as they are named in the file."""
    texts = [*settings.env.values(), *settings.headers.values(), settings.oauth.client_secret, settings.url or ""]
    return tuple(
        dict.fromkeys(f"${match['name']}" for text in texts for match in REFERENCE.finditer(text) if match["name"])
    )


def plain_address(url: str) -> str:
    """``url`` without the password and the query in it, where keys stand."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that can't be read"
    query = "…" if parts.query else ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))
