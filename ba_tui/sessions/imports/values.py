"""Values out of records whose shape nobody vouches for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ba_tui.sessions.migrations import Record


def text_of(record: Mapping[str, Any], key: str) -> str:
    """The text under ``key``; empty when there is none."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def mapping_of(value: Any) -> Record:
    """``value`` where it is an object; an empty one otherwise."""
    return cast("Record", value) if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[Record]:
    """The objects in a list; none where it is no list."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Record", item) for item in items if isinstance(item, dict)]
