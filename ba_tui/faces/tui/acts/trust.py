"""Whether the folder is trusted: asked before the first prompt, and again by command."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.trust import ASKS_AGAIN
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand
from ba_tui.resources import project_root

if TYPE_CHECKING:
    from pathlib import Path

    from ba_tui.core.ports.trust import ToolWrite, Trusting, TrustState
    from ba_tui.faces.tui.screens.trust import TrustAnswer


async def settle(chat: Actions, notices: Sequence[Notice] = ()) -> Sequence[Notice] | None:
    """Ask about the folder of the session unless it is trusted, or was refused before in this run of ba.

    Returns what the person should be told now, or None when they would rather leave.
    """
    services, conversation = chat.session.live
    root = project_root(conversation.cwd)
    chat.session.reads_only = root in chat.session.refused
    if services.trust is None or chat.session.reads_only:
        return notices
    seen = await asyncio.to_thread(services.trust.look, root)
    if seen.state == "trusted":
        return [*notices, *map(_unread, seen.written)]
    chat.turns.questioned = not chat.turns.ready
    verdict = await _ask(chat, seen, starting=True)
    if verdict == "quit":
        await chat.ba.action_quit()
        return None
    if verdict != "trust":
        chat.session.refused.add(root)
        chat.session.reads_only = True
        return notices
    return await _grant(chat, services.trust, seen, notices)


async def trust(chat: Actions, _: str) -> None:
    """Show how the folder stands, and change it."""
    if chat.turns.busy:
        raise UsageError("A turn is running.", "Press Esc to interrupt it first.")
    services, conversation = chat.session.live
    if services.trust is None:
        raise UsageError("ba made this folder itself, so there is nothing to trust.")
    root = project_root(conversation.cwd)
    seen = await asyncio.to_thread(services.trust.look, root)
    match await _ask(chat, seen, starting=False):
        case "trust":
            chat.session.refused.discard(root)
            notices = await _grant(chat, services.trust, seen, ())
        case "revoke":
            await asyncio.to_thread(services.trust.revoke, root)
            chat.session.refused.add(root)
            notices = await chat.session.reopen()
        case _:
            if seen.state != "trusted" or not await _allow(chat, services.trust, root):
                return
            notices = _unanswered(await chat.session.reopen())
    now = await asyncio.to_thread(services.trust.look, root)
    chat.session.reads_only = now.state != "trusted"
    await chat.show_session()
    for notice in notices:
        chat.tell(notice)
    chat.activity.hint("This folder is not trusted." if chat.session.reads_only else "This folder is trusted.")


def _unread(write: ToolWrite) -> Notice:
    """What is said of an instruction file that a tool wrote and the user has not accepted."""
    return Notice(f"{write.line}. Models do not read it.", "warning", "/trust shows the difference and accepts it.")


async def _ask(chat: Actions, seen: TrustState, *, starting: bool) -> TrustAnswer | None:
    from ba_tui.faces.tui.screens.trust import TrustScreen  # noqa: PLC0415 - most runs never show it

    return await chat.ba.push_screen_wait(TrustScreen(seen, starting=starting))


async def _grant(chat: Actions, trusting: Trusting, seen: TrustState, notices: Sequence[Notice]) -> Sequence[Notice]:
    """Trust what was seen, and open the session anew with all that the folder brings."""
    services, _ = chat.session.live
    kept = [notice for notice in notices if notice not in services.notices]
    try:
        await asyncio.to_thread(trusting.grant, seen)
        await _allow(chat, trusting, seen.root)
        return [*kept, *_unanswered(await chat.session.reopen())]
    except BaError as error:
        chat.session.reads_only = True
        return [*notices, Notice(str(error), "error", error.hint)]


def _unanswered(notices: Sequence[Notice]) -> list[Notice]:
    """``notices`` without those about values to which the user has just said no."""
    return [notice for notice in notices if notice.hint != ASKS_AGAIN]


async def _allow(chat: Actions, trusting: Trusting, root: Path) -> bool:
    """Ask about each value in the project's settings that needs the user's yes; whether one was allowed now.

    Raises:
        StorageError: an answer can't be kept.
    """
    from ba_tui.faces.tui.screens.trust import AllowScreen  # noqa: PLC0415 - most projects ask for nothing

    waiting = [each for each in await asyncio.to_thread(trusting.asked, root) if not each.allowed]
    allowed = [each for each in waiting if await chat.ba.push_screen_wait(AllowScreen(each)) == "trust"]
    for each in allowed:
        await asyncio.to_thread(trusting.allow, root, each)
    return bool(allowed)


TRUST = Room({SlashCommand("trust", "Show or change whether this folder is trusted"): trust})
