"""Memory entries as tables, facts and JSON of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from ba_tui.cli.session_tables import cell, local_time
from ba_tui.core.ports.memory import Entry

LEAST_TEXT = 20
"""Columns that are left for texts in a narrow terminal."""


def entry_record(entry: Entry) -> dict[str, Any]:
    """An entry as JSON: all fields, and its scope."""
    return {"scope": scope_of(entry), **asdict(entry)}


def scope_of(entry: Entry) -> str:
    return "project" if entry.project else "global"


def state_of(entry: Entry) -> str:
    return "replaced" if entry.superseded_by else "pinned" if entry.pinned else ""


def entry_table(entries: Sequence[Entry], *, projects: bool) -> Table:
    """Entries, a line each; ``projects`` names theirs."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("Id", no_wrap=True)
    table.add_column("Memory", no_wrap=True, overflow="ellipsis", min_width=LEAST_TEXT, ratio=1)
    shared = any(entry.server for entry in entries)
    for name in ("Kind", "Scope", "State", "Stored", *(("Team server",) if shared else ())):
        table.add_column(name, no_wrap=True)
    for entry in entries:
        scope = entry.project if projects and entry.project else scope_of(entry)
        stored = local_time(entry.at) if entry.at else ""
        cells = (entry.id, entry.text, entry.kind, scope, state_of(entry), stored)
        table.add_row(*map(cell, (*cells, entry.server) if shared else cells))
    return table


def _source(entry: Entry) -> str:
    said = entry.speaker or ("" if entry.server else entry.origin)
    return ", ".join(filter(None, (said, f"team server {entry.server}" if entry.server else "")))


def entry_facts(entry: Entry) -> dict[str, str]:
    """What is known of an entry, by label; empty where nothing is."""
    return {
        "Id": entry.id,
        "Kind": entry.kind,
        "Scope": f"project {entry.project}" if entry.project else "global",
        "State": state_of(entry) or "current",
        "About": " · ".join(filter(None, (entry.subject, entry.attribute))),
        "From": _source(entry),
        "Session": entry.session,
        "Stored": local_time(entry.at) if entry.at else "",
        "Used": f"{entry.used}, last {local_time(entry.last_used)}" if entry.used else "never",
        "Replaces": entry.supersedes,
        "Replaced by": entry.superseded_by,
        "Vector": entry.model,
    }
