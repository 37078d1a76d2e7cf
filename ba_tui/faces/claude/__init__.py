"""Print mode in the wire format of Claude Code 2.1: lines of JSON out, and a conversation of such lines in.

Imports core and the print mode of ``headless``; the names of tools come in as a value (``words.ToolWords``).
"""
