"""Watching: the log file, redaction, the doctor. May import core, resources and settings."""
