"""Measures the client of MCP servers: with the public conformance suite, and with servers that people use.

May import everything."""
