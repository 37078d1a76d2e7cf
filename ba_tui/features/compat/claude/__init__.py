"""Print mode in the wire format of Claude Code 2.1: lines of JSON out, and a conversation of such lines in.

Imports core, hooks, the guards of tools and the print mode of ``headless``.
"""
