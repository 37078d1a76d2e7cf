"""MCP servers of a session: their tools, prompts and resources. Imports the base only; no other feature imports it."""
