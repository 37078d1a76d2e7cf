"""The files that a call goes through by itself: below which folders, and of those with which names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ba_tui.permissions.shell.programs.call_results import CallReading
from ba_tui.permissions.shell.programs.known_commands import CommandEntry
from ba_tui.permissions.shell.walk.values import ShellWord

MOST_NAMES = 32
_INCLUDES = ("--include", "-g", "--glob", "--iglob")
_HIDDEN_TOO = frozenset({"--hidden", "-.", "-u", "-uu", "-uuu", "--unrestricted"})


def narrow(found: CallReading, entry: CommandEntry, options: Sequence[tuple[str, str | None]]) -> None:
    """Note in ``found`` which of the files it names are folders to go through, and what is looked at in there."""
    names = {"always", *(name for name, _ in options)}
    if not names & entry.recursive:
        found.roots = []
        return
    # A folder among them is gone through whole.
    found.lists = [replace(each, names=()) for each in found.lists]
    found.roots = found.roots or [ShellWord(".", ".")]
    found.follows = bool(names & entry.follows)
    wanted = [value for name, value in options if name in _INCLUDES and value and not value.startswith("!")]
    unfolded = (name for each in wanted for name in _unfolded(each.replace("[^", "[!").strip("/")))
    found.names = ("*",) if len(wanted) > MOST_NAMES else tuple(unfolded)
    found.hidden = "hidden" not in entry.recursive or bool(names & _HIDDEN_TOO)


def _unfolded(pattern: str) -> list[str]:
    """What braces in a pattern of a search come to; any name where they, or a backslash, may mean more."""
    before, brace, rest = pattern.partition("{")
    inside, end, after = rest.partition("}")
    if set(before + after) & set("{}\\") or "{" in inside or bool(brace) != bool(end):
        return ["*"]
    return [f"{before}{each}{after}" for each in inside.split(",")]
