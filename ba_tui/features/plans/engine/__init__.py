"""Workflows and plans: read, checked as a whole, run step by step. May import core, settings, resources and plotting,
never a sibling."""
