"""The layout of a question: its parts, their texts, and the lines that each gets. The form processes keys; ask_body and
ask_answers make the texts.
"""

from __future__ import annotations

from collections.abc import Callable

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from ba_tui.core.questions import Question
from ba_tui.core.values import frozen
from ba_tui.faces.tui.inspector.row_view import RowView
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
from ba_tui.faces.tui.widgets.ask_body import QuestionPreview, facts, remembering
from ba_tui.faces.tui.widgets.ask_edit import Chosen

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
