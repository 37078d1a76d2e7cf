"""What the server can be told to answer: a step of a script, with or without a fault, raw bytes, an error status.

How it is sent is the server's business; the two wire formats are in formats.py.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ba_tui.providers.scripted import Step

SSE = "text/event-stream; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True)
class Pace:
    """``piece``: bytes per write (0: an event each); ``rate``: bytes per second (0: as fast as it goes).

    ``hold``: after half of the body, wait until this event is set.
    """

    piece: int = 0
    rate: float = 0.0
    hold: threading.Event | None = None


@dataclass(frozen=True)
class Answer:
    """A step, sent in the format that was asked for, and what goes wrong with it.

    ``cut``: only this share of the body, then the connection breaks. ``silent``: the body ends politely, but before
    its closing event. ``malformed``: a line in the middle is no JSON. ``noise``: comments, pings and unknown events.
    """

    step: Step
    cut: float | None = None
    silent: bool = False
    malformed: bool = False
    noise: bool = False
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True)
class Raw:
    """These very bytes."""

    body: bytes
    status: int = 200
    content_type: str = SSE
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True)
class Status:
    """An error in the words of the vendor that was asked."""

    status: int
    message: str = ""
    retry_after: str = ""
    code: str = ""


Reply: TypeAlias = Step | Answer | Raw | Status
