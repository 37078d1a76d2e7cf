"""What the inspector shows, as one plain value. How a record of the transcript becomes one is the app's affair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from ba_tui.core.ports.datasets import Datasets, OutputFormat
from ba_tui.core.ports.results import Reader
from ba_tui.core.results import Display
from ba_tui.core.values import frozen

CallState: TypeAlias = Literal["queued", "waiting", "running", "ok", "failed", "denied", "cancelled", ""]


@frozen
class Whole:
    """A stored result and who reads it."""

    reader: Reader
    ref: str


@frozen
class DataTable:
    """The table ``name`` of the session's data; without a name, output in ``format`` that becomes one when opened."""

    datasets: Datasets
    name: str = ""
    format: OutputFormat = "csv"


@frozen
class Inspected:
    """``text`` is what the model was told; it is shown when there is no ``display``, or beside a failed one.

    ``duration`` in seconds, None while unknown. ``note``: a few words of what came of it. ``whole``: where all of it
    lies when neither ``display`` nor ``text`` is. ``datasets``: the data of the session.
    """

    title: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    display: Display | None = None
    text: str = ""
    state: CallState = ""
    duration: float | None = None
    note: str = ""
    whole: Whole | None = None
    unread: str = ""
    """What of the result the model was not given, in words."""
    datasets: Datasets | None = None
    sought: str = ""
    """A line of the result that should be in sight."""
    sought_line: int = 0
    """Its number in all of the result, from 1."""
