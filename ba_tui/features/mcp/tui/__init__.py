"""Commands and screens of MCP servers. Imports the app's kit, never another feature."""
