"""Sessions and their requests as tables, facts and JSON of the command line.

Which of them are shown is sessions.py's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.table import Table
from rich.text import Text

from ba_tui.core.messages import Usage
from ba_tui.core.ports.sessions import SavedRequest, SessionInfo, TurnLine
from ba_tui.sessions.foreign import one_line

LEAST_TITLE, LEAST_FOLDER = 12, 14
"""Columns that are left for them in a narrow terminal."""
PROMPT = 100
"""Characters of a prompt in the list of turns."""


def session_table(infos: Sequence[SessionInfo], *, everywhere: bool, width: int) -> Table:
    """Sessions, a line each; ``everywhere`` shows their folders. In ``width`` columns titles and folders are cut."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("Id", "Title", "Used", "Turns", "Cost"):
        right = name in {"Turns", "Cost"}
        table.add_column(
            name,
            no_wrap=True,
            justify="right" if right else "left",
            overflow="ellipsis" if name == "Title" else "fold",
            min_width=LEAST_TITLE if name == "Title" else None,
        )
    if everywhere:
        table.add_column("Folder", no_wrap=True, overflow="ellipsis")
    room = max(LEAST_FOLDER, width // 4)
    for info in infos:
        mark = f" [open in {info.locked_by}]" if info.locked_by else " [ba -p]" if info.unattended else ""
        title = (info.title or info.preview or "Untitled") + mark
        cells = [info.id, title, local_time(info.updated), str(info.turns), price(info.cost)]
        table.add_row(*map(cell, [*cells, *([_tail(str(info.cwd), room)] if everywhere else [])]))
    return table


def _tail(path: str, room: int) -> str:
    """The end of ``path``, which tells more than its beginning."""
    return path if len(path) <= room else f"…{path[1 - room :]}"


def prompt_text(line: TurnLine, room: int) -> str:
    """What was asked, in one line of at most ``room`` columns, and how the turn ended when that is not as usual."""
    ended = f" ({line.ended})" if line.ended not in {"", "done"} else ""
    text = Text(one_line(line.prompt, PROMPT))
    text.truncate(room - len(ended), overflow="ellipsis")
    return text.plain + ended


def cell(text: str) -> Text:
    """Text for a table: a folder's name, too, may hold markup or escape sequences."""
    return Text(one_line(text))


def session_facts(info: SessionInfo, usage: Usage) -> list[tuple[str, str]]:
    """What a session is, as labels and values."""
    facts = [
        ("Id", info.id),
        ("Title", info.title),
        ("Folder", str(info.cwd)),
        ("Begun", local_time(info.created)),
        ("Used", local_time(info.updated)),
        ("Model", info.model),
        ("Tokens", f"{usage.about}{usage.prompt:,} in, {usage.about}{usage.output:,} out"),
        ("Cost", price(info.cost)),
        ("Open in", info.locked_by),
    ]
    return [(label, value) for label, value in facts if value]


def session_record(info: SessionInfo) -> dict[str, Any]:
    """A session as JSON."""
    return {
        "id": info.id,
        "title": info.title,
        "cwd": str(info.cwd),
        "created": info.created,
        "updated": info.updated,
        "turns": info.turns,
        "cost_usd": info.cost,
        "model": info.model,
        "preview": info.preview,
        "locked_by": info.locked_by,
        "unattended": info.unattended,
    }


def local_time(at: float) -> str:
    """``at`` seconds since the epoch, in the local time zone."""
    try:
        return datetime.fromtimestamp(at, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return "?"


def price(cost: float | None) -> str:
    """US dollars; a dash when unknown."""
    return "—" if cost is None else f"${cost:.2f}"


def request_table(found: Sequence[SavedRequest]) -> Table:
    """Saved requests, a row each."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("Request", "At", "Model", "Sent", "Received"):
        table.add_column(name, justify="left" if name in {"At", "Model"} else "right")
    for each in found:
        cells = (str(each.number), local_time(each.at), each.model, f"{each.size:,} B", f"{each.received:,} B")
        table.add_row(*map(cell, cells))
    return table
