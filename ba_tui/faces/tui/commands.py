"""Rows of the command table, and finding one by what is typed: slash commands, keys, palette and help all read them.

Rows are values: ``rooms`` says what each of ba's own does, ``own_commands`` which ones the open session brings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.faces.tui.guesses import answer, means_another
from ba_tui.faces.tui.widgets.completion import Candidate

PREFIX = 1
"""The rank of a name that begins with what was typed; the whole name has a lower one."""
PROMPT = "prompt"
"""The origin of a command that ba brings as a prompt: what it stands for is sent."""
PLAIN_EXITS = frozenset({"exit", "quit", ":q"})


@frozen
class SlashCommand:
    """``argument`` is the hint shown behind the name, in ``<>`` when it is needed; ``slash`` False: a key only.
    ``origin``: the file of the person's own command, ``skill``, or ``PROMPT``; empty for what ba does itself.
    ``choices``: words that may be typed behind the name, each with a line about it."""

    name: str
    summary: str
    argument: str = ""
    aliases: tuple[str, ...] = ()
    keys: str = ""
    slash: bool = True
    origin: str = ""
    choices: Callable[[], Sequence[tuple[str, str]]] | None = None
    paths: bool = False
    """Whether what may be typed behind the name is a path."""

    @property
    def title(self) -> str:
        return f"/{self.name} {self.argument}".rstrip()

    @property
    def asks(self) -> bool:
        """Whether words should be typed behind it before it is sent."""
        own = self.origin not in {"", PROMPT}
        return bool(self.argument) and (own or self.argument.startswith("<"))


def find(name: str, rows: Iterable[SlashCommand]) -> SlashCommand | None:
    """The first command of this name or alias."""
    name = name.casefold()
    return next((each for each in rows if name == each.name.casefold() or name in each.aliases), None)


def parse(text: str, cwd: Path, rows: Iterable[SlashCommand]) -> tuple[str, str] | None:
    """Name and argument when ``text`` is meant as a command; None for prose and for paths that begin with ``/``."""
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
    # With a space before it, what is no command is sent as it is.
    unknown = command is None and (not text.startswith("/") or _is_path(cwd, name))
    if "/" in name or not name or unknown:
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


def nearest(name: str, rows: Iterable[SlashCommand]) -> str:
    """The line for a command that does not exist."""
    return answer(name, [word for command in rows if command.slash for word in (command.name, *command.aliases)])


def complete(query: str, rows: Iterable[SlashCommand]) -> Sequence[Candidate]:
    """Commands for the popup: the one of this name, those that start with ``query``, by name before alias, then those
    that hold it or its letters in order."""
    query = query.casefold()
    if " " in query:
        return _choices(query, rows)
    ranked: list[tuple[tuple[int, int], int, Candidate]] = []
    for index, command in enumerate(command for command in rows if command.slash):
        words = ((command.name.casefold(), 0), *((alias, 1) for alias in command.aliases))
        ranks = [(rank, alias) for word, alias in words if (rank := _rank(query, word)) is not None]
        if ranks:
            insert = f"/{command.name}" + (" " if command.asks else "")
            best = min(ranks)
            sure = best[0] == 0 or (best[0] == PREFIX and not means_another(query, command.name))
            candidate = Candidate(insert, command.title, command.summary, sure=sure)
            ranked.append((best, index, candidate))
    return [candidate for _, _, candidate in sorted(ranked, key=lambda item: item[:2])]


def _choices(query: str, rows: Iterable[SlashCommand]) -> Sequence[Candidate]:
    """The words that may follow a command, those that begin with what was typed first."""
    name, _, typed = query.partition(" ")
    command, typed = find(name, rows), typed.lstrip()
    if command is None or command.choices is None:
        return ()
    ranked = [(rank, word, line) for word, line in command.choices() if (rank := _rank(typed, word)) is not None]
    ranked.sort(key=lambda each: each[0])
    return [Candidate(word, word, line, sure=bool(typed) and rank <= PREFIX) for rank, word, line in ranked]


def _rank(query: str, word: str) -> int | None:
    if word == query:
        return 0
    if word.startswith(query):
        return PREFIX
    if query in word:
        return 2
    letters = iter(word)
    return 3 if len(query) > 1 and all(letter in letters for letter in query) else None
