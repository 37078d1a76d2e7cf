"""The hooks of the session: on which event each runs, where it stands, whether it runs here, how it went.

Which hooks there are is the inventory's affair.
"""

from __future__ import annotations

import asyncio
import time

from textual.widgets import Static

from ba_tui.core.errors import BaError
from ba_tui.core.ports.hooks import HookList, HookListing
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.inspector.model import Inspected
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.screens.overview.grouped import GroupedPicker, PickerGroup
from ba_tui.faces.tui.screens.picker import PickerChoice, app_of
from ba_tui.faces.tui.transcript.rows import duration

KEYS = "Enter details · r refresh · Esc close"
EMPTY = "No hooks. Set them under hooks: in your settings; /guide hooks says how."


class HookBrowser(GroupedPicker):
    """Hooks under the name of their event, then what does not count and why."""

    def __init__(self, hooks: HookList) -> None:
        super().__init__("Hooks", keys=KEYS)
        self._hooks = hooks
        self._pages: dict[str, tuple[str, str]] = {}
        """Title and text of what each row opens."""

    def action_reload(self) -> None:
        """Read them again."""
        self.run_worker(self._load, group="hooks", exclusive=True, exit_on_error=False)

    async def _load(self) -> None:
        try:
            lines, problems = await asyncio.to_thread(lambda: (self._hooks.lines(), self._hooks.problems()))
        except BaError as error:
            self.say(error.with_hint)
            return
        events: dict[str, list[PickerChoice]] = {}
        self._pages.clear()
        for place, line in enumerate(lines):
            self._pages[f"hook:{place}"] = line.text, _details(line)
            events.setdefault(line.event, []).append(_choice(f"hook:{place}", line))
        groups = [PickerGroup(event, choices) for event, choices in events.items()]
        wrong = [PickerChoice(f"wrong:{place}", (text,)) for place, text in enumerate(problems)]
        self._pages.update({f"wrong:{place}": ("Not in use", text) for place, text in enumerate(problems)})
        self.groups = [*groups, PickerGroup("Not in use", wrong)] if wrong else groups
        self.empty = EMPTY
        off = sum(bool(line.off) for line in lines)
        parts = (count(len(lines), "hook"), f"{off} off" if off else "")
        self.query_one(".title", Static).update(", ".join(filter(None, parts)) if lines else "Hooks")
        self.refill()

    def choose(self, id: str) -> None:
        if page := self._pages.get(id):
            title, text = page
            app_of(self).push_screen(InspectorScreen(Inspected(paintable(title, newlines=False), text=text)))


def _choice(id: str, line: HookListing) -> PickerChoice:
    run = line.last
    state = line.off.partition(":")[0] if line.off else f"ran {run.count}×" if run else "not run yet"
    what = f"! {run.outcome}" if run and run.failed else line.off or line.source
    return PickerChoice(id, (" ".join(line.text.split()), line.matcher or "all", state), what)


def _details(line: HookListing) -> str:
    run = line.last
    last = "not in this session"
    if run:
        at = time.strftime("%H:%M:%S", time.localtime(run.at))
        last = f"{at}, {duration(run.seconds)}: {run.outcome}; {count(run.count, 'run')} in this session"
    facts = {
        "Event": line.event,
        "For": line.matcher or "everything",
        "Prompt" if line.kind == "prompt" else "Command": line.text,
        "From": f"{line.source} ({'this project' if line.owner == 'project' else 'yours'})",
        "Time limit": f"{line.seconds:g} s",
        "State": line.off or "runs",
        "Last run": last,
    }
    return "\n".join(f"{name:<10}  {text}" for name, text in facts.items())
