"""Open the MCP feature of a session. Without configured servers nothing of it is loaded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ba_tui.context.ports import MentionedData
from ba_tui.core.events import Notice
from ba_tui.core.text.wording import sentence
from ba_tui.core.values import Once, late
from ba_tui.feature import OpenFeature, SessionContext, Stage, for_every_agent
from ba_tui.resources import project_root
from ba_tui.settings.mcp_configured import ServerPlaces, found_servers

if TYPE_CHECKING:
    from ba_tui.features.mcp.setup import McpSession


def open_mcp(context: SessionContext) -> OpenFeature:
    """Offer McpServers to faces and ServerPrompts to commands; resources of servers are added to MentionedData."""
    root, trusted = project_root(context.scope.cwd), context.trusted is not None
    found = found_servers(context.loaded, ServerPlaces(context.where, root, trusted, context.key_variables))
    session: Once[McpSession] = Once(lambda: late("ba_tui.features.mcp.setup:mcp_session")(context, found))

    async def close() -> None:
        if session.made:
            await session.made.close()

    notices = tuple(Notice(f"MCP servers: {sentence(text)}", "warning", "See ba mcp list.") for text in found.problems)
    empty = OpenFeature(
        ports={"ba_tui.core.ports.mcp:McpServers": lambda: session().servers}, notices=notices, close=close
    )
    if not found.configs:
        return empty
    resources = session().resources(context.ports.offer(MentionedData))
    return replace(
        empty,
        sources=session().sources,
        interceptors=((Stage.CONNECT, for_every_agent(session())),),
        ports={
            **empty.ports,
            "ba_tui.context.ports:ServerPrompts": lambda: session().prompts,
            "ba_tui.context.ports:MentionedData": lambda: resources,
        },
        mentions={"resource": resources.suggestions},
    )
