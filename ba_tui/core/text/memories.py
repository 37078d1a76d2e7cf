"""A memory as a line for people, in events that every face shows. What memory holds stands in ``core.ports.memory``."""

from __future__ import annotations

from ba_tui.core.values import frozen


@frozen
class MemoryLine:
    """A memory as it was when the event happened. ``at`` in seconds since 1970.

    ``why``: what spoke for it, where it was used. ``older``: the text that it replaces, where it replaces one.
    """

    id: str
    text: str
    kind: str = "fact"
    at: float = 0.0
    why: str = ""
    older: str = ""
