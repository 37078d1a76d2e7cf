"""The model pickers, the theme picker, and the first start: ways to connect a model.

Keys typed in ``Welcome`` go only to ``Setup``: they are never shown, logged or stored in a widget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ba_tui.core.errors import AuthFailed, BaError, ProviderError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.settings import SLOTS, FoundServer, Setup
from ba_tui.core.provider import ModelInfo, Prices
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.meters import short_count
from ba_tui.faces.tui.screens.list_screen import ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import Sheet, app_of
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


# The input for an API key is masked, and refuses a paste of several lines instead of cutting it.


class KeyInput(Input):
    class Refused(Message):
        """The pasted text can't be a key."""

    def __init__(self) -> None:
        super().__init__(id="key", password=True, placeholder="Paste the key, then Enter", compact=True)
        self.cursor_blink = False

    def _on_paste(self, event: events.Paste) -> None:
        # Textual would take the first line, and that half of a key would be refused later for no visible reason.
        event.stop()
        event.prevent_default()
        text = event.text.strip()
        if any(map(str.isspace, text)):
            self.post_message(self.Refused())
        elif text:
            self.replace(text, *self.selection)


BACK = "↑ ↓ scroll · Esc back"
VARIABLES = """Set one of these before you start ba:

  export ANTHROPIC_API_KEY=…      Claude models
  export OPENAI_API_KEY=…         OpenAI models
  export OPENAI_BASE_URL=…        any OpenAI-compatible endpoint
  export BA_MODEL=provider/model  the model to ask"""
PREFIXES = (("sk-ant-", "anthropic"), ("sk-", "openai"))
KEYS = "↑ ↓ Enter choose · Esc skip"
READY = "↑ ↓ Enter choose · Esc close"
KEPT = "Saved in a file that only you can read · Enter save · Esc back"
TYPED = "Enter find models · type NAME before the address to name it · Esc back"
FILE = "The path of a .gguf file · Enter use it · Esc back"
FEW = 3
"""Models of a server that are offered one by one."""
NOBODY = "No model server found on the usual ports (Ollama, LM Studio, llama.cpp, vLLM)."


class Welcome(Sheet[str]):
    """Dismissed with a model id that may be asked now, with ``tour``, or with None."""

    def __init__(
        self, setup: Setup, model: str, missing: str, take: Callable[[events.Key | events.Paste], Awaitable[None]]
    ) -> None:
        """``take`` gets the keys of a prompt that is typed here."""
        super().__init__("Welcome to ba", keys=KEYS if missing else READY, classes="welcome")
        self._take = take
        self._leaving = False
        self._setup = setup
        self._model = model
        self._missing = missing
        self._servers: Sequence[FoundServer] = ()
        self._provider = ""
        """Whose key is asked for; empty for the server at ``_address``."""
        self._address = ""
        self._unchecked = ""
        """A key that could not be checked; Enter saves it."""
        self.saved = ""
        """The file that a key was saved in."""

    def body(self) -> ComposeResult:
        reason = self._missing or f"{self._model} is ready."
        yield Static(paintable(reason), classes="lead", markup=False)
        yield OptionList(id="ways", compact=True, markup=False)
        yield KeyInput()
        yield Input(id="address", placeholder="127.0.0.1:8080 or https://HOST/v1", compact=True)
        yield Input(id="file", placeholder="~/models/MODEL.gguf", compact=True)
        with VerticalScroll(id="variables"):
            yield Static(VARIABLES, markup=False)

    def on_mount(self) -> None:
        for id in ("#address", "#file"):
            self.query_one(id, Input).cursor_blink = False
        self._show("ways")
        self._fill("Looking for model servers …")
        self.run_worker(self._look, group="servers", exit_on_error=False)

    async def _look(self) -> None:
        try:
            self._servers = await self._setup.servers()
        except (BaError, OSError):
            self._servers = ()
        self._fill("" if self._servers else NOBODY)

    def _fill(self, note: str) -> None:
        ways = self.query_one("#ways", OptionList)
        before = ways.highlighted or 0
        options = [Option("Guided tour: eleven chapters, scripted model, sample data", "tour")]
        options += [Option("Paste an Anthropic key", "key:anthropic"), Option("Paste an OpenAI key", "key:openai")]
        for place, server in enumerate(self._servers):
            options += _offers(place, server)
        options.append(Option("Type the address of a model server", "address"))
        options.append(Option("Run a model file on this machine (GGUF, no server, no key)", "file"))
        options.append(Option("How to set environment variables", "variables"))
        notes = [note] if note else [line for server in self._servers for line in _troubles(server)]
        options += [Option(paintable(line, newlines=False), disabled=True) for line in notes]
        ways.clear_options()
        ways.add_options(options)
        ways.highlighted = min(before, len(options) - 1)

    async def on_key(self, event: events.Key) -> None:
        """Pass typed text on as a prompt, which waits until a model can be asked."""
        words = event.is_printable and (self._leaving or not (event.character or "").isspace())
        if words and self.query_one("#ways").display:
            event.stop()
            await self._type(event)

    async def on_paste(self, event: events.Paste) -> None:
        """Put a pasted API key into the masked field; pass other text on as a prompt."""
        text = event.text.strip()
        if not text or not self.query_one("#ways").display:
            return
        event.stop()
        found = next((provider for prefix, provider in PREFIXES if text.startswith(prefix)), "")
        if not found or any(map(str.isspace, text)) or self._leaving:
            await self._type(event)
            return
        self._ask_key(found)
        self.query_one("#key", Input).value = text

    async def _type(self, event: events.Key | events.Paste) -> None:
        await self._take(event)
        if not self._leaving:
            self._leaving = True
            # Not immediately: letters that are queued for this screen must precede those that go to the prompt.
            self.call_after_refresh(self._leave)

    def _leave(self) -> None:
        self.dismiss(None)

    def _show(self, part: str) -> None:
        for id in ("ways", "key", "address", "file", "variables"):
            self.query_one(f"#{id}").display = id == part
        self.query_one(f"#{part}").focus()

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        if self._leaving:
            return
        way, _, rest = (event.option_id or "").partition(":")
        if way == "tour":
            self.dismiss("tour")
        elif way == "variables":
            self._show("variables")
            self.say(BACK)
        elif way == "address":
            self._show("address")
            self.say(TYPED)
        elif way == "file":
            self._show("file")
            self.say(FILE)
        elif way == "key":
            self._ask_key(rest)
        elif way == "server":
            place, _, model = rest.partition(":")
            self._work(self._use, self._servers[int(place)], model)

    def _work(self, step: Callable[..., Awaitable[None]], *args: object) -> None:
        """Start a step in place of a running one; Esc stops it."""
        self.run_worker(partial(self._told, step, *args), group="step", exclusive=True, exit_on_error=False)

    async def _told(self, step: Callable[..., Awaitable[None]], *args: object) -> None:
        try:
            await step(*args)
        except BaError as error:
            self.say(error.with_hint)

    def _ask_key(self, provider: str, say: str = KEPT) -> None:
        self._provider, self._unchecked = provider, ""
        self._show("key")
        self.say(say)

    # A server

    @on(Input.Submitted, "#address")
    def _address_typed(self, event: Input.Submitted) -> None:
        event.stop()
        self._address = event.value.strip()
        if self._address:
            self._work(self._find)

    async def _find(self, key: str = "") -> None:
        self.say(f"Asking {self._address} for its models …")
        try:
            server = await self._setup.find_server(self._address, key)
        except AuthFailed as error:
            self._ask_key("", f"{error} Paste the key, then Enter · Esc back")
            return
        if not server.models:
            self.say(f"{server.base_url} answers but lists no models. {' '.join(server.troubles)}".strip())
            return
        await self._use(server, server.models[0].id if len(server.models) == 1 else "", key)

    async def _use(self, server: FoundServer, model: str, key: str = "") -> None:
        """Keep ``server`` and ``model``; an empty one is chosen first."""
        if not model:
            chosen = await app_of(self).push_screen_wait(ServedModels(server))
            if not chosen:
                return
            model = chosen
        self.dismiss(await asyncio.to_thread(self._setup.use_server, server, model, key))

    # A model file

    @on(Input.Submitted, "#file")
    def _file_typed(self, event: Input.Submitted) -> None:
        event.stop()
        if path := event.value.strip():
            self._work(self._use_file, path)

    async def _use_file(self, path: str) -> None:
        self.dismiss(await asyncio.to_thread(self._setup.use_file, path))

    # A key

    @on(KeyInput.Refused)
    def _no_key(self, event: KeyInput.Refused) -> None:
        event.stop()
        self.say("That is not a key: it contains a line break or a space. Copy it again, alone.")

    @on(Input.Submitted, "#key")
    def _key_typed(self, event: Input.Submitted) -> None:
        event.stop()
        key, self._unchecked, unchecked = event.value.strip(), "", self._unchecked
        event.input.value = ""
        if unchecked and not key:
            self._work(self._save, unchecked)
        elif not key:
            self.say("Paste the key first.")
        elif not self._provider:
            self._work(self._find, key)
        else:
            self._work(self._check, key)

    async def _check(self, key: str) -> None:
        """Ask the key's provider whether it takes it, then save it."""
        provider = self._owner(key)
        self.say("Checking the key …")
        try:
            await self._setup.check_key(provider, key)
        except AuthFailed:
            raise
        except ProviderError as error:
            self._unchecked = key
            self.say(f"Not checked: {error} Enter save it anyway · Esc back")
            return
        await self._save(key)

    async def _save(self, key: str) -> None:
        provider = self._owner(key)
        where = await asyncio.to_thread(self._setup.save_key, provider, key)
        served = await asyncio.to_thread(self._served, provider)
        if served:
            self.saved = str(where)
            self.dismiss(served)
        else:
            self._show("ways")
            self.say(f"Saved in {where}. Press Esc, then choose a model with /model.")

    def _owner(self, key: str) -> str:
        """Return the vendor of a key by its prefix, else the one that was chosen."""
        if self._provider == "openai" and not key.startswith("sk-ant-"):
            return "openai"
        return next((name for prefix, name in PREFIXES if key.startswith(prefix)), self._provider)

    def _served(self, provider: str) -> str:
        """Return a model that can be asked now: the chosen one, else the first of the key's vendor."""
        models = (self._model, self._setup.first_model(provider))
        return next((model for model in models if model and not self._setup.missing(model)), "")

    def action_close(self) -> None:
        if self.query_one("#ways").display:
            self.dismiss(None)
            return
        self.workers.cancel_group(self, "step")  # pyright: ignore[reportUnknownMemberType] - Worker is generic
        self._unchecked = ""
        self.query_one("#key", Input).value = ""
        self._show("ways")
        self.say("")


def _offers(place: int, server: FoundServer) -> list[Option]:
    """Return options for the models of ``server``, or one option that lists them."""
    few = server.models if len(server.models) <= FEW else ()
    offers = [(f"Use {model.name} from {_where(server)}", model.id) for model in few]
    if len(server.models) > FEW:
        offers.append((f"Choose from {count(len(server.models), 'model')} of {_where(server)}", ""))
    return [Option(paintable(text, newlines=False), f"server:{place}:{model}") for text, model in offers]


def _troubles(server: FoundServer) -> Sequence[str]:
    """Return why models of ``server`` can't be used, a line each."""
    return server.troubles or (() if server.models else (f"{_where(server)} has no models yet.",))


def _where(server: FoundServer) -> str:
    return f"{server.title} at {server.base_url}"


async def setup(chat: Actions, _: str) -> None:
    """Show the ways to connect a model, and use the chosen one."""
    services, conversation = chat.session.live
    if not chat.session.start.kept:
        raise UsageError("The demo saves no settings.", "Leave it with Ctrl+D, start ba, then use /setup.")
    app = chat.ba
    if any(isinstance(screen, Welcome) for screen in app.screen_stack):
        return
    welcome = Welcome(services.setup, conversation.model, chat.turns.missing, chat.composer.prompt.take)
    outcome = await chat.ba.push_screen_wait(welcome)
    if welcome.saved:
        chat.tell(Notice(f"The key was saved in {welcome.saved}."))
    if outcome == "tour":
        await app.leave_for("demo")
    elif outcome:
        chat.session.use_model(outcome)
        chat.show_facts()
        chat.turns.missing = await asyncio.to_thread(services.setup.missing, conversation.model)
        if not chat.turns.missing:
            chat.activity.hint(f"Ready: {conversation.model}.")
    chat.composer.prompt.focus()
