"""What people and programs bring from other assistants: options, lists of tools, the wire format of Claude Code.

May import what ``cli`` may: faces, tools and settings.
"""
