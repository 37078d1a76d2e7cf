"""MCP servers: their tools, prompts and resources."""

from ba_tui.feature import Feature

MCP = Feature("mcp", "ba_tui.features.mcp.setup:open_mcp", checks="ba_tui.features.mcp.setup:mcp_checks")
