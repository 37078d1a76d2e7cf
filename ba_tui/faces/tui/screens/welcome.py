"""The first start: why no model can be asked yet, and the ways on. The conversation stays readable behind it.

Keys typed here go to ``Setup.save_key`` and nowhere else: they are never shown, logged or kept in a widget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ba_tui.core.errors import BaError
from ba_tui.core.ports.setup import LocalServer, Setup
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.screens.picker import LOW

BACK = "↑ ↓ scroll · Esc goes back"
VARIABLES = """Set one of these before you start ba, and it is used at once:

  export ANTHROPIC_API_KEY=…      Claude models
  export OPENAI_API_KEY=…         OpenAI models
  export OPENAI_BASE_URL=…        any OpenAI-compatible endpoint
  export BA_MODEL=provider/model  the model to ask"""
PREFIXES = (("sk-ant-", "anthropic"), ("sk-", "openai"))
KEYS = "↑ ↓ Enter choose · Esc goes on without a model"
READY = "↑ ↓ Enter choose · Esc closes"


class Welcome(ModalScreen[str | None]):
    """Dismissed with a model id that may be asked now, with ``tour``, or with None."""

    CSS_PATH = "../styles/screens.tcss"
    VERTICAL_BREAKPOINTS = LOW
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "Back")]

    def __init__(
        self, setup: Setup, model: str, missing: str, take: Callable[[events.Key | events.Paste], Awaitable[None]]
    ) -> None:
        """``take``: who gets a prompt that is typed here."""
        super().__init__(classes="welcome")
        self._take = take
        self._leaving = False
        self._setup = setup
        self._model = model
        self._missing = missing
        self._servers: Sequence[LocalServer] = ()
        self._provider = ""
        self._keys = KEYS if missing else READY

    def compose(self) -> ComposeResult:
        with Vertical(classes="sheet"):
            yield Static("Welcome to ba", classes="title", markup=False)
            reason = self._missing or f"{self._model} is ready."
            yield Static(paintable(reason), classes="lead", markup=False)
            yield OptionList(id="ways", compact=True, markup=False)
            yield Input(id="key", password=True, placeholder="Paste the key, then Enter", compact=True)
            with VerticalScroll(id="variables"):
                yield Static(VARIABLES, markup=False)
            yield Static(self._keys, classes="keys", markup=False)

    def on_mount(self) -> None:
        self.query_one("#key", Input).cursor_blink = False
        self._show("ways")
        self._fill("Looking for local model servers …")
        self.run_worker(self._look, group="servers", exit_on_error=False)

    async def _look(self) -> None:
        try:
            self._servers = await self._setup.local_servers()
        except (BaError, OSError):
            self._servers = ()
        bare = " and ".join(server.name for server in self._servers if not server.models)
        none = "" if self._servers else "No local server found (Ollama, LM Studio, llama.cpp)."
        self._fill(f"Found, but without a model yet: {bare}." if bare else none)

    def _fill(self, note: str) -> None:
        ways = self.query_one("#ways", OptionList)
        before = ways.highlighted or 0
        options = [Option("Guided tour: two minutes, scripted model, sample data", "tour")]
        options += [Option("Paste an Anthropic key", "key:anthropic"), Option("Paste an OpenAI key", "key:openai")]
        for place, server in enumerate(self._servers):
            options += [Option(_offer(server, model), f"{place}:{model}") for model in server.models[:8]]
        options.append(Option("Set environment variables: show how", "variables"))
        if note:
            options.append(Option(note, "note", disabled=True))
        ways.clear_options()
        ways.add_options(options)
        ways.highlighted = min(before, len(options) - 1)

    async def on_key(self, event: events.Key) -> None:
        """Words are a prompt, which is kept until a model can be asked."""
        words = event.is_printable and (self._leaving or not (event.character or "").isspace())
        if words and self.query_one("#ways").display:
            event.stop()
            await self._type(event)

    async def on_paste(self, event: events.Paste) -> None:
        """A key that is pasted too soon is shown to nobody; all else is a prompt."""
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
            # Not at once: the letters that are on their way here come before those that go straight to the prompt.
            self.call_after_refresh(self._leave)

    def _leave(self) -> None:
        self.dismiss(None)

    def _show(self, part: str) -> None:
        for id in ("ways", "key", "variables"):
            self.query_one(f"#{id}").display = id == part
        self.query_one(f"#{part}").focus()

    def _say(self, text: str) -> None:
        self.query_one(".keys", Static).update(text)

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
            self._say(BACK)
        elif way == "key":
            self._ask_key(rest)
        elif way.isdecimal():
            server = self._servers[int(way)]
            self.run_worker(partial(self._use, server, rest), group="use", exclusive=True, exit_on_error=False)

    def _ask_key(self, provider: str) -> None:
        self._provider = provider
        self._show("key")
        self._say("Kept in a file that only you can read · Enter saves · Esc goes back")

    async def _use(self, server: LocalServer, model: str) -> None:
        try:
            chosen = await asyncio.to_thread(self._setup.use_server, server, model)
        except BaError as error:
            self._say(error.with_hint)
            return
        self.dismiss(chosen)

    @on(Input.Submitted, "#key")
    def _typed(self, event: Input.Submitted) -> None:
        event.stop()
        key = event.value.strip()
        event.input.value = ""
        if not key:
            self._say("Nothing was pasted.")
        elif any(character.isspace() or not character.isprintable() for character in key):
            self._say("That is no key: it holds spaces or line breaks.")
        else:
            self.run_worker(partial(self._save, key), group="use", exclusive=True, exit_on_error=False)

    async def _save(self, key: str) -> None:
        # A key pasted under the wrong name tells its vendor by its beginning.
        provider = next((name for prefix, name in PREFIXES if key.startswith(prefix)), self._provider)
        if self._provider == "openai" and not key.startswith("sk-ant-"):
            provider = "openai"
        try:
            where = await asyncio.to_thread(self._setup.save_key, provider, key)
            served = await asyncio.to_thread(self._served, provider)
        except BaError as error:
            self._say(error.with_hint)
            return
        if served:
            self.notify(f"The key was saved in {where}.", markup=False)
            self.dismiss(served)
        else:
            self._show("ways")
            self._say(f"Saved in {where}. Esc, then choose a model with /model.")

    def _served(self, provider: str) -> str:
        """What can be asked now: the model that was wanted, else the first one of the key's vendor."""
        models = (self._model, self._setup.first_model(provider))
        return next((model for model in models if model and not self._setup.missing(model)), "")

    def action_back(self) -> None:
        if self.query_one("#key").display or self.query_one("#variables").display:
            self.query_one("#key", Input).value = ""
            self._show("ways")
            self._say(self._keys)
        else:
            self.dismiss(None)


def _offer(server: LocalServer, model: str) -> str:
    name = model.partition("/")[2] or model
    return paintable(f"Use {name} from {server.name} at {server.base_url}", newlines=False)
