"""The helper process that searches a workspace's text files for secrets and writes masked copies of them.

It runs at low priority, so that ba's screen never waits for it. ``content_scan`` starts it and reads its output: one
JSON object per line. Each line on its standard input starts a pass; it exits at the end of the input.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ba_tui.permissions.paths import folded, is_secret
from ba_tui.permissions.sandbox.workspace_scan import COLD
from ba_tui.permissions.secrets import masking, scanner
from ba_tui.permissions.secrets.masked_copies import LARGEST, FileStamp, read_stable, save_copy, stamp_of
from ba_tui.permissions.secrets.masking import ScanOrder

NICE = 15
MOST_FILES = 200_000
"""Files that one pass searches."""
MOST_FOUND = 250
"""Files with secrets of which copies are made. With more, read-only commands ask first."""
DIGEST = 8
"""Bytes of the digest of a file without secrets."""


class ContentSearch:
    """Searches repeatedly; a file is opened only if its stamp is new."""

    def __init__(self, order: ScanOrder) -> None:
        self._order = order
        self._skipped = frozenset(order.skipped)
        self._version = _version()
        self._clean = self._read()
        self._saved = len(self._clean)
        self._parent = os.getppid()
        self._found: dict[str, FileStamp] = {}

    def run(self) -> Iterator[dict[str, Any]]:
        """Search all files once. Yield each new or changed file with secrets, then those that no longer exist."""
        there: set[str] = set()
        clean: set[bytes] = set()
        count = 0
        for path, status in self._files():
            count += 1
            if count > MOST_FILES or os.getppid() != self._parent:
                break
            stamp = stamp_of(status)
            digest = self._digest(stamp)
            if digest in self._clean:
                clean.add(digest)
                continue
            if self._found.get(path) == stamp:
                there.add(path)
                continue
            made = self._search(path)
            if made is None:
                clean.add(digest)
            elif made:
                there.add(path)
                yield made
        gone = self._found.keys() - there
        for path in gone:
            del self._found[path]
        if gone:
            yield {"gone": [path.encode("utf-8", "surrogateescape").hex() for path in gone]}
        self._clean = clean
        self._save()

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield files that may be text and have a suitable size. Files with secret names are masked anyway."""
        pending = list(self._order.roots)
        while pending:
            folder = pending.pop()
            try:
                with os.scandir(folder) as entries:
                    listed = list(entries)
            except OSError:
                continue
            for entry in listed:
                try:
                    if entry.is_dir(follow_symlinks=False):
                        name = folded(entry.name)
                        if name not in COLD and name != ".git" and entry.path not in self._skipped:
                            pending.append(entry.path)
                        continue
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                searched = stat.S_ISREG(status.st_mode) and 0 < status.st_size <= LARGEST
                if searched and entry.path not in self._skipped and not is_secret(Path(entry.name)):
                    yield entry.path, status

    def _search(self, path: str) -> dict[str, Any] | None:
        """Return a report on a file with secrets; None for one without, empty if it could not be read."""
        read = read_stable(path)
        if read is None:
            return {}
        status, data = read
        made = masking.masked_places(data)
        if made is None:
            return None
        self._found[path] = stamp_of(status)
        told: dict[str, Any] = {"path": path.encode("utf-8", "surrogateescape").hex(), "stamp": stamp_of(status)}
        told["values"] = made.values
        if len(self._found) <= MOST_FOUND:
            told["copy"] = str(save_copy(Path(self._order.copies), path, status, made.data))
        return told

    def _digest(self, stamp: FileStamp) -> bytes:
        return hashlib.blake2b(repr(stamp).encode(), digest_size=DIGEST, key=self._version).digest()

    def _read(self) -> set[bytes]:
        if not self._order.kept:
            return set()
        try:
            data = Path(self._order.kept).read_bytes()[: MOST_FILES * DIGEST]
        except OSError:
            return set()
        return {data[at : at + DIGEST] for at in range(0, len(data) - DIGEST + 1, DIGEST)}

    def _save(self) -> None:
        if not self._order.kept or abs(len(self._clean) - self._saved) <= self._saved // 100:
            return
        kept = Path(self._order.kept)
        draft = kept.with_name(f"{kept.name}.{os.getpid()}")
        # If this fails, the files are searched again.
        with suppress(OSError):
            kept.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft.write_bytes(b"".join(self._clean))
            draft.replace(kept)
            self._saved = len(self._clean)


def _version() -> bytes:
    """Return a key that changes with the code that recognises secrets, so that every file is searched again."""
    code = b"".join(Path(module.__file__ or "").read_bytes() for module in (scanner, masking) if module.__file__)
    return hashlib.sha256(code).digest()


def main() -> None:
    with suppress(OSError):
        os.nice(NICE)
    search = ContentSearch(ScanOrder.read(sys.stdin.readline()))
    for _ in sys.stdin:
        for told in search.run():
            _print(told)
        _print({"done": True})


def _print(told: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    with suppress(BrokenPipeError, KeyboardInterrupt):
        main()
