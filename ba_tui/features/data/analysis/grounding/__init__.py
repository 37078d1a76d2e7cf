"""Grounded figures in a running session: what its tools returned is indexed as it arrives, each final answer checked.

May import core and the room figures, which is loaded with the first answer that has a figure. ``checking`` is what a
session holds; the other modules load with it.
"""
