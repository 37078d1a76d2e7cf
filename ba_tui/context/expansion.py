"""What a command stands for: its text with the arguments put in, and with what the commands in it printed.

Commands are run by whoever is given for that, so that each is judged as any other; files are attached by others.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from ba_tui.core.errors import UsageError
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

RunShell: TypeAlias = Callable[[str], Awaitable[str]]
LONGEST = 100_000
"""Characters that commands may print into one prompt."""
_COMMAND = regex(r"^```!\s*\n(.*?)\n```[ \t]*$|(?:^|(?<=\s))!`([^`\n]+)`", re.MULTILINE | re.DOTALL)
_ARGUMENT = regex(r"\\(\$(?:ARGUMENTS\b|[1-9]))|\$ARGUMENTS\b|\$([1-9])(?!\w|[.,]\d)")
_PROMPT_ARGUMENT = regex(r"\$\$|\$ARGUMENTS\b|\$([1-9])(?!\w|[.,]\d)|\$([A-Z][A-Z0-9_]*)\b")


@frozen
class Expansion:
    """``text`` is all of it; ``spoken`` that part of it which no command printed; ``ran`` the commands."""

    text: str
    spoken: str
    ran: tuple[str, ...] = ()


async def expand(body: str, arguments: str, run: RunShell, clean: Callable[[str], str]) -> Expansion:
    """``body`` for ``arguments``. What ``run`` raises goes through: then nothing is to be sent.

    Commands are found before arguments are put in, and never in what other commands print. ``clean`` makes words of the
    file fit for a model; arguments are the person's own, and stay as they are.
    """
    given = words_of(arguments)
    text, spoken, ran, left, used = list[str](), list[str](), list[str](), LONGEST, False
    for words, command in _pieces(body):
        filled, taken = put_in(command or clean(words), arguments, given)
        used = used or taken
        if not command:
            text.append(filled)
            spoken.append(filled)
            continue
        printed = await run(filled)
        ran.append(filled)
        text.append(printed if len(printed) <= left else f"{printed[:left]}\n[cut: commands printed too much]")
        left = max(0, left - len(printed))
    if arguments and not used:
        text.append(f"\n\nArguments: {arguments}")
        spoken.append(f"\n\nArguments: {arguments}")
    return Expansion("".join(text).strip(), "".join(spoken).strip(), tuple(ran))


def expand_prompt(body: str, arguments: str, clean: Callable[[str], str]) -> Expansion:
    """The same for a prompt of Codex: nothing in it is run, ``$NAME`` stands for what ``NAME=value`` gives, ``$1`` and
    ``$ARGUMENTS`` for the other words, and ``$$`` for a dollar sign.

    Raises:
        UsageError: a value is missing; says which.
    """
    text = clean(body)
    names = dict.fromkeys(found[2] for found in _PROMPT_ARGUMENT.finditer(text) if found[2])
    pairs = [(word, *word.partition("=")[::2]) for word in words_of(arguments)]
    values = {name: value for word, name, value in pairs if name in names and "=" in word}
    if missing := [name for name in names if name not in values]:
        usage = " ".join(f"{name}=…" for name in names)
        raise UsageError(f"It needs {', '.join(missing)}.", f"Write the values behind it: {usage}")
    rest = [word for word, name, _ in pairs if name not in values]
    used = bool(values)

    def value(found: re.Match[str]) -> str:
        nonlocal used
        if found[0] == "$$":
            return "$"
        if found[2]:
            return values[found[2]]
        used = True
        if not found[1]:
            return " ".join(rest)
        place = int(found[1]) - 1
        return rest[place] if place < len(rest) else ""

    filled = _PROMPT_ARGUMENT.sub(value, text).strip()
    if arguments and not used:
        filled += f"\n\nArguments: {arguments}"
    return Expansion(filled, filled)


def _pieces(body: str) -> Iterator[tuple[str, str]]:
    """Words and commands in turn, one of each pair being empty."""
    at = 0
    for found in _COMMAND.finditer(body):
        yield body[at : found.start()], ""
        yield "", (found[1] or found[2]).strip()
        at = found.end()
    yield body[at:], ""


def put_in(text: str, arguments: str, given: list[str]) -> tuple[str, bool]:
    """``text`` with ``$ARGUMENTS``, ``$1`` … replaced, and whether there was any; ``\\$1`` stays ``$1``, and so do
    amounts such as $1,000."""
    taken = False

    def value(found: re.Match[str]) -> str:
        nonlocal taken
        if found[1]:
            return found[1]
        taken = True
        if not found[2]:
            return arguments
        place = int(found[2]) - 1
        return given[place] if place < len(given) else ""

    return _ARGUMENT.sub(value, text), taken


def words_of(arguments: str) -> list[str]:
    """The arguments one by one; quotes hold words together."""
    try:
        return shlex.split(arguments)
    except ValueError:
        return arguments.split()
