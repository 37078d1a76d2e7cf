"""A chart over the whole screen."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import ModalScreen

from ba_tui.core.displays.charts import ChartRequest
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.ports.tables import Arrangement
from ba_tui.faces.tui.charts.pane import ChartPane


class ChartScreen(ModalScreen[None]):
    """A chart of the rows of ``table`` that ``arrangement`` lets through; kind and columns are chosen by its data."""

    DEFAULT_CSS = """
    ChartScreen { background: $surface; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "close", "Close", show=False)]

    def __init__(self, datasets: Datasets, table: str, arrangement: Arrangement | None = None) -> None:
        super().__init__()
        self._pane = ChartPane(datasets, ChartRequest(table), arrangement=arrangement)

    def compose(self) -> ComposeResult:
        yield self._pane

    def on_mount(self) -> None:
        self._pane.view.focus()

    def action_close(self) -> None:
        self.dismiss()
