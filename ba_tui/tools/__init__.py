"""What the model can do: one factory a tool, and the guards around them.

May import every room below; never a face, the command line or assembly.
"""
