"""The tools of an agent that works in a copy of the project: those for files, over the copy, and a few of the session.

It has no commands: what they are judged by (links, folders, variables) would be that of the project, while they would
run on files that the agent itself wrote. It starts no agents, and has no tool that reads or writes the project.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ba_tui.core.agent_spec import ProjectCopy
from ba_tui.core.results import ToolResult, failure
from ba_tui.core.tool import Call, Guard, Tool
from ba_tui.core.values import frozen
from ba_tui.resources import bundled
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.seen import SeenFiles
from ba_tui.tools.guards.hook_guards import UNHOOKED, HookGuards
from ba_tui.tools.guards.once import Memory
from ba_tui.tools.guards.permission import CallJudge, Remember
from ba_tui.tools.isolated_paths import CopyPaths
from ba_tui.tools.registry import Registry, ToolFiles
from ba_tui.tools.toolbox import SessionPlace, Shared, builtin_tools, pipeline
from ba_tui.write_ahead import write_ahead

FILES = frozenset({
    *("read_file", "write_file", "edit_file", "apply_patch", "list_files", "glob", "grep"),
})  # fmt: skip
"""Made anew over the copy."""
SHARED = frozenset({
    *("todo_write", "todo_read", "calculator", "now", "ask_user", "read_artifact", "web_search", "web_fetch"),
})  # fmt: skip
"""The session's own: they neither read nor write files of the project."""


@frozen
class IsolatedTools:
    """What the tools of all isolated agents of a session are made with: the session's ``place``, its ``judge`` and its
    tools by name; ``shared`` is what its guards share."""

    definitions: Mapping[str, Definition]
    place: SessionPlace
    judge: CallJudge
    remember: Remember
    shared: Shared
    registry: Callable[[], Registry]
    hooks: HookGuards = UNHOOKED

    def session_guard(self) -> Guard:
        """The guard of the session's own tools."""
        return pipeline(self.place, self.judge, self.remember, self.shared, self.hooks)

    def registry_of(self, copy: ProjectCopy) -> Registry:
        """The tools of an agent in ``copy``, as far as the session has them and they are switched on."""
        session, place = self.registry(), self.place
        paths = CopyPaths(copy, place.workspace)
        inside = paths.inside

        def denied(path: Path) -> bool:
            return place.denied(paths.in_project(path))

        there = replace(place, workspace=inside, denied=denied, ahead=write_ahead(copy.files))
        # Nothing of the copy goes into a checkpoint, and no result that was remembered of the project is its own.
        shared = replace(
            self.shared,
            checkpoint=None,
            recording=None,
            memory=Memory(lambda text: inside.resolve(paths.in_copy(text))),
        )
        guard = paths.named_here(pipeline(place, paths.judging(self.judge), self.remember, shared, self.hooks))

        def guarded(tool: Tool) -> Tool:
            return _while_on(session, guard(tool) if tool.name in FILES else tool)

        made = Registry(guarded, ToolFiles(bundled("config") / "tools.yaml"))
        own = {tool.name: tool for tool in builtin_tools(self.definitions, there, known=SeenFiles())}
        for entry in session.entries():
            name = entry.tool.name
            if not entry.persistent or entry.off or name not in FILES | SHARED:
                continue
            made.add(paths.opened_here(own[name]) if name in FILES else entry.tool)
            made.switch(name, on=True)
        return made


def _while_on(session: Registry, tool: Tool) -> Tool:
    """``tool``, which says so instead of working once the person has switched it off."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        entry = session.entry(tool.name)
        if entry is None or not entry.persistent or entry.off:
            return failure("permission_denied", f"The user has switched {tool.name} off.", hint="Use another tool.")
        return await tool.run(args, call)

    return replace(tool, run=run)
