"""Writes what a migration found into the person's config.yaml, whose comments stay, after a copy of it was kept."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

from ba_tui.core.errors import UsageError
from ba_tui.resources import Places, read_regular, save_whole
from ba_tui.settings.document import read_document
from ba_tui.settings.editing import add_item, put_value
from ba_tui.settings.migration.draft import Change

COPY = "config.yaml.before-migrate"


def own_settings(places: Places) -> dict[str, Any]:
    """What the person's config.yaml says. Raises UsageError when it can't be understood."""
    document = read_document(places.settings)
    if document and document.broken:
        raise UsageError(f"{document.problems[0]}.", "Correct the file first: ba config edit.")
    return document.data if document else {}


def write_changes(places: Places, changes: Sequence[Change]) -> Path | None:
    """Make ``changes``; returns the copy that was kept, None where there was no file yet.

    Raises:
        UsageError: a change does not fit. StorageError: a file can't be written.
    """
    kept = _copied(places.settings)
    for change in changes:
        if change.adds:
            add_item(places, change.key, change.value)
        else:
            put_value(places, change.key, change.value)
    return kept


def _copied(path: Path) -> Path | None:
    try:
        raw = read_regular(path, 2_000_000)
    except FileNotFoundError:
        return None
    names = (path.with_name(COPY if number == 1 else f"{COPY}.{number}") for number in count(1))
    copy = next(each for each in names if not each.exists())
    save_whole(copy, raw.decode("utf-8"), mode=0o600)
    return copy
