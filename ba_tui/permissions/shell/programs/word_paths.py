"""The paths that a word of a command may come to: patterns on the disk, pieces of it that name files, files below it.

Nothing is opened here; which paths are fine is the policy's business.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase, translate
from functools import lru_cache, partial
from pathlib import Path

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import (
    LONGEST,
    LONGEST_NAME,
    SECRET_FOLDERS,
    SECRET_NAMES,
    PathRefused,
    TouchedPath,
    is_secret,
)
from ba_tui.permissions.shell.resolved_command import FolderRead
from ba_tui.permissions.shell.walk.values import KnownListing, ShellWord

MOST_MATCHES = 200
MOST_PATTERNS = 200
MOST_SCANNED = 20_000
"""Entries of folders that are looked at for the patterns of one command."""
MOST_LOOKED_AT = 20_000

_WILD = regex(r"[*?\[]")
_HIDDEN = tuple(
    name.replace("*", "") for name in (*SECRET_NAMES, *SECRET_FOLDERS) if name.startswith(".") and len(name) > 2
)
_BARE = regex(r"[\w.][^=:]*")
_PARTED = regex(r"[\s'\"\\*?\[]")
_PIECES = regex(r"[=:,@<>()'\"\s]+")
_ADDRESS = regex(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)

See = Callable[[str, Path], Sequence[TouchedPath]]
"""The paths that a text names from a folder, as written and as links lead. Raises PathRefused."""
_NO_DOTS = (".[!.]", ".[^.]")
"""How patterns begin that fit neither a folder itself nor the one above."""
_PLAIN_SET = regex(r"[^\[\]]*(?:\[(?:[0-9]-[0-9]|[A-Za-z0-9_])+\][^\[\]]*)+")
Seems = Callable[[str], bool]
"""Whether a path leads to a secret, or out of the workspace."""


class TooMany(Exception):
    """A word that may come to more texts than are looked at."""


def path_of(word: ShellWord, text: str) -> str:
    """``text`` of ``word`` as the path that a program is given: a tilde in quotes is an ordinary character."""
    if not text.startswith("~"):
        return text
    home = os.path.expanduser(text) if word.raw.startswith("~") else text  # noqa: PTH111 - must not raise
    return home if home.startswith("/") else f"./{text}"


def nameable(text: str) -> bool:
    """Whether a file can have this name: the system refuses what is longer, and what is empty."""
    if not text or (text.isascii() and len(text) <= LONGEST_NAME):
        return bool(text)
    return len(text) <= LONGEST and all(len(os.fsencode(part)) <= LONGEST_NAME for part in text.split("/"))


class Disk:
    """Patterns on the disk, for one command: what it has looked at once it looks at no more, nor without end."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, bool], list[str] | None] = {}
        self._names: dict[str, list[str]] = {}
        self._left = MOST_SCANNED

    def matches(self, text: str, folder: Path, *, quoted: bool = True) -> list[str]:
        """What the shell may make of a pattern in ``folder`` here and now; the text itself where nothing fits. Quotes
        are gone from ``text``, and shells differ over sets in brackets, so it is rather too many names than too few;
        ``quoted``: whether there were any.

        Raises:
            TooMany: more files fit, or have to be looked at, than are.
        """
        key = text, str(folder), quoted
        if key not in self._found:
            if len(self._found) > MOST_PATTERNS:
                raise TooMany
            try:
                self._found[key] = self._matches(*key)
            except TooMany:
                self._found[key] = None
        found = self._found[key]
        if found is None:
            raise TooMany
        return found

    def _matches(self, text: str, folder: str, quoted: bool) -> list[str]:
        if not _WILD.search(text):
            return [text]
        found, parts = [""], text.split("/")
        for place, part in enumerate(parts):
            end = "" if place == len(parts) - 1 else "/"
            if not _WILD.search(part):
                found = [f"{path}{part}{end}" for path in found]
                continue
            fits, hidden = _pattern(part, quoted), part.startswith(".")
            made: list[str] = []
            for path in found:
                dots = [".", ".."] if hidden and (quoted or not part.startswith(_NO_DOTS)) else []
                names = [*self._below(os.path.join(folder, path)), *dots]  # noqa: PTH118
                made += [f"{path}{name}{end}" for name in names if (name[0] != "." or hidden) and fits(name)]
                if len(made) > MOST_MATCHES:
                    raise TooMany
            found = made
        return [path for path in found if os.path.lexists(os.path.join(folder, path))] or [text]  # noqa: PTH118

    def _below(self, folder: str) -> list[str]:
        if folder not in self._names:
            try:
                names = os.listdir(folder)  # noqa: PTH208 - a path for each would take longer than all else
            except (OSError, ValueError):
                names = []
            self._left -= len(names) + 1
            if self._left < 0:
                raise TooMany
            self._names[folder] = names
        return self._names[folder]


@lru_cache(maxsize=256)
def _pattern(part: str, quoted: bool = True) -> Callable[[str], re.Match[str] | None]:
    """One name of a pattern. What is written in brackets may be one character or, in quotes, itself, and what one
    character is depends on the locale: anything fits, except for plain letters and digits without quotes."""
    start, end = part.find("["), part.rfind("]")
    if not quoted and _PLAIN_SET.fullmatch(part):
        start = -1
    loose = f"{part[:start]}*{part[end + 1 :]}" if 0 <= start < end else part
    return re.compile(translate(loose.replace("?", "*"))).fullmatch


def may_be_secret(text: str, *, anyhow: bool = False) -> bool:
    """Whether a pattern for hidden names fits one that is secret, on the disk or not. ``anyhow``: a shell that was told
    so also takes a leading dot for one of the characters in brackets."""
    wild = [
        part for part in text.split("/") if _WILD.search(part) and part.startswith((".", "[", "?") if anyhow else ("."))
    ]
    return any(_pattern(part)(name) for part in wild for name in _HIDDEN)


def fits_secret(pattern: str) -> bool:
    """Whether a pattern for names in any folder fits a hidden one that is secret."""
    return any(fnmatchcase(name, step) for step in pattern.lower().split("/") for name in _HIDDEN)


def pieces(text: str) -> Iterator[str]:
    """The parts of a word that may name a file of their own: ``if=x``, ``@x``, ``--file=x``, ``HEAD:x``, ``-fx``."""
    cut = _PIECES.split(text)
    if len(cut) > 1:
        # What follows the two slashes of an address is a host.
        yield from (piece for piece in cut if piece and not (piece.startswith("//") and _ADDRESS.match(text)))
    if text.startswith("-") and not text.startswith("--") and len(text) > 2:
        yield text[2:]


@frozen
class OddFile:
    """Why a file may not be read as it is listed; ``held``: a sandbox makes it harmless."""

    why: str
    held: bool


def odd_below(folder: Path, listing: KnownListing, seems: Seems) -> OddFile | None:
    """Why files of ``listing`` below ``folder`` may not be read as they come: another name of a secret or of a file
    elsewhere; or else a secret, a name that a program takes for something else. None when all may."""
    found: OddFile | None = None
    for entry, inner in _entries(folder):
        if entry is None:
            return OddFile("there are more than ba can check", held=False)
        name = entry.name
        fits = not listing.names or any(fnmatchcase(name.lower(), each.lower()) for each in listing.names)
        if not fits and not inner:
            continue
        named = fits and not inner and not (listing.regular and entry.is_symlink())
        shown = os.path.relpath(entry.path, folder)
        if named and not is_secret(Path(entry.path)) and _odd(entry, seems, links=True):
            return OddFile(f"one is {shown}, which holds secrets or links elsewhere", held=False)
        secret = named and is_secret(Path(entry.path))
        # Who asks for files of such a name wants it.
        if secret and listing.names:
            return OddFile(f"one is {shown}, which holds secrets or links elsewhere", held=False)
        if found or listing.held:
            continue
        if (not listing.ended and _PARTED.search(name)) or (listing.bare and not _BARE.fullmatch(name)):
            found = OddFile(f"one may be {name!r}, which reads as something else", held=True)
        elif secret:
            found = OddFile(f"one is {shown}, which holds secrets", held=True)
    return found


def secrets_in(see: See) -> Callable[[FolderRead], str]:
    """Says which secret a program would read that goes through a folder, for people; empty for none."""

    def found(below: FolderRead) -> str:
        path = secrets_below(below, partial(seems, see))
        if path in {"", "?"}:
            return "more files than ba can search for secrets" if path else ""
        return f"{os.path.relpath(path, below.folder)}, which holds secrets or links elsewhere"

    return found


def seems(see: See, path: str) -> bool:
    """Whether a file holds secrets or lies elsewhere, by its name or by what is behind it."""
    try:
        return any(seen.secret or not seen.inside for seen in see(path, Path(path).parent))
    except PathRefused:
        return True


def secrets_below(below: FolderRead, seems: Seems) -> str:
    """What a program would read that goes through a folder: the first secret, or file that links lead to elsewhere.

    Empty when there is none; ``?`` when there is too much to look at.
    """
    steps = [step for name in below.names for step in name.lower().split("/")]

    def wanted(name: str, inner: bool) -> bool:
        fits = not below.names or any(fnmatchcase(name, each.lower().rsplit("/", 1)[-1]) for each in below.names)
        if name.startswith(".") and not below.hidden:
            return any(fnmatchcase(name, step) for step in steps) if inner else bool(below.names) and fits
        return inner or fits

    for entry, inner in _entries(below.folder, wanted):
        if entry is None:
            return "?"
        if inner and entry.name in SECRET_FOLDERS:
            return entry.path
        if not inner and (
            _odd(entry, seems, links=below.follows) or (not entry.is_symlink() and has_names(entry.path))
        ):
            return entry.path
    return ""


def _odd(entry: os.DirEntry[str], seems: Seems, links: bool) -> bool:
    """Whether a file is secret by its name, or by what lies behind it: a link, or another name of the same file."""
    if entry.is_symlink():
        return links and seems(entry.path)
    return is_secret(Path(entry.path)) or (has_names(entry.path) and seems(entry.path))


def has_names(path: str | Path) -> bool:
    """Whether a file has more than one name; one of the others may be that of a secret."""
    try:
        status = os.stat(path)  # noqa: PTH116 - for each file that a command reads
    except (OSError, ValueError):
        return False
    return status.st_nlink > 1 and stat.S_ISREG(status.st_mode)


def _entries(
    folder: Path, wanted: Callable[[str, bool], bool] = lambda name, inner: True
) -> Iterator[tuple[os.DirEntry[str] | None, bool]]:
    """Everything below ``folder`` that is ``wanted``, and whether it is a folder; None at the end when it is too much.
    Links are not followed."""
    todo, looked = [str(folder)], 0
    while todo:
        try:
            entries = list(os.scandir(todo.pop()))
        except (OSError, ValueError):
            continue
        looked += len(entries)
        if looked > MOST_LOOKED_AT:
            yield None, False
            return
        for entry in entries:
            inner = entry.is_dir(follow_symlinks=False)
            if wanted(entry.name.lower(), inner):
                yield entry, inner
                if inner:
                    todo.append(entry.path)
