"""What was stored in memory, in words for the person. No widgets."""

from __future__ import annotations

from ba_tui.core.ports.memory import Entry, Stored
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line

SHOWN = 48
"""Characters of a memory that are repeated."""


def named(entry: Entry) -> str:
    """The text of ``entry`` in quotes, on one line and cut."""
    return quoted(entry.text)


def quoted(text: str, limit: int = SHOWN) -> str:
    return f"“{one_line(paintable(text[:2_000], newlines=False), limit)}”"


def said(stored: Stored) -> str:
    """What became of a draft; a replaced entry stands beside the new one."""
    where = "for this project" if stored.entry.project else "for all projects"
    if stored.outcome == "known":
        return f"Known already {where}: {named(stored.entry)}."
    if stored.older is not None:
        return f"Remembered {where}: {named(stored.entry)} replaces {named(stored.older)}."
    return f"Remembered {where}: {named(stored.entry)}."
