"""The composition root: the only room that names concrete classes. May import everything but the faces and the cli.

Read it top to bottom: start (what a process holds) → tools (of a session, with guards) → agents (and interceptors) →
session (what a conversation works with) → faces (what is handed out).
"""

from ba_tui.assembly.faces import (
    connect,
    exact_counts,
    model_asked,
    registry_for,
    session_patch,
    tools_for,
    trust,
)

__all__ = [
    "connect",
    "exact_counts",
    "model_asked",
    "registry_for",
    "session_patch",
    "tools_for",
    "trust",
]
