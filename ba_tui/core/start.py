"""How a face begins. Imports little: it is known before the first paint, which waits for little else of the core.

What is done with it is conversation.py's business.
"""

from __future__ import annotations

from ba_tui.core.values import frozen


@frozen
class Start:
    """With a ``prompt``, with a session (an id, words to find one, ``last``, or ``pick`` one)."""

    prompt: str = ""
    resume: str | None = None
    fork: bool = False
    theme: str = ""
    color: bool = True
    all: bool = False
    """Whether sessions count that only ``ba -p`` wrote."""
