"""What stands on a sheet, as text."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.faces.tui.inspector.rows import Row


def sheet_text(rows: Sequence[Row]) -> str:
    """Gutters are left out."""
    return "\n".join(row[-1].text for row in rows)
