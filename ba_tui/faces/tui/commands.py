"""The one table of what the person can do: slash commands, keys, palette and help all read it.

What a row does stands in ``acts``; rows that the open session brings are ``own_commands``. Nothing here knows a widget.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from ba_tui.core.text import wording
from ba_tui.core.values import frozen
from ba_tui.faces.tui.acts import compacting, inventory, rewind, sessions, settings, trust, view
from ba_tui.faces.tui.acts.editor import editor
from ba_tui.faces.tui.widgets.completion import Candidate

if TYPE_CHECKING:
    from ba_tui.faces.tui.screens.chat import ChatScreen

Act: TypeAlias = "Callable[[ChatScreen, str], Awaitable[None] | None]"
PLAIN_EXITS = frozenset({"exit", "quit", ":q"})


@frozen
class SlashCommand:
    """``argument`` is the hint shown behind the name, in ``<>`` when it is needed; ``slash`` False: a key only.
    ``origin``: the file of the person's own command, or ``skill``; empty for what ba brings."""

    name: str
    summary: str
    act: Act
    argument: str = ""
    aliases: tuple[str, ...] = ()
    keys: str = ""
    slash: bool = True
    origin: str = ""

    @property
    def title(self) -> str:
        return f"/{self.name} {self.argument}".rstrip()

    @property
    def asks(self) -> bool:
        """Whether words should be typed behind it before it is sent."""
        return bool(self.argument) and (bool(self.origin) or self.argument.startswith("<"))


COMMANDS: Sequence[SlashCommand] = (
    SlashCommand("help", "Keys and commands", view.show_help, keys="f1"),
    SlashCommand("clear", "New session; this one is kept", sessions.clear, aliases=("new",)),
    SlashCommand("resume", "Go on with an earlier session", sessions.resume, "[words]", ("sessions", "continue")),
    SlashCommand(
        "rewind", "Back to before a prompt: conversation, files or both", rewind.rewind, "[turn|undo]", ("undo",)
    ),
    SlashCommand("diff", "What changed in files since this session began", rewind.diff),
    SlashCommand("rename", "Give this session a title", sessions.rename, "<title>"),
    SlashCommand("export", "Write this session to a file", sessions.export, "[md|html|json|jsonl] [file]"),
    SlashCommand("copy", "Copy the last answer, or the n-th from the end", sessions.copy, "[n]", keys="ctrl+y"),
    SlashCommand("model", "Choose the model", settings.model, "[provider/model]"),
    SlashCommand("mode", "What may run without asking", settings.mode, "[name]"),
    SlashCommand(
        "permissions", "Mode and rules, where each comes from", settings.permissions, aliases=("allowed-tools",)
    ),
    SlashCommand("trust", "Whether this folder is trusted, and what it brings", trust.trust),
    SlashCommand("context", "What fills the window, with tokens", settings.context, aliases=("status",)),
    SlashCommand(
        "compact", "Shorten the conversation, or undo that", compacting.compact, "[focus|undo]", ("compress",)
    ),
    SlashCommand("tools", "Every tool: state, source, figures; switch it on or off", inventory.tools),
    SlashCommand("skills", "Every skill: state, size, files; start it, end it, check it", inventory.skills),
    SlashCommand("shells", "Commands that run in the background", inventory.shells, aliases=("tasks", "bashes")),
    SlashCommand("background", "Let the running command go on in the background", inventory.background, keys="ctrl+b"),
    SlashCommand("theme", "Choose the colours", settings.theme, "[name]"),
    SlashCommand("setup", "Keys, local servers and the tour", settings.setup, aliases=("login", "connect")),
    SlashCommand("todos", "Show or hide the todos", view.todos, keys="ctrl+t"),
    SlashCommand("panel", "Show or hide the side panel", view.panel, keys="f3"),
    SlashCommand("inspector", "Open the newest tool result in full", view.inspector, keys="ctrl+o"),
    SlashCommand("history", "Search earlier prompts", view.search_history, keys="ctrl+r"),
    SlashCommand("editor", "Write the prompt in $EDITOR", editor, keys="ctrl+g"),
    SlashCommand("redraw", "Draw the screen again", view.redraw, keys="ctrl+l"),
    SlashCommand("exit", "Leave; the session is kept", sessions.leave, aliases=("quit", "q")),
    SlashCommand("cycle-mode", "Next permission mode", settings.cycle_mode, keys="shift+tab", slash=False),
    SlashCommand(
        "interrupt",
        "Close what is open or interrupt; twice: clear the line, or rewind",
        view.escape,
        keys="escape",
        slash=False,
    ),
    SlashCommand("earlier", "Scroll the conversation up", view.page_up, keys="pageup", slash=False),
    SlashCommand("later", "Scroll the conversation down", view.page_down, keys="pagedown", slash=False),
    SlashCommand("start", "To the first line of the conversation", view.to_start, keys="ctrl+home", slash=False),
    SlashCommand("end", "To the newest line of the conversation", view.to_end, keys="ctrl+end", slash=False),
    SlashCommand("suspend", "Put ba into the background", view.suspend, keys="ctrl+z", slash=False),
)


def find(name: str, own: Sequence[SlashCommand] = ()) -> SlashCommand | None:
    """The command of this name or alias; ba's before those that are the person's ``own``."""
    name = name.casefold()
    every = (*COMMANDS, *own)
    return next((each for each in every if name == each.name.casefold() or name in each.aliases), None)


def parse(text: str, cwd: Path, own: Sequence[SlashCommand] = ()) -> tuple[str, str] | None:
    """Name and argument when ``text`` is meant as a command; None for prose and for paths that begin with ``/``."""
    stripped = text.strip()
    if stripped in PLAIN_EXITS:
        return "exit", ""
    if not stripped.startswith("/") or stripped.startswith("//"):
        return None
    name, argument = (*stripped[1:].split(None, 1), "", "")[:2]
    command = find(name, own)
    if "/" in name or not name or (command is None and _is_path(cwd, name)):
        return None
    if "\n" in stripped[: len(name) + 2] and not (command and command.origin):
        # What ba's own commands take is one line; this is a prompt that begins with a slash.
        return None
    return name, argument


def _is_path(cwd: Path, name: str) -> bool:
    try:
        return (cwd / f"/{name}").exists() or "." in name
    except (OSError, ValueError):
        return False


def nearest(name: str, own: Sequence[SlashCommand] = ()) -> str:
    """The line for a command that does not exist."""
    names = [word for command in (*COMMANDS, *own) if command.slash for word in (command.name, *command.aliases)]
    close = wording.nearest(name.casefold(), names)
    return f"There is no /{name}." + (f" Did you mean /{close}?" if close else " Type / to see all commands.")


def complete(query: str, own: Sequence[SlashCommand] = ()) -> Sequence[Candidate]:
    """Commands for the popup: those that start with ``query``, by name before alias, then those that hold it or its
    letters in order."""
    query = query.casefold()
    ranked: list[tuple[tuple[int, int], int, Candidate]] = []
    for index, command in enumerate(command for command in (*COMMANDS, *own) if command.slash):
        words = ((command.name.casefold(), 0), *((alias, 1) for alias in command.aliases))
        ranks = [(rank, alias) for word, alias in words if (rank := _rank(query, word)) is not None]
        if ranks:
            insert = f"/{command.name}" + (" " if command.asks else "")
            ranked.append((min(ranks), index, Candidate(insert, command.title, command.summary)))
    return [candidate for _, _, candidate in sorted(ranked, key=lambda item: item[:2])]


def _rank(query: str, word: str) -> int | None:
    if word.startswith(query):
        return 0
    if query in word:
        return 1
    letters = iter(word)
    return 2 if len(query) > 1 and all(letter in letters for letter in query) else None
