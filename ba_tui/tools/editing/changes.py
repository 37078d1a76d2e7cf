"""One changed file: the diff to show, how many lines it adds and removes, the guarded write, and a tool that does it.

Which change it is, a whole file or one place in it, is decided by the tools (files.py, edits.py).
"""

from __future__ import annotations

import asyncio
import difflib
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ba_tui.core.calls import Commit, commit_whole
from ba_tui.core.results import Diff, Display, ToolResult
from ba_tui.core.text.wording import count
from ba_tui.core.tool import Call, Concern, Effect, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.disk import write_bytes
from ba_tui.tools.editing.documents import plain_lines, shared_ends
from ba_tui.tools.editing.seen import SeenFiles

MAX_WHOLE_CHARS = 256_000
"""Characters up to which a Diff holds both texts whole; beyond, only the surroundings of the change."""
CONTEXT_LINES = 100
MAX_COMPARED_LINES = 4_000


@frozen
class PlannedChange:
    """``before`` and ``after`` are the bytes (``before`` None: a new file); the texts are what they mean."""

    path: Path
    shown: str
    before: bytes | None
    after: bytes
    old_text: str
    new_text: str
    note: str = ""
    whole: bool = True
    """Whether all of the new text was given, so that all of it is known now."""

    def diff(self) -> Diff:
        old, new = plain_lines(self.old_text), plain_lines(self.new_text)
        if len(old) + len(new) > MAX_WHOLE_CHARS:
            old, new = _surroundings(old, new)
        return Diff(self.shown, None if self.before is None else old, new)

    def size(self) -> str:
        """``+3 -1``: lines added and removed."""
        added, removed = _counted(_lines(self.old_text), _lines(self.new_text))
        return f"+{added} -{removed}"

    def commit(self, seen: SeenFiles) -> ToolResult:
        """Write it and say so. Raises Failed; then nothing is changed."""
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
    name: str,
    definition: Definition,
    seen: SeenFiles,
    planned: Callable[[Mapping[str, Any]], PlannedChange],
    concern: Concern | None = None,
) -> Tool:
    """The tool that makes the change which ``planned`` finds in the arguments of a call, and shows it before."""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        def work(commit: Commit) -> ToolResult:
            with seen.lock:
                change = planned(args)
                commit.begin()
                return change.commit(seen)

        return await commit_whole(work, call)

    async def preview(args: Mapping[str, Any]) -> Display | None:
        return await asyncio.to_thread(lambda: planned(args).diff())

    facts = ToolFacts(category="files", target="path", paths=("path",))
    schema, words = definition.input_schema, definition.description
    return Tool(name, words, schema, run, Effect.WRITE, facts=facts, preview=preview, concern=concern)


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
