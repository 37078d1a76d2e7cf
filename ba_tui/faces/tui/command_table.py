"""The command table: ba's own commands, and those that the open session brings: the person's own, and skills by name.

What a command of the person's own stands for is found out when it is sent; here it is a name, a hint and a line.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.commands import PROMPT, SlashCommand, complete, find, nearest, parse
from ba_tui.faces.tui.widgets.completion import Candidate

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import Act, Actions

TOLD = 3
"""Troubles that are told at once; the help lists all."""
SKILL = "skill"
READING = 8.0
"""Seconds for which the answer to a guess stays."""


class CommandTable:
    """``rows`` can be called, ba's own first; ``troubles`` says what can't be, a line each."""

    def __init__(self, chat: Actions, acts: Mapping[SlashCommand, Act], bundled: Sequence[SlashCommand]) -> None:
        self.rows: Sequence[SlashCommand] = bundled
        self.troubles: tuple[str, ...] = ()
        self._chat = chat
        self._acts = acts
        self._bundled = bundled
        self._told: set[str] = set()

    async def load(self) -> None:
        """Look which there are now; what is newly wrong with one is told."""
        conversation = self._chat.session.conversation
        if conversation is None:
            return
        try:
            own, self.troubles = await asyncio.to_thread(found, conversation.inventory, self._bundled)
        except BaError as error:
            self._chat.tell(Notice(str(error), "warning", error.hint))
            return
        self.rows = (*self._bundled, *own)
        news = [trouble for trouble in self.troubles if trouble not in self._told]
        self._told.update(news)
        for trouble in news[:TOLD]:
            self._chat.tell(Notice(trouble, "warning"))
        if len(news) > TOLD:
            self._chat.tell(Notice(f"{len(news) - TOLD} more commands can't be called: /help lists them.", "warning"))

    def find(self, name: str) -> SlashCommand | None:
        return find(name, self.rows)

    def complete(self, query: str) -> Sequence[Candidate]:
        return complete(query, self.rows)

    def takes_path(self, query: str) -> bool:
        """Whether a path may stand at the end of ``query``: a name, blanks, and what follows."""
        name, blank, _ = query.partition(" ")
        command = self.find(name) if blank else None
        return command is not None and command.paths

    def parse(self, text: str) -> tuple[str, str] | None:
        """Name and argument when ``text`` is meant as a command."""
        return parse(text, self._chat.session.cwd, self.rows)

    def run(self, command: SlashCommand, argument: str) -> Awaitable[None] | None:
        """Do what the row stands for."""
        if not command.origin:
            return self._acts[command](self._chat, argument)
        if command.origin == SKILL:
            return _start(command.name, self._chat, argument)
        _submit(self._chat, f"/{command.name} {argument}".rstrip())
        return None

    def alone(self, text: str) -> bool:
        """A command can't steer a running turn: what it stands for is made when a turn begins."""
        called = self.parse(text)
        command = self.find(called[0]) if called else None
        if command is None or not command.origin:
            return False
        self._chat.activity.hint(f"/{command.name} waits for the end of this turn.")
        return True

    async def look_again(self, text: str, name: str, argument: str) -> None:
        """Nobody knows the command: it may be new. Else the nearest is named, and the words are kept."""
        if self._chat.session.conversation is None:
            self._chat.activity.hint("ba is still starting. Try again in a moment.")
            self._chat.composer.put_back(text)
            return
        await self.load()
        if self.find(name) is None and not await self._sendable(text):
            self._chat.activity.hint(nearest(name, self.rows), READING)
            self._chat.composer.put_back(text)
        elif self.find(name) is None:
            _submit(self._chat, text)
        else:
            self._chat.call_command(name, argument)

    async def _sendable(self, text: str) -> bool:
        """Whether it calls a command by another of its names, such as ``user:name``."""
        conversation = self._chat.session.conversation
        commands = conversation.inventory.commands if conversation else None
        if commands is None:
            return False
        try:
            await asyncio.to_thread(commands.check, text.strip())
        except UsageError:
            return False
        return True


def found(inventory: Inventory, bundled: Sequence[SlashCommand]) -> tuple[tuple[SlashCommand, ...], tuple[str, ...]]:
    """Rows and troubles. The names of ``bundled`` win, then those of commands. Reads files."""
    rows: list[SlashCommand] = []
    troubles: list[str] = []
    for line in inventory.commands.lines() if inventory.commands else ():
        name, path = line.name, paintable(line.path, newlines=False)
        if line.trouble:
            troubles.append(f"The command /{paintable(name, newlines=False)} can't be used: {line.trouble}.")
            continue
        if find(name, bundled):
            name = f"{line.source}:{name}"
            troubles.append(f"{path} is called as /{name}: /{line.name} is a command of ba's own.")
        rows.append(
            SlashCommand(name, line.description, line.hint, origin=PROMPT if line.source == "bundled" else path)
        )
    for skill in inventory.skills.lines() if inventory.skills else ():
        able = skill.state not in {"broken", "shadowed"} and not skill.for_models
        if able and not find(skill.id, (*bundled, *rows)):
            summary = " ".join(skill.description.split())
            rows.append(SlashCommand(skill.id, f"Skill: {summary}", origin=SKILL))
    return tuple(rows), tuple(troubles)


def _submit(chat: Actions, text: str) -> None:
    chat.turns.submit(text)
    chat.show_facts()


async def _start(id: str, chat: Actions, argument: str) -> None:
    """With words behind it, it is what the person asks for; alone, it waits for what they ask next."""
    _, conversation = chat.session.live
    skills = conversation.inventory.skills
    if skills is None:
        raise UsageError("This session has no skills.")
    if argument:
        _submit(chat, f"/{id} {argument}")
        return
    await asyncio.to_thread(skills.activate, id)
    chat.activity.hint(f"The skill {id} applies from your next message.")
