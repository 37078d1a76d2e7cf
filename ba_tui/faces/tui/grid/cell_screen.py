"""One cell of a grid in full: long and nested values, folded at the width of the screen."""

from __future__ import annotations

import json
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_tui.core.ports.tables import Cell
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.clipboard import CopyToClipboard
from ba_tui.faces.tui.grid.cells import NULL, cell_text, plain
from ba_tui.faces.tui.inspector.row_view import RowView
from ba_tui.faces.tui.inspector.rows import line, painted


class CellScreen(ModalScreen[None]):
    """``title`` names the cell. JSON is shown indented."""

    DEFAULT_CSS = """
    CellScreen {
        background: $surface;
        padding: 0 1;
        & .title { height: 1; text-style: bold; text-wrap: nowrap; text-overflow: ellipsis; }
        & RowView { height: 1fr; }
        & .keys { height: 1; color: $text-muted; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Close", show=False),
        Binding("y,ctrl+y", "copy", "Copy", show=False),
    ]

    def __init__(self, title: str, value: Cell) -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        size = f" · {count(len(self._value), 'character')}" if isinstance(self._value, str) else ""
        yield Static(cell_text(f"{self._title}{size}"), classes="title", markup=False)
        yield RowView()
        yield Static("Esc close · ↑ ↓ scroll · y copy", classes="keys", markup=False)

    def on_mount(self) -> None:
        view = self.query_one(RowView)
        view.put([line((painted(each), "")) for each in _lines(self._value)])
        view.focus()

    def action_copy(self) -> None:
        """Copy the value as it is."""
        self.post_message(CopyToClipboard(paintable(plain(self._value)), ""))

    def action_close(self) -> None:
        self.dismiss()


def _lines(value: Cell) -> list[str]:
    if isinstance(value, str) and value[:1] in {"{", "["}:
        try:
            return json.dumps(json.loads(value), indent=2, ensure_ascii=False).splitlines()
        except (ValueError, RecursionError):
            return value.splitlines()
    return [NULL] if value is None else plain(value).splitlines() or [""]
