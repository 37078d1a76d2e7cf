"""Commands that show how things stand: status, cost, doctor, settings, hooks, context files, the transcript."""

from __future__ import annotations

import asyncio

from ba_tui.core.errors import UsageError
from ba_tui.faces.tui.acts.editor import page
from ba_tui.faces.tui.acts.inventory import inventory_of, needed
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand


def status(chat: Actions, _: str) -> None:
    from ba_tui.faces.tui.screens.overview.status import StatusScreen  # noqa: PLC0415 - most runs never show it

    chat.ba.push_screen(StatusScreen(chat))


def cost(chat: Actions, _: str) -> None:
    from ba_tui.faces.tui.screens.context import CostScreen  # noqa: PLC0415 - most runs never show it

    chat.ba.push_screen(CostScreen(chat.status.ledger))


def doctor(chat: Actions, _: str) -> None:
    from ba_tui.faces.tui.screens.overview.doctor import DoctorScreen  # noqa: PLC0415 - most runs never show it

    services, _conversation = chat.session.live
    if services.checks is None:
        raise UsageError("The doctor can't be asked here.", "Run `ba doctor` in a shell.")
    chat.ba.push_screen(DoctorScreen(services.checks))


def config(chat: Actions, words: str) -> None:
    from ba_tui.faces.tui.screens.overview.config import ConfigScreen  # noqa: PLC0415 - most runs never show it

    services, _conversation = chat.session.live
    if services.settings is None or not chat.session.start.kept:
        raise UsageError("This session keeps no settings.", "Start ba in a folder of yours, then use /config.")
    chat.ba.push_screen(ConfigScreen(services.settings, words))


def hooks(chat: Actions, _: str) -> None:
    from ba_tui.faces.tui.screens.overview.hooks import HookBrowser  # noqa: PLC0415 - most runs never show it

    found = inventory_of(chat).hooks
    hint = "Run `ba hooks list` in a shell."
    chat.ba.push_screen(HookBrowser(needed(found, "This session has no list of hooks.", hint)))


async def transcript(chat: Actions, _: str) -> None:
    """The whole session as Markdown in the person's pager."""
    services, conversation = chat.session.live
    if not chat.session.started:
        raise UsageError("This session is still empty.", "Read it after the first turn.")
    text = await asyncio.to_thread(lambda: "".join(services.library.export(conversation.id, "md")))
    await page(chat, text, ".md")


STATUS = Room(
    {
        SlashCommand("status", "Show session, model, mode, folder and sandbox"): status,
        SlashCommand("cost", "Show tokens and cost by model and turn", aliases=("usage", "stats")): cost,
        SlashCommand("doctor", "Check that everything works"): doctor,
    }
)
SETTINGS = Room(
    {
        SlashCommand("config", "Show and change settings", "[words]", aliases=("settings",)): config,
        SlashCommand("hooks", "List hooks and how they went"): hooks,
    }
)
TRANSCRIPT = Room({SlashCommand("transcript", "Read the whole session in $PAGER"): transcript})
