"""A proposed fact in a line above the input, accepted or dropped with a key that no text contains.

``MemoryPane`` passes the proposals.
"""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from ba_tui.core.ports.memory import Entry, Proposal, StoreResult
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import one_line
from ba_tui.faces.tui.widgets.notices import INDENT

SHOWN = 48
"""Maximum characters of a memory in a message."""


def named(entry: Entry) -> str:
    """Return the text of ``entry`` in quotes, cut to one line."""
    return quoted(entry.text)


def quoted(text: str, limit: int = SHOWN) -> str:
    return f"“{one_line(paintable(text[:2_000], newlines=False), limit)}”"


def said(stored: StoreResult) -> str:
    """Return the result for a draft in words; a replaced entry is named with the new one."""
    where = "for this project" if stored.entry.project else "for all projects"
    if stored.outcome == "known":
        return f"Known already {where}: {named(stored.entry)}."
    if stored.older is not None:
        return f"Remembered {where}: {named(stored.entry)} replaces {named(stored.older)}."
    return f"Remembered {where}: {named(stored.entry)}."


KEYS = "  Ctrl+S save · Esc drop"


class ProposalLine(Static):
    """Hidden while there is no proposal."""

    DEFAULT_CSS = """
    ProposalLine { padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(self) -> None:
        super().__init__(id="proposal", markup=False)
        self.proposal: Proposal | None = None
        self.passed: set[str] = set()
        """Ids of proposals that a later prompt passed over: they are not shown again."""
        self._more = 0
        self.display = False

    def show(self, proposal: Proposal | None, more: int = 0) -> None:
        """Show a proposal. ``more``: the number of further ones."""
        self.proposal, self._more = proposal, more
        self.display = proposal is not None
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if self.proposal is None:
            return
        draft, older = self.proposal.draft, self.proposal.older
        keys = f"{KEYS} · +{self._more}" if self._more else KEYS
        what = "Remember for all projects" if draft.scope == "global" else "Remember"
        width = max(40, (self.container_size.width or 80) - 2 - len(INDENT))
        words = f"{what}: {quoted(draft.text, max(12, width - len(what) - len(keys) - 5))}?"
        rows = [Content.assemble(("? ", "$accent"), words, (keys, "$text-muted"))]
        if older is not None:
            before = f"{INDENT}in place of: {quoted(older.text, width - 15)}"
            rows.append(Content.styled(before, "$text-muted"))
        self.styles.height = len(rows)
        self.update(Content("\n").join(rows))
