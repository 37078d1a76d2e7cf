"""Ctrl+P: every row of the command table, found by words. What a row does is the row's own."""

from __future__ import annotations

from functools import partial
from typing import Any

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.screen import Screen

from ba_tui.faces.tui.commands import SlashCommand, find
from ba_tui.faces.tui.screens.chat import ChatScreen

WHOLE_NAME = 1_000
"""More than any likeness counts."""


class PaletteCommands(Provider):
    """Offers nothing while another screen than the chat is in front."""

    async def discover(self) -> Hits:
        for command, title in self._offered():
            yield DiscoveryHit(Content(title), partial(self._run, command), title, command.summary)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command, title in self._offered():
            score = max(matcher.match(title), matcher.match(command.summary))
            if find(query.strip().removeprefix("/"), (command,)):
                score += WHOLE_NAME
            if score > 0:
                yield Hit(score, matcher.highlight(title), partial(self._run, command), title, command.summary)

    def _offered(self) -> list[tuple[SlashCommand, str]]:
        here: Screen[Any] = self.screen
        if not isinstance(here, ChatScreen):
            return []
        rows = here.commands.rows
        return [(command, command.title if command.slash else command.name) for command in rows]

    def _run(self, command: SlashCommand) -> None:
        here: Screen[Any] = self.screen
        if not isinstance(here, ChatScreen):
            return
        if command.asks:
            # It needs words: they are typed in the input.
            here.composer.put_back(f"/{command.name} ")
        else:
            here.call_command(command.name)
