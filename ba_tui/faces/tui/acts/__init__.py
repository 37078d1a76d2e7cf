"""Implementations of commands. A command that opens a screen is in the module of that screen, imported with it."""
