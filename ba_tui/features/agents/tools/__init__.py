"""Agents that a session starts below its own: limits, resuming, the background, working trees, the tool. May import
core.teamwork and what all tools may.
"""
