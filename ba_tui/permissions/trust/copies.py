"""What a trusted folder held when the person said so, kept to show what changed since. It decides nothing.

The copies lie in the person's state folder, readable by them alone, and are bounded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import StorageError
from ba_tui.core.results import Diff
from ba_tui.core.values import frozen
from ba_tui.resources import folder_slug, read_regular, save_whole

MOST_OF_FILE = 200_000
MOST_OF_ALL = 4_000_000
LONGEST = 16_000_000
LARGE = "({size} bytes: too large to be shown here)\n"
BINARY = "(no text: {size} bytes, SHA-256 {digest})\n"


@frozen
class Copy:
    """A file as it was; ``text`` is None when it was too large to keep."""

    digest: str
    text: str | None


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Copies:
    """One file for each trusted folder, in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, root: Path, fingerprint: str, contents: Mapping[str, bytes]) -> None:
        """Raises StorageError."""
        left = MOST_OF_ALL
        files: dict[str, dict[str, Any]] = {}
        for name, content in contents.items():
            kept = len(content) <= min(left, MOST_OF_FILE)
            left -= len(content) if kept else 0
            files[name] = {"digest": digest(content), "text": shown(content) if kept else None}
        record = {"root": str(root), "fingerprint": fingerprint, "files": files}
        save_whole(self._file(root), json.dumps(record), mode=0o600)

    def read(self, root: Path, fingerprint: str) -> dict[str, Copy]:
        """What was kept with ``fingerprint``; empty when nothing was, or it can't be read."""
        try:
            record: Any = json.loads(read_regular(self._file(root), LONGEST))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(record, dict):
            return {}
        known = cast("dict[str, Any]", record)
        if (known.get("root"), known.get("fingerprint")) != (str(root), fingerprint):
            return {}
        files: dict[str, Copy] = {}
        for name, each in cast("dict[str, Any]", known.get("files") or {}).items():
            match each:
                case {"digest": str(digest), "text": str() | None as text}:
                    files[name] = Copy(digest, text)
                case _:
                    return {}
        return files

    def drop(self, root: Path) -> None:
        """Raises StorageError."""
        file = self._file(root)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            text = f"{root} is not trusted any more, but {file} cannot be deleted: {error.strerror or error}."
            raise StorageError(text, "It holds copies of the folder's tools and settings: delete it.") from error

    def _file(self, root: Path) -> Path:
        return self._folder / f"{folder_slug(root)}.json"


def differences(contents: Mapping[str, bytes], before: Mapping[str, Copy]) -> tuple[tuple[Diff, ...], tuple[str, ...]]:
    """Every file that is new or other than ``before``, and the names of those that are gone."""
    changed: list[Diff] = []
    left = MOST_OF_ALL
    for name, content in contents.items():
        old = before.get(name)
        if old and old.digest == digest(content):
            continue
        fits = len(content) <= min(left, MOST_OF_FILE)
        left -= len(content) if fits else 0
        now = shown(content) if fits else LARGE.format(size=len(content))
        was = None if old is None else "(no copy was kept)\n" if old.text is None else old.text
        changed.append(Diff(name, was, now))
    gone = tuple(name for name in before if name not in contents)
    changed += [Diff(name, before[name].text or "(no copy was kept)\n", "") for name in gone]
    return tuple(changed), gone


def shown(content: bytes) -> str:
    """Content as text with ``\\n`` line ends; what is no text is named by its size and digest."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return BINARY.format(size=len(content), digest=digest(content))
    if "\0" in text:
        return BINARY.format(size=len(content), digest=digest(content))
    return text.replace("\r\n", "\n")
