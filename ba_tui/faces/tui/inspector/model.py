"""What the inspector shows, as one plain value. How a record of the transcript becomes one is the app's affair."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ba_tui.core.results import Display

State: TypeAlias = Literal["queued", "waiting", "running", "ok", "failed", "denied", "cancelled", ""]


@dataclass(frozen=True, slots=True)
class Inspected:
    """``text`` is what the model was told; it is shown when there is no ``display``, or beside a failed one.

    ``duration`` in seconds, None while unknown.
    """

    title: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    display: Display | None = None
    text: str = ""
    state: State = ""
    duration: float | None = None
