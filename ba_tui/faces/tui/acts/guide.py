"""The command that opens the guide."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import cache

from ba_tui.faces.tui.acts.port import Actions, Room
from ba_tui.faces.tui.commands import SlashCommand


async def guide(chat: Actions, words: str) -> None:
    """Open the page that ``words`` name, or the list of all pages."""
    from ba_tui.faces.tui.screens.guide import GuideList, GuideScreen  # noqa: PLC0415 - most runs never show it
    from ba_tui.guide import Guide  # noqa: PLC0415 - see above

    found = await asyncio.to_thread(Guide)
    chat.ba.push_screen(GuideScreen(found, found.find(words, "/guide")) if words.strip() else GuideList(found))


@cache
def topics() -> Sequence[tuple[str, str]]:
    """Return the topics and their titles."""
    from ba_tui.guide import Guide  # noqa: PLC0415 - not before the first paint

    return [(page.topic, page.title) for page in Guide().pages]


GUIDE = Room({SlashCommand("guide", "Read how to do things", "[topic]", choices=topics): guide})
