"""Words that users know from other programs, and what ba has instead: slash commands, ``ba NAME`` and options.

The words are in one YAML file, which is read when a word is not ba's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from ba_tui.core.text.wording import slip
from ba_tui.core.values import frozen

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
