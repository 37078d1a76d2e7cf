"""A fact that may be worth remembering: a line above the input, answered with a key that no text has.

What is proposed is the memory's business; this shows the first of what it is given.
"""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from ba_tui.core.ports.memory import Proposal
from ba_tui.faces.tui.remembered import quoted
from ba_tui.faces.tui.widgets.activity import INDENT

KEYS = "  Ctrl+S save · Esc drop"


class ProposalLine(Static):
    """Hidden while there is nothing to propose."""

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
        """``more``: how many wait behind it."""
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
