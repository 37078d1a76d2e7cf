"""Copies of the project for isolated agents, and the merge of their changes into the project.

May import core, processes, permissions and ``tools.editing``; delegation uses it through ``core.ports.agents`` only.
"""
