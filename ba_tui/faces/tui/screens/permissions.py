"""The mode and every rule: what each says, where it stands and how often it hit. Rules are given, changed, taken back.

What a rule means and where it is kept is the policy's affair.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Mode
from ba_tui.core.ports.permissions import Permissions, RuleLine
from ba_tui.core.text.rule_words import rule_words
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.inspector.rows import visible
from ba_tui.faces.tui.screens.picker import Picker, PickerChoice, app_of, rendered
from ba_tui.faces.tui.screens.rule import ChosenRule, RuleForm
from ba_tui.faces.tui.session import MEANING

KEYS = "a add · d d remove · Enter change · m mode · / or letters find · Esc close"
NARROW = 60
MODE = "mode"
GROUPS = {
    "deny": ("Deny (always wins)", "$text-error"),
    "ask": ("Always ask", "$text-warning"),
    "allow": ("Allow without asking", "$text-success"),
}
OWN = frozenset({"session", "project", "user"})
PLACES = {
    "bundled": "built in",
    "user": "everywhere",
    "claude": "from Claude Code's settings",
    "project": "for this project",
    "flag": "from a flag",
    "session": "for this session",
    "": "",
}


class PermissionsScreen(Picker):
    """Letters are keys until something is searched for; Esc leaves the search first."""

    FILTERED: ClassVar[bool] = False
    DEFAULT_CSS = """
    PermissionsScreen .detail { height: 2; color: $foreground; margin-top: 1; }
    PermissionsScreen.-low .detail { height: 1; margin-top: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "Add a rule"),
        Binding("d,delete", "remove", "Remove a rule"),
        Binding("m,shift+tab", "next_mode", "Next mode"),
        Binding("slash", "find", "Find"),
    ]

    def __init__(self, permissions: Permissions, set_mode: Callable[[Mode], None]) -> None:
        super().__init__("Permissions", (), keys=KEYS)
        self.empty = "Reading the rules …"
        self._set_mode = set_mode
        self._permissions = permissions
        self._rules: dict[str, RuleLine] = {}
        self._removing: str | None = None

    def on_mount(self) -> None:
        sheet = self.query_one(".sheet")
        sheet.mount(Static(classes="detail", markup=False), before=self.query_one(".keys"))
        self.run_worker(partial(self._load, ""), group="rules", exclusive=True, exit_on_error=False)

    async def _load(self, told: str) -> None:
        try:
            lines = await asyncio.to_thread(self._permissions.rules)
        except BaError as error:
            self.say(error.with_hint)
            return
        self._rules = {_id(line, place): line for place, line in enumerate(lines)}
        self.empty = "No rules: edits and commands ask."
        self.choices = [_choice(id, line) for id, line in self._rules.items()]
        self.refill()
        self.say(told or KEYS)

    def say(self, text: str) -> None:
        """With what can't be seen shown: a rule may come from anybody."""
        self.query_one(".keys", Static).update(visible(text))

    # The list: the mode, then the rules under the head of their group

    def refill(self) -> None:
        options = self.query_one(OptionList)
        before = self.highlighted
        matching = self.matching()
        width = max(20, options.size.width - 4)
        rows = {choice.id: row for choice, row in rendered(matching, width)}
        found: list[Option] = []
        if not self.words:
            found.append(Option(self._mode_row(), MODE))
        for verdict, (head, style) in GROUPS.items():
            group = [choice.id for choice in matching if self._rules[choice.id].verdict == verdict]
            if group:
                shown = head if width >= NARROW else head.partition(":")[0]
                found.append(Option(Content.styled(f"{shown} ({len(group)})", f"bold {style}"), f"\0{verdict}", True))
                found += [Option(rows[id], id) for id in group]
        if not matching:
            found.append(Option("Nothing matches." if self.choices else self.empty, "\0", disabled=True))
        options.clear_options()
        options.add_options(found)
        ids = [option.id for option in found]
        first = next((index for index, option in enumerate(found) if not option.disabled), None)
        options.highlighted = ids.index(before) if before in ids else first

    def _mode_row(self) -> Content:
        mode = self._permissions.mode
        others = len(self._permissions.modes()) - 1
        more = "" if others else "  (no other mode is available here)"
        return Content.assemble("Mode  ", (mode, "bold"), (more, "$text-muted"))

    @on(OptionList.OptionHighlighted)
    def _detail(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        self._removing = None
        id = event.option_id or ""
        line = self._rules.get(id)
        words = MEANING[self._permissions.mode] if id == MODE else _told(line) if line else ""
        self.query_one(".detail", Static).update(visible(words))

    # Finding

    def on_key(self, event: events.Key) -> None:
        if not self._finding and event.is_printable and event.character and event.character not in "adm/ ":
            self.action_find()
            self.query_one(Input).insert_text_at_cursor(event.character)
            event.stop()
            event.prevent_default()

    @property
    def _finding(self) -> bool:
        return self.query_one(Input).display

    def action_find(self) -> None:
        field = self.query_one(Input)
        field.display = True
        field.focus()

    @on(Input.Submitted)
    def _found(self, event: Input.Submitted) -> None:
        event.stop()
        event.prevent_default()
        self.query_one(OptionList).focus()
        self.query_one(Input).display = bool(self.words)

    def action_cancel(self) -> None:
        field = self.query_one(Input)
        if field.display:
            field.value, field.display = "", False
            self.query_one(OptionList).focus()
        else:
            super().action_cancel()

    # Changing

    @property
    def _line(self) -> RuleLine | None:
        return self._rules.get(self.highlighted or "")

    def choose(self, id: str) -> None:
        if id == MODE:
            self.action_next_mode()
        elif line := self._rules.get(id):
            self._open_form(line)

    def action_next_mode(self) -> None:
        modes = self._permissions.modes()
        here = self._permissions.mode
        mode = modes[(modes.index(here) + 1) % len(modes)] if here in modes else modes[0]
        try:
            self._set_mode(mode)
        except BaError as error:
            self.say(error.with_hint)
            return
        self.refill()
        self.query_one(".detail", Static).update(MEANING[mode])

    def action_add(self) -> None:
        self._open_form(None)

    def _open_form(self, line: RuleLine | None) -> None:
        def given(rule: ChosenRule | None) -> None:
            if rule is not None:
                self._change(lambda: self._give(rule, line))

        app_of(self).push_screen(RuleForm(line), given)

    def _give(self, rule: ChosenRule, old: RuleLine | None) -> str:
        """In a thread. The new rule stands before the old one goes, so that nothing is lost on the way."""
        made = self._permissions.add(rule.rule, rule.verdict, rule.scope)
        if old is None or (made.rule, made.verdict, made.layer) == (old.rule, old.verdict, old.layer):
            return f"{made.rule}: {made.verdict}, {PLACES[made.layer]}."
        if old.waiting or old.layer not in OWN:
            return f"{made.rule}: {made.verdict}. The rule of {_where(old)} stays: deny beats ask beats allow."
        self._permissions.remove(old)
        return f"{made.rule}: {made.verdict} instead of {old.rule}: {old.verdict}."

    def action_remove(self) -> None:
        line, id = self._line, self.highlighted
        if line is None:
            self.say("Select a rule to remove it.")
        elif line.layer not in OWN and line.layer:
            self.say(f"{line.rule} can't be removed: it {_origin(line)}. Press a to add a stronger rule.")
        elif self._removing != id:
            self._removing = id
            self.say(f"Press d again to remove {line.rule}: {line.verdict}")
        else:
            self._removing = None
            self._change(lambda: self._remove(line))

    def _remove(self, line: RuleLine) -> str:
        self._permissions.remove(line)
        return f"{line.rule}: {line.verdict} was removed."

    def _change(self, work: Callable[[], str]) -> None:
        async def run() -> None:
            try:
                told = await asyncio.to_thread(work)
            except UsageError as error:
                told = error.with_hint
            except BaError as error:
                told = f"Not saved: {error.with_hint}"
            await self._load(told)

        self.run_worker(run, group="rules", exit_on_error=False)


def _id(line: RuleLine, place: int) -> str:
    return f"{line.layer}:{line.verdict}:{line.rule}:{place}"


def _choice(id: str, line: RuleLine) -> PickerChoice:
    hits = count(line.hits, "hit") if line.hits else ""
    hits = "outside the sandbox" if line.leaves else hits
    state = "not confirmed" if line.waiting else PLACES[line.layer] or line.source
    return PickerChoice(id, (visible(line.rule), hits, state), keywords=f"{line.verdict} {line.source} {line.terms}")


def _told(line: RuleLine) -> str:
    parts = [f"{line.rule}: {line.verdict}", rule_words(line.rule), _where(line), count(line.hits, "hit")]
    if line.leaves:
        parts.append("runs outside the sandbox")
    if line.terms:
        parts.append(f"with {line.terms}")
    if line.waiting:
        parts.append("Enter confirms it")
    return " · ".join(part for part in parts if part)


def _where(line: RuleLine) -> str:
    return line.source or PLACES[line.layer]


def _origin(line: RuleLine) -> str:
    return {"bundled": "is built in", "flag": "comes from a flag"}.get(line.layer, f"is in {line.source}")
