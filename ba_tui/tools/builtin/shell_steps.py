"""Runs the commands of a list one after the other, each in the profile that it was allowed in, as one result.

Which lists are taken apart is decided in permissions/chain.py.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ba_tui.core.results import CommandText, StateChange, ToolResult
from ba_tui.core.text.wording import one_line
from ba_tui.core.tool import Call
from ba_tui.permissions.paths import Workspace

RunIn: TypeAlias = Callable[[str, Path, float, Call], Awaitable[ToolResult]]
"""Runs a text in a folder for at most so many seconds, in the profile of a call."""


async def run_steps(
    workspace: Workspace, call: Call, run: RunIn, begin: tuple[Path, float], undecided: Callable[[], bool]
) -> ToolResult:
    """The results of ``call.steps`` as one. ``begin``: the folder that the first one starts in, and the seconds that
    all of them have. ``undecided``: whether a step changed protected files, and the user has not agreed to that."""
    folder, seconds = begin
    until = time.monotonic() + seconds
    done: list[ToolResult] = []
    failed = False
    for number, step in enumerate(call.steps):
        if done and await asyncio.to_thread(undecided):
            rest = "; ".join(each.text for each in call.steps[number:])
            done[-1] = replace(done[-1], text=f"{done[-1].text}\n[not run because of that: {rest}]")
            break
        if failed and step.joined:
            continue
        within = replace(call, profile=step.profile)
        result = await run(step.text, folder, max(until - time.monotonic(), 0.1), within)
        done.append(result)
        failed = result.exit_status != 0
        if result.is_error or (isinstance(result.display, CommandText) and result.display.exit_code is None):
            break
        if result.changes and result.changes.cwd:
            folder = Path(result.changes.cwd)
    return _together(workspace, done, begin[0])


def _together(workspace: Workspace, done: list[ToolResult], begun: Path) -> ToolResult:
    last = done[-1]
    texts = [result.text for result in done if result.text != "(no output)"]
    shown = [result.display for result in done if isinstance(result.display, CommandText)]
    display = last.display
    if isinstance(display, CommandText):
        command = "\n".join(each.command for each in shown)
        display = replace(display, command=command, cwd=workspace.shown(begun), output="".join(e.output for e in shown))
    summary = last.summary
    # A step that failed before a `;` fails the list, whatever came of the steps after it.
    if lost := [result for result in done[:-1] if result.failed and not result.is_error]:
        failed = [each.display.command for each in lost if isinstance(each.display, CommandText)]
        parts = [f"`{one_line(command, 60)}` failed" for command in failed]
        summary = " · ".join((summary, *parts))
        if isinstance(display, CommandText) and not display.broke:
            display = replace(display, failed=True)
    cwd = next((result.changes.cwd for result in reversed(done) if result.changes and result.changes.cwd), None)
    changes = StateChange(cwd=cwd) if cwd and not last.is_error else None
    return replace(last, text="\n".join(texts) or "(no output)", display=display, changes=changes, summary=summary)
