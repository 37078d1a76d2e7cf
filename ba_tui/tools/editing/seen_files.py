"""The model's knowledge of each file: the content when last read or written, and the lines that were never shown.

This protects against stale and blind writes. Results carry it, so that it survives a restart.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from ba_tui.core.results import SeenFile, StateChange, ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.tools.editing.documents import plain_lines, shared_ends
from ba_tui.tools.failures import ToolFailure

CHANGED_HINT = "Read it again, then make the change on what it holds now."


@frozen
class _KnownContent:
    """A known content. ``unread``: ranges of lines, from 0, that were never shown."""

    digest: bytes
    unread: tuple[range, ...] = ()


_GONE = _KnownContent(b"")
"""Marks a file of which nothing is known any more."""
Remembered: TypeAlias = Callable[[str], SeenFile | None]
"""Returns what an earlier run of ba knew of the file at a path."""


def _nothing(path: str) -> None:
    """Return None: a new conversation knows nothing."""


class SeenFiles:
    """Hold ``lock`` while planning and writing a change, so that two changes never start from the same state."""

    def __init__(self, remembered: Remembered = _nothing) -> None:
        self.lock = threading.Lock()
        self._remembered = remembered
        self._seen: dict[Path, _KnownContent] = {}
        self._changed: dict[Path, None] = {}
        """Files read or written since the last ``take``."""

    def take(self) -> tuple[SeenFile, ...]:
        """Return the new knowledge since the last call, for the result."""
        changed, self._changed = self._changed, {}
        return tuple(_kept(path, self._seen[path]) for path in changed if path in self._seen)

    def note(self, path: Path, data: bytes) -> None:
        """Note that all of ``data``, the file's content, is known."""
        self._put(path, _KnownContent(_digest(data)))

    def note_lines(self, path: Path, data: bytes, shown: range, total: int) -> None:
        """Note that the lines ``shown`` (from 0) of ``total`` were read."""
        digest, known = _digest(data), self._known(path)
        unread: Iterable[range] = known.unread if known and known.digest == digest else (range(total),)
        self._put(path, _KnownContent(digest, tuple(piece for each in unread for piece in _without(each, shown))))

    def note_edit(self, path: Path, data: bytes, texts: tuple[str, str], origin: Path | None = None) -> None:
        """Note that the file, formerly at ``origin``, changed from one of ``texts`` to the other, whose bytes are
        ``data``. Unread lines around the change stay unread."""
        unread = self._unread(origin or path)
        if not unread:
            self.note(path, data)
            return
        old, new = texts
        before, after = plain_lines(old).split("\n"), plain_lines(new).split("\n")
        head, tail = shared_ends(before, after)
        changed, more = range(head, len(before) - tail), len(after) - len(before)
        pieces = [piece for each in unread for piece in _without(each, changed)]
        moved = (range(one.start + more, one.stop + more) if one.start >= changed.stop else one for one in pieces)
        self._put(path, _KnownContent(_digest(data), tuple(moved)))

    def forget(self, path: Path) -> None:
        self._put(path, _GONE)

    def __contains__(self, path: Path) -> bool:
        return self._known(path) is not None

    def in_part(self, path: Path) -> bool:
        """Return whether some lines of the file were never read."""
        return bool(self._unread(path))

    def lost(self, path: Path, old: str, new: str) -> int:
        """Return the number of lines of ``old``, the present content, that were never read and are missing in
        ``new``."""
        lines = plain_lines(old).split("\n")
        unread = Counter(line for piece in self._unread(path) for line in lines[piece.start : piece.stop])
        return sum((unread - Counter(plain_lines(new).split("\n"))).values())

    def check(self, path: Path, data: bytes, shown: str) -> None:
        """Raise ToolFailure if ``data``, the present content, is not the known one."""
        seen = self._known(path)
        if seen is None:
            raise ToolFailure("validation_error", f"{shown} has not been read yet.", "Read it first, then change it.")
        if seen.digest != _digest(data):
            raise ToolFailure("validation_error", f"{shown} has changed since it was read.", CHANGED_HINT)

    def _unread(self, path: Path) -> Sequence[range]:
        known = self._known(path)
        return known.unread if known else ()

    def _put(self, path: Path, seen: _KnownContent) -> None:
        self._seen[path] = seen
        self._changed[path] = None

    def _known(self, path: Path) -> _KnownContent | None:
        if path not in self._seen and (kept := self._remembered(str(path))):
            self._seen[path] = _KnownContent(bytes.fromhex(kept.digest), tuple(range(*each) for each in kept.unread))
        known = self._seen.get(path)
        return known if known and known.digest else None


def remembering(tool: Tool, seen: SeenFiles) -> Tool:
    """Return ``tool`` with results that carry the new knowledge of files."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        result = await tool.run(args, call)
        known = seen.take()
        return replace(result, changes=replace(result.changes or StateChange(), seen=known)) if known else result

    return replace(tool, run=run)


def _without(piece: range, taken: range) -> list[range]:
    """Return the parts of ``piece`` outside ``taken``."""
    ends = (range(piece.start, min(piece.stop, taken.start)), range(max(piece.start, taken.stop), piece.stop))
    return [each for each in ends if each]


def _kept(path: Path, seen: _KnownContent) -> SeenFile:
    return SeenFile(str(path), seen.digest.hex(), tuple((each.start, each.stop) for each in seen.unread))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
