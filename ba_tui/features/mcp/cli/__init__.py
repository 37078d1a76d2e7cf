"""``ba mcp``: adds, lists, tries and removes MCP servers, and logs in to them. May import what ``cli`` may."""
