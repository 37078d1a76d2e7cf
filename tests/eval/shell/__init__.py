"""Runs shell commands that ba allows unasked over hostile files, and looks for effects and secrets.

``python -m tests.eval.shell --count 2000 --seed 7``; a small part of it is a test.
"""
