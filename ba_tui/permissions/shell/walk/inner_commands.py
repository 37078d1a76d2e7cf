"""Commands found inside other commands, as values.

``wrappers`` and ``builtins`` find them, ``walker`` goes on with them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.values import frozen
from ba_tui.permissions.shell.walk.values import Redirect, ShellWord


@frozen
class Inner:
    """A command inside another: its ``words``, or its text as ``code``; or a shell that ``reads_input``.

    ``posix`` None: the same shell reads it that reads this; True: one that may read less than bash does.
    ``folder`` None: where it runs is not known; "" the same place."""

    wrapper: str
    words: tuple[ShellWord, ...] = ()
    code: ShellWord | None = None
    reads_input: bool = False
    folder: str | None = ""
    posix: bool | None = True
    assignments: tuple[tuple[str, ShellWord], ...] = ()
    redirects: tuple[Redirect, ...] = ()


@frozen
class OpenedCommand:
    """What was found in a command. ``itself``: it does something of its own and is to be judged too, as ``words`` where
    those are told apart from what it runs."""

    inner: tuple[Inner, ...] = ()
    itself: bool = False
    words: tuple[ShellWord, ...] = ()


def several(word: ShellWord) -> bool:
    """Whether ``word`` may come to no word or more than one."""
    if word.text is not None:
        return word.glob
    inside = word.raw[1:-1]
    return not (word.raw[:1] == word.raw[-1:] == '"' and len(word.raw) > 1) or '"' in inside or "@" in inside


def joined(words: Sequence[ShellWord]) -> ShellWord:
    """Several words as one text, as ``eval`` and ``ssh`` see them."""
    raw = " ".join(word.raw for word in words)
    if any(word.text is None or word.glob for word in words):
        return ShellWord(None, raw)
    return ShellWord(" ".join(word.text or "" for word in words), raw)
