"""MCP servers: their browser, the tools of one, a login. Import the frames beside."""
