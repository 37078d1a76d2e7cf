"""The tool apply_patch: changes of several files in one call, all of them or none.

What it does is patches.py, which comes in with the first patch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ba_tui.core.calls import Commit, commit_whole
from ba_tui.core.results import Display, ToolResult
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.seen import SeenFiles
from ba_tui.tools.failed import Failed
from ba_tui.write_ahead import WriteAhead

NAME = "apply_patch"


def apply_patch_tool(definition: Definition, workspace: Workspace, seen: SeenFiles, ahead: WriteAhead) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        def work(commit: Commit) -> ToolResult:
            from ba_tui.tools.editing.patches import planned_patch  # noqa: PLC0415 - not before something is patched

            with seen.lock:
                change = planned_patch(workspace, seen, args)
                commit.begin()
                return change.commit(seen, ahead)

        return await commit_whole(work, call)

    async def preview(args: Mapping[str, Any]) -> Display | None:
        def work() -> Display | None:
            from ba_tui.tools.editing.patches import planned_patch  # noqa: PLC0415 - see run

            return planned_patch(workspace, seen, args).display()

        return await asyncio.to_thread(work)

    facts = ToolFacts(category="files", paths_of=patched_paths)
    words, schema = definition.description, definition.input_schema
    return Tool(NAME, words, schema, run, Effect.WRITE, facts=facts, preview=preview)


def patched_paths(args: Mapping[str, Any]) -> tuple[str, ...]:
    """Every path that the patch in ``args`` names. A patch that can't be read names none, and is not applied."""
    from ba_tui.tools.editing.patch_formats import read_patch  # noqa: PLC0415 - see apply_patch_tool

    try:
        files = read_patch(str(args.get("patch", "")))
    except Failed:
        return ()
    return tuple(dict.fromkeys(name for file in files for name in (file.path, file.target) if name))
