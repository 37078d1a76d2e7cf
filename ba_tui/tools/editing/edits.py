"""The tool edit_file, which replaces exact texts in a file, all of them or none; and the changes that all file tools
make: their diff, their size, the guarded write."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ba_tui.core.calls import Commit, commit_whole
from ba_tui.core.results import Diff, Display, ToolResult
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import MARK, restored
from ba_tui.core.text.wording import count
from ba_tui.core.tool import Call, Concern, Tool
from ba_tui.core.values import frozen
from ba_tui.permissions.paths import Workspace
from ba_tui.tools.builtin.media import no_text
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.disk import read_bytes, write_bytes
from ba_tui.tools.editing.documents import FileEncoding, binary_kind, detect, plain_lines, shared_ends, spliced
from ba_tui.tools.editing.matching import find_edit
from ba_tui.tools.editing.notebooks import find_cell, read_notebook, with_source
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.failures import ToolFailure

if TYPE_CHECKING:
    from ba_tui.tools.editing.notebooks import NotebookCell


# Placeholders for omitted text, such as "# … rest of the code". Written to a file they would replace that text.

SHOWN = 80
_DOTS = r"(?:\.{3}|…)"
_OPEN = regex(r"\s*(?:#+|//+|/\*+|\*+|--+|;+|%+|<!--+|\{/\*)?\s*")
_CLOSE = regex(r"\s*(?:\*+/\}?|--+>)?\s*$")
_NOUN = (
    r"(?:code|files?|functions?|methods?|class(?:es)?|components?|contents?|implementations?|imports?|lines?|logic|body|"
    r"sections?|fields?|props?|propert(?:y|ies)|tests?|cases?|entries|items|rows|text|script|module|config\w*|styles?)"
)
_PLACEHOLDER = regex(
    r"(?:(?:keep )?(?:the |your |this |all |my )?(?:rest|remainder) of\b[^.,…]{0,60}"
    r"|(?:keep )?(?:all |the |my |your )?(?:other|existing|unchanged|remaining|previous|original)\s+(?:\w+\s+){0,2}"
    rf"{_NOUN}\b[^.,…]{{0,40}}|(?:(?:the )?{_NOUN} (?:is |are )?)?(?:unchanged|(?:the )?same as before))",
    re.IGNORECASE,
)
_SAYS = regex(
    rf"{_DOTS}|\bunchanged\b|\b(?:stays?|remains?|is|are) (?:exactly )?(?:the same|as is)\b|\bas before\W*$|\bhere\W*$"
    r"|\b(?:omitted|for brevity|not shown|left out)\b",
    re.IGNORECASE,
)
_LIKELY = regex(r"rest of|remainder of|other|existing|unchanged|remaining|previous|original|same as", re.IGNORECASE)


def is_placeholder(line: str) -> bool:
    """Return whether ``line`` is a placeholder: a comment, or words in brackets or with dots."""
    if not _LIKELY.search(line):
        return False
    opened = _OPEN.match(line)
    words = _CLOSE.sub("", line[opened.end() if opened else 0 :])
    inner = words.strip(" \t.…()[]")
    marked = bool(opened and opened[0].strip()) or words[:1] in {"(", "[", ".", "…"} or words.endswith(("...", "…"))
    return marked and bool(_PLACEHOLDER.fullmatch(inner)) and bool(_SAYS.search(words))


def refuse_placeholders(old: str, new: str) -> None:
    """Raise ToolFailure if a line of ``new`` is a placeholder that ``old`` does not contain."""
    if not _LIKELY.search(new):
        return
    there = {line.strip() for line in plain_lines(old).split("\n")}
    for line in plain_lines(new).split("\n"):
        if is_placeholder(line) and line.strip() not in there:
            message = (
                f"“{line.strip()[:SHOWN]}” is a placeholder for omitted text, and would replace that text in the file."
            )
            raise ToolFailure(
                "validation_error", message, "Write all of it, or change with edit_file only what is new."
            )


MAX_WHOLE_CHARS = 256_000
"""Characters up to which a Diff has both texts whole; longer ones are cut around the change."""
CONTEXT_LINES = 100
MAX_COMPARED_LINES = 4_000


@frozen
class PlannedChange:
    """A change of one file. ``before`` and ``after`` are bytes (``before`` None: a new file); the texts are their
    content."""

    path: Path
    shown: str
    before: bytes | None
    after: bytes
    old_text: str
    new_text: str
    note: str = ""
    whole: bool = True
    """Whether the call gave the whole new text, so that the model knows all of it."""

    def diff(self) -> Diff:
        old, new = plain_lines(self.old_text), plain_lines(self.new_text)
        if len(old) + len(new) > MAX_WHOLE_CHARS:
            old, new = _surroundings(old, new)
        return Diff(self.shown, None if self.before is None else old, new)

    def size(self) -> str:
        """Return the lines added and removed, as ``+3 -1``."""
        added, removed = _counted(_lines(self.old_text), _lines(self.new_text))
        return f"+{added} -{removed}"

    def commit(self, seen: SeenFiles) -> ToolResult:
        """Write the change and return the result. Raises ToolFailure; the file is then unchanged."""
        if self.after == self.before:
            return ToolResult(f"{self.shown} already holds exactly this; nothing was changed.", summary="unchanged")
        others = write_bytes(self.path, self.after, before=self.before, shown=self.shown)
        if self.whole:
            seen.note(self.path, self.after)
        else:
            seen.note_edit(self.path, self.after, (self.old_text, self.new_text))
        size = self.size()
        done = f"Created {self.shown}" if self.before is None else f"Changed {self.shown}"
        kept = f"the same file under {count(others, 'other name')} keeps what it held"
        notes = [note for note in (self.note, kept if others else "") if note]
        note = f"\nNote: {'; '.join(notes)}." if notes else ""
        return ToolResult(f"{done} ({size} lines).{note}", self.diff(), summary=size)


def change_tool(
    definition: Definition,
    seen: SeenFiles,
    planned: Callable[[Mapping[str, Any]], PlannedChange],
    concern: Concern | None = None,
) -> Tool:
    """Return the tool that makes, and previews, the change that ``planned`` returns for a call's arguments."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        def work(commit: Commit) -> ToolResult:
            with seen.lock:
                change = planned(args)
                commit.begin()
                return change.commit(seen)

        return await commit_whole(work, call)

    async def preview(args: Mapping[str, Any]) -> Display | None:
        return await asyncio.to_thread(lambda: planned(args).diff())

    return definition.tool(run, preview=preview, concern=concern)


def _lines(text: str) -> list[str]:
    lines = plain_lines(text).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _counted(old: list[str], new: list[str]) -> tuple[int, int]:
    head, tail = shared_ends(old, new)
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(old) + len(new) > MAX_COMPARED_LINES:
        return sum((Counter(new) - Counter(old)).values()), sum((Counter(old) - Counter(new)).values())
    added = removed = 0
    for kind, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            removed, added = removed + b - a, added + d - c
    return added, removed


def _surroundings(old: str, new: str) -> tuple[str, str]:
    before, after = old.split("\n"), new.split("\n")
    head, tail = shared_ends(before, after)
    first, rest = max(0, head - CONTEXT_LINES), max(0, tail - CONTEXT_LINES)
    top = f"⋯ {first} unchanged lines\n" if first else ""
    end = f"\n⋯ {rest} unchanged lines" if rest else ""
    old_part = "\n".join(before[first : len(before) - rest])
    new_part = "\n".join(after[first : len(after) - rest])
    return top + old_part + end, top + new_part + end


def edit_file_tool(definition: Definition, workspace: Workspace, seen: SeenFiles) -> Tool:
    return change_tool(definition, seen, partial(planned_edit, workspace, seen))


@frozen
class Replacement:
    """Replaces ``old``, which occurs once, or ``everywhere``, with ``new``."""

    old: str
    new: str
    everywhere: bool = False
    windows: bool = False
    """Whether ``new`` has ``\\r\\n`` line ends."""


def planned_edit(workspace: Workspace, seen: SeenFiles, args: Mapping[str, Any]) -> PlannedChange:
    """Return the change that the call would make. Raises ToolFailure, PathRefused."""
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
        except ToolFailure as error:
            if len(replacements) == 1:
                raise
            told = f"Edit {number} of {len(replacements)} fails, so none was made: {error}"
            raise error.reworded(told) from error
        refuse_placeholders(raw, replacement.new)
        which = f"edit {number}: " if len(replacements) > 1 else ""
        notes |= dict.fromkeys(which + note for note in said)
    return PlannedChange(path, shown, data, encoded(encoding, text, shown), raw, text, "; ".join(notes), False)


def _replacements(args: Mapping[str, Any]) -> Sequence[Replacement]:
    """Return the replacements of either form of arguments. Raises ToolFailure for both forms, none, or an incomplete
    one."""
    several: Sequence[Mapping[str, Any]] | None = args.get("edits")
    given = [name for name in ("old_string", "new_string") if args.get(name) is not None]
    if several is not None and not given:
        if not several:
            raise ToolFailure("invalid_parameters", "edits is empty.", "Give at least one edit.")
        return [_replacement(each) for each in several]
    if several is None and len(given) == 2:
        return [_replacement(args)]
    raise ToolFailure("invalid_parameters", "Give old_string and new_string, or else edits alone.")


def _replacement(args: Mapping[str, Any]) -> Replacement:
    old, new = (re.sub("\r\n?", "\n", args[name]) for name in ("old_string", "new_string"))
    windows = "\r\n" in args["new_string"] and args["new_string"].count("\r\n") == new.count("\n")
    return Replacement(old, new, bool(args.get("replace_all")), windows)


def _edited(text: str, replacement: Replacement, cell: str | int | None, shown: str) -> tuple[str, Sequence[str]]:
    """Return the new text of the file, and notes on tolerated differences."""
    if cell is None and not shown.endswith(".ipynb"):
        return _replaced(text, replacement)
    cells = read_notebook(text)
    if cells is None:
        if cell is not None:
            raise ToolFailure("invalid_parameters", f"{shown} has no cells.", "Leave cell out.")
        return _replaced(text, replacement)
    if found := find_cell(cells, cell, replacement.old, shown):
        return _edited_cell(text, replacement, found)
    if replacement.old not in text:
        hint = "Read it and copy old_string from a cell; with cell the nearest lines are shown."
        raise ToolFailure("validation_error", f"No cell of {shown} contains old_string.", hint)
    return _replaced(text, replacement)


def _edited_cell(text: str, replacement: Replacement, cell: NotebookCell) -> tuple[str, Sequence[str]]:
    if not (cell.source or replacement.old):
        source, notes = replacement.new, []
    else:
        source, notes = _replaced(cell.source, replacement)
    stale = [f"cell {cell.number} keeps the outputs of its last run"] if cell.outputs else []
    return with_source(text, cell, source), [*notes, *stale]


def _replaced(text: str, replacement: Replacement) -> tuple[str, list[str]]:
    plain = plain_lines(text)
    replacement = _as_written(plain, replacement)
    edit = find_edit(plain, replacement.old, replacement.new, replace_all=replacement.everywhere)
    return spliced(text, plain, edit.changes, windows=replacement.windows), [edit.note] if edit.note else []


def _as_written(plain: str, replacement: Replacement) -> Replacement:
    """Return ``replacement`` with the file's tags where it quotes them in the form of results."""
    if MARK in plain and replacement.old in plain:
        return replacement
    return replace(replacement, old=restored(replacement.old), new=restored(replacement.new))


def encoded(encoding: FileEncoding, text: str, shown: str) -> bytes:
    """Encode ``text`` for the file. Raises ToolFailure for a character that the encoding lacks."""
    try:
        return encoding.encode(text)
    except UnicodeEncodeError as error:
        lacking = error.object[error.start : error.start + 1]
        message = f"{shown} is written in {encoding.codec}, which has no {lacking!r}."
        raise ToolFailure(
            "validation_error", message, "Use characters that it has, or write the whole file again."
        ) from error
