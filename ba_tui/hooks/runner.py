"""Runs the hooks of an event, all at once, and says what they decided together.

When which event happens is known to ``turns`` and to the guard around tools.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from ba_tui.core.messages import clean_json
from ba_tui.core.values import frozen
from ba_tui.hooks.answers import HookAnswer, HookVerdict, combined, read_answer
from ba_tui.hooks.config import Hook
from ba_tui.hooks.found import SessionFacts
from ba_tui.hooks.process import HookCommand, run_command
from ba_tui.settings import HOOK_EVENTS

_MODES = {"accept-edits": "acceptEdits", "bypass": "bypassPermissions"}


@frozen
class HookEvent:
    """An event as it happens: our name of it, what is told beside the usual, what a matcher may call it.

    ``longest``: seconds that no hook may exceed here, whatever is set.
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    names: Sequence[str] = ()
    cwd: str = ""
    longest: float = 600.0


class Halt:
    """Why an agent is to end before its next request, as a hook after one of its calls said; empty when it is not."""

    def __init__(self) -> None:
        self.why = ""


class Hooks:
    """The hooks of one conversation. ``clean`` makes what they print fit for a model."""

    def __init__(self, hooks: Sequence[Hook], facts: SessionFacts, clean: Callable[[str], str]) -> None:
        self._hooks = tuple(hooks)
        self.facts = facts
        self._clean = clean
        project = str(facts.project)
        self._environment = {**facts.environment, "BA_PROJECT_DIR": project, "CLAUDE_PROJECT_DIR": project}

    def wanted(self, name: str, names: Sequence[str] = ()) -> bool:
        """Whether any hook is for it."""
        return bool(self._matching(name, names))

    async def fire(self, event: HookEvent) -> HookVerdict:
        """Run them and gather what they say. Fails for none of theirs; cancelling ends them."""
        matching = self._matching(event.name, event.names)
        if not matching:
            return HookVerdict()
        data = await asyncio.to_thread(self._payload, event)
        return combined(await asyncio.gather(*(self._run(hook, data, event) for hook in matching)))

    def _matching(self, name: str, names: Sequence[str]) -> list[Hook]:
        """In the order of the configuration, the same command once."""
        matching = [hook for hook in self._hooks if hook.event == name and hook.matches(names)]
        return list({hook.command: hook for hook in reversed(matching)}.values())[::-1]

    async def _run(self, hook: Hook, data: bytes, event: HookEvent) -> HookAnswer:
        seconds = min(hook.timeout, event.longest)
        ran = await run_command(HookCommand(hook.command, data, self.facts.cwd, self._environment, seconds))
        answer = read_answer(hook, ran)
        stop = answer.stop and self._clean(answer.stop)
        return replace(answer, reason=self._clean(answer.reason), context=self._clean(answer.context), stop=stop)

    def _payload(self, event: HookEvent) -> bytes:
        mode = self.facts.mode()
        payload = {
            "session_id": self.facts.session,
            "transcript_path": str(self.facts.transcript),
            "cwd": event.cwd or str(self.facts.cwd),
            "hook_event_name": HOOK_EVENTS[event.name],
            "permission_mode": _MODES.get(mode, mode),
            **event.fields,
        }
        return json.dumps(clean_json(payload), ensure_ascii=False, default=str).encode()
