"""A grid over the whole screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ba_tui.core.ports.datasets import Datasets
from ba_tui.faces.tui.grid.pane import GridPane


class GridScreen(ModalScreen[None]):
    """The table ``name`` of the session."""

    DEFAULT_CSS = """
    GridScreen { background: $surface; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f4", "close", "Close", show=False)]

    def __init__(self, datasets: Datasets, name: str) -> None:
        super().__init__()
        self._datasets = datasets
        self._table = name

    def compose(self) -> ComposeResult:
        yield GridPane(self._datasets, self._table)

    def on_mount(self) -> None:
        self.query_one(GridPane).view.focus()

    def action_close(self) -> None:
        self.dismiss()
