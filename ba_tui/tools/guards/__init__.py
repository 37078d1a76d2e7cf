"""What surrounds every tool: checks, consent, limits. Each guard takes a tool and gives a tool.

May import core, permissions and the tools room; their order is one line in ``tools/toolbox.py``.
"""
