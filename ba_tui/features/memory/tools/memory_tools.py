"""The tools remember and forget. They ask in every mode: only an allow rule that names them lets them run unasked.

What is stored, and what is known already, is decided in ``session_memory``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ba_tui.core.effects import Effect
from ba_tui.core.events import MemoryChanged
from ba_tui.core.ports.memory import Draft, Entry, Stored, line_of
from ba_tui.core.results import Display, Prose, ToolResult
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.tool import Call, Tool, ToolFacts
from ba_tui.features.memory.engine.moments import day_of
from ba_tui.features.memory.tools.session_memory import SessionMemory
from ba_tui.features.memory.tools.storing import Storing
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed

REMEMBER, FORGET = "remember", "forget"
SHOWN = 200


def remember_tool(definition: Definition, storing: Storing) -> Tool:
    async def preview(args: Mapping[str, Any]) -> Display:
        stored = await storing.foreseen(_draft(args))
        where = "For this project" if stored.entry.project else "For all projects"
        lines = [f"{where}: {stored.entry.text}"]
        if stored.older:
            lines.append(f"Replaces{_day(stored.older)}: {stored.older.text}")
        if stored.outcome == "known":
            lines = [f"Known already{_day(stored.entry)}: {stored.entry.text}"]
        return Prose("\n".join(lines))

    async def concern(args: Mapping[str, Any]) -> str:
        return "it is for all projects" if args.get("scope") == "global" else ""

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        stored = await storing.remember(_draft(args))
        entry = stored.entry
        if stored.outcome == "known":
            return ToolResult(f"Known already as {entry.id}: {entry.text}", Prose(entry.text), summary="known already")
        older = stored.older.text if stored.older else ""
        call.branch.emit(MemoryChanged((line_of(entry, older=older),)))
        said = f"Stored as {entry.id}." + (f" It replaces: {older}" if older else "")
        return ToolResult(said, Prose(_shown(stored)), summary="replaced" if older else "remembered")

    facts = ToolFacts("memory", target="text", tags=("note", "store"), subagents=False, asks="it writes to your memory")
    return Tool(
        REMEMBER, definition.description, definition.input_schema, run, Effect.WRITE,
        facts=facts, preview=preview, idempotent=True, concern=concern,
    )  # fmt: skip


def forget_tool(definition: Definition, memory: SessionMemory, storing: Storing) -> Tool:
    async def preview(args: Mapping[str, Any]) -> Display:
        return Prose("\n".join(f"-{_day(entry)} {entry.text}" for entry in await found(args)))

    async def found(args: Mapping[str, Any]) -> list[Entry]:
        entries = await storing.store.get(args["ids"])
        if missing := [id for id in args["ids"] if id not in entries]:
            raise Failed("not_found", f"No memory has the id {missing[0]!r}.", "Take ids from a reminder of memories.")
        return [entries[id] for id in dict.fromkeys(args["ids"])]

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        entries = await found(args)
        gone = await memory.forget([entry.id for entry in entries])
        call.branch.emit(MemoryChanged(forgotten=tuple(entry.id for entry in entries)))
        told = count(gone, "memory")
        return ToolResult(f"Forgot {told}.", summary=f"forgot {told}")

    facts = ToolFacts("memory", tags=("delete",), subagents=False, asks="it removes from your memory")
    return Tool(
        FORGET, definition.description, definition.input_schema, run, Effect.WRITE,
        facts=facts, preview=preview, idempotent=True,
    )  # fmt: skip


def _draft(args: Mapping[str, Any]) -> Draft:
    return Draft(
        args["text"],
        args.get("kind", "fact"),
        args.get("scope", "project"),
        args.get("subject", ""),
        args.get("attribute", ""),
        origin="assistant",
    )


def _shown(stored: Stored) -> str:
    return stored.entry.text + (f"\nReplaces: {one_line(stored.older.text, SHOWN)}" if stored.older else "")


def _day(entry: Entry) -> str:
    day = day_of(entry.at)
    return f" ({day:%Y-%m-%d})" if day else ""
