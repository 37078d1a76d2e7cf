"""The newest plan on the screen: as a tree or a graph, opened step by step, edited. May import core, textual, plotting
and settings, the inspector and widgets.
"""
