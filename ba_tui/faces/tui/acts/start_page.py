"""What a new session offers before its first prompt: earlier sessions of the folder, and prompts that fit it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ba_tui.core.errors import BaError
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.meters import git_branch
from ba_tui.faces.tui.widgets.status import short_folder
from ba_tui.resources import user_home

if TYPE_CHECKING:
    from ba_tui.core.ports.sessions import SessionInfo
    from ba_tui.core.services import Library

OFFERED = 3
"""Sessions that are offered."""


async def show_start_page(chat: Actions) -> None:
    """Show the page while nothing was said yet. Files are read in a thread, after the first paint."""
    conversation = chat.session.conversation
    if conversation is None or not _fresh(chat):
        return
    from ba_tui.faces.tui.suggestions import look_for_suggestions  # noqa: PLC0415 - not before the first paint

    cwd, id, library = conversation.cwd, conversation.id, chat.session.live[0].library

    def look() -> tuple[Sequence[SessionInfo], Sequence[str]]:
        return recent(library, id), look_for_suggestions(cwd, git=bool(git_branch(cwd)))

    sessions, prompts = await asyncio.to_thread(look)
    if _fresh(chat) and conversation is chat.session.conversation:
        folder = paintable(short_folder(cwd, user_home()), newlines=False)
        await chat.main_area.show_start(
            folder=folder, model=conversation.model, sessions=tuple(sessions), prompts=tuple(prompts)
        )


def choose(chat: Actions, text: str) -> bool:
    """Do what ``text`` stands for on the page; False when it is no number of it."""
    page = chat.main_area.start_page
    if page is None:
        return False
    if session := page.choices.session(text):
        chat.call_command("resume", session.id)
    elif prompt := page.choices.prompt(text):
        chat.composer.put_back(prompt)
    else:
        return False
    return True


def recent(library: Library, own: str) -> Sequence[SessionInfo]:
    """The newest sessions of the folder that can be continued here; none when they can't be read."""
    try:
        infos = library.sessions()
    except BaError:
        return ()
    return [info for info in infos if not (info.unattended or info.locked_by or info.id == own)][:OFFERED]


def _fresh(chat: Actions) -> bool:
    return not (chat.session.started or chat.turns.busy or chat.transcript.records)
