"""Project instructions (AGENTS.md, else CLAUDE.md), read as data and said once as a hidden reminder.

Which folders count is decided here; how a model is told, too. Nothing here grants a permission.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ba_tui.core.messages import NOTE, Message, Text, reminder
from ba_tui.core.text.markup import INSTRUCTIONS
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Ingress, Owner, shown
from ba_tui.resources import there

NAMES = ("AGENTS.md", "CLAUDE.md", "BA.md")
LIMIT = 32_000
LARGEST = 4 * LIMIT + 64_000
"""Bytes of a file that are read: more than are told, so that a secret at the cut is known as one."""
LEAST = 100
"""Characters that a file counts for at least, of the LIMIT that may be imported."""
IMPORT_DEPTH = 3
_IMPORT = regex(r"^@(\S+)\s*$", re.MULTILINE)
_TOLD = regex(rf'<{INSTRUCTIONS} source="[^"]*" id="([0-9a-f]{{12}})">')


@frozen
class InstructionFile:
    """Whose files are looked for: the ``person``'s folder, None for nobody's, and the project from ``root`` down to
    ``cwd`` unless that is ``closed``, because nobody has agreed to it yet."""

    cwd: Path
    root: Path
    person: Path | None
    closed: bool = False


@frozen
class Instructions:
    """One file's words; ``shown`` is its path as people know it, ``note`` what is wrong with it, if anything.
    ``imports`` are the files that were put into it, ``refused`` those that were not, each with the reason. ``target``
    is the file that was read, empty where no link led to it."""

    shown: str
    text: str
    note: str = ""
    imports: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    target: str = ""

    @property
    def line(self) -> str:
        """What there is to know of it before it is read, in one line."""
        parts = [self.note] if self.note else []
        parts += [f"imports {', '.join(self.imports)}"] if self.imports else []
        name = f"{self.shown} → {self.target}" if self.target else self.shown
        return f"{name} ({'; '.join([*parts, *self.refused])})" if parts or self.refused else name


def read_instructions(source: InstructionFile, ingress: Ingress) -> tuple[Instructions, ...]:
    """The person's own file first, then from the project root down to ``cwd``: what stands nearest comes last.

    In each folder the first of AGENTS.md, CLAUDE.md, BA.md counts. A file that can't be read is listed with a note.
    """
    found: list[Instructions] = []
    seen: set[str] = set()
    for folder, owner in _folders(source):
        for name in NAMES:
            path = folder / name
            if there(path) and not path.is_dir():
                real = os.path.realpath(path)
                if real not in seen:
                    seen.add(real)
                    found.append(_read(path, owner, ingress))
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
    return f'<{INSTRUCTIONS} source="{item.shown}" id="{mark}">\n{item.text}\n</{INSTRUCTIONS}>'


def _mark(block: str) -> str:
    match = _TOLD.search(block)
    return match.group(1) if match else ""


def _told(messages: Sequence[Message]) -> frozenset[str]:
    marks: set[str] = set()
    for message in messages:
        if message.role == "user":
            for block in message.blocks:
                if isinstance(block, Text) and block.text.startswith(NOTE):
                    marks.update(_TOLD.findall(block.text))
    return frozenset(marks)


def _folders(source: InstructionFile) -> Iterator[tuple[Path, Owner]]:
    """The folders that count: from ``root`` down to ``cwd``, or only ``cwd`` when it does not lie below."""
    if source.person:
        yield source.person, "user"
    if source.closed:
        return
    folder = source.root if source.cwd.is_relative_to(source.root) else source.cwd
    yield folder, "project"
    for part in source.cwd.relative_to(folder).parts:
        folder /= part
        yield folder, "project"


def _read(path: Path, owner: Owner, ingress: Ingress) -> Instructions:
    name = _name(path, owner, ingress)
    try:
        text = ingress.text(path, LARGEST, owner)
    except OSError as error:
        return Instructions(name, "", _why(error))
    imports = _Imports(ingress)
    whole = imports.of(text, path.parent, owner)
    # What a file begins, an imported one may complete: a secret, or a tag.
    text = ingress.clean(whole) if imports.taken else whole
    note = f"cut at {LIMIT:,} characters" if len(text) > LIMIT else ""
    target = _target(path, owner, ingress)
    return Instructions(name, text[:LIMIT], note, tuple(imports.taken), tuple(imports.refused), target)


@dataclass(slots=True)
class _Imports:
    """Puts files in the place of lines ``@path``, those that the importing file's owner may read, to a limited depth,
    and not without end: a file may import itself in each of its lines."""

    ingress: Ingress
    taken: dict[str, None] = field(default_factory=dict[str, None])
    refused: dict[str, None] = field(default_factory=dict[str, None])
    _left: int = LIMIT

    def of(self, text: str, folder: Path, owner: Owner, depth: int = IMPORT_DEPTH) -> str:
        def replace(match: re.Match[str]) -> str:
            return match.group(0) if depth == 0 else self._put(match, folder, owner, depth)

        return _IMPORT.sub(replace, text)

    def _put(self, match: re.Match[str], folder: Path, owner: Owner, depth: int) -> str:
        name = match.group(1)
        if self._left <= 0:
            return match.group(0)
        try:
            path = folder / Path(name).expanduser()
            words = self.ingress.text(path, LARGEST, owner)[:LIMIT]
            # What the project's files import is the project's, whoever imported them.
            within = self.ingress.owner(Path(os.path.realpath(path)))
        except FileRefused as error:
            self.refused[f"@{_plain(name)} {_why(error)}"] = None
            return match.group(0)
        except (OSError, ValueError, RuntimeError):
            return match.group(0)
        target = _target(path, owner, self.ingress)
        self.taken[_name(path, owner, self.ingress) + (f" → {target}" if target else "")] = None
        self._left -= max(len(words), LEAST)
        return self.of(words, path.parent, within if within == "project" else owner, depth - 1)


def _why(error: OSError) -> str:
    if isinstance(error, FileRefused):
        return f"was not read: {error.strerror}"
    return f"can't be read: {error.strerror or error}"


def _name(path: Path, owner: Owner, ingress: Ingress) -> str:
    path = Path(os.path.normpath(path))
    inside = owner == "project" and path.is_relative_to(ingress.root)
    return _plain(str(path.relative_to(ingress.root)) if inside else shown(path))


def _target(path: Path, owner: Owner, ingress: Ingress) -> str:
    """Where links lead; empty where there are none."""
    real = os.path.realpath(path)
    return "" if real == os.path.normpath(path) else _name(Path(real), owner, ingress)


def _plain(name: str) -> str:
    """A path that can stand in an attribute of a tag, and on a line."""
    return paintable(name, newlines=False).translate({ord('"'): "'", ord("<"): "‹", ord(">"): "›"})[:300]
