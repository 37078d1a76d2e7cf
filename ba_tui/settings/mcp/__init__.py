"""MCP servers: who configured them, and which are turned off. May import core, resources, ingress."""
