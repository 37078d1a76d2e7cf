"""How many calls and sub-agents of a turn failed in a row: a fold over its events. Pure; imports only events."""

from __future__ import annotations

from ba_tui.core.events import MAIN, Event, ToolFinished, TurnEnded
from ba_tui.core.text.wording import one_line, sentence

SHOWN = 160
"""Characters of the last failure that are kept."""


class Failures:
    """Of all agents of a turn together. ``number``: failures since the last success; ``last``: the newest, in one
    line."""

    def __init__(self) -> None:
        self.number = 0
        self.last = ""

    def apply(self, event: Event) -> None:
        if isinstance(event, ToolFinished):
            error = event.result.error
            if not event.result.is_error:
                self.number = 0
            elif error is None or error.kind != "interrupted":
                self._failed(error.message if error else event.result.text)
        elif isinstance(event, TurnEnded) and event.agent != MAIN and event.reason in {"error", "limit"}:
            self._failed(event.error.message if event.error else f"{event.agent} ended early.")

    def _failed(self, why: str) -> None:
        self.number += 1
        self.last = sentence(one_line(why, SHOWN))
