"""Prompts that fit a folder, for a person who has not written one yet. Only names of files count, never contents."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from ba_tui.core.text.untrusted import paintable

OFFERED = 3
LOOKED_AT = 1_000
"""Names of a folder that are read; a folder with more of them still gives enough."""
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
    """Return three prompts that fit ``folder``; ``git``: it lies in a repository. Blocks for as long as a disk does."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, LOOKED_AT))
    except OSError:
        names = []
    return suggestions(names, git=git)


def suggestions(names: Iterable[str], *, git: bool) -> Sequence[str]:
    """Return three prompts for a folder with ``names`` in it."""
    shown = [name for name in names if _fit(name)]
    return tuple(islice(_fitting(shown, git=git), OFFERED))


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
    """``name`` as it is mentioned in a prompt."""
    return f'@"{name}"' if " " in name else f"@{name}"


def _fit(name: str) -> bool:
    """Whether a name can stand in a prompt as it is: nothing hidden in it, and nobody's private file."""
    return (
        len(name) <= LONGEST
        and not name.startswith(".")
        and '"' not in name
        and paintable(name, newlines=False) == name
    )


def _ending(
    names: Sequence[str], endings: Sequence[str], wanted: Callable[[str], bool] = lambda _: True
) -> Sequence[str]:
    """Names with one of the ``endings``, in the order of these."""
    found = [(place, name) for name in names for place, end in enumerate(endings) if name.lower().endswith(end)]
    return [name for _, name in sorted(found) if wanted(name)]
