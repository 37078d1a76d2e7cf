"""The form of one permission rule: its text, its verdict and how long it holds. What a rule may be is judged later."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ba_tui.core.ports.permissions import RuleLine, RuleScope, RuleVerdict
from ba_tui.core.values import frozen
from ba_tui.faces.tui.inspector.rows import visible
from ba_tui.faces.tui.screens.picker import LOW
from ba_tui.faces.tui.widgets.ask_answers import rule_fault
from ba_tui.faces.tui.widgets.text_fields import ClusterInput

T = TypeVar("T", bound=str)
VERDICTS: Sequence[RuleVerdict] = ("deny", "ask", "allow")
SCOPES: dict[RuleScope, str] = {"session": "session", "project": "project", "user": "everywhere"}
KEYS = "Tab next · ← → choose · Enter save · Esc cancel"


@frozen
class ChosenRule:
    """What the person wants."""

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


class RuleForm(ModalScreen[ChosenRule | None]):
    """A new rule, or ``line`` to be changed."""

    CSS_PATH = "../styles/screens.tcss"
    VERTICAL_BREAKPOINTS = LOW
    DEFAULT_CSS = """
    RuleForm .sheet { height: auto; min-height: 8; }
    RuleForm .keys { margin-top: 1; }
    RuleForm.-low .sheet { height: 100%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "cancel", "Leave"),
        Binding("enter", "keep", "Keep", priority=True),
        Binding("down", "app.focus_next", show=False, priority=True),
        Binding("up", "app.focus_previous", show=False, priority=True),
    ]

    def __init__(self, line: RuleLine | None = None) -> None:
        super().__init__(classes="picker")
        self._line = line
        known: dict[str, RuleVerdict] = {str(each): each for each in VERDICTS}
        verdict = known.get(line.verdict if line else "", "ask")
        self._verdict = OneOf[RuleVerdict]("Then", {each: each for each in VERDICTS}, verdict)
        scope: RuleScope = "session"
        if line and (line.waiting or line.layer in ("project", "user")):
            scope = "user" if line.layer == "user" else "project"
        self._scope = OneOf[RuleScope]("Holds", SCOPES, scope)

    def compose(self) -> ComposeResult:
        text = self._line.rule if self._line else ""
        with Vertical(classes="sheet"):
            yield Static("Edit rule" if self._line else "New rule", classes="title", markup=False)
            yield ClusterInput(text, placeholder="shell(git status:*)", compact=True, select_on_focus=False)
            yield self._verdict
            yield self._scope
            yield Static(KEYS, classes="keys", markup=False)

    def on_mount(self) -> None:
        field = self.query_one(Input)
        field.cursor_blink = False
        # A text that can't be painted as it is must not be edited as if it were what is shown.
        field.disabled = visible(field.value) != field.value
        (self._verdict if field.disabled else field).focus()

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self.query_one(".keys", Static).update(KEYS)

    def action_cancel(self) -> None:
        self.dismiss(None)

    def action_keep(self) -> None:
        rule = self.query_one(Input).value.strip()
        if fault := rule_fault(rule):
            self.query_one(".keys", Static).update(Content.styled(fault, "$text-error"))
            return
        self.dismiss(ChosenRule(rule, self._verdict.value, self._scope.value))
