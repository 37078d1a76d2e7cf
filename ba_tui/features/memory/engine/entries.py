"""Entries as lines of JSON, which ``log`` stores."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.messages import clean_text
from ba_tui.core.ports.memory import KINDS, ORIGINS, Entry

VERSION = 1
"""Version of the lines that this ba writes; lines with a higher version stay in the log unread."""

Operation: TypeAlias = Literal["add", "change", "forget", "used"]
"""``add`` has a whole entry, ``change`` the changed fields, ``forget`` an id, ``used`` ids and a time."""

_NAMES = frozenset(field.name for field in fields(Entry))
_DEFAULTS = Entry("", "")
_FOLDED = frozenset({"superseded_by"})
"""Fields that are not stored with an entry, because other lines define them."""


def new_id(at: float) -> str:
    """Return a unique id; ids sort by time if the clock is right."""
    return f"m{max(0, int(at * 1000)):011x}{secrets.token_hex(4)}"


def line(operation: Operation, values: Mapping[str, Any]) -> bytes:
    """Return one line of the log, with its line end."""
    record = {"v": VERSION, "op": operation, **values}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def added(entry: Entry) -> bytes:
    """Return the line that adds ``entry``, without fields that have their default value."""
    return line("add", as_record(entry, without=_FOLDED))


def as_record(entry: Entry, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """Return the fields of ``entry`` that differ from their default, always with id and text."""
    record: dict[str, Any] = {"id": entry.id, "text": entry.text}
    for field in fields(Entry):
        value = getattr(entry, field.name)
        if field.name not in record and field.name not in without and value != getattr(_DEFAULTS, field.name):
            record[field.name] = value
    return record


def version_of(record: Mapping[str, Any]) -> int:
    """Return the version of a record; 0 for a foreign one."""
    version = record.get("v")
    return version if isinstance(version, int) and version > 0 else 0


def entry_of(record: Mapping[str, Any]) -> Entry | None:
    """Return the entry of an ``add`` record; None without id or text. Unknown fields and fields of the wrong type are
    ignored.
    """
    values = _checked(record)
    if not values.get("id") or not str(values.get("text", "")).strip():
        return None
    return Entry(**values)


def changes_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the valid fields of a ``change`` record."""
    return {name: value for name, value in _checked(record).items() if name != "id"}


def ids_of(record: Mapping[str, Any]) -> Sequence[str]:
    """Return the ids in a ``used`` or ``forget`` record."""
    found = record.get("ids")
    listed = cast("list[Any]", found) if isinstance(found, list) else [record.get("id")]
    return [each for each in listed if isinstance(each, str) and each]


def _checked(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: good for name in _NAMES & record.keys() if (good := _good(name, record[name])) is not None}


def _good(name: str, value: Any) -> Any:
    """Return ``value`` converted to the type of the field ``name``, None if that is impossible."""
    default = getattr(_DEFAULTS, name)
    if isinstance(default, bool):
        return value if isinstance(value, bool) else None
    if isinstance(default, str):
        allowed = KINDS if name == "kind" else ORIGINS if name == "origin" else None
        known = isinstance(value, str) and (allowed is None or value in allowed)
        return clean_text(value) if known else None
    return _number(value, whole=isinstance(default, int))


def _number(value: Any, *, whole: bool) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if whole else float(value)


def day_of(at: float) -> date | None:
    """Return the day of a time in seconds since 1970; None for an unknown or impossible one."""
    try:
        return datetime.fromtimestamp(at, UTC).date() if at > 0 else None
    except (OverflowError, ValueError, OSError):
        return None
