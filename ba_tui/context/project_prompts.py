"""The commands that ba itself brings as prompts about the project: whether one makes sense now, and what it is told.

Their texts are ``config/commands``. What they run is judged as what any other command runs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from ba_tui.core.errors import PromptRefused
from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.resources import there

INIT = "init"
FACTS = "$FACTS"
"""Stands in a text for what is found out about the project."""
READING: frozenset[str] = frozenset({"review", "security-review"})
"""Those whose turn changes nothing, whatever the mode."""
NO_OUTPUT = "(no output)"
"""What the shell says of a command that printed nothing."""
_FAULT = regex(r"\s*(?:fatal|error): (.+?)\.?$", re.MULTILINE)
_NEW, _WORKING = "AGENTS.md", "HEAD"
_EXISTING = (_NEW, "CLAUDE.md", ".claude/CLAUDE.md")
_NOTHING_YET = frozenset({".git", ".ba", ".claude", ".agents", ".DS_Store", ".gitignore"})


@frozen
class PreparedPrompt:
    """``arguments`` take the place of what the person typed, ``facts`` that of ``FACTS`` in the text."""

    arguments: str
    facts: str


def prepared(name: str, arguments: str, root: Path) -> PreparedPrompt:
    """What the prompt ``name`` is told in the project ``root``. Reads a few names of files.

    Raises:
        PromptRefused: there is nothing to do it with.
    """
    return _for_init(arguments, root) if name == INIT else _for_review(name, arguments, root)


def check_printed(name: str, arguments: str, printed: Mapping[str, str]) -> None:
    """Raises PromptRefused when what the commands of a review ``printed``, by command, is no change or an error."""
    if name not in READING:
        return
    failed = next((found for text in printed.values() if (found := _FAULT.match(text))), None)
    if failed and not arguments and _WORKING in failed[1]:
        text = "This repository has no commit yet that the changes could be compared with."
        raise PromptRefused(text, "Commit once, or ask for it and name the files with @.")
    if failed:
        raise PromptRefused(f"git can't show that range: {failed[1]}.", f"Such as: /{name} main...HEAD")
    # New files are part of what is not committed yet, and of no range.
    shown = [text for command, text in printed.items() if command.startswith("git diff") or not arguments]
    if not any(text.strip() not in {"", NO_OUTPUT} for text in shown):
        hint = f"Name a range: /{name} main...HEAD, or /{name} HEAD~1 for the last commit."
        raise PromptRefused("There is nothing to review: no file has changed.", hint)


def _for_init(arguments: str, root: Path) -> PreparedPrompt:
    if not arguments and not _any_file(root):
        text = "This folder is empty: there is no project to describe yet."
        raise PromptRefused(text, "Add files first, or say what it will be: /init a web shop in Go")
    existing = [name for name in _EXISTING if there(root / name)]
    if not existing:
        facts = f"There is none yet: write {_NEW}."
    else:
        others = f" {', '.join(existing[1:])} is there too: do not repeat it." if existing[1:] else ""
        facts = (
            f"{existing[0]} is there: read it first, then improve it with edit_file. Keep what is right and what the "
            f"person wrote for a reason; correct what is no longer true; add what is missing; never replace the whole "
            f"file.{others}"
        )
    return PreparedPrompt(arguments, facts)


def _any_file(root: Path) -> bool:
    try:
        with os.scandir(root) as entries:
            return any(entry.name not in _NOTHING_YET for entry in entries)
    except OSError:
        return True


def _for_review(name: str, arguments: str, root: Path) -> PreparedPrompt:
    if not any(there(folder / ".git") for folder in (root, *root.parents)):
        text = "This folder is not in a git repository, so there is no change to review."
        raise PromptRefused(text, "Ask for it, and name the files with @.")
    if arguments.startswith("-"):
        raise PromptRefused(f"{arguments!r} is no range of commits.", f"Such as: /{name} main...HEAD")
    said = f"`git diff {arguments}`" if arguments else "what is not committed yet (`git diff HEAD`)"
    return PreparedPrompt(arguments or _WORKING, f"{said}.")
