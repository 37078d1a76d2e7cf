"""How a face begins. Imports little: it is known before the first paint, which waits for little else of the core.

What is done with it is conversation.py's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ba_tui.core.values import frozen


@frozen
class Start:
    """With a ``prompt``, with a session (an id, words to find one, ``last``, or ``pick`` one)."""

    prompt: str = ""
    resume: str | None = None
    fork: bool = False
    theme: str = ""
    color: bool = True
    suggestions: Mapping[str, str] = field(default_factory=dict[str, str])
    """What to say next, by the words with which an answer ends a turn."""
    kept: bool = True
    """False: the session, and all that is set in it, goes with its folder when ba ends."""
    all: bool = False
    """Whether sessions count that only ``ba -p`` wrote."""
