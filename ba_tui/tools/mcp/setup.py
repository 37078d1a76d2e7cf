"""The MCP servers of a session as they are configured, and the logins to them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.core.ports.mcp import ServerConfig
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.protocols.mcp.approved import KnownServers
from ba_tui.protocols.mcp.logins import Logins
from ba_tui.resources import Places
from ba_tui.settings import Loaded
from ba_tui.settings.mcp.checks import server_checks
from ba_tui.settings.mcp.choices import McpChoices
from ba_tui.settings.mcp.found import ServerPlaces, found_servers
from ba_tui.settings.mcp.tokens import TokenStore
from ba_tui.tools.mcp.session_room import FOLDER, AskModel, McpSetup

if TYPE_CHECKING:
    import httpx2

SECONDS = 30.0


def mcp_setup(loaded: Loaded, at: ServerPlaces, ask: AskModel) -> McpSetup:
    """Return the servers that count in a project. Reads files; ``ask`` is a model that they may ask."""
    found, choices = found_servers(loaded, at), McpChoices(at.where, at.root)

    def keep(name: str, tool: str, on: bool) -> None:
        choices.switch(name, tool, on=on)

    return McpSetup(found.configs, found.problems, logins(at.where), keep, ask)


def mcp_checks(loaded: Loaded, where: Places, root: Path, trusted: Callable[[Path], bool]) -> Iterable[CheckResult]:
    """Check the configured servers, and what they offered to the last connection, for the doctor."""
    known = KnownServers(where.state / FOLDER, Path(os.path.realpath(root)))
    return server_checks(loaded, where, root, trusted, lambda config: known.read(config).left_out)


def logins(where: Places) -> Logins:
    """Return the logins of the person; what they take is loaded when one is made."""
    return Logins(TokenStore(where), _client)


async def _client(_: ServerConfig, auth: httpx2.Auth | None) -> httpx2.AsyncClient:
    """A client with the certificates of the system and the proxies of the environment."""
    import httpx2  # noqa: PLC0415 - the package mcp loads it anyway

    from ba_tui.tools.web.client import system_tls  # noqa: PLC0415

    return httpx2.AsyncClient(auth=auth, verify=await asyncio.to_thread(system_tls), timeout=SECONDS)
