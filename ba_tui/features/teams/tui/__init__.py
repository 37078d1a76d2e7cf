"""Commands and screens of teams. Imports the app's kit, never another feature."""
