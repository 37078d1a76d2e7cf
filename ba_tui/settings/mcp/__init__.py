"""Which MCP servers there are, from whose file, and what the person turned off. May import core, resources, ingress."""
