"""What all events have: who and when."""

from __future__ import annotations

import time
from dataclasses import field

from ba_tui.core.values import frozen

MAIN = "main"
"""The name of the agent that the person talks to."""
PERSON = "person"
"""Signs commands that the person runs beside the turns; models are told of them only by messages that share them."""


@frozen
class Signed:
    """Who (``main``, ``main/explore-1``) and when (seconds since the epoch)."""

    agent: str = field(default=MAIN, kw_only=True)
    at: float = field(default_factory=time.time, kw_only=True)
