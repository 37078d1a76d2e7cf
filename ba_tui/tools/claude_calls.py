"""Calls and results in the form of Claude Code, for its hooks and its wire format.

Names and shapes are those of ``sdk-tools.d.ts`` of Claude Code 2.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

from ba_tui.core.results import Diff, Diffs, ToolResult
from ba_tui.core.values import frozen
from ba_tui.settings.hooks import Hook
from ba_tui.settings.tool_names import ALIASES
from ba_tui.tools.editing.patch_formats import FilePatch, read_patch
from ba_tui.tools.failures import ToolFailure

Convert: TypeAlias = Callable[[Any], Any]
RESPONSE_CHARS = 200_000
"""Characters of a result for hooks."""
_HARMLESS = frozenset({"description", "prompt", "activeForm"})
"""Fields without effect here, which hooks may change."""
_NOTEBOOK = ".ipynb"
DELETED = " (deleted)"
"""Suffix of the path of a deleted file."""


@frozen
class ToolTelling:
    """A call as reported to a hook: the names of the tool, the usual one first, and its input.

    ``own`` returns the tool's real arguments for an input that a hook changed, or raises ValueError.
    """

    names: tuple[str, ...]
    input: Mapping[str, Any]
    own: Callable[[Mapping[str, Any]], dict[str, Any]]
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def named_for(self, hook: Hook) -> str:
        """Return the name that the hook's matcher accepts; the usual one when it accepts none or all."""
        return next((name for name in self.names if hook.matches((name,))), self.names[0])


def _same(value: Any) -> Any:
    return value


@frozen
class _Argument:
    """An argument: our name, Claude Code's, and the conversions of its value."""

    ours: str
    theirs: str
    out: Convert = _same
    back: Convert = _same


@frozen
class _Shape:
    """The arguments of a tool; ``added``: fields that hooks expect and our calls lack."""

    fields: Sequence[_Argument]
    added: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _with_active_form(items: Any) -> Any:
    return [{**item, "activeForm": item.get("content", "")} for item in items]


def _without_active_form(todos: Any) -> Any:
    return [{key: value for key, value in todo.items() if key != "activeForm"} for todo in todos]


_MODES = {"content": "content", "files": "files_with_matches", "count": "count"}
_OWN = {theirs: ours for ours, theirs in _MODES.items()}


def _named(*names: str) -> list[_Argument]:
    """Return arguments with the same name in both, or with two, as ``ours=theirs``."""
    pairs = (name.partition("=") for name in names)
    return [_Argument(ours, theirs or ours) for ours, _, theirs in pairs]


_SHAPES: Mapping[str, _Shape] = {
    "shell": _Shape(
        [
            *_named("command"),
            _Argument("timeout", "timeout", lambda seconds: int(seconds * 1000), lambda ms: ms / 1000),
            *_named("background=run_in_background", "outside=dangerouslyDisableSandbox"),
        ],
        {"description": ""},
    ),
    "read_file": _Shape(_named("path=file_path", "offset", "limit")),
    "write_file": _Shape(_named("path=file_path", "content")),
    "edit_file": _Shape(_named("path=file_path", "old_string", "new_string", "replace_all")),
    "list_files": _Shape(_named("path")),
    "glob": _Shape(_named("pattern", "path")),
    "grep": _Shape(
        [
            *_named("pattern", "path", "glob"),
            _Argument("mode", "output_mode", lambda mode: _MODES.get(mode, mode), lambda mode: _OWN.get(mode, mode)),
            *_named("ignore_case=-i", "context=-C"),
        ]
    ),
    "web_fetch": _Shape(_named("url"), {"prompt": ""}),
    "web_search": _Shape(_named("query")),
    "activate_skill": _Shape(_named("skill_id=skill", "parameters=args")),
    "shell_output": _Shape(_named("id=bash_id", "filter")),
    "shell_kill": _Shape(_named("id=shell_id")),
    "todo_write": _Shape([_Argument("items", "todos", _with_active_form, _without_active_form)]),
}
_RUNNING = ("python", "run_skill_script")
"""Tools that run code. Claude Code runs code with Bash, so hooks on Bash get these calls."""


def claude_names(tool: str) -> Sequence[str]:
    """Return Claude Code's names for ``tool``; its own name if there are none."""
    if tool in _RUNNING:
        return ("Bash",)
    names = ALIASES.get(tool, (tool,))
    return (*names, "NotebookEdit") if tool in {"edit_file", "apply_patch"} else names


def claude_calls(tool: str, args: Mapping[str, Any], cwd: Path) -> Sequence[ToolTelling]:
    """Return a call in Claude Code's form: one per changed file for a patch. Paths are absolute."""
    match tool:
        case "apply_patch":
            return [_patched(each, args, cwd) for each in _files(args)] or [_told(claude_names(tool), args, args)]
        case "python":
            return [_told(("Bash",), args, {"command": f"python3 - <<'PY'\n{args.get('code', '')}\nPY"})]
        case "run_skill_script":
            return [_told(("Bash",), args, {"command": _script_command(args)})]
        case "ask_user":
            return [_told(claude_names(tool), args, {"questions": [_question(args)]})]
        case "edit_file" if args.get("edits"):
            return [_edited(args, cwd)]
        case _:
            return [_renamed(tool, args, cwd)]


def _renamed(name: str, args: Mapping[str, Any], cwd: Path) -> ToolTelling:
    shape = _SHAPES.get(name)
    if shape is None:
        return _told(claude_names(name), args, args)
    told = {**shape.added, **{each.theirs: each.out(args[each.ours]) for each in shape.fields if each.ours in args}}
    names = tuple(claude_names(name))
    for place in ("file_path", "path"):
        if isinstance(told.get(place), str):
            told[place] = str(cwd / told[place])
    if name == "edit_file":
        names = _notebook(told, names)
    return ToolTelling(names, told, partial(_own, shape, dict(args), dict(told)))


def _own(shape: _Shape, args: Mapping[str, Any], told: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arguments that a hook changed back to ours. Raises ValueError for a field without a counterpart."""
    fields = {each.theirs: each for each in shape.fields}
    own = dict(args)
    for key, value in changed.items():
        if key in told and told[key] == value:
            continue
        if key in fields:
            own[fields[key].ours] = fields[key].back(value)
        elif key not in _HARMLESS:
            raise ValueError(f"the field {key[:40]!r} has no counterpart here")
    return own


def _told(names: Sequence[str], args: Mapping[str, Any], told: Mapping[str, Any]) -> ToolTelling:
    """Return a call whose arguments a hook may read but not change, as they have another shape here."""

    def own(changed: Mapping[str, Any]) -> dict[str, Any]:
        if any(told.get(key) != value for key, value in changed.items() if key not in _HARMLESS):
            raise ValueError("the arguments of this call have another shape here, and can't be changed by a hook")
        return dict(args)

    return ToolTelling(tuple(names), dict(told), own)


def _edited(args: Mapping[str, Any], cwd: Path) -> ToolTelling:
    """Return several edits of one file as one, so that a hook sees all removed and added text."""
    edits = cast("list[dict[str, Any]]", args["edits"])
    told = {
        "file_path": str(cwd / str(args.get("path", ""))),
        "old_string": "\n".join(str(edit.get("old_string", "")) for edit in edits),
        "new_string": "\n".join(str(edit.get("new_string", "")) for edit in edits),
        "edits": edits,
    }
    return _told(_notebook(told, claude_names("edit_file")), args, told)


def _files(args: Mapping[str, Any]) -> Sequence[tuple[FilePatch, str]]:
    """Return each file of a patch with each of its paths; none for an invalid patch, which will not run."""
    try:
        patches = read_patch(str(args.get("patch", "")))
    except ToolFailure:
        return ()
    return [(each, place) for each in patches for place in (each.path, each.target) if place]


def _patched(file: tuple[FilePatch, str], args: Mapping[str, Any], cwd: Path) -> ToolTelling:
    patch, place = file
    told: dict[str, Any] = {"file_path": str(cwd / place)}
    if patch.action == "update":
        lines = [line for hunk in patch.hunks for line in hunk.lines]
        told["old_string"] = "\n".join(text for sign, text in lines if sign != "+")
        told["new_string"] = "\n".join(text for sign, text in lines if sign != "-")
        return _told(_notebook(told, ("Edit", "MultiEdit")), args, told)
    # A deleted file is shown as written without content.
    return _told(("Write",), args, {**told, "content": patch.content})


def applied_calls(display: object, args: Mapping[str, Any], cwd: Path) -> Sequence[ToolTelling]:
    """Return the changes from a copy of the project in Claude Code's form, one call per file of ``display``."""
    diffs = display.items if isinstance(display, Diffs) else (display,) if isinstance(display, Diff) else ()
    return [_applied(each, args, cwd) for each in diffs] or [_told(ALIASES["apply_changes"], args, args)]


def _applied(diff: Diff, args: Mapping[str, Any], cwd: Path) -> ToolTelling:
    told: dict[str, Any] = {"file_path": str(cwd / diff.path.removesuffix(DELETED))}
    if diff.before is None or diff.path.endswith(DELETED):
        return _told(("Write",), args, {**told, "content": diff.after})
    told |= {"old_string": diff.before, "new_string": diff.after}
    return _told(_notebook(told, ("Edit", "MultiEdit")), args, told)


def _notebook(told: dict[str, Any], names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of an edit; add the fields of NotebookEdit for a notebook."""
    if not str(told.get("file_path", "")).endswith(_NOTEBOOK):
        return tuple(name for name in names if name != "NotebookEdit")
    told.update(notebook_path=told["file_path"], new_source=told.get("new_string", ""))
    return ("NotebookEdit", *(name for name in names if name != "NotebookEdit"))


def _script_command(args: Mapping[str, Any]) -> str:
    words = [str(word) for word in cast("list[Any]", args.get("args") or [])]
    stdin = args.get("stdin")
    given = "" if stdin is None else f" <<< {stdin if isinstance(stdin, str) else json.dumps(stdin)}"
    return " ".join([f"{args.get('skill_id', '')}/scripts/{args.get('script_name', '')}", *words]) + given


def _question(args: Mapping[str, Any]) -> dict[str, Any]:
    given = cast("list[Any]", args.get("options") or [])
    options: list[Any] = [each if isinstance(each, dict) else {"label": str(each)} for each in given]
    return {
        "question": args.get("question", ""),
        "header": "",
        "options": options,
        "multiSelect": bool(args.get("multiple")),
    }


def claude_response(call: ToolTelling, result: ToolResult | None) -> Mapping[str, Any]:
    """Return ``tool_response`` in Claude Code's shape; empty before the call and after a failure."""
    if result is None or result.is_error:
        return {}
    text = result.text[:RESPONSE_CHARS]
    told: dict[str, Any] = {"text": text, "summary": result.summary, "is_error": False}
    match call.names[0]:
        case "Bash" | "BashOutput":
            told |= {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        case "Read":
            told |= {"type": "text", "file": {"filePath": call.input.get("file_path"), "content": text}}
        case "Write" | "Edit" | "MultiEdit" | "NotebookEdit":
            told |= {"filePath": call.input.get("file_path"), "success": True}
        case "Grep" | "Glob":
            told |= {"content": text, "filenames": text.splitlines() if call.names[0] == "Glob" else []}
        case _:
            pass
    return {"tool_response": told}
