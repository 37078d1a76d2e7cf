"""Where commands run, as the ``cd`` before them says.

Folders are told from where the whole command runs ("" there); None: known only when it runs.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from ba_tui.permissions.shell.walk.values import ShellWord

MOST_FOLDERS = 3

Folders = tuple[str | None, ...]


def moved(folder: str | None, words: Sequence[ShellWord], source: str) -> str | None:
    """The folder after ``cd`` from ``folder``; None when that is not certain in a command that reads ``source``."""
    rest = [word for word in words[1:] if word.text not in ("--", "-L", "-e")]
    if len(rest) > 1 or "CDPATH" in source or "HOME" in source:
        return None
    if not rest:
        return "~"
    text = rest[0].text
    if text is None or rest[0].glob or text.startswith("-") or not text:
        return None
    if text.startswith(("/", "~")):
        return posixpath.normpath(text)
    if folder is None:
        return None
    joined = posixpath.normpath(posixpath.join(folder, text))
    return "" if joined == "." else joined


def either(*folders: Folders) -> Folders:
    """All folders of these; too many are none known."""
    found = tuple(dict.fromkeys(folder for several in folders for folder in several))
    return (None,) if None in found or len(found) > MOST_FOLDERS else found
