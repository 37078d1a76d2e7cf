"""Reads flags and opens a face; one file a group of commands. May import every room, and is the only one that sees
assembly and faces both.
"""
