"""Commands and screens of memory across sessions. Imports the app's kit, never another feature."""
