"""The model pickers: every model of the catalogue and of the servers that answer, with its window and its price."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.errors import BaError
from ba_tui.core.ports.setup import FoundServer, Setup
from ba_tui.core.provider import ModelInfo, Prices
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice

COLUMNS = "window · $ per million tokens in / out"
KEYS = "Enter chooses · Esc closes"


class _Models(Picker):
    """Shows a part of thousands; typing brings the others."""

    MOST = 50

    def refill(self) -> None:
        super().refill()
        found = len(self.matching())
        self.say(
            f"{self.MOST} of {found:,} shown: type to find others · {self.keys}" if found > self.MOST else self.keys
        )


class ModelPicker(_Models):
    """Dismissed with the id of a model. The servers are asked while it is open. ``title``: what it is chosen for."""

    def __init__(self, models: Sequence[ModelInfo], current: str, setup: Setup, title: str = "Model") -> None:
        super().__init__(
            f"{title} · {COLUMNS}",
            [_choice(model, current) for model in models],
            keys=f"Asking model servers … · {KEYS}",
        )
        self._current = current
        self._setup = setup

    def on_mount(self) -> None:
        self.run_worker(self._ask_servers, group="servers", exit_on_error=False)

    async def _ask_servers(self) -> None:
        try:
            servers = await self._setup.servers()
        except (BaError, OSError):
            servers = ()
        listed = {choice.id for choice in self.choices}
        # Thousands of models stand behind those of the catalogue, the one in use before all others.
        for server in sorted(servers, key=lambda server: len(server.models), reverse=True):
            more = [_choice(model, self._current) for model in server.models if model.id not in listed]
            parts = (self.choices, more) if len(more) > self.MOST else (more, self.choices)
            self.choices = [choice for part in parts for choice in part]
        self.choices = sorted(self.choices, key=lambda choice: not choice.current)
        self.keys = next((line for server in servers for line in server.troubles), KEYS)
        self.refill()


class ServedModels(_Models):
    """The models of one server. Dismissed with the id of one."""

    def __init__(self, server: FoundServer) -> None:
        models = [_choice(model, "") for model in server.models]
        super().__init__(f"Models of {server.title}", models, keys=next(iter(server.troubles), KEYS))


def _choice(model: ModelInfo, current: str) -> PickerChoice:
    window = short_count(model.window) if model.known else "—"
    return PickerChoice(model.id, (model.id, window, price(model.prices)), current=model.id == current)


def price(prices: Prices | None) -> str:
    """In and out; a dash when it is not known."""
    if prices is None:
        return "—"
    if prices.input == prices.output == 0:
        return "free"
    return f"${prices.input:g} / ${prices.output:g}"
