"""Models in files on this machine."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated

from annotated_types import Ge, Le

from ba_tui.core.values import frozen
from ba_tui.settings.fields import Whole, about
from ba_tui.settings.sections.group import SettingsGroup


@frozen
class LocalSettings(SettingsGroup):
    """A model file that ba runs itself (`local:PATH`), with `pip install 'ba-tui[local]'`."""

    window: Annotated[Whole, Ge(1024), Le(1_048_576)] = field(
        default=16_384,
        metadata=about(
            "Tokens of its window, at most what it was trained on; a larger one takes more memory.", "project"
        ),
    )
    threads: Annotated[Whole, Ge(0), Le(1_024)] = field(
        default=0, metadata=about("Threads that compute; 0 leaves the number to llama.cpp.", "project")
    )
    tools: tuple[str, ...] = field(
        default=("read_file", "write_file", "edit_file", "grep", "shell", "calculator", "query_data"),
        metadata=about(
            "The tools that a model with a window of up to 32,768 tokens is told of; empty for all.", "project"
        ),
    )
