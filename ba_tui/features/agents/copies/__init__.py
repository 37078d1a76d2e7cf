"""Copies of the project for agents that work apart, and how their changes come into the project.

May import core, processes, permissions and the editing of files (``tools.editing``); delegation knows it by
``core.teamwork.copies`` only.
"""
