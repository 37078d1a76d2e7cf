"""Which folders' own code may run: what a person granted, for exactly the files that were there then.

Kept in the person's config folder, never in the project. Who loads the code asks here first, every time.
"""

from __future__ import annotations

import hashlib
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import yaml

from ba_tui.core.errors import UsageError
from ba_tui.resources import alone, read_regular, save_whole
from ba_tui.settings.document import load_mapping, read_document

CODE = ("tools", "workflows")
FILES = ("tools.yaml",)
MOST_FILES = 2_000
MOST_BYTES = 50_000_000
HEADER = """\
# Folders whose own tools and workflows may run, each for exactly the files that were there when you said so.
# Remove a folder to take that back.
"""


@dataclass(frozen=True, slots=True)
class _Known:
    """A fingerprint and what told that it is still the same: names, sizes and times."""

    stamp: str
    fingerprint: str


class Trust:
    """The grants in the file at ``path``. Any thread may ask."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[str, _Known] = {}
        self._alone = threading.Lock()

    def trusted(self, root: Path) -> bool:
        """Whether the code in ``root/.ba`` may run as it is now. False when in doubt."""
        granted = self._granted(root)
        if not granted:
            return False
        try:
            return granted == self.fingerprint(root)
        except (UsageError, OSError):
            return False

    def grant(self, root: Path) -> None:
        """Trust ``root`` with the code it holds now.

        Raises:
            UsageError: it holds more than a person could have looked at.
            StorageError: the grant can't be kept.
        """
        entry = {"fingerprint": self.fingerprint(root), "at": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"}
        with alone(self.path.parent):
            kept = load_mapping(self.path)
            kept[str(root)] = entry
            save_whole(self.path, HEADER + yaml.safe_dump(kept, allow_unicode=True, sort_keys=False), mode=0o600)

    def revoke(self, root: Path) -> bool:
        """Forget the grant; False when there was none.

        Raises:
            StorageError: as ``grant``.
        """
        with alone(self.path.parent):
            kept = load_mapping(self.path)
            if kept.pop(str(root), None) is None:
                return False
            save_whole(self.path, HEADER + yaml.safe_dump(kept, allow_unicode=True, sort_keys=False), mode=0o600)
            return True

    def fingerprint(self, root: Path) -> str:
        """Of all code in ``root/.ba``: another file, name or byte makes another one.

        Raises:
            UsageError: it holds too much. OSError: a file can't be read.
        """
        files = code_of(root)
        stamp = "\n".join(_stamp(file) for file in files)
        with self._alone:
            known = self._known.get(str(root))
        if known and known.stamp == stamp:
            return known.fingerprint
        whole = hashlib.sha256()
        for file in files:
            name = os.fsencode(file.relative_to(root))
            content = hashlib.sha256(read_regular(file, MOST_BYTES + 1)).digest()
            whole.update(len(name).to_bytes(4, "big") + name + content)
        with self._alone:
            self._known[str(root)] = _Known(stamp, whole.hexdigest())
        return whole.hexdigest()

    def _granted(self, root: Path) -> str:
        document = read_document(self.path)
        entry: Any = document.data.get(str(root)) if document and not document.problems else None
        if not isinstance(entry, dict):
            return ""
        return str(cast("Mapping[str, Any]", entry).get("fingerprint", ""))


def code_of(root: Path) -> list[Path]:
    """The files in ``root/.ba`` that run or decide what runs, links followed, by name. Compiled files are not among
    them: nothing here loads any.

    Raises:
        UsageError: there are more of them than a person could look at.
    """
    found = [file for name in FILES if (file := root / ".ba" / name).is_file()]
    size = sum(file.stat().st_size for file in found)
    for name in CODE:
        for file in _below(root / ".ba" / name, set()):
            size += file.stat().st_size
            found.append(file)
            if len(found) > MOST_FILES or size > MOST_BYTES:
                raise UsageError(
                    f"{root / '.ba'} holds more than {MOST_FILES} files or {MOST_BYTES // 1_000_000} MB of code.",
                    "Keep data elsewhere; trust is for code that a person can look at.",
                )
    return sorted(found)


def _below(folder: Path, above: set[str]) -> Iterator[Path]:
    """Regular files, also through links; a link to a folder above is not followed again."""
    real = os.path.realpath(folder)
    if real in above:
        return
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for entry in entries:
        try:
            mode = entry.stat().st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode) and entry.name != "__pycache__":
            yield from _below(entry, above | {real})
        elif stat.S_ISREG(mode):
            yield entry


def _stamp(file: Path) -> str:
    status = file.stat()
    return f"{file} {status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
