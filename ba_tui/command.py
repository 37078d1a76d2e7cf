"""Commands as values, and the other parts of the app that the base and the features bring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from pkgutil import resolve_name
from typing import Any, cast

from ba_tui.core.values import frozen

PROMPT = "prompt"
"""The origin of a command that ships as a prompt: its text is sent to the model."""


@frozen
class Command:
    """One row gives the slash command, the palette entry, the key, ``ba NAME``, their help and their completion.

    ``run`` and ``cli`` name functions as ``"module:name"``, imported when they are called. ``run`` takes the chat
    and the words after the command's name; without it the row is a shell command only. ``argument`` is the hint
    after the name, in ``<>`` when it is required. ``slash`` False: the command has a key only. ``origin`` is the file
    of the user's own command, ``skill``, or ``PROMPT``; empty for ba's own.
    """

    name: str
    summary: str = ""
    run: str = ""
    argument: str = ""
    aliases: tuple[str, ...] = ()
    keys: str = ""
    slash: bool = True
    origin: str = ""
    choices: str | tuple[tuple[str, str], ...] = ()
    """Words that complete the argument, each with its description; or the name of a function that returns them."""
    paths: bool = False
    """Whether the argument is a path."""
    cli: str = ""
    """What ``ba NAME`` runs: a typer group of sub-commands, or one function."""
    help: str | None = None
    """The line about ``ba NAME`` in ``ba --help``; None: the docstring of its function, which is then imported."""
    hidden: bool = False
    """Left out of the list in ``ba --help``."""

    @property
    def title(self) -> str:
        return f"/{self.name} {self.argument}".rstrip()

    @property
    def asks(self) -> bool:
        """Whether an argument should be typed before the command is sent."""
        own = self.origin not in {"", PROMPT}
        return bool(self.argument) and (own or self.argument.startswith("<"))

    def completions(self) -> Sequence[tuple[str, str]]:
        """Return the words that complete the argument."""
        if isinstance(self.choices, str):
            return cast("Sequence[tuple[str, str]]", resolve_name(self.choices)()) if self.choices else ()
        return self.choices


@frozen
class AppParts:
    """The parts that the base and features add to the app. All strings are ``"module:name"``.

    ``panes``: folds over events, made with the chat. ``openers``: functions
    ``(chat, record | None) -> bool | Awaitable[None]`` that may open a record of the transcript, tried in order; False
    leaves it to the next one, and None means Enter on the empty input. ``opened``: functions
    called with the chat when a session was opened. ``views``: widgets that the base shows under these names.
    ``guesses``: a file with words of other programs, see ba_tui.guesses; the first one is used.
    """

    commands: tuple[Command, ...] = ()
    panes: tuple[str, ...] = ()
    openers: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    views: Mapping[str, str] = field(default_factory=dict[str, str])
    guesses: str = ""

    @classmethod
    def joined(cls, parts: Iterable[AppParts]) -> AppParts:
        """Return all parts as one, in their order; rows that are only a key come last. Of two rows with one name or key
        the first has it."""
        listed = list(parts)
        rows: dict[str, Command] = {}
        keys = set[str]()
        for row in (row for each in listed for row in each.commands):
            if row.name not in rows:
                rows[row.name] = replace(row, keys="") if row.keys in keys else row
                keys |= {row.keys} - {""}
        return cls(
            tuple(sorted(rows.values(), key=lambda row: not row.slash)),
            tuple(name for each in listed for name in each.panes),
            tuple(name for each in listed for name in each.openers),
            tuple(name for each in listed for name in each.opened),
            {name: view for each in listed for name, view in each.views.items()},
            next((each.guesses for each in listed if each.guesses), ""),
        )

    @property
    def rows(self) -> tuple[Command, ...]:
        """Return the commands and keys of the app."""
        return tuple(row for row in self.commands if row.run)

    def view(self, name: str) -> Any:
        """Import and return the widget class of this name; None when no part brings it."""
        return resolve_name(self.views[name]) if name in self.views else None


@frozen
class ShellParts:
    """The parts that a feature adds to the command line. All strings are ``"module:name"``.

    ``translate``: a function from the words of a line to those that ba knows. ``formats``: functions that print an
    answer, by output format. ``converse``: a function for a conversation over lines of input.
    """

    translate: str = ""
    converse: str = ""
    formats: Mapping[str, str] = field(default_factory=dict[str, str])
