"""What is kept of sessions."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from annotated_types import Gt, Le

from ba_tui.core.values import frozen
from ba_tui.settings.fields import Amount, about
from ba_tui.settings.sections.group import SettingsGroup


@frozen
class CheckpointSettings(SettingsGroup):
    """What is kept of the files before a turn changes any, for `/rewind`."""

    max_file_mb: Annotated[Amount, Gt(0), Le(1_000)] = field(
        default=10, metadata=about("The largest file that is kept, in MB; a larger one can't be rewound.", "project")
    )
    max_session_mb: Annotated[Amount, Gt(0), Le(1_000_000)] = field(
        default=500,
        metadata=about("Disk space for earlier versions of files in one session, in MB; the oldest go first."),
    )
    max_total_mb: Annotated[Amount, Gt(0), Le(10_000_000)] = field(
        default=5_000,
        metadata=about(
            "Disk space for the checkpoints of all sessions, in MB; the least recently used sessions go first."
        ),
    )
