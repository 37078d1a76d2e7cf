"""The command table: built-in commands, user commands and skills; finding, completing and running them.

Slash commands, keys, palette and help all use it. User commands are expanded only when they are sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from ba_tui.command import PROMPT, Command, Guesses, read_guesses
from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.brain import Inventory
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.widgets.completion import CompletionItem

if TYPE_CHECKING:
    from ba_tui.faces.tui.acts.port import Act, Actions


PREFIX = 1
"""The rank of a name that begins with what was typed; the whole name has a lower one."""
PLAIN_EXITS = frozenset({"exit", "quit", ":q"})


def find(name: str, rows: Iterable[Command]) -> Command | None:
    """Return the first command of this name or alias."""
    name = name.casefold()
    return next((each for each in rows if name == each.name.casefold() or name in each.aliases), None)


def parse(text: str, cwd: Path, rows: Iterable[Command]) -> tuple[str, str] | None:
    """Return name and argument if ``text`` is a command; None for prose and for paths that begin with ``/``."""
    stripped = text.strip()
    if text.startswith("!"):
        return "shell", text[1:].strip()
    if text.startswith("# ") and "\n" not in stripped:
        return "remember", text
    if stripped in PLAIN_EXITS:
        return "exit", ""
    if not stripped.startswith("/") or stripped.startswith("//"):
        return None
    name, argument = (*stripped[1:].split(None, 1), "", "")[:2]
    command = find(name, rows)
    # A leading space sends unknown /words as text.
    unknown = command is None and (not text.startswith("/") or _is_path(cwd, name))
    if "/" in name or not name or unknown:
        return None
    if "\n" in stripped[: len(name) + 2] and not (command and command.origin):
        # The argument of ba's own commands is one line; this is a prompt that begins with a slash.
        return None
    return name, argument


def _is_path(cwd: Path, name: str) -> bool:
    try:
        return (cwd / f"/{name}").exists() or "." in name
    except (OSError, ValueError):
        return False


def nearest(name: str, rows: Iterable[Command], guesses: Guesses) -> str:
    """Return the line for a command that does not exist."""
    known = [word for command in rows if command.slash for word in (command.name, *command.aliases)]
    return guesses.slash_command(name, known)


def complete(query: str, rows: Iterable[Command], guesses: Guesses) -> Sequence[CompletionItem]:
    """Return the commands for the popup: the command called ``query``, then names and aliases that begin with it, then
    those that contain it, or its letters in order."""
    query = query.casefold()
    if " " in query:
        return _choices(query, rows)
    ranked: list[tuple[tuple[int, int], int, CompletionItem]] = []
    for index, command in enumerate(command for command in rows if command.slash):
        words = ((command.name.casefold(), 0), *((alias, 1) for alias in command.aliases))
        ranks = [(rank, alias) for word, alias in words if (rank := _rank(query, word)) is not None]
        if ranks:
            insert = f"/{command.name}" + (" " if command.asks else "")
            best = min(ranks)
            sure = best[0] == 0 or (best[0] == PREFIX and not guesses.means_another(query, command.name))
            candidate = CompletionItem(insert, command.title, command.summary, sure=sure)
            ranked.append((best, index, candidate))
    return [candidate for _, _, candidate in sorted(ranked, key=lambda item: item[:2])]


def _choices(query: str, rows: Iterable[Command]) -> Sequence[CompletionItem]:
    """Return the words that complete a command's argument, those that begin with the typed text first."""
    name, _, typed = query.partition(" ")
    command, typed = find(name, rows), typed.lstrip()
    if command is None:
        return ()
    ranked = [(rank, word, line) for word, line in command.completions() if (rank := _rank(typed, word)) is not None]
    ranked.sort(key=lambda each: each[0])
    return [CompletionItem(word, word, line, sure=bool(typed) and rank <= PREFIX) for rank, word, line in ranked]


def _rank(query: str, word: str) -> int | None:
    if word == query:
        return 0
    if word.startswith(query):
        return PREFIX
    if query in word:
        return 2
    letters = iter(word)
    return 3 if len(query) > 1 and all(letter in letters for letter in query) else None


TOLD = 3
"""Most troubles in notices; the help lists all."""
SKILL = "skill"
READING = 8.0
"""Seconds for which the answer to an unknown command is shown."""


class CommandTable:
    """The commands of a session: ``rows``, ba's own first. ``troubles``: a line for each command of the user that can't
    be used."""

    def __init__(self, chat: Actions, bundled: Sequence[Command]) -> None:
        self.rows: Sequence[Command] = bundled
        self.troubles: tuple[str, ...] = ()
        self._chat = chat
        self._bundled = bundled
        self._told: set[str] = set()

    @property
    def guesses(self) -> Guesses:
        """Return the words of other programs for commands."""
        return read_guesses(self._chat.parts.guesses)

    async def load(self) -> None:
        """Reload the user's commands and skills, and report new problems."""
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

    def find(self, name: str) -> Command | None:
        return find(name, self.rows)

    def complete(self, query: str) -> Sequence[CompletionItem]:
        return complete(query, self.rows, self.guesses)

    def takes_path(self, query: str) -> bool:
        """Return whether ``query`` ends in the argument of a command that takes a path."""
        name, blank, _ = query.partition(" ")
        command = self.find(name) if blank else None
        return command is not None and command.paths

    def parse(self, text: str) -> tuple[str, str] | None:
        """Return name and argument if ``text`` is a command."""
        return parse(text, self._chat.session.cwd, self.rows)

    def run(self, command: Command, argument: str) -> Awaitable[None] | None:
        """Run a command. Raises UsageError when its function can't be imported."""
        if not command.origin:
            try:
                act: Act = resolve_name(command.run)
            except (ImportError, AttributeError, ValueError) as error:
                raise UsageError(
                    f"/{command.name} can't be loaded: {error}.", "Update or remove its package."
                ) from error
            return act(self._chat, argument)
        if command.origin == SKILL:
            return _start(command.name, self._chat, argument)
        _submit(self._chat, f"/{command.name} {argument}".rstrip())
        return None

    def alone(self, text: str) -> bool:
        """Return whether ``text`` must wait for the turn's end: the user's own commands expand when a turn begins."""
        called = self.parse(text)
        command = self.find(called[0]) if called else None
        if command is None or not command.origin:
            return False
        self._chat.activity.hint(f"/{command.name} waits for the end of this turn.")
        return True

    async def look_again(self, text: str, name: str, argument: str) -> None:
        """Reload the commands and run the unknown command ``name`` if it is new; otherwise suggest the nearest one and
        keep the text in the input."""
        if self._chat.session.conversation is None:
            self._chat.activity.hint("ba is still starting. Try again in a moment.")
            self._chat.composer.put_back(text)
            return
        await self.load()
        if self.find(name) is None and not await self._sendable(text):
            self._chat.activity.hint(nearest(name, self.rows, self.guesses), READING)
            self._chat.composer.put_back(text)
        elif self.find(name) is None:
            _submit(self._chat, text)
        else:
            self._chat.call_command(name, argument)

    async def _sendable(self, text: str) -> bool:
        """Return whether ``text`` calls a command by its long name, such as ``user:name``."""
        conversation = self._chat.session.conversation
        commands = conversation.inventory.commands if conversation else None
        if commands is None:
            return False
        try:
            await asyncio.to_thread(commands.check, text.strip())
        except UsageError:
            return False
        return True


def found(inventory: Inventory, bundled: Sequence[Command]) -> tuple[tuple[Command, ...], tuple[str, ...]]:
    """Return the rows and the troubles of the user's commands and skills. Names of ``bundled`` take precedence, then
    those of commands. Reads files."""
    rows: list[Command] = []
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
            Command(name, line.description, argument=line.hint, origin=PROMPT if line.source == "bundled" else path)
        )
    for skill in inventory.skills.lines() if inventory.skills else ():
        able = skill.state not in {"broken", "shadowed"} and not skill.for_models
        if able and not find(skill.id, (*bundled, *rows)):
            summary = " ".join(skill.description.split())
            rows.append(Command(skill.id, f"Skill: {summary}", origin=SKILL))
    return tuple(rows), tuple(troubles)


def _submit(chat: Actions, text: str) -> None:
    chat.turns.submit(text)
    chat.show_facts()


async def _start(id: str, chat: Actions, argument: str) -> None:
    """Start a skill: with an argument as a prompt, otherwise for the next message."""
    _, conversation = chat.session.live
    skills = conversation.inventory.skills
    if skills is None:
        raise UsageError("This session has no skills.")
    if argument:
        _submit(chat, f"/{id} {argument}")
        return
    await asyncio.to_thread(skills.activate, id)
    chat.activity.hint(f"The skill {id} applies from your next message.")
