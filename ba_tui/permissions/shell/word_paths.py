"""The paths that a word of a command may expand to: patterns on disk, pieces that name files, files below a folder.

No file is opened; ``policy`` decides which paths are allowed.
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
from ba_tui.permissions.shell.simple_commands import FolderRead, KnownListing, ShellWord

MOST_MATCHES = 200
MOST_PATTERNS = 200
MOST_SCANNED = 20_000
"""Folder entries that are checked for the patterns of one command."""
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
"""Returns the paths that a text names from a folder, as written and with links followed. Raises PathRefused."""
_NO_DOTS = (".[!.]", ".[^.]")
"""Beginnings of patterns that match neither ``.`` nor ``..``."""
_PLAIN_SET = regex(r"[^\[\]]*(?:\[(?:[0-9]-[0-9]|[A-Za-z0-9_])+\][^\[\]]*)+")
Seems = Callable[[str], bool]
"""Returns whether a path leads to a secret or out of the workspace."""


class TooMany(Exception):
    """A word expands to more texts than are checked."""


def path_of(word: ShellWord, text: str) -> str:
    """Return the path that a program receives for ``text`` of ``word``: a quoted tilde is an ordinary character."""
    if not text.startswith("~"):
        return text
    home = os.path.expanduser(text) if word.raw.startswith("~") else text  # noqa: PTH111 - must not raise
    return home if home.startswith("/") else f"./{text}"


def nameable(text: str) -> bool:
    """Return whether a file can have this name; the system refuses empty and overlong names."""
    if not text or (text.isascii() and len(text) <= LONGEST_NAME):
        return bool(text)
    return len(text) <= LONGEST and all(len(os.fsencode(part)) <= LONGEST_NAME for part in text.split("/"))


class Disk:
    """Expands patterns on disk for one command, caching results and with a limit."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, bool], list[str] | None] = {}
        self._names: dict[str, list[str]] = {}
        self._left = MOST_SCANNED

    def matches(self, text: str, folder: Path, *, quoted: bool = True) -> list[str]:
        """Return the possible expansions of a pattern in ``folder``; the text itself if nothing matches.

        The text is unquoted, and shells differ in bracket sets, so it returns too many names rather than too few.
        ``quoted``: whether the word had quotes.

        Raises:
            TooMany: more files match, or must be checked, than allowed.
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
    """Compile one name of a pattern.

    Bracket sets match anything unless they contain only unquoted letters and digits: quoted ones are literal, and
    ranges depend on the locale.
    """
    start, end = part.find("["), part.rfind("]")
    if not quoted and _PLAIN_SET.fullmatch(part):
        start = -1
    loose = f"{part[:start]}*{part[end + 1 :]}" if 0 <= start < end else part
    return re.compile(translate(loose.replace("?", "*"))).fullmatch


def may_be_secret(text: str, *, anyhow: bool = False) -> bool:
    """Return whether a pattern matches a hidden secret name, whether or not a file exists.

    ``anyhow``: consider shells configured to match a leading dot with bracket sets.
    """
    wild = [
        part for part in text.split("/") if _WILD.search(part) and part.startswith((".", "[", "?") if anyhow else ("."))
    ]
    return any(_pattern(part)(name) for part in wild for name in _HIDDEN)


def fits_secret(pattern: str) -> bool:
    """Return whether a pattern for names in any folder matches a hidden secret name."""
    return any(fnmatchcase(name, step) for step in pattern.lower().split("/") for name in _HIDDEN)


def pieces(text: str) -> Iterator[str]:
    """Yield parts of a word that may name a file: ``if=x``, ``@x``, ``--file=x``, ``HEAD:x``, ``-fx``."""
    cut = _PIECES.split(text)
    if len(cut) > 1:
        # A host follows the two slashes of an address.
        yield from (piece for piece in cut if piece and not (piece.startswith("//") and _ADDRESS.match(text)))
    if text.startswith("-") and not text.startswith("--") and len(text) > 2:
        yield text[2:]


@frozen
class OddFile:
    """Why a listed file may not be read; ``held``: a sandbox makes it harmless."""

    why: str
    held: bool


def odd_file_below(folder: Path, listing: KnownListing, seems: Seems) -> OddFile | None:
    """Return why files of ``listing`` below ``folder`` may not be read; None if all may.

    First priority: another name of a secret or an outside file. Then: a secret, or a name that programs misread.
    """
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
        # The listing asks for this name.
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
    """Return a function that names the secret that reading a whole folder would reveal; empty for none."""

    def found(below: FolderRead) -> str:
        path = secrets_below(below, partial(seems, see))
        if path in {"", "?"}:
            return "more files than ba can search for secrets" if path else ""
        return f"{os.path.relpath(path, below.folder)}, which holds secrets or links elsewhere"

    return found


def seems(see: See, path: str) -> bool:
    """Return whether a file contains secrets or is elsewhere, by its name or its target."""
    try:
        return any(seen.secret or not seen.inside for seen in see(path, Path(path).parent))
    except PathRefused:
        return True


def secrets_below(below: FolderRead, seems: Seems) -> str:
    """Return the first secret, or link that leads elsewhere, that reading a whole folder reaches.

    Empty if there is none; ``?`` if there is too much to check.
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
            _odd(entry, seems, links=below.follows) or (not entry.is_symlink() and has_several_names(entry.path))
        ):
            return entry.path
    return ""


def _odd(entry: os.DirEntry[str], seems: Seems, links: bool) -> bool:
    """Return whether a file is secret by its name, its link target, or another name of the same file."""
    if entry.is_symlink():
        return links and seems(entry.path)
    return is_secret(Path(entry.path)) or (has_several_names(entry.path) and seems(entry.path))


def has_several_names(path: str | Path) -> bool:
    """Return whether a file has several names; another one may be secret."""
    try:
        status = os.stat(path)  # noqa: PTH116 - for each file that a command reads
    except (OSError, ValueError):
        return False
    return status.st_nlink > 1 and stat.S_ISREG(status.st_mode)


def _entries(
    folder: Path, wanted: Callable[[str, bool], bool] = lambda name, inner: True
) -> Iterator[tuple[os.DirEntry[str] | None, bool]]:
    """Yield every ``wanted`` entry below ``folder``, and whether it is a folder; None at the end if there are too many.
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
