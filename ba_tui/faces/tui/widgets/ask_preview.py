"""The body of a question on the screen: there at once when it is short, announced and then filled when it is long.

What it says is made in ask_body; how many lines it gets is the form's affair.
"""

from __future__ import annotations

from ba_tui.core.questions import Question
from ba_tui.faces.tui.inspector.row_view import RowView
from ba_tui.faces.tui.inspector.rows import line
from ba_tui.faces.tui.widgets.ask_body import body_builds, is_light


class QuestionPreview(RowView, can_focus=False):
    """Never blank: threads may be late, and a person must not judge an empty box."""

    def ask(self, question: Question) -> None:
        """Show what would happen."""
        first, *better = body_builds(question)
        if is_light(question):
            self.put(first())
            if better:
                self.show(first, *better)
        else:
            self.put([line(("Preparing the preview …", "muted"))])
            self.show(first, *better)
