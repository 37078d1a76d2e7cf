"""Imports in instructions: ``@path`` brings the file that it names, anywhere but in code."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ba_tui.core.instruction_names import LARGEST
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.ingress import FileRefused, Ingress, Owner, shown

LIMIT = 32_000
"""Characters of instructions that a model is told of one file with its imports."""
LEAST = 100
"""Characters that a file counts for at least, of the LIMIT that may be imported."""
DEPTH = 5
_ALONE = regex(r"\s*@(\S+)\s*")
_INLINE = regex(r"(?<![\w@/.`\\])@((?:\\ |[^\s`\"'<>,;!?()\[\]{}*|])+)")
_TICKS = regex(r"`+")
MOST_LOOKUPS = 500
"""Names that are looked for on the disk, for one file: text may hold any number of words with an @."""
_FENCE = regex(r"[ \t]*(?:[-*+>][ \t]+|\d+[.)][ \t]+)*(`{3,}|~{3,})")


@dataclass(slots=True)
class Imports:
    """Brings files that the importing file's owner may read, each once, to a limited depth. ``had`` holds the real
    paths of files that are told already. ``held``: see InstructionPlace."""

    ingress: Ingress
    had: set[str]
    held: Callable[[Path, bytes], str] = lambda path, raw: ""
    files: list[Path] = field(default_factory=list[Path])
    """Every file that was named and is there, also one that was refused."""
    taken: dict[str, None] = field(default_factory=dict[str, None])
    refused: dict[str, None] = field(default_factory=dict[str, None])
    _looked: dict[tuple[str, str, Owner], str | None] = field(default_factory=dict[tuple[str, str, Owner], str | None])
    """What a name came to, by the folder and the owner of the file that it stands in."""
    _left: int = LIMIT

    def of(self, text: str, folder: Path, owner: Owner, depth: int = DEPTH) -> str:
        """``text`` with what it imports: in the place of a line that holds nothing else, or behind the line."""
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
        """What the file holds; empty when it was told before, None when it is not to be put in."""
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
            # What the project's files import is the project's, whoever imported them.
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
    """``line`` with blanks for its code spans: from a run of backticks to the next one of the same length."""
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
    """Each line, and whether it is words: not in a fenced block of code."""
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
    """Why a file was not taken, to be put after its name."""
    if isinstance(error, FileRefused):
        return f"was not read: {error.strerror}"
    return f"can't be read: {error.strerror or error}"


def name_of(path: Path, owner: Owner, ingress: Ingress) -> str:
    """A file's path for people and models: from the project's root, where it is the project's."""
    path = Path(os.path.normpath(path))
    inside = owner == "project" and path.is_relative_to(ingress.root)
    return _plain(str(path.relative_to(ingress.root)) if inside else shown(path))


def target_of(path: Path, owner: Owner, ingress: Ingress) -> str:
    """Where links lead; empty where there are none."""
    real = os.path.realpath(path)
    return "" if real == os.path.normpath(path) else name_of(Path(real), owner, ingress)


def _plain(name: str) -> str:
    """A path that can stand in an attribute of a tag, and on a line."""
    return paintable(name, newlines=False).translate({ord('"'): "'", ord("<"): "‹", ord(">"): "›"})[:300]
