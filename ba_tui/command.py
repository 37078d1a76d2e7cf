"""Commands as values, the other parts of the app that the base and the features bring, and what ba has instead of
commands and options of other programs. Their words are in one YAML file, which is read when a word is not ba's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any, TypeVar, cast

from ba_tui.core.text.wording import slip
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
    ``guesses``: a file with words of other programs, see ``read_guesses``; the first one is used.
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


T = TypeVar("T")


@frozen
class Guesses:
    """The words of one file. ``commands`` and ``options``: ba's name for the same, by the name that was guessed; ba's
    option may be followed by a value.

    ``slash``, ``shell`` and ``advice``: what to use instead, by the guessed slash command, ``ba NAME`` and option.
    ``follows``: words after a ``ba NAME`` that make the line a command, not a prompt. ``quoted``: names that a quoted
    sentence may follow. ``fitting``: the option that a command must have for the advice about an option.
    """

    commands: Mapping[str, str]
    slash: Mapping[str, str]
    shell: Mapping[str, str]
    follows: Mapping[str, Collection[str]]
    quoted: Collection[str]
    synonyms: Sequence[Collection[str]]
    options: Mapping[str, str]
    advice: Mapping[str, str]
    fitting: Mapping[str, str]

    def slash_command(self, name: str, known: Iterable[str]) -> str:
        """Return the line for a slash command that does not exist: one that does the same, or is spelt alike."""
        name = name.casefold()
        meant = name if name in self.commands or name in self.slash else slip(name, known)
        meant = meant or slip(name, (*self.commands, *self.slash))
        if not meant:
            return f"There is no /{name}. Type / to see all commands."
        return f"There is no /{name}. {self.slash.get(meant) or f'Did you mean /{self.commands.get(meant, meant)}?'}"

    def means_another(self, name: str, command: str) -> bool:
        """Return whether users who type the whole ``name`` mean another command than ``command``, which may begin with
        it."""
        name = name.casefold()
        return name in self.slash or self.commands.get(name, command) != command

    def shell_command(self, argv: Sequence[str]) -> str:
        """Return what to use instead of the command in ``argv``; empty when it reads like a prompt."""
        name, rest = argv[0], argv[1:]
        follows = not rest or rest[0].startswith("--") or rest[0] in self.follows.get(name, ())
        return self.shell.get(name, "") if follows or (name in self.quoted and " " in rest[0]) else ""

    def subcommand(self, name: str, known: Sequence[str]) -> str:
        """Return the synonym or the nearest spelling of ``name`` among ``known``; empty when there is none."""
        same = {each for words in self.synonyms if name in words for each in words}
        return next((each for each in known if each in same), "") or slip(name, known)

    def option(self, name: str, known: Collection[str]) -> str:
        """Return what to use instead of an option; empty when a command with the options ``known`` has nothing."""
        name = name.casefold() if name.startswith("--") else name
        return self.advice[name] if self.fitting.get(name) in known else ""


@lru_cache(maxsize=1)
def read_guesses(source: str) -> Guesses:
    """Return the words of the file ``source``, written as ``"package:file"``. The process reads it once."""
    from importlib.resources import files  # noqa: PLC0415 - only for a word that is not ba's

    import yaml  # noqa: PLC0415

    package, _, name = source.partition(":")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    data: Any = yaml.load((files(package) / name).read_bytes(), loader)  # noqa: S506 - a safe loader
    slash, options, actions = data["slash"], data["options"], data["shell"]["actions"].split()
    shell: Mapping[str, Mapping[str, Any]] = {
        name: {"say": row} if isinstance(row, str) else row for name, row in _by_word(data["shell"]["instead"]).items()
    }
    return Guesses(
        commands={guess: ours for ours, guesses in slash["same"].items() for guess in guesses.split()},
        slash=_by_word(slash["instead"]),
        shell={name: row["say"] for name, row in shell.items()},
        follows={name: {*actions, *row["then"].split()} for name, row in shell.items() if "then" in row},
        quoted={name for name, row in shell.items() if row.get("quoted")},
        synonyms=[set(words.split()) for words in data["synonyms"]],
        options=_by_word(options["same"]),
        advice={name: words for group in options["instead"].values() for name, words in _by_word(group).items()},
        fitting={name: ours for ours, group in options["instead"].items() for name in _by_word(group)},
    )


def _by_word(groups: Mapping[str, T]) -> dict[str, T]:
    """Return the values of ``groups`` by each of the words in their keys."""
    return {word: value for words, value in groups.items() for word in words.split()}
