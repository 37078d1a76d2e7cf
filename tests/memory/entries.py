"""Entries for tests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ba_tui.core.ports.memory import Entry
from ba_tui.features.memory.engine.entries import new_id

NOW = 1_790_000_000.0
PROJECT = "shop-1f0c2ab9"


def entry(text: str, **fields: Any) -> Entry:
    """A new entry of the project."""
    plain = Entry(new_id(fields.get("at", NOW)), text, project=PROJECT, at=NOW)
    return replace(plain, **fields)
