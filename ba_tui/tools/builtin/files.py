"""The tools read_file, write_file, list_files and glob.

media.py and notebooks.py read files that are not plain text; edits.py changes single places.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from ba_tui.context.files import not_followed
from ba_tui.core.errors import BaError
from ba_tui.core.messages import clean_text
from ba_tui.core.provider import Modalities
from ba_tui.core.results import Prose, Source, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import MARK, restored
from ba_tui.core.text.wording import count, similar
from ba_tui.core.tool import Call, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.secrets.scanner import AROUND, lines_without_fragments
from ba_tui.permissions.secrets.sharing import Secrecy, cut_secrets
from ba_tui.tools.builtin.media import is_picture, no_text, read_pdf, read_picture
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.disk import MAX_BYTES, opened, read_bytes
from ba_tui.tools.editing.documents import FileEncoding, binary_kind, detect, line_end, plain_lines, with_line_end
from ba_tui.tools.editing.edits import PlannedChange, change_tool, refuse_placeholders
from ba_tui.tools.editing.notebooks import read_cells, read_notebook
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.failures import ToolFailure, from_os
from ba_tui.tools.folder_walk import FolderWalk, Glob, WalkedFile, walked

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
    """Return read_file. ``modalities``: what the model in use accepts besides text; by default nothing."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        stop = threading.Event()
        reading = _FileReader(workspace, seen, modalities or Modalities(), stop, secrecy)
        try:
            return await asyncio.to_thread(reading.read, args)
        finally:
            stop.set()

    return definition.tool(run)


def write_file_tool(definition: Definition, workspace: Workspace, seen: SeenFiles) -> Tool:
    async def concern(args: Mapping[str, Any]) -> str:
        return await asyncio.to_thread(_unread, workspace, seen, args)

    return change_tool(definition, seen, partial(_planned, workspace, seen), concern)


def _unread(workspace: Workspace, seen: SeenFiles, args: Mapping[str, Any]) -> str:
    """Return why the user should be asked: the call would remove lines that were never read."""
    try:
        if not seen.in_part(workspace.resolve(args["path"])):
            return ""
        change = _planned(workspace, seen, args)
    except BaError:
        # The call itself reports why it can't be done.
        return ""
    lost = seen.lost(change.path, change.old_text, change.new_text)
    return f"{count(lost, 'line')} of {change.shown} would go that were never read" if lost else ""


def _planned(workspace: Workspace, seen: SeenFiles, args: Mapping[str, Any]) -> PlannedChange:
    """Return the change that the call would make. Raises ToolFailure, PathRefused."""
    path = workspace.resolve(args["path"])
    shown = workspace.shown(path)
    content = given = str(args["content"])
    if MARK in content:
        # Results show tags with ‹; they are written with <, except into a file that contains ‹.
        content = restored(content)
    try:
        content.encode()
    except UnicodeEncodeError as error:
        message = "The content holds text that is no Unicode (a lone surrogate)."
        raise ToolFailure("invalid_parameters", message) from error
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
class _FileReader:
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
                    return read_pdf(_whole(head, file, shown), shown, (offset, limit), self.modalities)
                excerpt = _excerpt(file, head, shown, (offset, min(limit, MAX_LINES)), self.stop)
        except ToolFailure as error:
            if error.kind == "not_found":
                raise _not_found(self.workspace, path, shown) from error
            raise
        if excerpt.data is not None:
            shown_lines = range(offset - 1, offset - 1 + len(excerpt.lines))
            self.seen.note_lines(path, excerpt.data, shown_lines, excerpt.total or 0)
        if path.suffix == ".ipynb" and excerpt.data is not None:
            cells = read_notebook(excerpt.encoding.decode(excerpt.data))
            if cells is not None:
                return read_cells(cells, shown, (offset, limit), self.modalities)
        if not excerpt.lines and excerpt.total:
            message = f"{shown} has {excerpt.total} lines; line {offset} is beyond its end."
            raise ToolFailure("validation_error", message, "Use a smaller offset.")
        return _shown_excerpt(excerpt, shown, offset, self.secrecy)


def _whole(head: bytes, file: BinaryIO, shown: str) -> bytes:
    data = head + file.read(MAX_BYTES)
    if len(data) > MAX_BYTES:
        message = f"{shown} is larger than {MAX_BYTES // 1_000_000} MB."
        raise ToolFailure("resource_error", message, "Make a file of the pages you need with a program and read that.")
    return data


@dataclass(slots=True)
class Excerpt:
    """The requested lines that fit into a result. ``total``: lines of the file, None if it was not read to its end.
    ``around``: the lines with enough context to recognize secrets that are cut."""

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
    """Read lines. ``span``: the first line, from 1, and their number at most. Raises ToolFailure for binary files."""
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
    """Return the lines from ``first`` to ``last`` with as much context as the longest secret has."""
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
    """Lines of a file of any size, each cut at LINE_CHARS + 1 characters."""

    words: io.TextIOWrapper
    stop: threading.Event
    number: int = 0
    """Number of the newest line."""
    ended: bool = False
    """Whether that was the last line of the file."""
    _newest: deque[str] = field(default_factory=deque[str])
    _size: int = 0

    @property
    def passed(self) -> str:
        """Return the newest text, enough to recognize a secret that began in it."""
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


def _not_found(workspace: Workspace, path: Path, shown: str) -> ToolFailure:
    """Return the error with the nearest names: in the same folder, then the same name elsewhere."""
    near: list[str] = []
    try:
        siblings = sorted(entry.name for entry in os.scandir(path.parent))
        near = [str(path.parent / name) for name in similar(path.name, siblings, share=0.6)]
    except OSError:
        pass
    for entry in walked(workspace.root, FolderWalk(limit=20_000)):
        if len(near) >= 5:
            break
        if entry.name == path.name:
            near.append(entry.path)
    names = ", ".join(dict.fromkeys(workspace.shown(Path(name)) for name in near))
    return ToolFailure("not_found", f"{shown} does not exist.", f"Nearest: {names}." if names else "Search with glob.")


MAX_ENTRIES = 400
_MAGIC = regex(r"[*?\[{]")
DEEPEST = 10
"""Levels of the deepest listing, as in its schema."""


def list_files_tool(definition: Definition, workspace: Workspace) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        walk = FolderWalk(depth=int(args.get("depth", 2)), everything=bool(args.get("all")))
        return await _stoppable(walk, _list, workspace, args.get("path", "."), walk)

    return definition.tool(run)


def glob_tool(definition: Definition, workspace: Workspace) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        walk = FolderWalk()
        return await _stoppable(walk, _glob, workspace, args, walk)

    return definition.tool(run)


async def _stoppable(walk: FolderWalk, work: Any, *args: Any) -> ToolResult:
    """Run ``work`` in a thread that ends soon after the call is cancelled."""
    try:
        return await asyncio.to_thread(work, *args)
    finally:
        walk.stop.set()


def existing_folder(workspace: Workspace, text: str) -> Path:
    """Return the folder ``text``. Raises ToolFailure, PathRefused."""
    path = workspace.resolve(text)
    shown = workspace.shown(path)
    try:
        with os.scandir(path):
            return path
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise from_os(error, shown) from error
    if path.exists():
        raise ToolFailure("validation_error", f"{shown} is a file, not a folder.", "Use read_file for files.")
    raise ToolFailure("not_found", f"The folder {shown} does not exist.", "Search with glob, or list the folder above.")


def _list(workspace: Workspace, text: str, walk: FolderWalk) -> ToolResult:
    folder = existing_folder(workspace, text)
    lines: list[str] = []
    total = 0
    for entry in walked(folder, walk):
        total += 1
        if total <= MAX_ENTRIES:
            lines.append(_line(entry))
    if not lines:
        return ToolResult(f"{workspace.shown(folder)} holds no files (ignored ones are left out).", summary="empty")
    if total > MAX_ENTRIES:
        lines.append(f"[{MAX_ENTRIES} of {total}{'+' if walk.cut else ''} entries; list a folder below, or use glob]")
    if walk.deeper and walk.depth >= DEEPEST:
        lines.append(f"[folders with … hold more, deeper than {walk.depth} levels; list one of them]")
    if links := not_followed(walk.links, folder, workspace.shown):
        lines.append(links)
    listing = clean_text("\n".join(lines))
    return ToolResult(listing, Prose(listing), summary=count(total, "entry"), kind="listing")


def _line(entry: WalkedFile) -> str:
    indent = "  " * (entry.depth - 1)
    name = entry.name.replace("\n", "\\n")
    if entry.link is not None:
        return f"{indent}{name} -> {entry.link} (symlink)"
    if entry.folder:
        return f"{indent}{name}/{' …' if entry.more else ''}"
    return f"{indent}{name}"


def _glob(workspace: Workspace, args: Mapping[str, Any], walk: FolderWalk) -> ToolResult:
    pattern: str = args["pattern"]
    folder = existing_folder(workspace, args.get("path", "."))
    wanted = Glob(pattern)
    below, begun = _through_links(workspace, folder, pattern)
    found = [
        workspace.shown(Path(entry.path)).replace("\n", "\\n") + ("/" if entry.folder else "")
        for entry in walked(below, walk)
        if wanted.fits(begun + os.path.relpath(entry.path, below), folder=entry.folder)
    ]
    unseen: list[str] = []
    if walk.cut:
        unseen.append(f"[only the first {walk.limit:,} entries were looked at; name a folder below as path]")
    if walk.deeper:
        unseen.append(f"[what lies more than {walk.depth} folders deep was not looked at; name a folder below as path]")
    if links := not_followed(walk.links, below, workspace.shown):
        unseen.append(links)
    if not found:
        text = f"No path fits {pattern!r} in {workspace.shown(folder)} (ignored files are left out)."
        return ToolResult(clean_text("\n".join([text, *unseen])), summary="no match")
    lines = found[:MAX_ENTRIES]
    if len(found) > MAX_ENTRIES:
        lines.append(f"[{len(lines)} of {len(found)}{'+' if walk.cut else ''} paths; use a narrower pattern]")
    listing = clean_text("\n".join([*lines, *unseen]))
    summary = count(len(found), "path")
    return ToolResult(listing, Prose(listing), summary=summary, kind="listing")


def _through_links(workspace: Workspace, folder: Path, pattern: str) -> tuple[Path, str]:
    """Follow a link in the literal start of a pattern: return its target, and the start up to the link.

    Without a link, return ``folder`` and an empty text. A link out of the workspace is not followed, because no rule
    judges patterns.
    """
    names = pattern.removeprefix("./").rstrip("/").split("/")[:-1]
    plain = list(itertools.takewhile(lambda name: name and not _MAGIC.search(name), names))
    for upto in range(len(plain), 0, -1):
        place = folder.joinpath(*plain[:upto])
        if place.is_symlink() and place.is_dir() and workspace.contains(real := Path(os.path.realpath(place))):
            return real, "/".join([*plain[:upto], ""])
    return folder, ""
