"""Start options of a face. Imports little, because the first paint waits for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ba_tui.core.values import frozen


@frozen
class Start:
    """Start with a ``prompt``, or with a session: an id, words to find one, ``last``, or ``pick`` to choose one."""

    prompt: str = ""
    resume: str | None = None
    fork: bool = False
    theme: str = ""
    color: bool = True
    suggestions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Suggested next prompts, by the words with which an answer ends a turn."""
    kept: bool = True
    """False: the session and its settings are deleted with their folder when ba ends."""
    all: bool = False
    """Whether to include sessions written only by ``ba -p``."""
