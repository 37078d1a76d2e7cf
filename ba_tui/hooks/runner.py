"""Runs the hooks of an event, all at once, and says what they decided together.

When which event happens is known to ``turns`` and to the guard around tools.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ba_tui.core.messages import clean_json
from ba_tui.hooks.answers import Answer, Verdict, read_answer, together
from ba_tui.hooks.config import Hook
from ba_tui.hooks.process import Order, run_command
from ba_tui.settings import HOOK_EVENTS

_MODES = {"accept-edits": "acceptEdits", "bypass": "bypassPermissions"}


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every hook is told. ``environment``: what commands may see, without any key; ``mode`` now."""

    session: str
    transcript: Path
    cwd: Path
    project: Path
    environment: Mapping[str, str]
    mode: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Occasion:
    """An event as it happens: our name of it, what is told beside the usual, what a matcher may call it.

    ``longest``: seconds that no hook may exceed here, whatever is set.
    """

    event: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    names: Sequence[str] = ()
    cwd: str = ""
    longest: float = 600.0


class Hooks:
    """The hooks of one conversation."""

    def __init__(self, hooks: Sequence[Hook], around: Surroundings) -> None:
        self._hooks = tuple(hooks)
        self.around = around
        self.halt = ""
        """Why the turn is to end before its next request; empty when it is not."""
        project = str(around.project)
        self._environment = {**around.environment, "BA_PROJECT_DIR": project, "CLAUDE_PROJECT_DIR": project}

    def wanted(self, event: str, names: Sequence[str] = ()) -> bool:
        """Whether any hook is for it."""
        return bool(self._meant(event, names))

    async def fire(self, occasion: Occasion) -> Verdict:
        """Run them and gather what they say. Fails for none of theirs; cancelling ends them."""
        meant = self._meant(occasion.event, occasion.names)
        if not meant:
            return Verdict()
        data = await asyncio.to_thread(self._told, occasion)
        return together(await asyncio.gather(*(self._run(hook, data, occasion) for hook in meant)))

    def _meant(self, event: str, names: Sequence[str]) -> list[Hook]:
        """In the order of the configuration, the same command once."""
        meant = [hook for hook in self._hooks if hook.event == event and hook.covers(names)]
        return list({hook.command: hook for hook in reversed(meant)}.values())[::-1]

    async def _run(self, hook: Hook, data: bytes, occasion: Occasion) -> Answer:
        seconds = min(hook.timeout, occasion.longest)
        ran = await run_command(Order(hook.command, data, self.around.cwd, self._environment, seconds))
        return read_answer(hook, ran)

    def _told(self, occasion: Occasion) -> bytes:
        mode = self.around.mode()
        told = {
            "session_id": self.around.session,
            "transcript_path": str(self.around.transcript),
            "cwd": occasion.cwd or str(self.around.cwd),
            "hook_event_name": HOOK_EVENTS[occasion.event],
            "permission_mode": _MODES.get(mode, mode),
            **occasion.fields,
        }
        return json.dumps(clean_json(told), ensure_ascii=False, default=str).encode()
