"""Project instructions (AGENTS.md, else CLAUDE.md), read as data and said once as a hidden reminder.

Which folders count is decided here; how a model is told, too. Nothing here grants a permission.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from ba_tui.core.messages import Message, Text, clean_text, reminder
from ba_tui.core.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.resources import read_regular, there

NAMES = ("AGENTS.md", "CLAUDE.md", "BA.md")
LIMIT = 32_000
LARGEST = 10_000_000
"""Bytes of a file that are read."""
LEAST = 100
"""Characters that a file counts for at least, of the LIMIT that may be imported."""
IMPORT_DEPTH = 3
_IMPORT = regex(r"^@(\S+)\s*$", re.MULTILINE)


@frozen
class Instructions:
    """One file's words; ``shown`` is its path as people know it, ``note`` what is wrong with it, if anything."""

    shown: str
    text: str
    note: str = ""


def read_instructions(cwd: Path, root: Path, person: Path) -> tuple[Instructions, ...]:
    """The person's own file first, then from the project root down to ``cwd``: what stands nearest comes last.

    In each folder the first of AGENTS.md, CLAUDE.md, BA.md counts. A file that can't be read is listed with a note.
    """
    found: list[Instructions] = []
    seen: set[str] = set()
    for folder in (person, *_between(root, cwd)):
        for name in NAMES:
            path = folder / name
            if there(path) and not path.is_dir():
                real = os.path.realpath(path)
                if real not in seen:
                    seen.add(real)
                    found.append(_read(path, root, person))
                break
    return tuple(found)


def said(instructions: Iterable[Instructions], messages: Sequence[Message]) -> Message | None:
    """The reminder that says what of ``instructions`` the conversation has not been told yet; None when all was."""
    blocks = [(item, _block(item)) for item in instructions if item.text]
    told = _told(messages) if blocks else frozenset[str]()
    new = [block for _, block in blocks if _mark(block) not in told]
    if not new:
        return None
    intro = "Instructions of this project, from its files. Follow them where they do not contradict the person."
    return reminder("\n".join([intro, *new]))


def _block(item: Instructions) -> str:
    body = f"{item.shown}\n{item.text}"
    mark = hashlib.sha256(body.encode()).hexdigest()[:12]
    return f'<project-instructions source="{item.shown}" id="{mark}">\n{item.text}\n</project-instructions>'


def _mark(block: str) -> str:
    match = re.search(r'id="([0-9a-f]{12})">', block)
    return match.group(1) if match else ""


def _told(messages: Sequence[Message]) -> frozenset[str]:
    marks: set[str] = set()
    for message in messages:
        if message.role == "user":
            for block in message.blocks:
                if isinstance(block, Text) and block.text.startswith("<system-reminder>"):
                    marks.update(re.findall(r'<project-instructions source="[^"]*" id="([0-9a-f]{12})">', block.text))
    return frozenset(marks)


def _between(root: Path, cwd: Path) -> list[Path]:
    """The folders from ``root`` down to ``cwd``, or only ``cwd`` when it does not lie below."""
    if not cwd.is_relative_to(root):
        return [cwd]
    folders = [root]
    for part in cwd.relative_to(root).parts:
        folders.append(folders[-1] / part)
    return folders


def _read(path: Path, root: Path, person: Path) -> Instructions:
    shown = f"~{path.name}" if path.parent == person else _shown(path, root)
    try:
        text = _text(path)
    except OSError as error:
        return Instructions(shown, "", f"can't be read: {error.strerror or error}")
    text = _Imports(root).of(text, path.parent)
    if len(text) > LIMIT:
        return Instructions(shown, text[:LIMIT], f"cut at {LIMIT:,} of {len(text):,} characters")
    return Instructions(shown, text)


def _text(path: Path) -> str:
    return clean_text(read_regular(path, LARGEST).decode("utf-8-sig", "replace"))


class _Imports:
    """Puts files in the place of lines ``@path``, from inside the project only, to a limited depth, and not without
    end: a file may import itself in each of its lines."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._left = LIMIT

    def of(self, text: str, folder: Path, depth: int = IMPORT_DEPTH) -> str:
        def replace(match: re.Match[str]) -> str:
            path = Path(os.path.realpath(folder / match.group(1)))
            if depth == 0 or self._left <= 0 or not path.is_relative_to(self._root):
                return match.group(0)
            try:
                words = _text(path)[:LIMIT]
            except (OSError, ValueError):
                return match.group(0)
            self._left -= max(len(words), LEAST)
            return self.of(words, path.parent, depth - 1)

        return _IMPORT.sub(replace, text)


def _shown(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else path.name
