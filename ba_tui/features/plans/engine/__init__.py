"""Workflows and plans: parsed, checked as a whole, executed step by step. May import core, settings, resources and
plotting, never a sibling.
"""
