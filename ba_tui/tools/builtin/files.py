"""The tools read_file and write_file: whole text files and ranges of their lines.

Changing one place is edits.py, folders are listing.py, files that are no plain text images.py, pdf.py, notebooks.py.
"""

from __future__ import annotations

import asyncio
import difflib
import io
import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from ba_tui.core.errors import BaError
from ba_tui.core.results import Source, ToolResult
from ba_tui.core.text.markup import MARK, restored
from ba_tui.core.text.wording import count
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.secrets.fragments import AROUND, lines_without_fragments
from ba_tui.permissions.secrets.sharing import Secrecy, cut_secrets
from ba_tui.tools.builtin.binary_kinds import no_text
from ba_tui.tools.builtin.images import is_picture, read_picture
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.changes import PlannedChange, change_tool
from ba_tui.tools.editing.disk import MAX_BYTES, opened, read_bytes
from ba_tui.tools.editing.documents import FileEncoding, binary_kind, detect, line_end, plain_lines, with_line_end
from ba_tui.tools.editing.placeholders import refuse_placeholders
from ba_tui.tools.editing.seen import SeenFiles
from ba_tui.tools.failed import Failed
from ba_tui.tools.ignoring import FolderWalk, walked
from ba_tui.tools.modalities import Modalities

MAX_LINES = 2_000
LINE_CHARS = 2_000
MAX_CHARS = 28_000
HEAD_BYTES = 65_536


def read_file_tool(
    definition: Definition,
    workspace: Workspace,
    seen: SeenFiles,
    modalities: Modalities | None = None,
    secrecy: Secrecy = "redact",
) -> Tool:
    """``modalities``: what the model in use can be shown beside text; nothing by default."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        stop = threading.Event()
        reading = _Reading(workspace, seen, modalities or Modalities(), stop, secrecy)
        try:
            return await asyncio.to_thread(reading.read, args)
        finally:
            stop.set()

    facts = ToolFacts(category="files", target="path", paths=("path",))
    return Tool("read_file", definition.description, definition.input_schema, run, facts=facts)


def write_file_tool(definition: Definition, workspace: Workspace, seen: SeenFiles) -> Tool:
    async def concern(args: Mapping[str, Any]) -> str:
        return await asyncio.to_thread(_unread, workspace, seen, args)

    return change_tool("write_file", definition, seen, partial(_planned, workspace, seen), concern)


def _unread(workspace: Workspace, seen: SeenFiles, args: Mapping[str, Any]) -> str:
    """Why the person should look: lines would go that nobody has read."""
    try:
        if not seen.in_part(workspace.resolve(args["path"])):
            return ""
        change = _planned(workspace, seen, args)
    except BaError:
        # What can't be done says so when it is tried.
        return ""
    lost = seen.lost(change.path, change.old_text, change.new_text)
    return f"{count(lost, 'line')} of {change.shown} would go that were never read" if lost else ""


def _planned(workspace: Workspace, seen: SeenFiles, args: Mapping[str, Any]) -> PlannedChange:
    """What the call would write. Raises Failed, PathRefused."""
    path = workspace.resolve(args["path"])
    shown = workspace.shown(path)
    content = given = str(args["content"])
    if MARK in content:
        # Tags that results show with ‹ are written as they are, except into a file that holds that character.
        content = restored(content)
    try:
        content.encode()
    except UnicodeEncodeError as error:
        message = "The content holds text that is no Unicode (a lone surrogate)."
        raise Failed("invalid_parameters", message) from error
    if not os.path.lexists(path):
        refuse_placeholders("", content)
        return PlannedChange(path, shown, None, content.encode(), "", content)
    before = read_bytes(path, shown, workspace)
    seen.check(path, before, shown)
    encoding = FileEncoding() if binary_kind(before[:8192]) else detect(before)
    old = before.decode("utf-8", "replace") if binary_kind(before[:8192]) else encoding.decode(before)
    content = given if MARK in old else content
    refuse_placeholders(old, content)
    text = content if "\r" in content else with_line_end(content, line_end(old))
    note = ""
    try:
        after = encoding.encode(text)
    except UnicodeEncodeError:
        after, note = text.encode(), f"the file was {encoding.codec}, which lacks some characters; it is UTF-8 now"
    return PlannedChange(path, shown, before, after, old, text, note)


@frozen
class _Reading:
    workspace: Workspace
    seen: SeenFiles
    modalities: Modalities
    stop: threading.Event
    secrecy: Secrecy

    def read(self, args: Mapping[str, Any]) -> ToolResult:
        path = self.workspace.resolve(args["path"])
        shown = self.workspace.shown(path)
        offset, limit = int(args.get("offset", 1)), int(args.get("limit", MAX_LINES))
        try:
            with opened(path, shown, self.workspace) as file:
                head = file.read(HEAD_BYTES)
                if is_picture(head):
                    return read_picture(head + file.read(MAX_BYTES), shown, self.modalities)
                if head.startswith(b"%PDF-"):
                    from ba_tui.tools.builtin.pdf import read_pdf  # noqa: PLC0415 - most files are text

                    return read_pdf(_whole(head, file, shown), shown, (offset, limit), self.modalities)
                excerpt = _excerpt(file, head, shown, (offset, min(limit, MAX_LINES)), self.stop)
        except Failed as error:
            if error.kind == "not_found":
                raise _not_found(self.workspace, path, shown) from error
            raise
        if excerpt.data is not None:
            shown_lines = range(offset - 1, offset - 1 + len(excerpt.lines))
            self.seen.note_lines(path, excerpt.data, shown_lines, excerpt.total or 0)
        if path.suffix == ".ipynb" and excerpt.data is not None:
            from ba_tui.tools.editing.notebooks import read_cells, read_notebook  # noqa: PLC0415 - most files are none

            cells = read_notebook(excerpt.encoding.decode(excerpt.data))
            if cells is not None:
                return read_cells(cells, shown, (offset, limit), self.modalities)
        if not excerpt.lines and excerpt.total:
            message = f"{shown} has {excerpt.total} lines; line {offset} is beyond its end."
            raise Failed("validation_error", message, "Use a smaller offset.")
        return _shown_excerpt(excerpt, shown, offset, self.secrecy)


def _whole(head: bytes, file: BinaryIO, shown: str) -> bytes:
    data = head + file.read(MAX_BYTES)
    if len(data) > MAX_BYTES:
        message = f"{shown} is larger than {MAX_BYTES // 1_000_000} MB."
        raise Failed("resource_error", message, "Make a file of the pages you need with a program and read that.")
    return data


@dataclass(slots=True)
class Excerpt:
    """The lines that were asked for, as far as they fit; ``total`` is None where the file was not read to its end.
    ``around``: what was read, with enough of what stands before and after to know secrets that are cut."""

    lines: list[str]
    total: int | None
    encoding: FileEncoding
    data: bytes | None
    around: str


def _shown_excerpt(excerpt: Excerpt, shown: str, offset: int, secrecy: Secrecy) -> ToolResult:
    last = offset + len(excerpt.lines) - 1
    notes: list[str] = []
    if excerpt.total is None or last < excerpt.total:
        of = "more follow" if excerpt.total is None else f"of {excerpt.total}"
        notes.append(f"lines {offset}-{last}, {of}; go on with offset={last + 1}")
    if excerpt.encoding.shown:
        notes.append(f"encoding: {excerpt.encoding.shown}")
    lines, kinds = excerpt.lines, ()
    if secrecy != "allow":
        lines, kinds = lines_without_fragments(lines, excerpt.around)
    text = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, offset))
    if not excerpt.lines:
        text = f"{shown} is empty."
    if notes:
        text += f"\n[{'; '.join(notes)}]"
    source = Source(shown, "\n".join(excerpt.lines), offset)
    return ToolResult(text, source, summary=count(len(excerpt.lines), "line"), meta=cut_secrets(kinds))


def _excerpt(file: BinaryIO, head: bytes, shown: str, span: tuple[int, int], stop: threading.Event) -> Excerpt:
    """``span``: the first line, from 1, and how many at most. Raises Failed for what is no text."""
    offset, limit = span
    size = os.fstat(file.fileno()).st_size
    if kind := binary_kind(head[:8192]):
        raise no_text(head, shown, size, kind)
    if size <= MAX_BYTES:
        data = head + file.read(MAX_BYTES)
        encoding = detect(data)
        lines = plain_lines(encoding.decode(data)).split("\n")
        if lines[-1] == "":
            lines.pop()
        kept = _fitting(iter(lines[offset - 1 : offset - 1 + limit]))
        around = _around(lines, offset - 1, offset - 1 + len(kept))
        return Excerpt(kept, len(lines), encoding, data, around)
    encoding = detect(head, whole=False)
    file.seek(len(encoding.mark))
    words = io.TextIOWrapper(file, encoding.codec, errors="replace", newline=None)
    source = _Stretch(words, stop)
    lines = _fitting(source.lines(offset, limit))
    around = f"{source.passed}{words.read(AROUND)}"
    words.detach()
    return Excerpt(lines, source.number if source.ended else None, encoding, None, around)


def _around(lines: Sequence[str], first: int, last: int) -> str:
    """The lines from ``first`` to ``last`` with so many before and after them as secrets may be long."""
    if first >= len(lines):
        return ""
    room = AROUND
    while first > 0 and room > 0:
        first -= 1
        room -= len(lines[first]) + 1
    room = AROUND
    while last < len(lines) and room > 0:
        room -= len(lines[last]) + 1
        last += 1
    return "\n".join(lines[first:last])


@dataclass(slots=True)
class _Stretch:
    """Lines of a file of any size, each cut at LINE_CHARS + 1 characters, however long it is."""

    words: io.TextIOWrapper
    stop: threading.Event
    number: int = 0
    """Of the newest line."""
    ended: bool = False
    """That was the file's last one."""
    _newest: deque[str] = field(default_factory=deque[str])
    _size: int = 0

    @property
    def passed(self) -> str:
        """The newest of what was read, so much that a secret which began there is known."""
        return "".join(self._newest)

    def lines(self, offset: int, limit: int) -> Iterator[str]:
        while self.number < offset + limit - 1 and (piece := self._piece()):
            self.number += 1
            line = piece[: LINE_CHARS + 1]
            while piece and not piece.endswith("\n"):
                piece = self._piece()
            if self.number >= offset:
                yield line.rstrip("\n")
        self.ended = not self._piece()

    def _piece(self) -> str:
        piece = "" if self.stop.is_set() else self.words.readline(HEAD_BYTES)
        self._newest.append(piece)
        self._size += len(piece)
        while self._size - len(self._newest[0]) > AROUND + MAX_CHARS:
            self._size -= len(self._newest.popleft())
        return piece


def _fitting(lines: Iterator[str]) -> list[str]:
    kept: list[str] = []
    size = 0
    for line in lines:
        shown = line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}… [line cut at {LINE_CHARS} characters]"
        size += len(shown) + 8
        if kept and size > MAX_CHARS:
            break
        kept.append(shown)
    return kept


def _not_found(workspace: Workspace, path: Path, shown: str) -> Failed:
    """With the nearest names: in the same folder, then the same name elsewhere."""
    near: list[str] = []
    try:
        siblings = sorted(entry.name for entry in os.scandir(path.parent))
        near = [str(path.parent / name) for name in difflib.get_close_matches(path.name, siblings, 3, 0.6)]
    except OSError:
        pass
    for entry in walked(workspace.root, FolderWalk(limit=20_000)):
        if len(near) >= 5:
            break
        if entry.name == path.name:
            near.append(entry.path)
    names = ", ".join(dict.fromkeys(workspace.shown(Path(name)) for name in near))
    return Failed("not_found", f"{shown} does not exist.", f"Nearest: {names}." if names else "Search with glob.")
