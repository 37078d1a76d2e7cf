"""What people and programs bring from other assistants: options, lists of tools, the wire format of Claude Code."""
