"""MCP servers: their tools, prompts and resources."""

from ba_tui.command import AppParts, Command
from ba_tui.feature import Feature

MCP = Feature(
    "mcp",
    "ba_tui.features.mcp.session:open_mcp",
    "ba_tui.features.mcp.setup:mcp_checks",
    app=AppParts(
        commands=(
            Command(
                "mcp",
                "View MCP servers, their tools and logins",
                "ba_tui.features.mcp.tui:show_servers",
                cli="ba_tui.features.mcp.cli:app",
                help="Add, list, test, log in to and remove MCP servers.",
            ),
        )
    ),
)
