"""Commands about choices: model, mode, rules, window, colours, the way to a first answer."""

from __future__ import annotations

import asyncio

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Mode, Notice
from ba_tui.core.ports.setup import SLOTS
from ba_tui.faces.tui.acts.port import Actions, Room, SessionActions
from ba_tui.faces.tui.commands import SlashCommand
from ba_tui.faces.tui.session import MEANING

DEFAULT = "default"
"""In place of a model's name: what a slot has when nothing is set."""


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
    """The id of one of the models that can be chosen; empty when the person chose none."""
    from ba_tui.faces.tui.screens.models import ModelPicker  # noqa: PLC0415 - most runs never show it

    services, _ = chat.session.live
    models = await asyncio.to_thread(services.catalogue.models)
    return await chat.ba.push_screen_wait(ModelPicker(models, current, services.setup, title)) or ""


def cycle_mode(chat: SessionActions, _: str) -> None:
    modes, here = chat.session.live[1].permissions.modes(), chat.session.mode
    mode(chat, modes[(modes.index(here) + 1) % len(modes)] if here in modes else modes[0])


def mode(chat: SessionActions, name: str) -> None:
    if not name:
        cycle_mode(chat, "")
        return
    names: dict[str, Mode] = {str(each): each for each in MEANING}
    known = names.get(name)
    if known is None:
        raise UsageError(
            f"There is no mode {name!r}.", f"Modes: {', '.join(chat.session.live[1].permissions.modes())}."
        )
    chat.session.set_mode(known)
    chat.show_facts()
    chat.activity.hint(f"{name}: {MEANING[known]}")


def permissions(chat: Actions, __: str) -> None:
    from ba_tui.faces.tui.screens.permissions import PermissionsScreen  # noqa: PLC0415 - most runs never show it

    def set_mode(mode: Mode) -> None:
        chat.session.set_mode(mode)
        chat.show_facts()

    _, conversation = chat.session.live
    chat.ba.push_screen(PermissionsScreen(conversation.permissions, set_mode))


def context(chat: Actions, __: str) -> None:
    from ba_tui.faces.tui.screens.context import ContextScreen  # noqa: PLC0415 - most runs never show it

    _, conversation = chat.session.live
    chat.ba.push_screen(ContextScreen(conversation, chat.status.ledger))


async def theme(chat: Actions, name: str) -> None:
    """Choose with a live preview, or by name; kept for later starts."""
    app = chat.ba
    await app.load_themes()
    if not name:
        from ba_tui.faces.tui.screens.themes import ThemePicker  # noqa: PLC0415 - most runs never show it

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


async def setup(chat: Actions, _: str) -> None:
    """The ways to a first answer; what was achieved is checked again afterwards."""
    from ba_tui.faces.tui.screens.welcome import Welcome  # noqa: PLC0415 - most runs never show it

    services, conversation = chat.session.live
    if not chat.session.start.kept:
        raise UsageError("The demo keeps no settings.", "Leave it with Ctrl+D, start ba, then use /setup.")
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


MODELS = Room({SlashCommand("model", "Choose the model", "[small|reasoning] [provider/model]", ("models",)): model})
PERMISSIONS = Room(
    {
        SlashCommand("mode", "Change the permission mode", "[name]"): mode,
        SlashCommand("permissions", "View and edit permissions", aliases=("allowed-tools", "approvals")): permissions,
        SlashCommand("cycle-mode", "Switch to the next permission mode", keys="shift+tab", slash=False): cycle_mode,
    }
)
CONTEXT = Room({SlashCommand("context", "Show what fills the context window"): context})
THEMES = Room({SlashCommand("theme", "Choose the colours", "[name]", ("themes",)): theme})
SETUP = Room({SlashCommand("setup", "Connect a model", aliases=("login", "connect")): setup})
