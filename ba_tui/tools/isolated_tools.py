"""The tools of an agent that works in a copy of the project: file tools over the copy, and a few of the session's.

It has no commands: links, folders and variables would be judged in the project, but the commands would run on files
that the agent wrote. It starts no agents, and has no tool that reads or writes the project itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

from ba_tui.core.results import Display, ToolResult, failure
from ba_tui.core.teamwork import ProjectCopy
from ba_tui.core.tool import Call, Effect, Guard, Tool
from ba_tui.core.values import Once, frozen
from ba_tui.permissions.paths import PathRefused, Workspace
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall, Judgement
from ba_tui.resources import bundled
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.guards.permission import CallJudge, Remember
from ba_tui.tools.guards.pipeline import UNHOOKED, HookGuards, SharedGuards, pipeline
from ba_tui.tools.guards.repeats import CallMemory
from ba_tui.tools.registry import Registry, ToolFiles
from ba_tui.tools.toolbox import SessionPlace, builtin_tools
from ba_tui.write_ahead import write_ahead

# Hooks and rules see each path as in the project, without ``..``, so that their rules apply in the copy; the tool gets
# the same path below the copy.

PLAIN = "In a copy of the project a patch names files by paths from its folder, without '..'."
ELSEWHERE = "An agent that works in a copy of the project changes nothing outside that copy."


@frozen
class CopyPaths:
    """Converts paths between project and copy. ``workspace`` is the session's, ``inside`` that of the copy: the same
    folder, seen from the copy's top."""

    copy: ProjectCopy
    workspace: Workspace

    @property
    def inside(self) -> Workspace:
        """Return the workspace of the copy, with the folders that are lent to the session."""
        root, copy = self.workspace.root, self.copy
        own = copy.files / root.relative_to(copy.project) if root.is_relative_to(copy.project) else copy.files
        return Workspace(own, (copy.files,), self.workspace.lent)

    def in_project(self, path: Path) -> Path:
        """Return the project's path for the resolved ``path``; unchanged if that is outside the copy."""
        copy = self.copy
        return copy.project / path.relative_to(copy.files) if path.is_relative_to(copy.files) else path

    def as_project(self, text: str) -> str:
        """Return ``text`` as a path in the project, relative to the session's folder where possible. Raises
        PathRefused."""
        path = self.in_project(self.workspace.named(text))
        root = self.workspace.root
        return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)

    def in_copy(self, text: str) -> str:
        """Convert a path from ``as_project`` to one in the copy."""
        path, copy = Path(text), self.copy
        inside = path.is_absolute() and path.is_relative_to(copy.project)
        return str(copy.files / path.relative_to(copy.project)) if inside else text

    def leads(self, texts: Sequence[str]) -> list[Path]:
        """Return the resolved paths of a call in the copy. Raises PathRefused."""
        return [self.inside.resolve(self.in_copy(text)) for text in texts]

    def judging(self, judge: CallJudge) -> CallJudge:
        """Return ``judge`` for the agent's calls: it judges the paths in the project and those that links in the
        copy lead to, and the stricter verdict applies. No answer is remembered, as a rule would apply in the
        project, too."""

        def judged(request: JudgedCall) -> Judgement:
            texts, writes = request.tool.paths(request.args), request.tool.effect_of(request.args) is not Effect.READ
            if request.tool.facts.paths_of and any(map(_winding, texts)):
                return Deny(PLAIN, malformed=True)
            try:
                found = self.leads(texts)
            except PathRefused as error:
                return Deny(str(error), malformed=error.malformed, hint=error.hint)
            if writes and any(not path.is_relative_to(self.copy.files) for path in found):
                return Deny(ELSEWHERE)
            verdict = judge(request)
            more = tuple(str(self.in_project(path)) for path in found)
            if more and not isinstance(verdict, Deny):
                verdict = _stricter(verdict, judge(replace(request, tool=_about(request.tool, more))))
            return replace(verdict, rule=None, session_rule=None) if isinstance(verdict, Ask) else verdict

        return judged

    def opened_here(self, tool: Tool) -> Tool:
        """Return ``tool``, made for ``inside``, for calls with paths of the project. The mode does not ask about its
        changes: they reach the project only through a call that is judged there."""

        def mapped(args: Mapping[str, Any]) -> dict[str, Any]:
            return _with_paths(tool, args, self.in_copy)

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            return await tool.run(mapped(args), call)

        async def preview(args: Mapping[str, Any]) -> Display | None:
            return await tool.preview(mapped(args)) if tool.preview else None

        async def concern(args: Mapping[str, Any]) -> str:
            return await tool.concern(mapped(args)) if tool.concern else ""

        facts = replace(tool.facts, copied=True)
        return replace(tool, run=run, preview=preview if tool.preview else None, facts=facts, concern=concern)

    def named_here(self, guard: Guard) -> Guard:
        """Return ``guard`` for calls whose paths are first converted to those of the project."""

        def around(tool: Tool) -> Tool:
            guarded = guard(tool)

            async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
                try:
                    given = _with_paths(tool, args, self.as_project)
                except PathRefused as error:
                    return failure("invalid_parameters", str(error), hint=error.hint)
                return await guarded.run(given, call)

            return replace(guarded, run=run)

        return around


def _with_paths(tool: Tool, args: Mapping[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return change(value)
        return [changed(each) for each in cast("list[Any]", value)] if isinstance(value, list) else value

    names = {*tool.facts.paths, *([tool.facts.writes] if tool.facts.writes else [])}
    return {name: changed(value) if name in names else value for name, value in args.items()}


def _about(tool: Tool, paths: tuple[str, ...]) -> Tool:
    """Return ``tool`` with calls on ``paths``, regardless of their arguments."""

    def named(args: Mapping[str, Any]) -> tuple[str, ...]:
        return paths

    return replace(tool, facts=replace(tool.facts, paths=(), paths_of=named))


def _winding(text: str) -> bool:
    """Return whether a path in a patch could mean different files in the project and the copy."""
    return text.startswith(("/", "~")) or text[:5].casefold() == "file:" or ".." in PurePosixPath(text).parts


def _stricter(one: Judgement, other: Judgement) -> Judgement:
    order = {Allow: 0, Ask: 1, Deny: 2}
    return max((one, other), key=lambda verdict: order[type(verdict)])


FILES = frozenset({
    *("read_file", "write_file", "edit_file", "apply_patch", "list_files", "glob", "grep"),
})  # fmt: skip
"""File tools, made for the copy."""
SHARED = frozenset({
    *("todo_write", "todo_read", "calculator", "now", "ask_user", "read_artifact", "web_search", "web_fetch"),
})  # fmt: skip
"""Tools of the session that do not touch files of the project."""


@frozen
class IsolatedTools:
    """Makes the tools of isolated agents from the session's ``place``, ``judge`` and registry; ``shared`` is the
    shared state of its guards."""

    definitions: Mapping[str, Definition]
    place: SessionPlace
    judge: CallJudge
    remember: Remember
    shared: SharedGuards
    registry: Callable[[], Registry]
    hooks: HookGuards = UNHOOKED

    def registry_of(self, copy: ProjectCopy) -> Registry:
        """Return the tools of an agent in ``copy``: those that the session has and that are switched on."""
        session, place = self.registry(), self.place
        paths = CopyPaths(copy, place.workspace)
        inside = paths.inside

        def denied(path: Path) -> bool:
            return place.denied(paths.in_project(path))

        there = replace(place, workspace=inside, denied=denied, ahead=write_ahead(copy.files))
        # The copy has no checkpoints, and cached results of the project do not apply.
        shared = replace(
            self.shared,
            checkpoint=None,
            recording=None,
            memory=CallMemory(lambda text: inside.resolve(paths.in_copy(text))),
        )
        guard = paths.named_here(pipeline(place, paths.judging(self.judge), self.remember, shared, self.hooks))

        def guarded(tool: Tool) -> Tool:
            return _while_on(session, guard(tool) if tool.name in FILES else tool)

        made = Registry(guarded, ToolFiles(bundled("config") / "tools.yaml"))
        own = {tool.name: tool for tool in builtin_tools(self.definitions, there, known=Once(SeenFiles))}
        for entry in session.entries():
            name = entry.tool.name
            if not entry.persistent or entry.off or name not in FILES | SHARED:
                continue
            made.add(paths.opened_here(own[name]) if name in FILES else entry.tool)
            made.switch(name, on=True)
        return made


def _while_on(session: Registry, tool: Tool) -> Tool:
    """Return ``tool``; its calls fail while the user has switched it off."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        entry = session.entry(tool.name)
        if entry is None or not entry.persistent or entry.off:
            return failure("permission_denied", f"The user has switched {tool.name} off.", hint="Use another tool.")
        return await tool.run(args, call)

    return replace(tool, run=run)
