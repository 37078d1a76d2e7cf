"""The tools of the model, one factory each, and the guards around them.

May import every room below; never a face, the command line or assembly.
"""
