"""The prompt, or a file, in the person's own editor or pager. The terminal is theirs meanwhile; a turn goes on.

Which prompt is edited and what becomes of it is the chat's.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import TypeVar

from textual.app import SuspendNotSupported

from ba_tui.core.errors import UsageError
from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand
from ba_tui.faces.tui.external import edited, editor_command, own_file, run_program

PAGERS = ("less", "more")
T = TypeVar("T")


async def editor(chat: Actions, _: str) -> None:
    text = await _lent(chat, edited(chat.composer.text, editor_command()))
    chat.composer.prompt.set_value(text)
    if not (chat.ask and chat.ask.waiting):
        chat.composer.prompt.focus()


async def edit_file(chat: Actions, path: Path) -> None:
    """Open ``path`` in the person's editor; its folder is made when there is none. Raises UsageError."""
    command = editor_command()
    try:
        await asyncio.to_thread(path.parent.mkdir, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{path.parent} can't be made: {error.strerror or error}.") from error
    await _lent(chat, run_program(command, path, "Set $VISUAL or $EDITOR."))


async def page(chat: Actions, text: str, suffix: str) -> None:
    """Show ``text`` in the person's pager. Raises UsageError when none is known."""
    command = os.environ.get("PAGER") or next(filter(shutil.which, PAGERS), "")
    if not command:
        raise UsageError("No pager is known.", "Set $PAGER, or write the text to a file: /export")
    await _lent(chat, _paged(text, command, suffix))


async def _paged(text: str, command: str, suffix: str) -> None:
    with own_file(text, "ba-transcript-", suffix) as path:
        await run_program(command, path, "Set $PAGER to another pager.")


async def _lent(chat: Actions, work: Coroutine[None, None, T]) -> T:
    """What ``work`` gives while the terminal is its own. Raises UsageError of it, and where no terminal can be lent."""
    fault: UsageError | None = None
    try:
        with chat.ba.suspend():
            try:
                return await work
            except UsageError as error:
                # Raised in here, it would leave the terminal to nobody.
                fault = error
    except SuspendNotSupported as error:
        work.close()
        raise UsageError("Another program can't be opened here.", "Shift+Enter makes a new line.") from error
    raise fault


EDITOR = Room({SlashCommand("editor", "Write the prompt in $EDITOR", keys="ctrl+g"): editor})
