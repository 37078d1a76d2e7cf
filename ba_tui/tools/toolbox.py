"""The default tools of a conversation, in stable order, each within its guards.

What a tool does is in its own file; which model gets them is assembly's choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ba_tui.core.tool import Call, Effect, Guard, Tool
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.ask_user import ask_user_tool
from ba_tui.tools.calculator import calculator_tool
from ba_tui.tools.clock import now_tool
from ba_tui.tools.definitions import Definition
from ba_tui.tools.disk import SeenFiles
from ba_tui.tools.edits import edit_file_tool
from ba_tui.tools.files import read_file_tool, write_file_tool
from ba_tui.tools.guards.output import output
from ba_tui.tools.guards.permission import Gate, Judge, Remember, permission
from ba_tui.tools.guards.repeats import repeats
from ba_tui.tools.guards.timeout import timeout
from ba_tui.tools.guards.validate import validate
from ba_tui.tools.listing import glob_tool, list_files_tool
from ba_tui.tools.search import grep_tool
from ba_tui.tools.shell import Shell, shell_tool, start_folder
from ba_tui.tools.todos import todo_read_tool, todo_write_tool


@dataclass(frozen=True, slots=True)
class Place:
    """Where tools work: the ``workspace``, the ``shell`` for commands and ripgrep's path, None where it is missing."""

    workspace: Workspace
    shell: Shell
    rg: Path | None


def default_tools(
    definitions: Mapping[str, Definition], place: Place, judge: Judge, remember: Remember
) -> tuple[Tool, ...]:
    """One set for one conversation: the tools share what they know of the files it has read."""
    workspace = place.workspace
    seen = SeenFiles()
    tools = (
        read_file_tool(definitions["read_file"], workspace, seen),
        write_file_tool(definitions["write_file"], workspace, seen),
        edit_file_tool(definitions["edit_file"], workspace, seen),
        list_files_tool(definitions["list_files"], workspace),
        glob_tool(definitions["glob"], workspace),
        grep_tool(definitions["grep"], workspace, place.rg),
        shell_tool(definitions["shell"], workspace, place.shell),
        todo_write_tool(definitions["todo_write"]),
        todo_read_tool(definitions["todo_read"]),
        ask_user_tool(definitions["ask_user"]),
        calculator_tool(definitions["calculator"]),
        now_tool(definitions["now"]),
    )

    def folder(call: Call) -> Path:
        return start_folder(workspace, call.branch.transcript.cwd)

    consent = permission(Gate(judge, remember, folder, workspace.shown))
    again = repeats({tool.name for tool in tools if tool.effect is Effect.WRITE})
    return tuple(guarded(tool, consent, again) for tool in tools)


def guarded(tool: Tool, permission: Guard, repeats: Guard) -> Tool:
    """Every call passes these, the outermost first, without exception."""
    return output(validate(permission(repeats(timeout(tool)))))
