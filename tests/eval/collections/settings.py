"""Which keys of a settings file of Claude Code ba goes by, and which it names as not supported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from ba_tui.core.values import frozen
from ba_tui.settings.claude_files import read_claude_file
from ba_tui.settings.claude_layer import claude_layer

NOTES = frozenset({"$schema", "description", "name", "version", "author"})


@frozen
class SettingsRead:
    """``named``: why ba does not go by a key; the keys in ``unread`` are passed over without a word."""

    honoured: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict[str, str])
    unread: tuple[str, ...] = ()


def read_settings(path: Path) -> SettingsRead:
    """What becomes of the file at ``path`` in a trusted project."""
    file = read_claude_file(path)
    if file is None or file.problem:
        return SettingsRead()
    report = claude_layer(file, path.parent.parent, trusted=True).report
    named = {each.key: each.why for each in report.unsupported if each.key not in NOTES}
    told = {key.partition(".")[0] for key in (*report.honoured, *named)}
    unread = (key for key in file.data if key not in told | NOTES)
    return SettingsRead(tuple(report.honoured), named, tuple(unread))
