"""Which schema versions of a session can be read, and the chain of steps that brings an older record up to date.

Files are never rewritten: a step works on one record as it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ba_tui.core.errors import NewerSchema

SCHEMA_VERSION = 1

Record = dict[str, Any]

STEPS: Mapping[int, Callable[[Record], Record]] = {}
"""``STEPS[n]`` turns a record of version n into one of version n + 1."""


def migrate(record: Record, version: int) -> Record:
    """``record``, written under ``version``, in today's shape."""
    for step in range(version, SCHEMA_VERSION):
        record = STEPS[step](record)
    return record


def check(version: int, name: str) -> None:
    """Raises NewerSchema when the session ``name`` was written by a later version of ba."""
    if version > SCHEMA_VERSION:
        raise NewerSchema(
            f"Session {name} was written by a newer ba (format {version}, this one reads up to {SCHEMA_VERSION}).",
            "Update ba to open it; the file was left as it is.",
        )
