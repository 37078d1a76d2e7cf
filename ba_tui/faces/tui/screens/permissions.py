"""The mode and all rules: text, scope and number of matches. Rules are added, changed and removed here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.reactive import reactive
from textual.widgets import Input, OptionList, Static

from ba_tui.core.errors import BaError, UsageError
from ba_tui.core.events import Mode
from ba_tui.core.ports.permissions import Permissions, RuleLine, RuleScope, RuleVerdict, rule_words
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.faces.tui.acts.port import Actions
from ba_tui.faces.tui.inspector.rows import visible
from ba_tui.faces.tui.screens.list_screen import ListContent, ListRow, ListScreen
from ba_tui.faces.tui.screens.sheet import Sheet, app_of
from ba_tui.faces.tui.session import MEANING
from ba_tui.faces.tui.widgets.ask_answers import rule_fault
from ba_tui.faces.tui.widgets.text_fields import ClusterInput

T = TypeVar("T", bound=str)
VERDICTS: Sequence[RuleVerdict] = ("deny", "ask", "allow")
SCOPES: dict[RuleScope, str] = {"session": "session", "project": "project", "user": "everywhere"}
RULE_KEYS = "Tab next · ← → choose · Enter save · Esc cancel"


@frozen
class ChosenRule:
    """What the user wants."""

    rule: str
    verdict: RuleVerdict
    scope: RuleScope


class OneOf(Static, Generic[T], can_focus=True):
    """Words in a row, one of them chosen; the arrows choose."""

    DEFAULT_CSS = """
    OneOf { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    OneOf:focus { background: $accent 12%; text-style: bold; }
    OneOf:focus:ansi { background: transparent; text-style: bold reverse; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "move(-1)", "Before", show=False),
        Binding("right,space", "move(1)", "Next", show=False),
    ]
    at: reactive[int] = reactive(0)

    def __init__(self, label: str, values: dict[T, str], chosen: T) -> None:
        super().__init__(markup=False)
        self._label = label
        self._values = values
        self.set_reactive(OneOf.at, list(values).index(chosen))

    @property
    def value(self) -> T:
        return list(self._values)[self.at]

    def render(self) -> Content:
        words = [f"[{word}]" if n == self.at else f" {word} " for n, word in enumerate(self._values.values())]
        styled = [Content.styled(word, "bold" if n == self.at else "$text-muted") for n, word in enumerate(words)]
        return Content.assemble((f"{self._label:<6}", "$text-muted"), Content(" ").join(styled))

    def action_move(self, by: int) -> None:
        self.at = (self.at + by) % len(self._values)


class RuleForm(Sheet[ChosenRule]):
    """A new rule, or ``line`` to be changed."""

    DEFAULT_CSS = """
    RuleForm .sheet { height: auto; min-height: 8; }
    RuleForm .keys { margin-top: 1; }
    RuleForm.-low .sheet { height: 100%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "keep", "Keep", priority=True),
        Binding("down", "app.focus_next", show=False, priority=True),
        Binding("up", "app.focus_previous", show=False, priority=True),
    ]

    def __init__(self, line: RuleLine | None = None) -> None:
        super().__init__("Edit rule" if line else "New rule", keys=RULE_KEYS)
        self._line = line
        known: dict[str, RuleVerdict] = {str(each): each for each in VERDICTS}
        verdict = known.get(line.verdict if line else "", "ask")
        self._verdict = OneOf[RuleVerdict]("Then", {each: each for each in VERDICTS}, verdict)
        scope: RuleScope = "session"
        if line and (line.waiting or line.layer in ("project", "user")):
            scope = "user" if line.layer == "user" else "project"
        self._scope = OneOf[RuleScope]("Holds", SCOPES, scope)

    def body(self) -> ComposeResult:
        text = self._line.rule if self._line else ""
        yield ClusterInput(text, placeholder="shell(git status:*)", compact=True, select_on_focus=False)
        yield self._verdict
        yield self._scope

    def on_mount(self) -> None:
        field = self.query_one(Input)
        field.cursor_blink = False
        # A text with invisible characters must not be edited, because the user would not see them.
        field.disabled = visible(field.value) != field.value
        (self._verdict if field.disabled else field).focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.say("")

    def action_keep(self) -> None:
        rule = self.query_one(Input).value.strip()
        if fault := rule_fault(rule):
            self.say(fault, "$text-error")
            return
        self.dismiss(ChosenRule(rule, self._verdict.value, self._scope.value))


NARROW = 60
"""Cells from which the heading of a group has room for its explanation."""
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


class PermissionsScreen(ListScreen[RuleLine]):
    """Letters are keys until the user searches; Esc leaves the search first."""

    FILTERED: ClassVar[bool] = False
    DETAIL: ClassVar[bool] = True
    ENTER: ClassVar[str] = "change"
    EMPTY: ClassVar[str] = "No rules: edits and commands ask."
    READING: ClassVar[str] = "Reading the rules …"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "add", "add"),
        Binding("d,delete", "remove", "remove"),
        Binding("m,shift+tab", "next_mode", "mode"),
        Binding("slash", "find", "find", key_display="/"),
    ]

    def __init__(self, permissions: Permissions, set_mode: Callable[[Mode], None]) -> None:
        super().__init__("Permissions")
        self._set_mode = set_mode
        self._permissions = permissions

    def read(self) -> ListContent[RuleLine]:
        verdicts = list(GROUPS)
        rules = sorted(self._permissions.rules(), key=lambda line: verdicts.index(line.verdict))
        return ListContent([self._mode_row(), *map(_rule_row, range(len(rules)), rules)])

    def _mode_row(self) -> ListRow[RuleLine]:
        others = len(self._permissions.modes()) - 1
        more = "" if others else "  (no other mode is available here)"
        return ListRow(MODE, (f"Mode  {self._permissions.mode}{more}",))

    def say(self, text: str, style: str = "") -> None:
        """Show a message with visible control characters: rules may come from anyone."""
        super().say(visible(text), style)

    def group_heading(self, group: str) -> Content:
        head, style = GROUPS[group]
        wide = self.query_one(OptionList).size.width >= NARROW
        rules = sum(row.group == group for row in self.matching())
        return Content.styled(f"{head if wide else head.partition(' (')[0]} ({rules})", f"bold {style}")

    def detail(self, row: ListRow[RuleLine]) -> str:
        words = MEANING[self._permissions.mode] if row.id == MODE else _explained(row.value) if row.value else ""
        return visible(words)

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

    def action_close(self) -> None:
        field = self.query_one(Input)
        if field.display:
            field.value, field.display = "", False
            self.query_one(OptionList).focus()
        else:
            super().action_close()

    # Changing

    def choose(self, row: ListRow[RuleLine]) -> None:
        if row.id == MODE:
            self.action_next_mode()
        elif row.value:
            self._open_form(row.value)

    def action_next_mode(self) -> None:
        modes = self._permissions.modes()
        here = self._permissions.mode
        mode = modes[(modes.index(here) + 1) % len(modes)] if here in modes else modes[0]
        try:
            self._set_mode(mode)
        except BaError as error:
            self.say(error.with_hint)
            return
        self.rows = [self._mode_row(), *self.rows[1:]]
        self.refill()
        self.query_one(".detail", Static).update(MEANING[mode])

    def action_add(self) -> None:
        self._open_form(None)

    def _open_form(self, line: RuleLine | None) -> None:
        def save(rule: ChosenRule | None) -> None:
            if rule is not None:
                self._change(lambda: self._save(rule, line))

        app_of(self).push_screen(RuleForm(line), save)

    def _save(self, rule: ChosenRule, old: RuleLine | None) -> str:
        """Add ``rule``, then remove the ``old`` one, so that an error loses nothing. Called in a thread."""
        made = self._permissions.add(rule.rule, rule.verdict, rule.scope)
        if old is None or (made.rule, made.verdict, made.layer) == (old.rule, old.verdict, old.layer):
            return f"{made.rule}: {made.verdict}, {PLACES[made.layer]}."
        if old.waiting or old.layer not in OWN:
            return f"{made.rule}: {made.verdict}. The rule of {_where(old)} stays: deny beats ask beats allow."
        self._permissions.remove(old)
        return f"{made.rule}: {made.verdict} instead of {old.rule}: {old.verdict}."

    def action_remove(self) -> None:
        row = self.row
        rule = row.value if row else None
        if row is None or rule is None:
            self.say("Select a rule to remove it.")
        elif rule.layer not in OWN and rule.layer:
            self.say(f"{rule.rule} can't be removed: it {_origin(rule)}. Press a to add a stronger rule.")
        elif self.confirmed(row.id, f"Press d again to remove {rule.rule}: {rule.verdict}"):
            self._change(lambda: self._remove(rule))

    def _remove(self, line: RuleLine) -> str:
        self._permissions.remove(line)
        return f"{line.rule}: {line.verdict} was removed."

    def _change(self, work: Callable[[], str]) -> None:
        async def run() -> str:
            try:
                return await asyncio.to_thread(work)
            except UsageError as error:
                return error.with_hint
            except BaError as error:
                return f"Not saved: {error.with_hint}"

        self.perform(run)


def _rule_row(place: int, line: RuleLine) -> ListRow[RuleLine]:
    hits = count(line.hits, "hit") if line.hits else ""
    hits = "outside the sandbox" if line.leaves else hits
    state = "not confirmed" if line.waiting else PLACES[line.layer] or line.source
    return ListRow(
        f"{line.layer}:{line.verdict}:{line.rule}:{place}",
        (visible(line.rule), hits, state),
        keywords=f"{line.verdict} {line.source} {line.terms}",
        value=line,
        group=line.verdict,
    )


def _explained(line: RuleLine) -> str:
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


def permissions(chat: Actions, __: str) -> None:
    def set_mode(mode: Mode) -> None:
        chat.session.set_mode(mode)
        chat.show_facts()

    _, conversation = chat.session.live
    chat.ba.push_screen(PermissionsScreen(conversation.permissions, set_mode))
