"""``ba mcp``: adds, lists, tests and removes MCP servers, and logs in to them. May import what ``cli`` may."""
