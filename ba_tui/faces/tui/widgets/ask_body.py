"""A question on the screen: its body, with everything in the call; edits of it; its parts and the lines that each gets.

The form (``ask``) processes keys; ``ask_answers`` has the answers.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, Literal, TypeAlias, cast

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import split_rules
from ba_tui.core.questions import Question
from ba_tui.core.results import Diff, Display, PlanGraph, Prose
from ba_tui.core.teamwork import Plan
from ba_tui.core.values import frozen
from ba_tui.faces.tui.displays.renderer import Build, renderer_of
from ba_tui.faces.tui.inspector.diff import Hunks, merged, said
from ba_tui.faces.tui.inspector.json_values import argument_rows
from ba_tui.faces.tui.inspector.model import InspectorValue
from ba_tui.faces.tui.inspector.rows import GridRow, RowView, line, text_rows, visible
from ba_tui.faces.tui.widgets.ask_answers import (
    WRITING,
    WRITING_LOW,
    AnswerEditor,
    AnswerName,
    ArgumentsInput,
    AskAnswer,
    Phase,
    Pointer,
    answer_rows,
    answers_to,
    default_row,
    hint,
)

MUTED = "$text-muted"
GRAVE = frozenset({"destructive", "outside the workspace", "outside the sandbox", "shares a secret"})
LIGHT = 6_000
"""Characters up to which a body is made on the spot, in a few milliseconds."""


PLAN_ABOVE = "The plan is the answer above."


def heading(question: Question) -> str:
    """Return the question in one line."""
    match question.kind:
        case "permission":
            first = question.text.strip().split("\n")[0]
            return visible(first or f"Allow {question.tool}?")
        case "continue":
            return "Continue?"
        case "plan":
            return "Carry out this plan?"
        case "choice":
            return "A question for you"


OUTCOMES = {"deny": "denied in", "allow": "allowed in", "escalate": "reminded in"}


def time_left(seconds: float, outcome: Literal["deny", "allow", "escalate"]) -> str:
    """Return ``denied in 4 min``, ``denied in 0:42``: minutes as long as seconds say nothing."""
    whole = math.ceil(seconds)
    clock = f"{math.ceil(whole / 60)} min" if whole > 120 else f"{whole // 60}:{whole % 60:02}"
    return f"{OUTCOMES[outcome]} {clock}"


def asker(agent: str) -> str:
    """Return the name of a sub-agent as people know it; empty for the main one."""
    return "" if agent == "main" else visible(agent.removeprefix("main/"))


def facts(question: Question, agent: str, *, one_line: bool = False) -> Content:
    """Return which tool, who asks, what may happen; then what can't be seen by looking, who changed it, and why we ask.

    On one line what is dangerous comes first, because the end of the line may be cut off.
    """
    parts: list[tuple[str, str]] = []
    if question.tool and question.kind not in {"choice", "plan"}:
        parts.append((visible(question.tool), "bold"))
    if name := asker(agent):
        parts.append((f"asked by {name}", "$text-accent"))
    parts.extend((risk, "bold $text-error" if risk in GRAVE else "$text-warning") for risk in question.risks)
    first = Content(" · ").join([Content.styled(text, style) for text, style in parts])
    alarms = [Content.styled(f"! {visible(words)}", "bold $text-error") for words in question.warnings]
    if one_line and alarms:
        count = f"{len(alarms)} warning{'s' if len(alarms) > 1 else ''}"
        alarms = [Content.styled(f"! {count}, d shows {'them' if len(alarms) > 1 else 'it'}", "bold $text-error")]
    lines = [*alarms, first] if one_line else [first, *alarms]
    if question.rewritten:
        changed = f"The arguments were changed by {visible(' '.join(question.rewritten.split()))}."
        lines.append(Content.styled(changed, "$text-warning"))
    if reason := visible(" ".join(question.reason.split())):
        lines.append(Content.assemble(("Why: ", MUTED), reason))
    return Content(" · " if one_line else "\n").join([line for line in lines if line])


def remembering(answer: AskAnswer, rule: str) -> Content:
    """Return the rules in full, before they are stored: in words, then as they are written."""
    written = " · ".join(map(visible, split_rules(rule)))
    said = f"{answer.label} {visible(answer.rule)}"
    return Content.assemble((f"{said}\n", MUTED), (written, "bold $text-accent"))


def body_builds(question: Question) -> list[Build]:
    """Return functions that make the body, a quick version first; each may run in a thread."""
    if question.kind != "permission":
        # The preview of a question with options is part of the question, such as the files that it concerns.
        if question.kind == "plan":
            above = list[Build]([lambda: [line((PLAN_ABOVE, "muted"))]])
            return list(renderer_of(question.preview).question(question.preview)) if question.preview else above
        shown = renderer_of(question.preview).question(question.preview)[0] if question.preview else list[GridRow]
        return [lambda: [*text_rows(question.text.strip(), reveal=True), *argument_rows(question.args), *shown()]]
    if question.preview is None:
        return [lambda: argument_rows(question.args) or [line(("No arguments.", "muted"))]]
    return [
        lambda make=make: _body(question, make) for make in renderer_of(question.preview).question(question.preview)
    ]


def _body(question: Question, make: Build) -> Sequence[GridRow]:
    """Return the preview and the arguments that it does not show; all arguments if it is empty."""
    rows = make()
    if any(cell.text.strip() for row in rows for cell in row):
        return [*rows, *argument_rows(other_arguments(question))]
    return argument_rows(question.args) or [line(("No arguments.", "muted"))]


def is_light(question: Question) -> bool:
    """Return whether the body is short enough to be made on the UI loop."""
    return _weight([question.text, question.args, *_values(question.preview)], LIGHT) < LIGHT


def _values(display: Display | None) -> Iterable[object]:
    return renderer_of(display).values(display) if display else ()


def _weight(values: Iterable[object], most: int) -> int:
    """Return the number of characters and entries in ``values``, counted up to ``most``."""
    found = 0
    left = deque(values)
    while left and found < most:
        value = left.popleft()
        found += len(value) if isinstance(value, str) else 8
        if isinstance(value, dict | list):
            inside = cast("dict[str, object] | list[object]", value)
            if len(inside) > most:
                return most
            left.extend(inside.values() if isinstance(inside, dict) else inside)
    return found


def other_arguments(question: Question) -> dict[str, Any]:
    """Return the arguments that the preview does not show already."""
    return {key: value for key, value in question.args.items() if not _in_preview(value, question.preview)}


def _in_preview(value: object, display: Display | None) -> bool:
    return display is not None and renderer_of(display).shows(display, value)


def in_full(question: Question, agent: str) -> InspectorValue:
    """Return the same for the whole screen: every argument and the preview."""
    if question.kind != "permission":
        return InspectorValue(heading(question), {}, question.preview, question.text)
    title = f"{question.tool} · {heading(question)}"
    note = facts(question, agent).plain
    if question.preview is None:
        return InspectorValue(title, {}, Prose(f"{note}\n\n{argument_text(question)}"), state="waiting")
    return InspectorValue(title, other_arguments(question), question.preview, note, state="waiting")


def argument_text(question: Question) -> str:
    """Return all arguments as plain lines."""
    return "\n".join(row[0].gutter + row[0].text for row in argument_rows(question.args))


# A short body is mounted immediately; a long one is announced and filled later.


class QuestionPreview(RowView, can_focus=False):
    """Never blank: threads may be late, and a user must not judge an empty box."""

    def ask(self, question: Question) -> None:
        """Show the body of ``question``."""
        first, *better = body_builds(question)
        if is_light(question):
            self.put(first())
            if better:
                self.show(first, *better)
        else:
            self.put([line(("Preparing the preview …", "muted"))])
            self.show(first, *better)


@frozen
class ArgumentDraft:
    """``key`` names the one argument that ``text`` is; None when ``text`` is all of them as JSON."""

    key: str | None
    text: str


@frozen
class Chosen:
    """The numbers of the accepted changes, from 0, of ``total``. ``question`` asks about a call that makes only these
    changes; None when no call can make them."""

    accepted: frozenset[int]
    total: int
    question: Question | None
    words: str = ""
    """The effect of a yes now, where it is known already."""

    @property
    def whole(self) -> bool:
        return len(self.accepted) == self.total

    @property
    def told(self) -> str:
        """Return the effect of a yes now, in words."""
        if self.words:
            return self.words
        if self.question is None and self.accepted:
            return "These can't be made as one call: d to choose again"
        if self.question is None:
            return "No change is accepted: d to choose, or No"
        return f"{len(self.accepted)} of {self.total} accepted: yes makes only these"


def choose(question: Question, of: Hunks, accepted: frozenset[int]) -> Chosen:
    """Return the call with only the accepted changes. Slow for long files."""
    if len(accepted) == of.count or not isinstance(question.preview, Diff):
        return Chosen(accepted, of.count, question)
    diff = question.preview
    wanted = merged(of, accepted)
    args = said(question.args, diff, wanted) if accepted else None
    if args is None:
        return Chosen(accepted, of.count, None)
    return Chosen(accepted, of.count, replace(question, args=args, preview=replace(diff, after=wanted)))


def draft(question: Question) -> ArgumentDraft:
    """Return the command or the new text alone when one argument is what matters, otherwise everything as JSON."""
    key = _that_matters(question)
    if key is not None and paintable_as_is(question.args[key]):
        return ArgumentDraft(key, question.args[key])
    return ArgumentDraft(None, _json(question.args))


def accepted(of: ArgumentDraft, text: str, args: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the arguments to run with, None when nothing was changed.

    Raises:
        UsageError: the text is no JSON object; says where.
    """
    if text == of.text:
        return None
    if of.key is not None:
        return {**args, of.key: text}
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"Line {error.lineno}, column {error.colno}: {error.msg}.", "Correct it, or Esc.") from error
    except RecursionError as error:
        raise UsageError("The arguments are nested too deep.", "Remove some levels, or Esc.") from error
    if not isinstance(value, dict):
        raise UsageError("Line 1, column 1: the arguments must be an object, { … }.", "Correct it, or Esc.")
    return cast("dict[str, Any]", value) if value != dict(args) else None


def paintable_as_is(text: str) -> bool:
    """Return whether an editor can show ``text``: it has no hidden, reordering or control characters."""
    return all(visible(line) == line for line in text.replace("\t", " ").split("\n"))


def _that_matters(question: Question) -> str | None:
    args, texts = question.args, {key: value for key, value in question.args.items() if isinstance(value, str)}
    found = renderer_of(question.preview).edited(question.preview, texts) if question.preview else None
    if found is None:
        found = list(texts) if len(args) == 1 else []
    return found[0] if len(found) == 1 else None


def _json(args: Mapping[str, Any]) -> str:
    """Return readable JSON; hidden and control characters are written as ``\\u`` escapes."""
    text = json.dumps(dict(args), ensure_ascii=False, indent=2, default=str)
    if paintable_as_is(text):
        return text
    return "".join(letter if letter == "\n" or paintable_as_is(letter) else json.dumps(letter)[1:-1] for letter in text)


@frozen
class PlanEdit:
    """The edited plan, and texts that are not valid yet: of the plan as a whole under the empty name, of a step under
    its id."""

    plan: Plan
    texts: dict[str, str] = field(default_factory=dict[str, str])


PlanEditorClass: TypeAlias = "Callable[[Plan, PlanEdit], ModalScreen[PlanEdit]]"
"""Makes the editor of a plan from the plan as it was proposed and the edit so far."""


def plan_in(question: Question) -> Plan | None:
    """Return the plan that is asked about; None for a plan in prose, and for every other question."""
    shown = question.preview
    return shown.plan if question.kind == "plan" and isinstance(shown, PlanGraph) else None


def choose_plan(question: Question, plan: Plan) -> Chosen:
    """Return the question about ``plan``, whose JSON a yes sends; the original question when nothing differs."""
    from ba_tui.plotting.plan_edits import differences  # noqa: PLC0415 - only plans need it
    from ba_tui.plotting.plan_exports import as_json  # noqa: PLC0415 - only plans need it

    first = plan_in(question)
    said = differences(first, plan) if first else ""
    if not said or not isinstance(question.preview, PlanGraph):
        return Chosen(frozenset((0,)), 1, question)
    about = replace(question, args=as_json(plan), preview=replace(question.preview, plan=plan))
    return Chosen(frozenset(), 1, about, f"You changed the plan ({said}): yes carries out yours")


SHARE = 0.7
"""Of the screen, for the question; the rest is the conversation's, which stays readable meanwhile."""
LOW = 16
"""Screens with fewer lines get the short form."""
TALL = 32
"""Screens with as many lines get air around the text."""


@frozen
class WantedRows:
    """Lines that each part would take; 0 when it is not there. ``below`` is a note or a field."""

    facts: int
    body: int
    answers: int
    below: int = 0


@frozen
class Fit:
    """Lines that each part gets. The answers come first, then a line of everything, then the body."""

    facts: int
    body: int
    answers: int
    hint: int
    air: bool


def fit(height: int, wanted: WantedRows) -> Fit:
    """Share out a screen of ``height`` lines; the title takes one."""
    limit = max(5, int(height * SHARE))
    air = height >= TALL
    answers = min(wanted.answers, max(1, limit - 3))
    facts = min(wanted.facts, 1)
    spare = limit - 2 - answers - wanted.below - facts - (2 if air else 0)
    if spare < 0 and wanted.below:
        # Text that was just written or chosen is more important than the facts.
        facts, spare = 0, spare + facts
    hint = max(0, min(spare, 1 if height < LOW else 2))
    spare -= hint
    more = max(0, min(spare, wanted.facts - facts))
    spare -= more
    return Fit(facts + more, max(1, min(wanted.body, 1 + max(0, spare))), answers, hint, air)


def lines_of(words: Content, width: int) -> int:
    """Return lines that ``words`` take when they are folded at ``width``."""
    return len(words.wrap(max(1, width))) if words else 0


MOST_FACTS = 9


class AskLayout(Widget):
    """Shows one question in the phase that its form is in."""

    DEFAULT_CSS = """
    AskLayout {
        layout: vertical;
        height: auto;
        & #ask-facts { height: auto; }
        & #ask-body { height: 1; }
        &.-permission #ask-body { background: $boost; padding: 0 1; }
        & #ask-note { height: auto; display: none; }
        & #ask-answers { height: 5; }
        & #ask-hint { height: auto; max-height: 2; color: $text-muted; }
        &.-air #ask-body { margin: 1 0; }
        &.-permission.-low #ask-body { padding: 0; }
        &.-one #ask-facts { text-wrap: nowrap; text-overflow: ellipsis; }
        &.-low #ask-hint { max-height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self, question: Question, agent: str, writing: Callable[[], bool]) -> None:
        super().__init__()
        self._input_holds_text = writing
        self.question = question
        self.agent = agent
        self._phase: Phase = "asking"
        self._edited_rule: str | None = None
        self._answers = answers_to(question)
        self._row = default_row(question, self._answers)
        self._confirming: AskAnswer | None = None
        self._ticked: set[int] = set()
        self._fault: Content | None = None
        self._chosen: Chosen | None = None
        self._writing = AnswerEditor()

    def compose(self) -> ComposeResult:
        words = facts(self.question, self.agent)
        known = Static(words, id="ask-facts", markup=False)
        known.display = bool(words)
        yield known
        yield QuestionPreview(id="ask-body", word_wrap=True)
        yield Static(id="ask-note", markup=False)
        answers = RowView(id="ask-answers", word_wrap=True)
        answers.can_focus = False
        yield answers
        yield self._writing
        yield Static(id="ask-hint", markup=False)

    def on_resize(self, _event: events.Resize) -> None:
        self._paint()

    @on(RowView.LaidOut)
    def _laid_out(self, event: RowView.LaidOut) -> None:
        event.stop()
        self._fit()

    def _paint(self) -> None:
        self.set_class(self.screen.size.height < LOW, "-low")
        asking = self._phase == "asking"
        self._row = min(self._row, len(self._shown) - 1)
        answers = self.query_one("#ask-answers", RowView)
        answers.display = asking
        if asking:
            pointer = Pointer(self._row, frozenset(self._ticked) if self.question.multiple else None)
            answers.wrap = not self.has_class("-low")
            answers.put(answer_rows(self._shown, pointer, self._room))
        self._note()
        self._fit()

    def _note(self) -> None:
        """Show the rule that would be stored, the chosen changes, or what is wrong with the text."""
        note = self.query_one("#ask-note", Static)
        words = self._noted
        note.display = bool(words)
        note.update(words)

    @property
    def _noted(self) -> Content:
        if self._phase == "confirm" and self._confirming is not None:
            return remembering(self._confirming, self._rule(self._confirming.name) or "")
        if self._fault is None and self._chosen is not None:
            return Content.styled(self._chosen.told, "$text-warning")
        return self._fault or Content("")

    def _rule(self, answer: AnswerName) -> str | None:
        """Return the rules that an answer keeps, one a line; None for those that keep none."""
        if answer not in {"session", "always"}:
            return None
        own = self.question.session_rule if answer == "session" else None
        return self._edited_rule or own or self.question.rule

    def _blame(self, words: str) -> None:
        self._fault = Content.styled(words, "$text-error")
        self._note()
        self._fit()

    def _fit(self) -> None:
        """Give each part its lines."""
        body, answers = self.query_one("#ask-body", RowView), self.query_one("#ask-answers", RowView)
        known, line = self.query_one("#ask-facts", Static), self.query_one("#ask-hint", Static)
        wanted = self._wanted(answers, body)
        got = fit(self.screen.size.height, wanted)
        self.set_class(got.air, "-air")
        self.set_class(got.facts < 2, "-one")
        known.update(facts(self.question, self.agent, one_line=got.facts < wanted.facts))
        known.display = got.facts > 0
        known.styles.height = got.facts or "auto"
        answers.styles.height = got.answers or 1
        answers.scroll_to(y=max(0, self._row - got.answers + 1), animate=False)
        body.display = self._phase != "edit"
        body.styles.height = got.body
        line.display = got.hint > 0
        hidden = max(0, body.line_count - got.body)
        line.update(self._hint(hidden))
        if isinstance(field := self._writing.field, ArgumentsInput):
            field.styles.max_height = got.body

    def _hint(self, hidden: int) -> Content | str:
        low = self.has_class("-low")
        if self._writing.field is None and self._input_holds_text():
            return Content.styled(WRITING_LOW if low else WRITING, "$text-warning")
        return hint(self.question, self._phase, low=low, hidden=hidden)

    def _wanted(self, answers: RowView, body: RowView) -> WantedRows:
        width = max(1, self.size.width)
        lines = min(MOST_FACTS, lines_of(facts(self.question, self.agent), width))
        below = lines_of(self._noted, width)
        if self._phase == "edit":
            # The body is away meanwhile, and its lines are the field's; on a low screen most of the facts' too.
            return WantedRows(1 if self.has_class("-low") else lines, self.screen.size.height, 0, below)
        below += self._phase not in {"asking", "confirm"}
        return WantedRows(lines, body.line_count, answers.line_count if answers.display else 0, below)

    @property
    def _room(self) -> int:
        """Return the maximum characters of a rule after its label; more if the row can be folded."""
        return max(4, self.size.width - 33) if self.has_class("-low") else 160

    @property
    def _shown(self) -> tuple[AskAnswer, ...]:
        """The answers that are painted: on a low screen the last one is in the hint."""
        low = self.has_class("-low") and self.question.kind in {"permission", "plan"}
        return self._answers[:-1] if low else self._answers
