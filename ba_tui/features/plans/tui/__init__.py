"""Commands and screens of plans. Imports the app's kit, never another feature."""
