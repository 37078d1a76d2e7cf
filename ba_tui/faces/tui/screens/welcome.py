"""The first start: why no model can be used yet, and ways to set one up. The conversation stays readable behind it.

Keys typed here go only to ``Setup``: they are never shown, logged or stored in a widget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from textual import events, on
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ba_tui.core.errors import AuthFailed, BaError, ProviderError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.settings import FoundServer, Setup
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.screens.models import ServedModels
from ba_tui.faces.tui.screens.sheet import Sheet, app_of

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
