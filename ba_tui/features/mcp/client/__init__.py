"""The client of MCP servers: connections, what servers offer, what they ask. May import what tools may.

Only ``connection``, ``transports`` and ``requests`` import the package ``mcp``; ``servers`` loads them for the first
connection, off the event loop.
"""
