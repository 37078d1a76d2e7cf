"""Instructions for the model from the files of the person and the project, read as data and said once each.

Which files count is decided in ``instruction_files``; how a model is told, here. Nothing here grants a permission.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ba_tui.context.front_matter import divided
from ba_tui.context.imports import LIMIT, Imports, name_of, target_of, why
from ba_tui.context.instruction_files import InstructionPlace
from ba_tui.core.errors import UsageError
from ba_tui.core.instruction_names import LARGEST
from ba_tui.core.messages import NOTE, Message, Text, reminder
from ba_tui.core.text.markup import INSTRUCTIONS
from ba_tui.core.text.patterns import regex, wildcard_problem
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Ingress, Owner

_TOLD = regex(rf'<{INSTRUCTIONS} source="[^"]*" id="([0-9a-f]{{12}})">')
_SOURCE = regex(rf'<{INSTRUCTIONS} source="([^"]*)" id="')
_PATHS = ("paths", "globs")
"""Fields of a rule that name the files it is for: Claude Code's and Cursor's."""
MOST = 20
"""Alternatives of one pattern that are looked at."""
LONGEST_PATTERN, MOST_STARS, MOST_PATTERNS = 300, 10, 100
"""What of a rule's patterns is looked at: more would take too long to match."""


@frozen
class Instructions:
    """One file's words; ``shown`` is its path as people know it, ``note`` what is wrong with it, if anything.
    ``imports`` are the files that were put into it, ``refused`` those that were not, each with the reason. ``target``
    is the file that was read, empty where no link led to it. ``paths``: the files that it is for, all when empty.
    ``path`` is the file as it was found."""

    shown: str
    text: str
    note: str = ""
    imports: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    target: str = ""
    paths: tuple[str, ...] = ()
    path: Path = Path()
    owner: Owner = "project"

    @property
    def line(self) -> str:
        """What there is to know of it before it is read, in one line."""
        parts = [self.note] if self.note else []
        parts += [f"for {', '.join(self.paths)}"] if self.paths else []
        parts += [f"imports {', '.join(self.imports)}"] if self.imports else []
        name = f"{self.shown} → {self.target}" if self.target else self.shown
        return f"{name} ({'; '.join([*parts, *self.refused])})" if parts or self.refused else name

    def concerns(self, touched: Iterable[Path], root: Path) -> bool:
        """Whether it counts now: it is for all files, or for one of those ``touched``."""
        if not self.paths:
            return True
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - few projects have rules for some files only

        spec = GitIgnoreSpec.from_lines(pattern if "/" in pattern else f"/{pattern}" for pattern in self.paths)
        return any(spec.match_file(file.relative_to(root)) for file in touched if file.is_relative_to(root))


def read_instructions(
    place: InstructionPlace, ingress: Ingress, touched: Collection[Path] = ()
) -> tuple[Instructions, ...]:
    """The person's own files first; of the project's, what stands nearest comes last. See InstructionPlace.files.

    The same file, and the same text, counts once. A file that can't be read is listed with a note.
    """
    found: list[Instructions] = []
    had: set[str] = set()
    texts: set[str] = set()
    for path, owner in place.files(touched):
        real = os.path.realpath(path)
        if real in had:
            continue
        had.add(real)
        item = replace(_read((path, owner), ingress, had, place.held), path=path, owner=owner)
        if item.text.strip() not in texts or not item.text:
            texts.add(item.text.strip())
            found.append(item)
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


def sources(note: str) -> Sequence[str]:
    """The files whose words a note of ``said`` holds."""
    return _SOURCE.findall(note)


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


def instruction_files(place: InstructionPlace, ingress: Ingress, further: Iterable[Path] = ()) -> Iterator[Path]:
    """Return every file that instructs a model, with the files that it imports, whoever wrote them. ``further``:
    instruction files of the project in folders that nobody has touched yet."""
    had: set[str] = set()
    nested: list[tuple[Path, Owner]] = [(path, ingress.owner(path)) for path in further]
    for path, owner in [*place.files(), *nested]:
        if (real := os.path.realpath(path)) in had:
            continue
        had.add(real)
        yield path
        try:
            text = ingress.text(path, LARGEST, owner)
        except OSError:
            continue
        imports = Imports(ingress, had)
        imports.of(text, path.parent, owner)
        yield from imports.files


def _read(
    file: tuple[Path, Owner], ingress: Ingress, had: set[str], held: Callable[[Path, bytes], str]
) -> Instructions:
    path, owner = file
    name = name_of(path, owner, ingress)
    try:
        raw = ingress.raw(path, LARGEST, owner)
        if refused := held(path, raw):
            raise FileRefused(path, refused)
        text = ingress.words(path, raw)
    except OSError as error:
        return Instructions(name, "", why(error))
    text, paths = _divided(text)
    wrong = next((problem for each in paths if (problem := wildcard_problem(each))), "")
    imports = Imports(ingress, had, held)
    whole = imports.of(text, path.parent, owner)
    # What a file begins, an imported one may complete: a secret, or a tag.
    text = ingress.clean(whole) if imports.taken else whole
    notes = [f"cut at {LIMIT:,} characters"] if len(text) > LIMIT else []
    if wrong:
        # In doubt they count: instructions may forbid something.
        notes, paths = [*notes, f"for all files, because of its paths: {wrong}"], ()
    note = "; ".join(notes)
    target = target_of(path, owner, ingress)
    return Instructions(name, text[:LIMIT], note, tuple(imports.taken), tuple(imports.refused), target, paths)


def _divided(text: str) -> tuple[str, tuple[str, ...]]:
    """The words of a file without its front matter, and the files that it is for."""
    try:
        fields, body = divided(text, _PATHS)
    except UsageError:
        return text, ()
    if fields.get("alwaysapply", "").lower() == "true":
        return body, ()
    given = " ".join(fields.get(name, "") for name in _PATHS)
    sound = [each for each in _patterns(given) if len(each) <= LONGEST_PATTERN and each.count("*") <= MOST_STARS]
    return body, tuple([pattern for each in sound for pattern in _alternatives(each)][:MOST_PATTERNS])


def _patterns(text: str) -> Sequence[str]:
    """Patterns from a list or from one line; the commas between braces belong to a pattern."""
    words, depth = [""], 0
    for char in text.strip("[] "):
        depth += (char == "{") - (char == "}")
        if char in ", " and depth == 0:
            words.append("")
        elif char not in "\"'":
            words[-1] += char
    return [word for word in words if word]


def _alternatives(pattern: str) -> Sequence[str]:
    """What braces stand for: ``*.{ts,tsx}`` is two patterns."""
    head, brace, rest = pattern.partition("{")
    inner, closed, tail = rest.partition("}")
    if not brace or not closed:
        return [pattern]
    tails = _alternatives(tail)
    return [f"{head}{each}{end}" for each in inner.split(",") for end in tails][:MOST]
