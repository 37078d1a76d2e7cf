"""What a server says of its tools, made fit for models and people: names, descriptions, schemas, and what was wrong.

Pure, and takes plain JSON; checking many schemas takes a while, so it belongs off the event loop.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ba_tui.core.ports.mcp import RemoteTool
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import hidden_in, legible, paintable
from ba_tui.core.text.wording import count, one_line
from ba_tui.core.values import frozen
from ba_tui.features.mcp.client.schemas import canonical, usable_schema

NAME_CHARS = 64
"""Characters of a tool's name that all providers take."""
MOST_TOOLS = 1_000
DESCRIPTION_CHARS = 4_000
INSTRUCTIONS_CHARS = 2_000
_ODD = regex(r"[^A-Za-z0-9_-]+")


@frozen
class Definitions:
    """The tools that a server offers, a line for each thing that was changed, and one for each that was left out."""

    tools: tuple[RemoteTool, ...]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]


def safe_name(name: str) -> str:
    """Return ``name`` with nothing in it that a tool's name may not hold."""
    return _ODD.sub("_", name).strip("_") or "unnamed"


def full_name(server: str, tool: str) -> str:
    """Return what models call a tool by; one that is too long is cut, and told apart by a hash."""
    whole = f"mcp__{server}__{safe_name(tool)}"
    if len(whole) <= NAME_CHARS:
        return whole
    return f"{whole[: NAME_CHARS - 9]}_{hashlib.sha256(tool.encode()).hexdigest()[:8]}"


def server_names(names: Sequence[str]) -> dict[str, str]:
    """Return the part of tools' names that stands for each server, no two alike."""
    found: dict[str, str] = {}
    for name in names:
        plain = base = safe_name(name).replace("__", "_")[:32]
        number = 1
        while plain in found.values():
            number += 1
            plain = f"{base}_{number}"
        found[name] = plain
    return found


def read_tools(server: str, listed: Sequence[Mapping[str, Any]]) -> Definitions:
    """Return the tools of a listing for the server that is called ``server`` in names."""
    tools: dict[str, RemoteTool] = {}
    notes: list[str] = []
    left_out: list[str] = []
    if len(listed) > MOST_TOOLS:
        left_out.append(f"{count(len(listed) - MOST_TOOLS, 'tool')} left out: ba takes {MOST_TOOLS} of a server")
    own = set[str]()
    for raw in listed[:MOST_TOOLS]:
        name = str(raw.get("name") or "")
        shown = one_line(paintable(name, newlines=False, reveal=True), 80) or "(no name)"
        if name in own:
            notes.append(f"{shown}: the server lists this name twice; the first counts")
            continue
        own.add(name)
        called = full_name(server, name)
        if not name.strip() or hidden_in(name):
            left_out.append(f"tool {shown}: left out, its name has hidden characters or is empty")
            continue
        if called in tools:
            called = f"{called[: NAME_CHARS - 9]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
            notes.append(f"{shown}: another tool has the same name for models; it is called {called}")
        tool, said = _tool(raw, name, called)
        tools[called] = tool
        notes += [f"{shown}: {text}" for text in said]
        if tool.trouble:
            left_out.append(f"tool {shown}: left out: {tool.trouble}")
    return Definitions(tuple(tools.values()), tuple(notes), tuple(left_out))


def plain_text(text: str, most: int) -> tuple[str, str]:
    """Return ``text`` without hidden characters, cut to ``most``, and what was done to it; empty when nothing was."""
    hidden = hidden_in(text)
    clean = legible(text).strip()
    said = [f"{len(hidden)} kinds of hidden characters were removed"] if hidden else []
    if len(clean) > most:
        said.append(f"its text was cut to {most:,} of {len(clean):,} characters")
        clean = f"{clean[:most]} […]"
    return clean, "; ".join(said)


def definition_text(tool: RemoteTool) -> str:
    """Return all of a definition that a person approves, as text to compare."""
    hints = [name for name in ("read_only", "destructive", "idempotent", "open_world") if getattr(tool, name)]
    schema = json.dumps(tool.schema, indent=2, sort_keys=True, ensure_ascii=False)
    return f"{tool.name}\n{tool.title}\n\n{tool.description}\n\nhints: {', '.join(hints) or 'none'}\n\n{schema}\n"


def changed_parts(old: RemoteTool, new: RemoteTool) -> str:
    """Return which parts of a definition differ, in words; empty when none does."""
    hints = ("read_only", "destructive", "idempotent", "open_world")
    parts = {
        "title": old.title != new.title,
        "description": old.description != new.description,
        "parameters": canonical(old.schema) != canonical(new.schema),
        "hints": any(getattr(old, name) != getattr(new, name) for name in hints),
    }
    return ", ".join(name for name, differs in parts.items() if differs)


def _tool(raw: Mapping[str, Any], name: str, called: str) -> tuple[RemoteTool, list[str]]:
    said: list[str] = []
    description, trouble = plain_text(str(raw.get("description") or ""), DESCRIPTION_CHARS)
    said += [f"in its description {trouble}"] if trouble else []
    hints = _group(raw.get("annotations"))
    title, _ = plain_text(str(raw.get("title") or hints.get("title") or ""), 200)
    schema, why, remarks = usable_schema(raw.get("inputSchema"))
    said += remarks
    tool = RemoteTool(
        name,
        called,
        title,
        description,
        schema,
        read_only=hints.get("readOnlyHint") is True,
        destructive=hints.get("destructiveHint") is not False,
        idempotent=hints.get("idempotentHint") is True,
        open_world=hints.get("openWorldHint") is not False,
        standing="refused" if why else "on",
        trouble=why,
    )
    return tool, said


def _group(value: Any) -> dict[str, Any]:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
