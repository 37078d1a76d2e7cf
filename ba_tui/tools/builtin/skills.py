"""The tools activate_skill and end_skill. What a skill brings is made in the skills room; it joins with the result.

Scripts of skills are run by a tool of their own.
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
from ba_tui.core.tool import Call, Guard, Tool, ToolFacts
from ba_tui.skills.activation import Activated, ActivationRequest
from ba_tui.skills.active import ActiveSkills
from ba_tui.skills.folders import MENTION, SkillFolders, located
from ba_tui.skills.prompt import SkillNotes
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed

READERS = frozenset({"read_file", "list_files", "grep", "glob"})
RUNNERS = frozenset({"shell", "python", "run_skill_script"})
"""Tools whose arguments name files to programs that know nothing of skills."""
SCRIPT = frozenset({"skill_id", "script_name"})
"""Arguments of run_skill_script that stay as they are: it knows the names of skills."""


def skill_tools(definitions: Mapping[str, Definition], skills: ActiveSkills, notes: SkillNotes) -> tuple[Tool, ...]:
    """None where skills are switched off."""
    if not skills.choices.enabled:
        return ()
    start = activate_skill_tool(definitions["activate_skill"], skills, notes)
    return (start, end_skill_tool(definitions["end_skill"], notes))


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

    facts = ToolFacts("skills", target="skill_id", level="full", repeatable=True)
    return Tool("activate_skill", definition.description, definition.input_schema, run, timeout=None, facts=facts)


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

    facts = ToolFacts("skills", target="skill_id", repeatable=True)
    return Tool("end_skill", definition.description, definition.input_schema, run, timeout=30, facts=facts)


def naming_skill_files(tool: Tool, folders: SkillFolders, root: Path) -> Tool:
    """``tool``; where it is a reader of files, it says which file of an active skill was meant by one that is not
    there. The model reads that one with a call of its own, which the rules judge."""
    if tool.name not in READERS:
        return tool

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        try:
            return await tool.run(args, call)
        except Failed as error:
            path = str(args.get("path") or "")
            meant = await asyncio.to_thread(folders.meant, path, root) if error.kind == "not_found" else ""
            if meant:
                error.hint = f"{meant}: read that."
            raise

    return replace(tool, run=run)


def locating_skills(folder_of: Callable[[str], Path | None]) -> Guard:
    """The guard that gives whole paths to calls that run something and name skills' folders as ``@skill:ID``: hooks,
    rules and the user see what runs."""

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


def _joined(activated: Activated, notes: SkillNotes, call: Call) -> ToolResult:
    """The result that brings instructions and stack at once."""
    id, text = activated.request.skill, activated.instructions
    display = Prose(text, markdown=True)
    if activated.active is None:
        return ToolResult(text, display, summary=id)
    # The person may have been asked meanwhile, and other calls may have changed the stack.
    stack = notes.stack(call.branch)
    stack.push(activated.active)
    notes.keep(call.branch, stack)
    for note in activated.notes:
        if note.kind == "warning":
            call.branch.emit(Notice(note.text, "warning"))
    return ToolResult(text, display, summary=f"{id} is active", changes=StateChange(skills=stack.active))
