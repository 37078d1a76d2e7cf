"""The paths that a word of a command may come to: braces, wildcards on the disk, and the pieces of it that name files.

Nothing is opened here; which paths are fine is the policy's business.
"""

from __future__ import annotations

import glob
import itertools
import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ba_tui.core.patterns import regex
from ba_tui.permissions.paths import SECRET_FOLDERS, SECRET_NAMES, is_secret
from ba_tui.permissions.simple import Listing, Word

MOST_MATCHES = 200
MOST_SPELLINGS = 64
MOST_LOOKED_AT = 20_000

_BRACE = regex(r"\{([^{}]*)\}")
_RANGE = regex(r"(-?\d+|[A-Za-z])\.\.(-?\d+|[A-Za-z])(?:\.\.-?\d+)?")
_WILD = regex(r"[*?\[]")
_HIDDEN = tuple(
    name.replace("*", "") for name in (*SECRET_NAMES, *SECRET_FOLDERS) if name.startswith(".") and len(name) > 2
)
_BARE = regex(r"[\w.][^=:]*")
_PARTED = regex(r"[\s'\"\\]")
_PIECES = regex(r"[=:,@<>()'\"\s]+")


class TooMany(Exception):
    """A word that may come to more texts than are looked at."""


def spellings(word: Word) -> list[str]:
    """What braces make of a word; the word itself without any.

    Raises:
        TooMany: there are too many, or it is known only when it runs.
    """
    if word.text is None:
        raise TooMany
    if not word.glob or "{" not in word.text:
        return [word.text]
    found, done = [word.text], list[str]()
    while found:
        text = found.pop()
        brace = next((match for match in _BRACE.finditer(text) if _choices(match[1])), None)
        if brace is None:
            done.append(text)
        else:
            found += [text[: brace.start()] + choice + text[brace.end() :] for choice in _choices(brace[1])]
        if len(found) + len(done) > MOST_SPELLINGS:
            raise TooMany
    return done


def _choices(inner: str) -> list[str]:
    if "," in inner:
        return inner.split(",")
    match = _RANGE.fullmatch(inner)
    if match is None:
        return []
    first, last = match[1], match[2]
    if first.lstrip("-").isdigit() != last.lstrip("-").isdigit():
        return []
    if first.lstrip("-").isdigit():
        low, high = sorted((int(first), int(last)))
        if high - low > MOST_SPELLINGS:
            raise TooMany
        return [str(number) for number in range(low, high + 1)]
    low, high = sorted((ord(first), ord(last)))
    return [chr(code) for code in range(low, high + 1)]


def matches(text: str, folder: Path) -> list[str]:
    """What the shell would make of a pattern in ``folder`` here and now; the text itself where nothing fits.

    Raises:
        TooMany: more files fit than are looked at.
    """
    if not _WILD.search(text):
        return [text]
    plain = text.replace("[^", "[!")
    try:
        found = glob.iglob(os.path.expanduser(plain), root_dir=folder, recursive=False)  # noqa: PTH111, PTH207 - as the shell does it
        names = list(itertools.islice(found, MOST_MATCHES + 1))
    except (OSError, ValueError, RecursionError, re.error) as error:
        raise TooMany from error
    if len(names) > MOST_MATCHES:
        raise TooMany
    return names or [text]


def may_be_secret(text: str) -> bool:
    """Whether a pattern for hidden names fits one that is secret, on the disk or not."""
    parts = text.split("/")
    return any(
        _WILD.search(part) and part.startswith((".", "[", "?")) and any(fnmatchcase(name, part) for name in _HIDDEN)
        for part in parts
    )


def pieces(text: str) -> Iterator[str]:
    """The parts of a word that may name a file of their own: ``if=x``, ``@x``, ``--file=x``, ``HEAD:x``, ``-fx``."""
    yield text
    if "://" in text:
        return
    cut = _PIECES.split(text)
    if len(cut) > 1:
        yield from (piece for piece in cut if piece)
    if text.startswith("-") and not text.startswith("--") and len(text) > 2:
        yield text[2:]


def odd_below(folder: Path, listing: Listing, root: Path) -> str:
    """Why files of ``listing`` below ``folder`` may not be read as they come: a secret, a link that leads out of
    ``root``, a name that a program takes for something else. Empty when all may."""
    todo, looked = [str(folder)], 0
    while todo:
        try:
            entries = list(os.scandir(todo.pop()))
        except OSError:
            continue
        looked += len(entries)
        if looked > MOST_LOOKED_AT:
            return "are more than can be looked through"
        for entry in entries:
            name, inner = entry.name, entry.is_dir(follow_symlinks=False)
            if inner:
                todo.append(entry.path)
            fits = not listing.names or any(fnmatchcase(name.lower(), each.lower()) for each in listing.names)
            if not fits and not inner:
                continue
            if (not listing.ended and _PARTED.search(name)) or (listing.bare and not _BARE.fullmatch(name)):
                return f"may be {name!r}, which reads as something else"
            if not fits:
                continue
            if is_secret(Path(entry.path)):
                return f"is {os.path.relpath(entry.path, folder)}, which holds secrets"
            if entry.is_symlink() and not listing.regular:
                target = Path(os.path.realpath(entry.path))
                if is_secret(target) or not target.is_relative_to(root):
                    return f"is {os.path.relpath(entry.path, folder)}, a link to elsewhere"
    return ""


def secrets_below(folder: Path, names: Sequence[str], hidden: bool) -> str:
    """The first secret file below ``folder`` that a search would read: its path; ``?`` when there is too much to look.

    ``names``: only files that fit one of them, whether they begin with a dot or not; ``hidden``: also all others that
    begin with one.
    """
    looked, todo = 0, [str(folder)]
    steps = [step for name in names for step in name.lower().split("/")]

    def wanted(name: str) -> bool:
        return any(fnmatchcase(name, step) for step in steps)

    if folder.is_file():
        return ""
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    looked += 1
                    if looked > MOST_LOOKED_AT:
                        return "?"
                    folded, folder_like = entry.name.lower(), entry.is_dir(follow_symlinks=False)
                    if folded.startswith(".") and not hidden and not (wanted(folded) if folder_like else names):
                        continue
                    if folder_like:
                        if entry.name in SECRET_FOLDERS:
                            return entry.path
                        todo.append(entry.path)
                    elif names and not any(fnmatchcase(folded, name.lower().rsplit("/", 1)[-1]) for name in names):
                        continue
                    elif is_secret(Path(entry.name)):
                        return entry.path
        except OSError:
            continue
    return ""
