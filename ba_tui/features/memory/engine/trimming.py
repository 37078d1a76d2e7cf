"""Which entries a shelf lets go of: those that expired, and those of least use beyond its limit. Never pinned ones."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping
from typing import Any

from ba_tui.core.ports.memory import Kind
from ba_tui.features.memory.engine.lookup import Lookup

_DAY = 86_400.0
_HALF_LIFE = 180 * _DAY
"""Seconds after which an entry that nobody uses counts half."""
_ROOM = 0.95
"""What is left of the limit after an eviction, so that not each new entry costs one."""
_SUPERSEDED = 0.25
_USES = (
    "max(at, coalesce(json_extract(record, '$.last_used'), 0))",
    "coalesce(json_extract(record, '$.importance'), 0.5)",
    "coalesce(json_extract(record, '$.used'), 0)",
)


def expired(lookup: Lookup, expiry: Mapping[Kind, float], now: float) -> list[str]:
    """Ids of the entries that nobody used for the seconds that their kind is kept.

    An entry that is as new as any never expires, whatever the clock says: it may be wrong.
    """

    def look(db: sqlite3.Connection) -> list[str]:
        newest = db.execute("SELECT max(at) FROM entries").fetchone()[0] or 0.0
        today = min(now, newest + _DAY)
        query = f"SELECT id FROM entries WHERE kind = ? AND at > 0 AND at < ? AND NOT pinned AND {_USES[0]} < ?"  # noqa: S608 - ours
        return [
            row[0]
            for kind, seconds in expiry.items()
            for row in db.execute(query, (kind, today - seconds, today - seconds))
        ]

    return lookup.index.ask(look) if expiry else []


def of_least_use(lookup: Lookup, most: int, now: float) -> list[str]:
    """Ids of the entries to evict: none up to ``most`` of them; beyond, those with the lowest product of importance,
    age and use.
    """
    total = lookup.total()
    if total <= most:
        return []
    query = f"SELECT id, current, {', '.join(_USES)} FROM entries WHERE NOT pinned"  # noqa: S608 - ours
    rows: list[tuple[Any, ...]] = lookup.index.ask(lambda db: db.execute(query).fetchall())
    worth = {id: _worth(current, last, importance, used, now) for id, current, last, importance, used in rows}
    return sorted(worth, key=worth.__getitem__)[: total - int(most * _ROOM)]


def _worth(current: bool, last: float, importance: float, used: int, now: float) -> float:
    age = max(0.0, now - last)
    return (1 if current else _SUPERSEDED) * max(importance, 0.01) * 0.5 ** (age / _HALF_LIFE) * (1 + math.log1p(used))
