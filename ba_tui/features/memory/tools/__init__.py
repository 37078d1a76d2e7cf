"""What a session does with memory: what it stores, what goes with a prompt, and the tools. May import memory, context
and permissions, as all tools may."""
