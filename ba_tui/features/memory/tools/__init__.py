"""Memory in a session: what it stores, what is recalled for a prompt, and the tools. May import memory, context and
permissions, as all tools may.
"""
