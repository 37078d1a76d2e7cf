"""Formats and options of other assistants. Imports the base; no other feature imports it."""
