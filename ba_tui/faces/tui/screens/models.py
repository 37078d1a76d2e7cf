"""The model pickers: every model of the catalogue and of the servers that answer, with its window and its price."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.screen import Screen

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.ports.settings import SLOTS, FoundServer, Setup
from ba_tui.core.provider import ModelInfo, Prices
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.screens.list_screen import ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import app_of
from ba_tui.faces.tui.themes import ThemedApp

COLUMNS = "window · $ per million tokens in / out"
DEFAULT = "default"
"""The name that unsets the model of a slot."""
ASKING = "Asking model servers …"


class ServedModels(ListScreen[str]):
    """The models of one server. Dismissed with the id of one."""

    MOST = 50

    def __init__(self, server: FoundServer) -> None:
        super().__init__(f"Models of {server.title}", [_model_row(model, "") for model in server.models])
        self._troubles = server.troubles

    def on_mount(self) -> None:
        self.say(next(iter(self._troubles), ""))


class ModelPicker(ListScreen[str]):
    """Dismissed with the id of a model. The open list asks model servers. ``title``: the use of the model."""

    MOST = 50
    """Of thousands; typing finds the others."""

    def __init__(self, models: Sequence[ModelInfo], current: str, setup: Setup, title: str = "Model") -> None:
        super().__init__(f"{title} · {COLUMNS}", [_model_row(model, current) for model in models])
        self._current = current
        self._setup = setup

    def on_mount(self) -> None:
        self.say(ASKING)
        self.run_worker(self._ask_servers, group="servers", exit_on_error=False)

    async def _ask_servers(self) -> None:
        try:
            servers = await self._setup.servers()
        except (BaError, OSError):
            servers = ()
        listed = {row.id for row in self.rows}
        # Thousands of models come after those of the catalogue, the one in use before all others.
        for server in sorted(servers, key=lambda server: len(server.models), reverse=True):
            more = [_model_row(model, self._current) for model in server.models if model.id not in listed]
            parts = (self.rows, more) if len(more) > self.MOST else (more, self.rows)
            self.rows = [row for part in parts for row in part]
        self.rows = sorted(self.rows, key=lambda row: not row.current)
        self.refill()
        self.say(next((line for server in servers for line in server.troubles), ""))


def _model_row(model: ModelInfo, current: str) -> ListRow[str]:
    window = short_count(model.window) if model.known else "—"
    return ListRow(model.id, (model.id, window, price(model.prices)), current=model.id == current)


def price(prices: Prices | None) -> str:
    """Return the prices of input and output; a dash if they are unknown."""
    if prices is None:
        return "—"
    if prices.input == prices.output == 0:
        return "free"
    return f"${prices.input:g} / ${prices.output:g}"


class ThemePicker(ListScreen[str]):
    """Dismissed with the name of a theme. The theme at the cursor is shown at once."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__("Theme", ())
        self._names = names
        self._before = ""

    def on_mount(self) -> None:
        themes = app_of(self).available_themes
        self._before = app_of(self).theme
        self.rows = [
            ListRow(name, (name, "dark" if themes[name].dark else "light"), current=name == self._before)
            for name in self._names
        ]

    def moved(self, row: ListRow[str]) -> None:
        app_of(self).theme = row.id

    def action_close(self) -> None:
        app_of(self).theme = self._before
        super().action_close()


HEADING = "ba demo: a scripted tour with real tools and sample data. Pick a chapter."


class ChapterPicker(ListScreen[str]):
    FILTERED = False
    ENTER = "start"
    LEAVE = "leave"


class ChapterList(ThemedApp[str]):
    """Returns the name of the chosen chapter, or None. ``chapters``: name, title and contents. ``at``: the cursor."""

    TITLE = "ba demo"
    CSS_PATH = "../styles/app.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c,ctrl+d", "quit", "Quit", show=False, priority=True)]

    def __init__(self, chapters: Sequence[tuple[str, str, str]], at: str, theme: str, *, color: bool) -> None:
        super().__init__(theme, color=color)
        self._rows = [
            ListRow[str](name, (f"{number}  {title}", shown), current=name == at)
            for number, (name, title, shown) in enumerate(chapters, 1)
        ]

    def get_default_screen(self) -> Screen[None]:
        return Screen()

    def on_mount(self) -> None:
        self.push_screen(ChapterPicker(HEADING, self._rows), self.exit)


async def model(chat: Actions, words: str) -> None:
    """Choose the model of the conversation, or of a slot: ``small NAME``."""
    _, conversation = chat.session.live
    first, _, rest = words.partition(" ")
    if first in SLOTS:
        await _slot(chat, first, rest.strip())
        return
    name = words or await _picked(chat, conversation.model, "Model")
    if not name:
        return
    info = chat.session.use_model(name)
    chat.show_facts()
    chat.activity.hint(f"Model: {info.id}, from your next message.")
    await chat.check_setup()


async def _slot(chat: Actions, slot: str, name: str) -> None:
    services, conversation = chat.session.live
    setup, what = services.setup, f"{slot.capitalize()} model"
    if not name:
        now = setup.in_slot(slot, conversation.model)
        name = await _picked(chat, now, what)
        if not name:
            return
    await asyncio.to_thread(setup.remember, f"{slot}.model", "" if name == DEFAULT else name)
    chosen = setup.in_slot(slot, conversation.model)
    chat.activity.hint(f"{what}: {chosen}, from now on, for {SLOTS[slot]}.")


async def _picked(chat: Actions, current: str, title: str) -> str:
    """Return the id of one of the models that can be chosen; empty when the user chose none."""
    services, _ = chat.session.live
    models = await asyncio.to_thread(services.catalogue.models)
    return await chat.ba.push_screen_wait(ModelPicker(models, current, services.setup, title)) or ""


async def theme(chat: Actions, name: str) -> None:
    """Choose the theme with a live preview, or by name, and save it for later starts."""
    app = chat.ba
    await app.load_themes()
    if not name:
        chosen = await chat.ba.push_screen_wait(ThemePicker(app.theme_names))
        if not chosen:
            return
        name = chosen
    if name not in app.theme_names:
        raise UsageError(f"There is no theme {name!r}.", f"Themes: {', '.join(app.theme_names)}.")
    app.theme = name
    services, _ = chat.session.live
    await asyncio.to_thread(services.setup.remember, "theme", name)
    chat.activity.hint(f"Theme: {name}.")
