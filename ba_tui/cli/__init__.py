"""Reads flags and opens a face; one file a group of commands. The only room that sees assembly and faces both."""
