"""The start page before the first prompt: folder, model, sessions to continue, prompts to try by the names of files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TypeVar

from rich.cells import cell_len
from textual.content import Content
from textual.widgets import Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.sessions import SessionInfo
from ba_tui.core.services import Library
from ba_tui.core.text.cells import clip_start, fit_words
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.meters import age

T = TypeVar("T")
WIDEST = 100
LEAST = 12
"""Columns that a preview needs to say anything."""
CONTINUE, CRASHED, TRY = "Continue", "ba ended unexpectedly. Continue where you were", "Try"
KEYS = "Type a number, then Enter · /resume lists all sessions · ? shows keys"
KEYS_FIRST = "Type a number, then Enter · ? shows keys"
QUIET = "$text-muted"


@frozen
class StartChoices:
    """What the page offers. Sessions are numbered first, then prompts, from 1."""

    folder: str = ""
    model: str = ""
    sessions: tuple[SessionInfo, ...] = ()
    prompts: tuple[str, ...] = ()

    def holds(self, text: str) -> bool:
        return bool(self.session(text) or self.prompt(text))

    def session(self, text: str) -> SessionInfo | None:
        """Return the session with a typed number."""
        return _chosen(self.sessions, text, 1)

    def prompt(self, text: str) -> str:
        """Return the prompt with a typed number; empty if there is none."""
        return _chosen(self.prompts, text, 1 + len(self.sessions)) or ""


def _chosen(rows: Sequence[T], text: str, first: int) -> T | None:
    text = text.strip()
    place = int(text) - first if text.isascii() and text.isdecimal() and len(text) == 1 else -1
    return rows[place] if 0 <= place < len(rows) else None


class StartPage(Static):
    """``clock`` in seconds since the epoch."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        super().__init__(id="start-page", markup=False)
        self.choices = StartChoices()
        self._clock = clock

    def show(self, **changes: object) -> None:
        """Change some of the choices."""
        self.choices = replace(self.choices, **changes)  # pyright: ignore[reportArgumentType]
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        if self.size.width:
            width = min(WIDEST, self.size.width)
            self.update(Content("\n").join(page(self.choices, self._clock(), width, self.size.height)), layout=False)


def page(choices: StartChoices, now: float, width: int, height: int) -> list[Content]:
    """Return the page in ``width`` cells and at most ``height`` rows: what matters least goes first."""
    head = [_head(choices, width), Content("")]
    sessions = _sessions(choices.sessions, now, width)
    prompts = _prompts(choices.prompts, 1 + len(choices.sessions), width)
    keys = [Content.styled(KEYS if choices.sessions else KEYS_FIRST, QUIET)]
    parts = {"head": head, "sessions": sessions, "prompts": prompts, "keys": keys}
    shown: set[str] = set()
    for name in ("sessions", "keys", "prompts", "head"):
        if len(parts[name]) <= height:
            shown.add(name)
            height -= len(parts[name])
    return [line for name, part in parts.items() if name in shown for line in part]


def _head(choices: StartChoices, width: int) -> Content:
    folder, model = paintable(choices.folder, newlines=False), paintable(choices.model, newlines=False)
    gap = f" · {model}" if model else ""
    # Of a long path the end tells more.
    folder = clip_start(folder, max(8, width - cell_len(gap)))
    return Content.assemble((folder, "bold"), (gap, QUIET))


def _sessions(infos: Sequence[SessionInfo], now: float, width: int) -> list[Content]:
    if not infos:
        return []
    crashed = infos[0].left_open
    rows = [Content.styled(CRASHED, "$text-warning") if crashed else Content.styled(CONTINUE, "$accent")]
    ages = [f"{count(info.turns, 'turn')}, {_ago(now - info.updated)}" for info in infos]
    last = max(map(cell_len, ages))
    titles = [paintable(info.title or "Untitled", newlines=False) for info in infos]
    room = max(8, width - 4 - 2 - last)
    first = min(room, max(map(cell_len, titles)))
    left = room - first - 2
    for number, (info, title, ago) in enumerate(zip(infos, titles, ages, strict=True), 1):
        # The newest words of the user, where the title does not say them already.
        preview = paintable(info.preview, newlines=False)
        known = left < LEAST or preview.rstrip("…") in title or title.rstrip("…") in preview
        quiet = " " * (room - first) if known else f"  {fit_words(preview, left)}"
        told = f"{quiet}  {' ' * (last - cell_len(ago))}{ago}"
        rows.append(Content.assemble((f" {number}  ", "$accent"), fit_words(title, first), (told, QUIET)))
    return [*rows, Content("")]


def _ago(seconds: float) -> str:
    told = age(seconds)
    return "just now" if told == "now" else f"{told} ago"


def _prompts(prompts: Sequence[str], first: int, width: int) -> list[Content]:
    if not prompts:
        return []
    rows = [
        Content.assemble((f" {number}  ", "$accent"), fit_words(paintable(text, newlines=False), width - 4).rstrip())
        for number, text in enumerate(prompts, first)
    ]
    return [Content.styled(TRY, "$accent"), *rows, Content("")]


OFFERED = 3
"""Most sessions on the page."""


def recent(library: Library, own: str) -> Sequence[SessionInfo]:
    """Return the newest sessions of the folder that can be continued here; none when they can't be read."""
    try:
        infos = library.sessions()
    except BaError:
        return ()
    return [info for info in infos if not (info.unattended or info.locked_by or info.id == own)][:OFFERED]


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
