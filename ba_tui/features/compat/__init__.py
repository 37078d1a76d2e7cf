"""Formats and options of other assistants. Imports the base; no other feature imports it."""

GUESSES = "ba_tui.features.compat:guesses.yaml"
