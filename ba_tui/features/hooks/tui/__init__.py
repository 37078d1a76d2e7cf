"""The list of hooks in the app. Imports the app's kit and ports; only the table of commands names it."""
