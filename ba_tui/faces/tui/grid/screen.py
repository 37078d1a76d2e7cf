"""A grid over the whole screen."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ba_tui.core.ports.datasets import Datasets
from ba_tui.faces.tui.grid.pane import GridPane
from ba_tui.faces.tui.grid.view import GridView


class GridScreen(ModalScreen[None]):
    """The table ``name`` of the session, with the cursor ``at`` a row, from 0, and a column."""

    DEFAULT_CSS = """
    GridScreen { background: $surface; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f4", "close", "Close", show=False)]

    def __init__(self, datasets: Datasets, name: str, at: tuple[int, str] | None = None) -> None:
        super().__init__()
        self._at = at
        self._datasets = datasets
        self._table = name

    def compose(self) -> ComposeResult:
        yield GridPane(self._datasets, self._table)

    def on_mount(self) -> None:
        self.query_one(GridPane).view.focus()

    @on(GridView.Changed)
    def _go(self) -> None:
        """Once the rows are there, put the cursor where it should be."""
        view = self.query_one(GridPane).view
        if self._at is not None and view.feed.ready and not view.busy:
            (row, name), self._at = self._at, None
            names = [column.name for column in view.feed.columns]
            view.go(row, names.index(name) if name in names else None)

    def action_close(self) -> None:
        self.dismiss()
