"""MCP servers in a session: their tools, results, resources and prompts, and how they are started. May import what
tools may, never the package ``mcp``.
"""
