"""Imports in instructions: ``@path`` brings the file that it names, anywhere but in code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import paintable
from ba_tui.ingress import FileRefused, Ingress, Owner, shown

LIMIT = 32_000
"""Characters of instructions that a model is told of one file with its imports."""
LARGEST = 4 * LIMIT + 64_000
"""Bytes of a file that are read: more than are told, so that a secret at the cut is known as one."""
LEAST = 100
"""Characters that a file counts for at least, of the LIMIT that may be imported."""
DEPTH = 5
_ALONE = regex(r"\s*@(\S+)\s*")
_INLINE = regex(r"(?<![\w@/.`\\])@((?:\\ |[^\s`\"'<>,;!?()\[\]{}*|])+)")
_SPAN = regex(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL)
_FENCE = regex(r"[ \t]*(?:[-*+>][ \t]+|\d+[.)][ \t]+)*(`{3,}|~{3,})")


@dataclass(slots=True)
class Imports:
    """Brings files that the importing file's owner may read, each once, to a limited depth. ``had`` holds the real
    paths of files that are told already."""

    ingress: Ingress
    had: set[str]
    taken: dict[str, None] = field(default_factory=dict[str, None])
    refused: dict[str, None] = field(default_factory=dict[str, None])
    _read: set[tuple[str, Owner]] = field(default_factory=set[tuple[str, Owner]])
    """Files that were read, and for whom: another may not be allowed to."""
    _left: int = LIMIT

    def of(self, text: str, folder: Path, owner: Owner, depth: int = DEPTH) -> str:
        """``text`` with what it imports: in the place of a line that holds nothing else, or behind the line."""
        if "@" not in text or depth == 0:
            return text
        return "".join(self._line(line, folder, owner, depth) if told else line for line, told in _lines(text))

    def _line(self, line: str, folder: Path, owner: Owner, depth: int) -> str:
        if alone := _ALONE.fullmatch(line):
            words = self._words(alone[1], folder, owner, depth)
            if words is None:
                return line
            return words + (line[len(line.rstrip("\r\n")) :] if words and not words.endswith("\n") else "")
        bare = _SPAN.sub(lambda span: " " * len(span[0]), line)
        parts = [line]
        for found in _INLINE.finditer(bare):
            name = found[1].replace("\\ ", " ").rstrip(".:")
            if words := self._words(name, folder, owner, depth):
                head = "" if parts[-1].endswith("\n") else "\n"
                parts.append(f"{head}{_plain(name)}:\n{words.rstrip()}\n")
        return "".join(parts)

    def _words(self, name: str, folder: Path, owner: Owner, depth: int) -> str | None:
        """What the file holds; empty when it was told before, None when it is not to be put in."""
        if self._left <= 0:
            return None
        try:
            path = folder / Path(name).expanduser()
            real = os.path.realpath(path)
            if (real, owner) in self._read:
                return ""
            words = self.ingress.text(path, LARGEST, owner)[:LIMIT]
            # What the project's files import is the project's, whoever imported them.
            within = self.ingress.owner(Path(real))
        except FileRefused as error:
            self.refused[f"@{_plain(name)} {why(error)}"] = None
            return None
        except (OSError, ValueError, RuntimeError):
            return None
        self._read.add((real, owner))
        if real in self.had:
            return ""
        self.had.add(real)
        target = target_of(path, owner, self.ingress)
        self.taken[name_of(path, owner, self.ingress) + (f" → {target}" if target else "")] = None
        self._left -= max(len(words), LEAST)
        return self.of(words, path.parent, within if within == "project" else owner, depth - 1)


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
