"""Instructions for the model from files of the user and the project (AGENTS.md and the like), with their imports. They
are read as data and sent once each; they grant no permission."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ba_tui.core.instruction_names import AGENTS, FOREIGN, LARGEST, LOADED, OVERRIDE, RULES, ForeignAssistant
from ba_tui.core.messages import NOTE, Message, Text, reminder
from ba_tui.core.text.front_matter import read_plain_fields
from ba_tui.core.text.patterns import regex, wildcard_problem
from ba_tui.core.text.untrusted import INSTRUCTIONS, paintable
from ba_tui.core.values import frozen
from ba_tui.ingress import FileRefused, Ingress, Owner, shown
from ba_tui.resources import there

# Imports: ``@path`` in instructions inserts the file that it names, except in code.

LIMIT = 32_000
"""Characters of one file with its imports that a model gets."""
LEAST = 100
"""The least size that a file takes from the LIMIT of imports."""
DEPTH = 5
_ALONE = regex(r"\s*@(\S+)\s*")
_INLINE = regex(r"(?<![\w@/.`\\])@((?:\\ |[^\s`\"'<>,;!?()\[\]{}*|])+)")
_TICKS = regex(r"`+")
MOST_LOOKUPS = 500
"""Names that are looked up on disk for one file: a text may have any number of words with an @."""
_FENCE = regex(r"[ \t]*(?:[-*+>][ \t]+|\d+[.)][ \t]+)*(`{3,}|~{3,})")


@dataclass(slots=True)
class Imports:
    """Inserts files that the importing file's owner may read, each once, to a limited depth. ``had``: the real paths of
    files that were inserted already. ``held``: see InstructionPlace."""

    ingress: Ingress
    had: set[str]
    held: Callable[[Path, bytes], str] = lambda path, raw: ""
    files: list[Path] = field(default_factory=list[Path])
    """Every existing file that was named, also a refused one."""
    taken: dict[str, None] = field(default_factory=dict[str, None])
    refused: dict[str, None] = field(default_factory=dict[str, None])
    _looked: dict[tuple[str, str, Owner], str | None] = field(default_factory=dict[tuple[str, str, Owner], str | None])
    """The result for a name, by folder and owner of the importing file."""
    _left: int = LIMIT

    def of(self, text: str, folder: Path, owner: Owner, depth: int = DEPTH) -> str:
        """Return ``text`` with its imports: in place of a line with nothing else, or after the line."""
        if "@" not in text or depth == 0:
            return text
        return "".join(self._line(line, folder, owner, depth) if told else line for line, told in _lines(text))

    def _text(self, path: Path, owner: Owner) -> str:
        raw = self.ingress.raw(path, LARGEST, owner)
        self.files.append(path)
        if why := self.held(path, raw):
            raise FileRefused(path, why)
        return self.ingress.words(path, raw)

    def _line(self, line: str, folder: Path, owner: Owner, depth: int) -> str:
        if alone := _ALONE.fullmatch(line):
            words = self._words(alone[1], folder, owner, depth)
            if words is None:
                return line
            return words + (line[len(line.rstrip("\r\n")) :] if words and not words.endswith("\n") else "")
        bare = _without_code(line)
        parts = [line]
        for found in _INLINE.finditer(bare):
            name = found[1].replace("\\ ", " ").rstrip(".:")
            if words := self._words(name, folder, owner, depth):
                head = "" if parts[-1].endswith("\n") else "\n"
                parts.append(f"{head}{_plain(name)}:\n{words.rstrip()}\n")
        return "".join(parts)

    def _words(self, name: str, folder: Path, owner: Owner, depth: int) -> str | None:
        """Return the file's text; empty when it was inserted before, None when it can't be inserted."""
        key = (str(folder), name, owner)
        if key in self._looked:
            return self._looked[key]
        if self._left <= 0 or len(self._looked) >= MOST_LOOKUPS:
            return None
        self._looked[key] = None
        try:
            path = folder / Path(name).expanduser()
            real = os.path.realpath(path)
            words = self._text(path, owner)[:LIMIT]
            # Imports of the project's files belong to the project, whoever imported those files.
            within = self.ingress.owner(Path(real))
        except FileRefused as error:
            self.refused[f"@{_plain(name)} {why(error)}"] = None
            return None
        except (OSError, ValueError, RuntimeError):
            return None
        self._looked[key] = ""
        if real in self.had:
            return ""
        self.had.add(real)
        target = target_of(path, owner, self.ingress)
        self.taken[name_of(path, owner, self.ingress) + (f" → {target}" if target else "")] = None
        self._left -= max(len(words), LEAST)
        return self.of(words, path.parent, within if within == "project" else owner, depth - 1)


def _without_code(line: str) -> str:
    """Return ``line`` with blanks for code spans: from a run of backticks to the next one of the same length."""
    runs = [(found.start(), found.end()) for found in _TICKS.finditer(line)]
    places: dict[int, list[int]] = {}
    for index, (start, end) in enumerate(runs):
        places.setdefault(end - start, []).append(index)
    parts: list[str] = []
    at = index = 0
    while index < len(runs):
        start, end = runs[index]
        same = places[end - start]
        after = bisect_right(same, index)
        if after == len(same):
            index += 1
            continue
        closing = runs[same[after]][1]
        parts += [line[at:start], " " * (closing - start)]
        at, index = closing, same[after] + 1
    return "".join([*parts, line[at:]])


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Return each line, and whether it is outside of fenced code."""
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            yield line, False
            if mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        elif mark:
            fence = mark[1]
            yield line, False
        else:
            yield line, True


def why(error: OSError) -> str:
    """Return why a file was not inserted, to be written after its name."""
    if isinstance(error, FileRefused):
        return f"was not read: {error.strerror}"
    return f"can't be read: {error.strerror or error}"


def name_of(path: Path, owner: Owner, ingress: Ingress) -> str:
    """Return a file's path for users and models: from the project's root, if it is the project's."""
    path = Path(os.path.normpath(path))
    inside = owner == "project" and path.is_relative_to(ingress.root)
    return _plain(str(path.relative_to(ingress.root)) if inside else shown(path))


def target_of(path: Path, owner: Owner, ingress: Ingress) -> str:
    """Return the target of links; empty without any."""
    real = os.path.realpath(path)
    return "" if real == os.path.normpath(path) else name_of(Path(real), owner, ingress)


def _plain(name: str) -> str:
    """Return a path that is valid in a tag's attribute and on one line."""
    return paintable(name, newlines=False).translate({ord('"'): "'", ord("<"): "‹", ord(">"): "›"})[:300]


# The names of instruction files are those that coding assistants share: AGENTS.md, and the files of Claude Code, Codex,
# Gemini and Cursor.

MOST_RULES = 100
"""Files of one folder of rules that are read."""


@frozen
class InstructionPlace:
    """Where instruction files are searched: in the folder ``person`` of the user and in ``home`` (None: nowhere), and
    in the project from ``root`` down to ``cwd`` unless it is ``closed``, because it is not trusted yet. ``held``
    returns why a file with these first bytes is not read, empty to read it: a tool wrote it, and the user has not
    accepted it."""

    cwd: Path
    root: Path
    person: Path | None
    home: Path | None = None
    closed: bool = False
    foreign: Collection[ForeignAssistant] = ()
    held: Callable[[Path, bytes], str] = lambda path, raw: ""

    def files(self, touched: Collection[Path] = ()) -> Iterator[tuple[Path, Owner]]:
        """Return the user's files, the project's down to ``cwd``, then those of the folders above each file in
        ``touched``, which are below ``root``: the nearest come last. A file may be repeated."""
        for path in self._own():
            yield path, "user"
        for path in self._of_project(touched):
            yield path, "project"

    def _own(self) -> Iterator[Path]:
        if self.person:
            yield from self._of(self.person)
        if self.home:
            yield from self._of(self.home / ".claude", ("CLAUDE.md",), "rules")

    def _of_project(self, touched: Collection[Path]) -> Iterator[Path]:
        if self.closed:
            return
        top = self.root if self.cwd.is_relative_to(self.root) else self.cwd
        folders = dict.fromkeys(_between(top, self.cwd))
        for file in touched:
            if file != top and file.is_relative_to(top):
                folders.update(dict.fromkeys(_between(top, file.parent)))
        for folder in folders:
            yield from self._of(folder)

    def _of(self, folder: Path, names: Sequence[str] = LOADED, rules: str = RULES[0]) -> Iterator[Path]:
        found = [path for name in names if there(path := folder / name) and not path.is_dir()]
        overridden = folder / OVERRIDE in found
        yield from (path for path in found if not (overridden and path.name == AGENTS))
        yield from _rules(folder / rules, RULES[1])
        for which in self.foreign:
            files, (place, suffix) = FOREIGN[which]
            yield from (path for name in files if there(path := folder / name) and not path.is_dir())
            if place:
                yield from _rules(folder / place, suffix)


def _between(top: Path, bottom: Path) -> Iterator[Path]:
    yield top
    for part in bottom.relative_to(top).parts:
        top /= part
        yield top


def _rules(folder: Path, suffix: str) -> Sequence[Path]:
    """Return the files of a folder of rules and of its subfolders, by name."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        found += [Path(place) / name for name in sorted(names) if name.endswith(suffix)]
        if len(found) >= MOST_RULES:
            break
    return found[:MOST_RULES]


_TOLD = regex(rf'<{INSTRUCTIONS} source="[^"]*" id="([0-9a-f]{{12}})">')
_SOURCE = regex(rf'<{INSTRUCTIONS} source="([^"]*)" id="')
_PATHS = ("paths", "globs")
"""Fields of a rule with the files that it is for: Claude Code's and Cursor's."""
MOST = 20
"""Alternatives of one pattern that are used."""
LONGEST_PATTERN, MOST_STARS, MOST_PATTERNS = 300, 10, 100
"""Limits of a rule's patterns: longer or more ones would take too long to match."""


@frozen
class Instructions:
    """The text of one file. ``shown``: its path for users; ``note``: a problem with it, if any. ``imports``: the
    inserted files; ``refused``: those that were not inserted, with the reasons. ``target``: the file behind a link,
    else empty. ``paths``: patterns of the files that it is for; empty for all. ``path``: the path at which it was
    found."""

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
        """Return a summary in one line."""
        parts = [self.note] if self.note else []
        parts += [f"for {', '.join(self.paths)}"] if self.paths else []
        parts += [f"imports {', '.join(self.imports)}"] if self.imports else []
        name = f"{self.shown} → {self.target}" if self.target else self.shown
        return f"{name} ({'; '.join([*parts, *self.refused])})" if parts or self.refused else name

    def concerns(self, touched: Iterable[Path], root: Path) -> bool:
        """Whether it applies now: it is for all files, or for one in ``touched``."""
        if not self.paths:
            return True
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - few projects have rules for some files only

        spec = GitIgnoreSpec.from_lines(pattern if "/" in pattern else f"/{pattern}" for pattern in self.paths)
        return any(spec.match_file(file.relative_to(root)) for file in touched if file.is_relative_to(root))


def read_instructions(
    place: InstructionPlace, ingress: Ingress, touched: Collection[Path] = ()
) -> tuple[Instructions, ...]:
    """Read the user's files, then the project's, the nearest last; the same file or text once. An unreadable file is
    listed with a note."""
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


def instruction_note(instructions: Iterable[Instructions], messages: Sequence[Message]) -> Message | None:
    """Return the reminder with those of ``instructions`` that are not in the conversation yet; None when all are."""
    marked = {_mark(item): item for item in instructions if item.text}
    told = _told(messages) if marked else frozenset[str]()
    new = [
        f'<{INSTRUCTIONS} source="{item.shown}" id="{mark}">\n{item.text}\n</{INSTRUCTIONS}>'
        for mark, item in marked.items()
        if mark not in told
    ]
    if not new:
        return None
    intro = "Instructions of this project, from its files. Follow them where they do not contradict the user."
    return reminder("\n".join([intro, *new]))


def sources(note: str) -> Sequence[str]:
    """Return the files whose text is in a note of ``instruction_note``."""
    return _SOURCE.findall(note)


def _mark(item: Instructions) -> str:
    return hashlib.sha256(f"{item.shown}\n{item.text}".encode()).hexdigest()[:12]


def _told(messages: Sequence[Message]) -> frozenset[str]:
    blocks = (block for message in messages if message.role == "user" for block in message.blocks)
    notes = (block.text for block in blocks if isinstance(block, Text) and block.text.startswith(NOTE))
    return frozenset(mark for note in notes for mark in _TOLD.findall(note))


def instruction_files(place: InstructionPlace, ingress: Ingress, further: Iterable[Path] = ()) -> Iterator[Path]:
    """Return all instruction files with imports. ``further``: such files of the project in folders not used yet."""
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
    # An imported file may complete what a file begins: a secret, or a tag.
    text = ingress.clean(whole) if imports.taken else whole
    notes = [f"cut at {LIMIT:,} characters"] if len(text) > LIMIT else []
    if wrong:
        # In doubt they apply: instructions may forbid something.
        notes, paths = [*notes, f"for all files, because of its paths: {wrong}"], ()
    note = "; ".join(notes)
    target = target_of(path, owner, ingress)
    return Instructions(name, text[:LIMIT], note, tuple(imports.taken), tuple(imports.refused), target, paths)


def _divided(text: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of a file without its front matter, and the patterns of the files that it is for."""
    try:
        fields, body = read_plain_fields(text, _PATHS)
    except ValueError:
        return text, ()
    if fields.get("alwaysapply", "").lower() == "true":
        return body, ()
    given = " ".join(fields.get(name, "") for name in _PATHS)
    sound = [each for each in _patterns(given) if len(each) <= LONGEST_PATTERN and each.count("*") <= MOST_STARS]
    return body, tuple([pattern for each in sound for pattern in _alternatives(each)][:MOST_PATTERNS])


def _patterns(text: str) -> Sequence[str]:
    """Return patterns from a list or from one line; commas between braces belong to a pattern."""
    words, depth = [""], 0
    for char in text.strip("[] "):
        depth += (char == "{") - (char == "}")
        if char in ", " and depth == 0:
            words.append("")
        elif char not in "\"'":
            words[-1] += char
    return [word for word in words if word]


def _alternatives(pattern: str) -> Sequence[str]:
    """Expand braces: ``*.{ts,tsx}`` is two patterns."""
    head, brace, rest = pattern.partition("{")
    inner, closed, tail = rest.partition("}")
    if not brace or not closed:
        return [pattern]
    tails = _alternatives(tail)
    return [f"{head}{each}{end}" for each in inner.split(",") for end in tails][:MOST]
