"""Times as days and as text that people read."""

from __future__ import annotations

from datetime import UTC, date, datetime


def day_of(at: float) -> date | None:
    """The day of a time in seconds since 1970; None for an unknown or impossible one."""
    try:
        return datetime.fromtimestamp(at, UTC).date() if at > 0 else None
    except (OverflowError, ValueError, OSError):
        return None
