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
from ba_tui.tools.documents import Encoding, binary_kind, detect, plain_lines
from ba_tui.tools.failed import Failed
from ba_tui.tools.matching import find_edit
from ba_tui.tools.splicing import spliced


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
    text = spliced(raw, plain, edit.changes)
    after = encoded(encoding, text, shown)
    return FileChange(path, shown, data, after, raw, text, edit.note)


def encoded(encoding: Encoding, text: str, shown: str) -> bytes:
    """``text`` as the bytes of the file. Raises Failed when its encoding lacks a character."""
    try:
        return encoding.encode(text)
    except UnicodeEncodeError as error:
        lacking = error.object[error.start : error.start + 1]
        message = f"{shown} is written in {encoding.codec}, which has no {lacking!r}."
        raise Failed("validation_error", message, "Use characters it has, or write the whole file anew.") from error
