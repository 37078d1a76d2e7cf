"""Commands and screens of data. Imports the app's kit, never another feature."""
