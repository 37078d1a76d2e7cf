"""A configured MCP server: its settings as written, and its config for a connection with all references resolved.

References are ``${NAME}``, ``${NAME:-default}`` and ``${keyring:NAME}``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from ba_tui.core.ports.mcp import ServerConfig, ServerScope
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.settings.fields import web_address
from ba_tui.settings.sections.tools import OAuthSettings, ServerSettings

REFERENCE = regex(r"\$\{(?:keyring:(?P<entry>[\w.-]+)|(?P<name>[A-Za-z_]\w*)(?::-(?P<default>[^}]*))?)\}")


@frozen
class Values:
    """Sources of values. ``withheld``: variables that the server must not receive; ``entry`` queries the keyring."""

    variables: Mapping[str, str]
    entry: Callable[[str], str] = lambda name: ""
    withheld: frozenset[str] = frozenset()


class MissingValue(ValueError):
    """A reference has no value; the text says which."""


def no_keyring(entry: str) -> str:
    """Raise MissingValue: for servers that the user did not configure."""
    raise MissingValue(f"a project's server can't read your keyring, as it would with ${{keyring:{entry}}}")


def expanded(settings: ServerSettings, values: Values) -> ServerSettings:
    """Return ``settings`` with the values of all references.

    Raises:
        MissingValue: a reference has no value, or the result can't be used.
    """

    def text(raw: str) -> str:
        return REFERENCE.sub(lambda match: _value(match["name"], match["entry"], match["default"], values), raw)

    url = text(settings.url) if settings.url else None
    if url is not None:
        try:
            web_address(url)
        except ValueError:
            raise MissingValue("its url is no address that begins with http:// or https://") from None
    headers = {name: text(value) for name, value in settings.headers.items()}
    for name, value in headers.items():
        if not name.isascii() or not value.isprintable() or not name.strip():
            raise MissingValue(f"its header {name!r} holds a character that headers can't have")
    oauth = replace(settings.oauth, client_secret=text(settings.oauth.client_secret))
    return replace(
        settings,
        command=text(settings.command),
        args=tuple(text(each) for each in settings.args),
        env={name: text(value) for name, value in settings.env.items()},
        cwd=Path(text(str(settings.cwd))) if settings.cwd else None,
        url=url,
        headers=headers,
        oauth=oauth,
    )


def _value(name: str | None, entry: str | None, default: str | None, values: Values) -> str:
    if entry:
        if found := values.entry(entry):
            return found
        raise MissingValue(f"the keyring has no entry {entry}; save it: keyring set ba {entry}")
    if name in values.withheld:
        raise MissingValue(f"a project's server may not have {name}, which is a key of yours for models")
    if found := values.variables.get(str(name), ""):
        return found
    if default is not None:
        return default
    if str(name) in values.variables:
        return ""
    raise MissingValue(f"the environment variable {name} is not set")


def is_reference(text: str) -> bool:
    """Return whether ``text`` consists of references, without text that could be a secret."""
    left = REFERENCE.sub("", text)
    return REFERENCE.search(text) is not None and not left.removeprefix("Bearer").strip() and ":-" not in text


SCOPES: dict[ServerScope, str] = {
    "flag": "--mcp-config",
    "local": "you, in this project",
    "user": "you, in every project",
    "project": "this project",
}
"""Scopes of servers, the strongest first: of two servers with one name the first is used."""


@frozen
class ConfiguredServer:
    """``written``: the settings with unresolved references. ``hides``: files with weaker servers of the same name.
    ``off``: why the server is not used; empty when it is."""

    config: ServerConfig
    written: ServerSettings
    hides: tuple[str, ...] = ()
    off: str = ""

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def target(self) -> str:
        """Return the command line or address for display, without values of variables."""
        return target(self.written)


@frozen
class Origin:
    """Where a server is configured. ``trusted``: False for an untrusted project."""

    scope: ServerScope
    source: str
    trusted: bool = True


def configured(name: str, written: ServerSettings, origin: Origin, values: Values) -> ConfiguredServer:
    """Return the server ``name``. Missing values of variables are reported in ``trouble`` of its config."""
    trouble, used = "", written
    try:
        # Servers of an untrusted project never start, so the user's variables are not read for them.
        used = expanded(written, values) if origin.trusted else written
    except MissingValue as error:
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
    """Return the command line or address in ``settings`` as one text, without the secrets of an address."""
    if settings.command:
        return " ".join([settings.command, *(shlex.quote(each) for each in settings.args)])
    return plain_address(settings.url or "")


def given_variables(settings: ServerSettings) -> tuple[str, ...]:
    """Return the variables that the server's environment or headers refer to."""
    texts = [*settings.env.values(), *settings.headers.values(), settings.oauth.client_secret, settings.url or ""]
    return tuple(
        dict.fromkeys(f"${match['name']}" for text in texts for match in REFERENCE.finditer(text) if match["name"])
    )


def plain_address(url: str) -> str:
    """Return ``url`` without password and query, which may contain keys."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that can't be read"
    query = "…" if parts.query else ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, query, ""))
