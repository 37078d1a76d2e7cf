"""The tool edit_file: replace exact texts in a file, all of them or none, everything else staying byte for byte.

Finding the place is matching.py, cells of notebooks are notebooks.py, the guarded write is changes.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ba_tui.core.text.markup import MARK, restored
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.builtin.binary_kinds import no_text
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.changes import PlannedChange, change_tool
from ba_tui.tools.editing.disk import read_bytes
from ba_tui.tools.editing.documents import FileEncoding, binary_kind, detect, plain_lines, spliced
from ba_tui.tools.editing.placeholders import refuse_placeholders
from ba_tui.tools.editing.seen import SeenFiles
from ba_tui.tools.failed import Failed

if TYPE_CHECKING:
    from ba_tui.tools.editing.notebooks import NotebookCell


def edit_file_tool(definition: Definition, workspace: Workspace, seen: SeenFiles) -> Tool:
    return change_tool("edit_file", definition, seen, partial(planned_edit, workspace, seen))


@frozen
class Replacement:
    """Put ``new`` in the place of ``old``, which stands there once, or ``everywhere`` it stands."""

    old: str
    new: str
    everywhere: bool = False
    windows: bool = False
    """``new`` was written with ``\\r\\n``."""


def planned_edit(workspace: Workspace, seen: SeenFiles, args: Mapping[str, Any]) -> PlannedChange:
    """What the call would change. Raises Failed, PathRefused."""
    replacements = _replacements(args)
    path = workspace.resolve(args["path"])
    shown = workspace.shown(path)
    data = read_bytes(path, shown, workspace)
    if kind := binary_kind(data[:8192]):
        raise no_text(data[:8192], shown, len(data), kind)
    seen.check(path, data, shown)
    encoding = detect(data)
    raw = text = encoding.decode(data)
    notes: dict[str, None] = {}
    for number, replacement in enumerate(replacements, 1):
        try:
            text, said = _edited(text, replacement, args.get("cell"), shown)
        except Failed as error:
            if len(replacements) == 1:
                raise
            told = f"Edit {number} of {len(replacements)} fails, so none was made: {error}"
            raise error.reworded(told) from error
        refuse_placeholders(raw, replacement.new)
        which = f"edit {number}: " if len(replacements) > 1 else ""
        notes |= dict.fromkeys(which + note for note in said)
    return PlannedChange(path, shown, data, encoded(encoding, text, shown), raw, text, "; ".join(notes), False)


def _replacements(args: Mapping[str, Any]) -> Sequence[Replacement]:
    """What is asked for, in one of the two forms. Raises Failed when it is both, none or half of one."""
    several: Sequence[Mapping[str, Any]] | None = args.get("edits")
    given = [name for name in ("old_string", "new_string") if args.get(name) is not None]
    if several is not None and not given:
        if not several:
            raise Failed("invalid_parameters", "edits is empty.", "Give at least one edit.")
        return [_replacement(each) for each in several]
    if several is None and len(given) == 2:
        return [_replacement(args)]
    raise Failed("invalid_parameters", "Give old_string and new_string, or else edits alone.")


def _replacement(args: Mapping[str, Any]) -> Replacement:
    old, new = (re.sub("\r\n?", "\n", args[name]) for name in ("old_string", "new_string"))
    windows = "\r\n" in args["new_string"] and args["new_string"].count("\r\n") == new.count("\n")
    return Replacement(old, new, bool(args.get("replace_all")), windows)


def _edited(text: str, replacement: Replacement, cell: str | int | None, shown: str) -> tuple[str, Sequence[str]]:
    """The text of the file afterwards, and what was tolerated or should be known."""
    if cell is None and not shown.endswith(".ipynb"):
        return _replaced(text, replacement)
    from ba_tui.tools.editing.notebooks import find_cell, read_notebook  # noqa: PLC0415 - most files are none

    cells = read_notebook(text)
    if cells is None:
        if cell is not None:
            raise Failed("invalid_parameters", f"{shown} has no cells.", "Leave cell out.")
        return _replaced(text, replacement)
    if found := find_cell(cells, cell, replacement.old, shown):
        return _edited_cell(text, replacement, found)
    if replacement.old not in text:
        hint = "Read it and copy old_string from a cell; with cell the nearest lines are shown."
        raise Failed("validation_error", f"old_string stands in no cell of {shown}.", hint)
    return _replaced(text, replacement)


def _edited_cell(text: str, replacement: Replacement, cell: NotebookCell) -> tuple[str, Sequence[str]]:
    from ba_tui.tools.editing.notebooks import with_source  # noqa: PLC0415 - see _edited

    if not (cell.source or replacement.old):
        source, notes = replacement.new, []
    else:
        source, notes = _replaced(cell.source, replacement)
    stale = [f"cell {cell.number} keeps the outputs of its last run"] if cell.outputs else []
    return with_source(text, cell, source), [*notes, *stale]


def _replaced(text: str, replacement: Replacement) -> tuple[str, list[str]]:
    from ba_tui.tools.editing.matching import find_edit  # noqa: PLC0415 - not before something is edited

    plain = plain_lines(text)
    replacement = _as_written(plain, replacement)
    edit = find_edit(plain, replacement.old, replacement.new, replace_all=replacement.everywhere)
    return spliced(text, plain, edit.changes, windows=replacement.windows), [edit.note] if edit.note else []


def _as_written(plain: str, replacement: Replacement) -> Replacement:
    """``replacement`` with tags as the file has them, where it quotes them as results show them."""
    if MARK in plain and replacement.old in plain:
        return replacement
    return replace(replacement, old=restored(replacement.old), new=restored(replacement.new))


def encoded(encoding: FileEncoding, text: str, shown: str) -> bytes:
    """``text`` as the bytes of the file. Raises Failed when its encoding lacks a character."""
    try:
        return encoding.encode(text)
    except UnicodeEncodeError as error:
        lacking = error.object[error.start : error.start + 1]
        message = f"{shown} is written in {encoding.codec}, which has no {lacking!r}."
        raise Failed("validation_error", message, "Use characters it has, or write the whole file anew.") from error
