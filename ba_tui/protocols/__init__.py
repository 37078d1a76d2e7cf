"""Protocols of other programs: the client of MCP servers. May import core, processes, resources and settings.

The package ``mcp`` is imported here only, and only once a server is connected to.
"""
