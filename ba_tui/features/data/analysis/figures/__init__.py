"""Grounded figures: every figure of an answer, and where it comes from. Pure: no I/O, no clock, no state of a
session.

May import core. ``Evidence`` takes observations as they arrive, ``check`` judges an answer; ``verdicts`` holds the
values.
"""
