"""The list of hooks: the events, commands and last runs."""

from __future__ import annotations

import time
from typing import ClassVar

from textual.binding import BindingType

from ba_tui.core.ports.permissions import HookList, HookListing
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.acts.port import Actions, inventory_of, needed
from ba_tui.faces.tui.inspector.model import InspectorValue
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.meters import short_duration
from ba_tui.faces.tui.screens.list_screen import RELOAD, ListContent, ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import app_of

UNUSED = "Not in use"


class HookBrowser(ListScreen[InspectorValue]):
    """Hooks under the name of their event, then hooks that are not in use, with the reason."""

    FILTERED: ClassVar[bool] = False
    ENTER: ClassVar[str] = "details"
    EMPTY: ClassVar[str] = "No hooks. Set them under hooks: in your settings; /guide hooks says how."
    BINDINGS: ClassVar[list[BindingType]] = [RELOAD]

    def __init__(self, hooks: HookList) -> None:
        super().__init__("Hooks")
        self._hooks = hooks

    def read(self) -> ListContent[InspectorValue]:
        hooks = self._hooks.lines()
        rows = list(map(_hook_row, range(len(hooks)), hooks))
        for place, text in enumerate(self._hooks.problems()):
            page = InspectorValue(UNUSED, text=text)
            rows.append(ListRow(f"wrong:{place}", (text,), value=page, group=UNUSED))
        off = sum(bool(hook.off) for hook in hooks)
        title = count(len(hooks), "hook") + (f", {off} off" if off else "")
        return ListContent(rows, title if hooks else "Hooks")

    def choose(self, row: ListRow[InspectorValue]) -> None:
        if row.value:
            app_of(self).push_screen(InspectorScreen(row.value))


def _hook_row(place: int, hook: HookListing) -> ListRow[InspectorValue]:
    run = hook.last
    state = hook.off.partition(":")[0] if hook.off else f"ran {run.count}×" if run else "not run yet"
    below = f"! {run.outcome}" if run and run.failed else hook.off or hook.source
    page = InspectorValue(paintable(hook.text, newlines=False), text=_hook_text(hook))
    cells = (" ".join(hook.text.split()), hook.matcher or "all", state)
    return ListRow(f"hook:{place}", cells, below, value=page, group=hook.event)


def _hook_text(hook: HookListing) -> str:
    run = hook.last
    last = "not in this session"
    if run:
        at = time.strftime("%H:%M:%S", time.localtime(run.at))
        last = f"{at}, {short_duration(run.seconds)}: {run.outcome}; {count(run.count, 'run')} in this session"
    facts = {
        "Event": hook.event,
        "For": hook.matcher or "everything",
        "Prompt" if hook.kind == "prompt" else "Command": hook.text,
        "From": f"{hook.source} ({'this project' if hook.owner == 'project' else 'yours'})",
        "Time limit": f"{hook.seconds:g} s",
        "State": hook.off or "runs",
        "Last run": last,
    }
    return "\n".join(f"{name:<10}  {text}" for name, text in facts.items())


def show_hooks(chat: Actions, _: str) -> None:
    hint = "Run `ba hooks list` in a shell."
    listed = needed(inventory_of(chat).feature(HookList), "This session has no list of hooks.", hint)
    chat.ba.push_screen(HookBrowser(listed))
