"""Which keys of a settings file of Claude Code ba goes by, and which it names as not supported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from ba_tui.core.values import frozen
from tests.eval.collections.found import json_of

HONOURED = frozenset({"hooks", "disableAllHooks"})
NOTES = frozenset({"$schema", "description", "name", "version", "author"})


@frozen
class SettingsRead:
    """``named``: why ba does not go by a key; the keys in ``unread`` are passed over without a word."""

    honoured: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict[str, str])
    unread: tuple[str, ...] = ()


def read_settings(path: Path) -> SettingsRead:
    """What becomes of the file at ``path`` in a trusted project."""
    keys = [key for key in json_of(path) if key not in NOTES]
    unread = tuple(key for key in keys if key not in HONOURED)
    return SettingsRead(tuple(key for key in keys if key in HONOURED), unread=unread)
