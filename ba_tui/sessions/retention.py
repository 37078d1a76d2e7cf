"""Which sessions go when old ones are pruned. Pure: taking them away is the library's business.

Never one that is open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

_AGE = regex(r"(\d{1,6})\s*([hdwmy])", re.IGNORECASE)
_SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400, "y": 365 * 86_400}


@frozen
class RetentionRule:
    """Go: what was last used more than ``older`` seconds ago, and is not among the ``keep`` newest. None: no such
    limit."""

    older: float | None = None
    keep: int | None = None


def doomed(infos: Sequence[SessionInfo], rule: RetentionRule, now: float) -> list[SessionInfo]:
    """Oldest first. Without any limit nothing goes."""
    if rule.older is None and rule.keep is None:
        return []
    newest = sorted(infos, key=lambda info: (info.updated, info.id), reverse=True)
    beyond = newest[rule.keep :] if rule.keep is not None else newest
    old = [info for info in beyond if rule.older is None or now - info.updated > rule.older]
    return [info for info in reversed(old) if not info.locked_by]


def seconds(age: str) -> float:
    """``30d`` in seconds; h, d, w, m (30 days) and y (365 days) are known. Raises UsageError."""
    found = _AGE.fullmatch(age.strip())
    if found is None:
        raise UsageError(f"“{age}” is no age.", "Write a number and h, d, w, m or y: 30d.")
    return int(found[1]) * _SECONDS[found[2].lower()]
