"""The tools activate_skill and end_skill, and guards that resolve files of active skills.

``ba_tui.skills`` writes the instructions of a skill; skill_scripts.py runs its scripts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.questions import Question, Reply
from ba_tui.core.results import Prose, StateChange, ToolResult, failure
from ba_tui.core.tool import Call, Guard, Tool
from ba_tui.skills.activation import ActivationRequest, SkillActivation
from ba_tui.skills.active import ActiveSkills
from ba_tui.skills.content import MENTION, SkillFolders, located
from ba_tui.skills.prompt import SkillNotes
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failures import ToolFailure

READERS = frozenset({"read_file", "list_files", "grep", "glob"})
RUNNERS = frozenset({"shell", "python", "run_skill_script"})
"""Tools that pass file names to programs, which do not know ``@skill:ID``."""
SCRIPT = frozenset({"skill_id", "script_name"})
"""Arguments of run_skill_script that stay unchanged: the tool knows skill names."""


def activate_skill_tool(definition: Definition, skills: ActiveSkills, notes: SkillNotes) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        request = ActivationRequest(
            str(args["skill_id"]).strip(),
            parameters=str(args.get("parameters") or "").strip(),
            level=args.get("level", 2),
            chain=notes.stack(call.branch).active,
        )

        async def ask(question: Question) -> Reply:
            return await call.ask(replace(question, call_id=call.id))

        try:
            activated = await skills.start(request, ask)
            return _joined(activated, notes, call)
        except UsageError as error:
            return failure("validation_error", str(error), hint=error.hint)

    return definition.tool(run)


def end_skill_tool(definition: Definition, notes: SkillNotes) -> Tool:
    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        stack = notes.stack(call.branch)
        try:
            ended = stack.end(str(args.get("skill_id") or "").strip())
        except UsageError as error:
            return failure("validation_error", str(error), hint=error.hint)
        notes.keep(call.branch, stack)
        names = ", ".join(skill.id for skill in ended)
        rest = f" Still active: {stack.path()}." if stack.active else ""
        text = f"Ended: {names}. The instructions hold no longer.{rest}"
        return ToolResult(text, summary=f"ended {names}", changes=StateChange(skills=stack.active))

    return definition.tool(run)


def naming_skill_files(tool: Tool, folders: SkillFolders, root: Path) -> Tool:
    """Return ``tool``; if a reading tool does not find a file, its hint names the file of an active skill that was
    meant. The model reads that file with another call, which the rules judge."""
    if tool.name not in READERS:
        return tool

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        try:
            return await tool.run(args, call)
        except ToolFailure as error:
            path = str(args.get("path") or "")
            meant = await asyncio.to_thread(folders.meant, path, root) if error.kind == "not_found" else ""
            if meant:
                error.hint = f"{meant}: read that."
            raise

    return replace(tool, run=run)


def locating_skills(folder_of: Callable[[str], Path | None]) -> Guard:
    """Return the guard that replaces ``@skill:ID`` in calls that run something with full paths, so that hooks, rules
    and the user see the real command."""

    def guard(tool: Tool) -> Tool:
        if tool.name not in RUNNERS:
            return tool

        def whole(value: Any) -> Any:
            if isinstance(value, Mapping):
                fields = cast("Mapping[str, Any]", value)
                return {name: item if name in SCRIPT else whole(item) for name, item in fields.items()}
            if isinstance(value, list):
                return [whole(item) for item in cast("list[Any]", value)]
            return located(value, folder_of, shell=tool.name == "shell") if isinstance(value, str) else value

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            if any(MENTION in str(value) for value in args.values()):
                args = await asyncio.to_thread(whole, args)
            return await tool.run(args, call)

        return replace(tool, run=run)

    return guard


def _joined(activated: SkillActivation, notes: SkillNotes, call: Call) -> ToolResult:
    """Return the result with the instructions, and add the skill to the stack."""
    id, text = activated.request.skill, activated.instructions
    display = Prose(text, markdown=True)
    if activated.active is None:
        return ToolResult(text, display, summary=id)
    # Other calls may have changed the stack while the user was asked.
    stack = notes.stack(call.branch)
    stack.push(activated.active)
    notes.keep(call.branch, stack)
    for note in activated.notes:
        if note.kind == "warning":
            call.branch.emit(Notice(note.text, "warning"))
    return ToolResult(text, display, summary=f"{id} is active", changes=StateChange(skills=stack.active))
