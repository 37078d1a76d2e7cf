"""Commands and screens of figures. Imports the app's kit, never another feature."""
