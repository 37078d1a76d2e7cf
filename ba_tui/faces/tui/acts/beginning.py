"""The start of the chat: connect off the loop, ask about the folder, open the session, bring back what was unsent."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence

from ba_tui.core.errors import BaError
from ba_tui.core.events import Notice
from ba_tui.faces.tui.acts import trust, writing
from ba_tui.faces.tui.acts.port import Actions

LATE = ("inspected", "inspector.pane", "widgets.ask", "widgets.start_page", "suggestions")
"""Modules that the first paint does without."""


async def begin(chat: Actions) -> bool:
    """Open the session that the flags name and send what waits; False when there is none, or the person leaves."""
    try:
        notices = await asyncio.to_thread(_assemble, chat)
    except BaError as error:
        chat.tell(Notice(str(error), "error", f"{error.hint} Press Enter to try again.".strip()))
        return False
    if (told := await trust.settle(chat, notices)) is None:
        return False
    start = chat.session.start
    left = await writing.begin(chat)
    await chat.show_session()
    for notice in (*told, *chat.session.untold):
        chat.tell(notice)
    if chat.turns.questioned:
        while text := chat.turns.take_back():
            writing.return_early(chat, text)
    if start.prompt:
        chat.turns.waiting.appendleft(start.prompt)
    writing.bring_back(chat, *left)
    chat.turns.opened.set()
    await chat.check_setup()
    if start.resume == "pick":
        chat.call_command("resume")
    chat.turns.send_next()
    return True


def _assemble(chat: Actions) -> Sequence[Notice]:
    """In a thread: imports take a while."""
    notices = chat.session.assemble()
    for late in LATE:
        importlib.import_module(f"ba_tui.faces.tui.{late}")
    return notices
