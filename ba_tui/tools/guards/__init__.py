"""What surrounds every tool: checks, consent, limits. Each guard takes a tool and gives a tool.

May import the tools room and every room below it; their order is one line in ``tools/toolbox.py``.
"""
