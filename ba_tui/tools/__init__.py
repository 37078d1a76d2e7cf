"""What the model can do: one factory a tool, and the guards around them.

May import core, resilience and every capability room; never a face, the command line or assembly.
"""
