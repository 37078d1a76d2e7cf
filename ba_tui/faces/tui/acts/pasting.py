"""Ctrl+V: a picture in the clipboard is kept with the session and stands as a chip in the input; else text comes in."""

from __future__ import annotations

import os
import sys

from ba_tui.core.errors import BaError
from ba_tui.faces.tui.acts.inventory import mentions
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.pictures import Ask, picture
from ba_tui.faces.tui.widgets.pastes import takes_pictures

READING = 8.0
"""Seconds for which it stays why nothing was pasted."""


async def paste(chat: Actions, text: str, ask: Ask | None) -> None:
    """Put the clipboard's picture into the input, or else ``text``, which was copied in ba. ``ask`` the terminal."""
    prompt = chat.composer.prompt
    if takes_pictures(prompt.text) and (source := mentions(chat)):
        try:
            prompt.insert_picture(await source.keep(await picture(sys.platform, os.environ, ask)))
            return
        except BaError as error:
            if not text:
                chat.activity.hint(error.with_hint, READING)
    if text:
        await prompt.insert_paste(text)
