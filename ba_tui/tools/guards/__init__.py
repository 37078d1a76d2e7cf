"""Guards around every tool: checks, consent, limits. A guard takes a tool and returns a tool.

May import the tools room and every room below it. ``pipeline.py`` lists the guards in their order.
"""
