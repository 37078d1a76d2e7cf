"""What a shell command really runs: every simple command in it, at any depth, through every program that runs others.

Pure: nothing is looked up or started. Reading stands in ``shell.parser`` and ``shell.words``; judging elsewhere.
"""

from __future__ import annotations

import unicodedata

from ba_tui.permissions.shell.tokens import UnreadableCommand
from ba_tui.permissions.shell.walk.values import ExpandedScript
from ba_tui.permissions.shell.walk.walker import CommandWalk

LARGEST = 200_000


def expand_script(command: str) -> ExpandedScript:
    """Every simple command that ``command`` would run under bash, and why that may not be all."""
    unfit = _unfit(command)
    if unfit:
        return ExpandedScript((), unfit)
    walk = CommandWalk(command)
    try:
        return walk.run(command)
    except UnreadableCommand as error:
        return ExpandedScript(tuple(walk.found), str(error))
    except RecursionError:
        return ExpandedScript(tuple(walk.found), "it is nested too deeply")


def _unfit(command: str) -> str:
    """Why the text itself cannot be read with certainty."""
    if len(command) > LARGEST:
        return "it is longer than 200 KB"
    if command.isascii() and command.isprintable():
        return ""
    for char in set(command):
        if char == "\0":
            return "it holds a NUL"
        if char not in " \t\n" and (unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zs", "Zl", "Zp")):
            return f"it holds a character that cannot be seen (U+{ord(char):04X})"
    return ""
