"""Commands and screens of sub-agents. Imports the app's kit, never another feature."""
