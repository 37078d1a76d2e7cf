"""The tool edit_file: replace one exact text in a file, everything else in it staying byte for byte.

Finding the place is matching.py, the guarded write changes.py.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from ba_tui.core.results import Display, ToolResult
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.changes import FileChange
from ba_tui.tools.definitions import Definition
from ba_tui.tools.disk import SeenFiles, read_bytes
from ba_tui.tools.documents import Positions, binary_kind, detect, line_end, plain_lines, with_line_end
from ba_tui.tools.failed import Failed
from ba_tui.tools.matching import Change, find_edit


def edit_file_tool(definition: Definition, workspace: Workspace, seen: SeenFiles) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        def work() -> ToolResult:
            with seen.alone:
                return planned_edit(workspace, seen, args).commit(seen)

        return await asyncio.to_thread(work)

    async def preview(args: Mapping[str, Any]) -> Display | None:
        return await asyncio.to_thread(lambda: planned_edit(workspace, seen, args).diff())

    facts = ToolFacts(category="files", target="path", paths=("path",))
    return Tool(
        "edit_file", definition.description, definition.input_schema, run, Effect.WRITE, facts=facts, preview=preview
    )


def planned_edit(workspace: Workspace, seen: SeenFiles, args: Mapping[str, Any]) -> FileChange:
    """What the call would change. Raises Failed, PathRefused."""
    path = workspace.resolve(args["path"])
    shown = workspace.shown(path)
    data = read_bytes(path, shown)
    if kind := binary_kind(data[:8192]):
        raise Failed("validation_error", f"{shown} is {kind}, not text.", "Only text files can be edited.")
    seen.check(path, data, shown)
    encoding = detect(data)
    raw = encoding.decode(data)
    plain = plain_lines(raw)
    old, new = (re.sub("\r\n?", "\n", args[name]) for name in ("old_string", "new_string"))
    edit = find_edit(plain, old, new, replace_all=bool(args.get("replace_all")))
    text = _applied(raw, plain, edit.changes)
    try:
        after = encoding.encode(text)
    except UnicodeEncodeError as error:
        lacking = error.object[error.start : error.start + 1]
        message = f"{shown} is written in {encoding.codec}, which has no {lacking!r}."
        raise Failed("validation_error", message, "Use characters it has, or write the whole file anew.") from error
    return FileChange(path, shown, data, after, raw, text, edit.note)


def _applied(raw: str, plain: str, changes: tuple[Change, ...]) -> str:
    """The changes, found in the plain text, made in the text as it stands in the file."""
    positions = Positions(raw)
    pieces: list[str] = []
    at = 0
    for change in changes:
        start, end, text = _tightened(plain, change)
        first, last = positions.raw(start), positions.raw(end)
        near = raw[first:last] if "\n" in plain[start:end] else raw[first:]
        pieces += [raw[at:first], with_line_end(text, _end_near(near, raw))]
        at = last
    return "".join([*pieces, raw[at:]])


def _tightened(plain: str, change: Change) -> tuple[int, int, str]:
    """Without what stays the same at both ends, so that mixed line ends around the change stay as they are."""
    old, new = plain[change.start : change.end], change.text
    limit = min(len(old), len(new))
    head = 0
    while head < limit and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < limit - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return change.start + head, change.end - tail, new[head : len(new) - tail]


def _end_near(near: str, raw: str) -> str:
    """The line end used at the place of a change: the first there, else the file's usual one."""
    found = re.search("\r\n|\n", near)
    return found.group(0) if found else line_end(raw)
