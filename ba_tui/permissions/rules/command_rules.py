"""What it means that a rule covers a simple command: prefixes of words, after the shell has read them.

Rules of other tools, and rules about paths, stand in ``rules``.
"""

from __future__ import annotations

import shlex
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ba_tui.permissions.shell.resolved_command import ResolvedCommand

ANY = ("*", ":*")


@lru_cache(maxsize=512)
def rule_words(pattern: str) -> tuple[tuple[str, ...], bool] | None:
    """The words of ``git diff:*`` and whether more may follow; None when they can't be read as words."""
    if pattern in ANY:
        return (), True
    more = pattern.endswith((":*", " *"))
    try:
        words = tuple(shlex.split(pattern[:-2] if more else pattern))
    except ValueError:
        return None
    return (words, more) if words else None


def pattern_problem(pattern: str, verdict: str) -> str:
    """Why ``pattern`` can't be about commands; strict rules may have wildcards anywhere."""
    read = rule_words(pattern)
    if verdict != "allow":
        return ""
    if read is None:
        return "" if "*" not in pattern else "expected words in front of the *"
    words, more = read
    if more and any("*" in word for word in words):
        return "* may only stand at the end, as in git diff:*"
    return "" if more or "*" not in pattern else "* may only stand at the end, as in git diff:*"


def permits(pattern: str | None, command: ResolvedCommand) -> bool:
    """Whether an allow rule covers ``command``. None: it allows every command that can be told before it runs."""
    if command.stops or command.unsure:
        return False
    if pattern is None or pattern in ANY:
        return not command.outside and None not in command.words
    read = rule_words(pattern)
    if read is None:
        return False
    words, more = read
    if not more:
        # Words alone don't tell what comes in; a rule for the whole command does where it is part of that.
        return command.words == words and not command.takes
    count = len(words)
    if command.words[:count] != words or command.outside or (command.writes and not empties(command)):
        return False
    return not any(surplus.binding and surplus.at >= count for surplus in command.surplus)


_EMPTYING = frozenset({"rm", "rmdir", "unlink", "mkdir", "touch"})
"""Programs that bring no text anywhere: who allows one with anything behind it means files of the workspace."""


def empties(command: ResolvedCommand) -> bool:
    """Whether ``command`` only deletes files of the workspace, or makes empty ones, none of them protected."""
    program = (command.plain or ("",))[0]
    plain = all(seen.inside and not (seen.guarded or seen.secret or "." in seen.places) for seen in command.writes)
    return program in _EMPTYING and plain and not command.redirected


def names_all(pattern: str | None, command: ResolvedCommand) -> bool:
    """Whether an allow rule covers ``command`` with the files it writes, since it says all of it."""
    if not permits(pattern, command):
        return False
    if pattern is None or pattern in ANY:
        return True
    return not command.redirected and not (rule_words(pattern) or ((), True))[1]


def catches(pattern: str, command: ResolvedCommand) -> bool:
    """Whether a strict rule is about ``command``: by the program's name wherever it lies, with anything behind."""
    spelled = {_spelling(words) for words in _wordings(command)}
    if pattern in ANY:
        return True
    if "*" in pattern.removesuffix(":*").removesuffix(" *") or "?" in pattern:
        return any(fnmatchcase(" ".join(words), pattern) for words in spelled)
    read = rule_words(pattern)
    wanted = read[0] if read else tuple(pattern.split())
    wanted = _spelling(wanted)
    return any(words[: len(wanted)] == wanted for words in spelled)


def _wordings(command: ResolvedCommand) -> list[tuple[str | None, ...]]:
    found = [command.words, command.plain] if command.plain else [command.words]
    for at, _ in enumerate(command.wrappers):
        found.append((*command.wrappers[at:], *command.words))
    return [words for words in found if words]


def _spelling(words: tuple[str | None, ...]) -> tuple[str, ...]:
    """The words with the program by its plain name; what is known only when it runs fits nothing."""
    texts = tuple("\0" if word is None else word for word in words)
    return (texts[0].rsplit("/", 1)[-1], *texts[1:]) if texts else ()
