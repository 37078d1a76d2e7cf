"""The start page of a new session: recent sessions of the folder, and prompts suggested by the names of its files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from ba_tui.core.errors import BaError
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.services import Library
from ba_tui.core.text.untrusted import paintable
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.meters import git_branch
from ba_tui.faces.tui.widgets.status import short_folder
from ba_tui.resources import user_home

OFFERED = 3
"""Most sessions on the page."""


async def show_start_page(chat: Actions) -> None:
    """Show the page while the session is empty. Files are read in a thread, after the first paint."""
    conversation = chat.session.conversation
    if conversation is None or not _fresh(chat):
        return
    cwd, id, library = conversation.cwd, conversation.id, chat.session.live[0].library

    def look() -> tuple[Sequence[SessionInfo], Sequence[str]]:
        return recent(library, id), look_for_suggestions(cwd, git=bool(git_branch(cwd)))

    sessions, prompts = await asyncio.to_thread(look)
    if _fresh(chat) and conversation is chat.session.conversation:
        folder = paintable(short_folder(cwd, user_home()), newlines=False)
        await chat.main_area.show_start(
            folder=folder, model=conversation.model, sessions=tuple(sessions), prompts=tuple(prompts)
        )


def choose(chat: Actions, text: str) -> bool:
    """Open the session or take the prompt that the number ``text`` names on the page; return False for other text."""
    page = chat.main_area.start_page
    if page is None:
        return False
    if session := page.choices.session(text):
        chat.call_command("resume", session.id)
    elif prompt := page.choices.prompt(text):
        chat.composer.put_back(prompt)
    else:
        return False
    return True


def recent(library: Library, own: str) -> Sequence[SessionInfo]:
    """Return the newest sessions of the folder that can be continued here; none when they can't be read."""
    try:
        infos = library.sessions()
    except BaError:
        return ()
    return [info for info in infos if not (info.unattended or info.locked_by or info.id == own)][:OFFERED]


def _fresh(chat: Actions) -> bool:
    return not (chat.session.started or chat.turns.busy or chat.transcript.records)


# Suggested prompts. Files are never read.

SUGGESTED = 3
LOOKED_AT = 1_000
"""The most names of a folder that are read; these are enough for suggestions."""
LONGEST = 60
DATA = (".csv", ".tsv", ".parquet", ".xlsx", ".sqlite", ".duckdb", ".db", ".jsonl", ".json")
"""Endings of data files, the most telling first."""
CODE = (".py", ".js", ".ts", ".tsx", ".go", ".rs", ".java", ".c", ".cpp", ".rb", ".cs", ".php", ".swift", ".kt", ".sh")
PROJECT = {"pyproject.toml", "package.json", "cargo.toml", "go.mod", "pom.xml", "makefile", "cmakelists.txt"}
CONFIGURED = {"package.json", "package-lock.json", "tsconfig.json", "composer.json", "components.json"}
"""JSON files that hold settings of a project rather than data."""
TESTS = {"tests", "test", "spec", "__tests__"}
TEXT = (".md", ".pdf", ".docx", ".txt", ".rst")
ALWAYS = (
    "What is in this folder, and what is it for?",
    "What can you do here? Give me three examples.",
    "Write a script that lists the ten largest files below this folder.",
)


def look_for_suggestions(folder: Path, *, git: bool) -> Sequence[str]:
    """Return three prompts that fit ``folder``; ``git``: it is in a repository. Reads the disk."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, LOOKED_AT))
    except OSError:
        names = []
    return suggestions(names, git=git)


def suggestions(names: Iterable[str], *, git: bool) -> Sequence[str]:
    """Return three prompts for a folder with ``names`` in it."""
    shown = [name for name in names if _fit(name)]
    return tuple(islice(_fitting(shown, git=git), SUGGESTED))


def _fitting(names: Sequence[str], *, git: bool) -> Iterator[str]:
    data = _ending(names, DATA, lambda name: name.lower() not in CONFIGURED)
    if data:
        yield f"What does {mention(data[0])} show? Give me the three main findings."
    if git:
        yield "Review my uncommitted changes."
    if any(name.lower() in TESTS or name.startswith("test_") for name in names):
        yield "Run the tests and explain what fails."
    if any(name.lower() in PROJECT for name in names) or _ending(names, CODE):
        yield "Explain how this project is structured and where to start reading."
    if len(data) > 1:
        yield f"How do {mention(data[0])} and {mention(data[1])} fit together?"
    if notebooks := _ending(names, (".ipynb",)):
        yield f"Explain {mention(notebooks[0])} step by step."
    if logs := _ending(names, (".log",)):
        yield f"Find the errors in {mention(logs[0])} and their likely causes."
    if texts := _ending(names, TEXT):
        yield f"Summarize {mention(texts[0])} in five points."
    yield from ALWAYS


def mention(name: str) -> str:
    """Return ``name`` as it is mentioned in a prompt."""
    return f'@"{name}"' if " " in name else f"@{name}"


def _fit(name: str) -> bool:
    """Return whether a file name can be suggested: no hidden characters, and not private."""
    return (
        len(name) <= LONGEST
        and not name.startswith(".")
        and '"' not in name
        and paintable(name, newlines=False) == name
    )


def _ending(
    names: Sequence[str], endings: Sequence[str], wanted: Callable[[str], bool] = lambda _: True
) -> Sequence[str]:
    """Return names with one of the ``endings``, in the order of the endings."""
    found = [(place, name) for name in names for place, end in enumerate(endings) if name.lower().endswith(end)]
    return [name for _, name in sorted(found) if wanted(name)]
