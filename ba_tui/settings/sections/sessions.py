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
