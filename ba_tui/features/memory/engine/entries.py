"""Entries as lines of JSON. Where lines are kept is the log's business."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, TypeAlias, cast

from ba_tui.core.messages import clean_text
from ba_tui.core.ports.memory import KINDS, ORIGINS, Entry

VERSION = 1
"""Of the lines that this ba writes; lines with a higher one stay in the log and are not read."""

Operation: TypeAlias = Literal["add", "change", "forget", "used"]
"""``add`` holds a whole entry, ``change`` the fields that are new, ``forget`` an id, ``used`` ids and a time."""

_NAMES = frozenset(field.name for field in fields(Entry))
_DEFAULTS = Entry("", "")
_FOLDED = frozenset({"superseded_by"})
"""Not written with an entry: other lines say it."""


def new_id(at: float) -> str:
    """A unique id; ids sort by time as far as the clock is right."""
    return f"m{max(0, int(at * 1000)):011x}{secrets.token_hex(4)}"


def line(operation: Operation, values: Mapping[str, Any]) -> bytes:
    """One line of the log, with its line end."""
    record = {"v": VERSION, "op": operation, **values}
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def added(entry: Entry) -> bytes:
    """The line that adds ``entry``; fields with their default value are left out."""
    return line("add", as_record(entry, without=_FOLDED))


def as_record(entry: Entry, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The fields of ``entry`` that differ from their default, always with id and text."""
    record: dict[str, Any] = {"id": entry.id, "text": entry.text}
    for field in fields(Entry):
        value = getattr(entry, field.name)
        if field.name not in record and field.name not in without and value != getattr(_DEFAULTS, field.name):
            record[field.name] = value
    return record


def loads(data: bytes) -> dict[str, Any] | None:
    """A JSON object, or None for anything else."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def version_of(record: Mapping[str, Any]) -> int:
    """The version of a record; 0 for one that is not ours."""
    version = record.get("v")
    return version if isinstance(version, int) and version > 0 else 0


def entry_of(record: Mapping[str, Any]) -> Entry | None:
    """The entry of an ``add`` record. Fields that are unknown or of the wrong type count as missing; None without id
    or text.
    """
    values = _checked(record)
    if not values.get("id") or not str(values.get("text", "")).strip():
        return None
    return Entry(**values)


def changes_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a ``change`` record sets, checked as those of an entry."""
    return {name: value for name, value in _checked(record).items() if name != "id"}


def ids_of(record: Mapping[str, Any]) -> Sequence[str]:
    """The ids that a ``used`` or ``forget`` record names."""
    found = record.get("ids")
    listed = cast("list[Any]", found) if isinstance(found, list) else [record.get("id")]
    return [each for each in listed if isinstance(each, str) and each]


def _checked(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: good for name in _NAMES & record.keys() if (good := _good(name, record[name])) is not None}


def _good(name: str, value: Any) -> Any:
    """``value`` as the type of the field ``name``, None when it has another."""
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
