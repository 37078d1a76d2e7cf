"""Workflows: read, checked as a whole, run step by step. May import core, settings and resources, never a sibling."""
