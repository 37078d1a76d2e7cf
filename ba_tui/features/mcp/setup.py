"""The MCP servers of a session as they are configured, and the logins to them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ba_tui.context.own_commands import ServerPrompts
from ba_tui.context.session_data import MentionedData
from ba_tui.core.events import Notice
from ba_tui.core.ports.mcp import McpServers, ServerConfig
from ba_tui.core.ports.rooms import CheckResult
from ba_tui.core.text.wording import sentence
from ba_tui.feature import CheckContext, OpenFeature, SessionContext, Stage, for_every_agent
from ba_tui.features.mcp.client.approved import KnownServers
from ba_tui.features.mcp.client.logins import Logins
from ba_tui.features.mcp.session import FOLDER, McpScope, McpSession, McpSetup
from ba_tui.resources import Places, project_root
from ba_tui.settings.mcp.checks import server_checks
from ba_tui.settings.mcp.choices import McpChoices
from ba_tui.settings.mcp.found import ServerPlaces, found_servers
from ba_tui.settings.mcp.tokens import TokenStore

if TYPE_CHECKING:
    import httpx2

SECONDS = 30.0


def open_mcp(context: SessionContext) -> OpenFeature:
    """Offer McpServers to faces and ServerPrompts to commands; resources of servers join MentionedData."""
    scope = context.scope
    session = McpSession(
        mcp_setup(context),
        McpScope(
            context.where,
            context.permissions,
            context.runner,
            context.shell.inherited(),
            scope.modalities,
            context.attended,
        ),
    )
    data = context.port(MentionedData)
    resources = session.resources(data) if data else None
    return OpenFeature(
        sources=session.sources,
        interceptors=((Stage.CONNECT, for_every_agent(session)),) if session.sources else (),
        ports={
            McpServers: session.servers,
            ServerPrompts: session.prompts,
            **({MentionedData: resources} if resources else {}),
        },
        mentions={"resource": resources.suggestions} if resources else {},
        notices=tuple(
            Notice(f"MCP servers: {sentence(text)}", "warning", "See ba mcp list.") for text in session.problems
        ),
        close=session.close,
    )


def mcp_setup(context: SessionContext) -> McpSetup:
    """Return the servers that are configured for a session. Reads files."""
    where, root = context.where, project_root(context.scope.cwd)
    at = ServerPlaces(where, root, context.trusted is not None, context.key_variables)
    found, choices = found_servers(context.loaded, at), McpChoices(where, root)

    def keep(name: str, tool: str, on: bool) -> None:
        choices.switch(name, tool, on=on)

    return McpSetup(found.configs, found.problems, logins(where), keep, context.scope.ask)


def mcp_checks(context: CheckContext) -> Iterable[CheckResult]:
    """Check the configured servers, and what they offered to the last connection, for the doctor."""
    known = KnownServers(context.where.state / FOLDER, Path(os.path.realpath(context.root)))
    return server_checks(
        context.loaded, context.where, context.root, context.trusts, lambda config: known.read(config).left_out
    )


def logins(where: Places) -> Logins:
    """Return the logins of the person; what they take is loaded when one is made."""
    return Logins(TokenStore(where), _client)


async def _client(_: ServerConfig, auth: httpx2.Auth | None) -> httpx2.AsyncClient:
    """A client with the certificates of the system and the proxies of the environment."""
    import httpx2  # noqa: PLC0415 - the package mcp loads it anyway

    from ba_tui.tools.web.client import system_tls  # noqa: PLC0415

    return httpx2.AsyncClient(auth=auth, verify=await asyncio.to_thread(system_tls), timeout=SECONDS)
