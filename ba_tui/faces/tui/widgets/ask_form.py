"""The form of one question: its text, its answers and the keys that pick them. The queue is the panel's."""

from __future__ import annotations

from collections.abc import Callable

from textual import events, on
from textual.app import ComposeResult
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Static

from ba_tui.core.errors import UsageError
from ba_tui.core.questions import Question, Reply
from ba_tui.faces.tui.inspector.rows import visible
from ba_tui.faces.tui.inspector.sheet import Sheet
from ba_tui.faces.tui.widgets.ask_answers import (
    Answer,
    Phase,
    Pointer,
    answer_rows,
    answers_to,
    brief,
    default_row,
    hint,
    row_of,
    rule_fault,
)
from ba_tui.faces.tui.widgets.ask_body import facts, in_full, remembering
from ba_tui.faces.tui.widgets.ask_edit import Draft, accepted, draft
from ba_tui.faces.tui.widgets.ask_fit import LOW, Wanted, fit, lines_of
from ba_tui.faces.tui.widgets.ask_inputs import ArgumentsInput, WordsInput, Writing
from ba_tui.faces.tui.widgets.ask_sheet import QuestionSheet

IGNORED = 0.5
"""Seconds in which keys are ignored: they were meant for something else."""
MOST_FACTS = 9
PASSING = {"pageup", "pagedown", "shift+tab"}


class AskForm(Widget, can_focus=True):
    """``clock`` in seconds; it counts from the moment the form is made."""

    DEFAULT_CSS = """
    AskForm {
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
        &.-low #ask-facts { text-wrap: nowrap; text-overflow: ellipsis; }
        &.-low #ask-hint { max-height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    class Done(Message):
        """The person's answer."""

        def __init__(self, form: AskForm, reply: Reply, *, interrupt: bool) -> None:
            super().__init__()
            self.form = form
            self.reply = reply
            self.interrupt = interrupt

    def __init__(self, question: Question, agent: str, clock: Callable[[], float]) -> None:
        super().__init__()
        self.question = question
        self.agent = agent
        self._clock = clock
        self._shown_at = clock()
        self._phase: Phase = "asking"
        self._rule = question.rule
        self._answers = answers_to(question)
        self._row = default_row(question, self._answers)
        self._confirming: Answer | None = None
        self._ticked: set[int] = set()
        self._draft = Draft(None, "")
        self._fault: Content | None = None
        self._writing = Writing()
        self._full: ModalScreen[None] | None = None

    def compose(self) -> ComposeResult:
        words = facts(self.question, self.agent)
        known = Static(words, id="ask-facts", markup=False)
        known.display = bool(words)
        yield known
        yield QuestionSheet(id="ask-body", words=True)
        yield Static(id="ask-note", markup=False)
        answers = Sheet(id="ask-answers", words=True)
        answers.can_focus = False
        yield answers
        yield self._writing
        yield Static(id="ask-hint", markup=False)

    def on_mount(self) -> None:
        self.set_class(self.question.kind == "permission", "-permission")
        self.query_one(QuestionSheet).ask(self.question)
        self._paint()
        self.focus()
        self.watch(self.screen, "stack_updates", self._came_into_sight, init=False)

    def _came_into_sight(self) -> None:
        """Another screen went from above: only now is the question read, and the quiet moment begins anew."""
        if self._full is None:
            self._shown_at = self._clock()

    def close(self) -> None:
        """Go away, with the screen that was opened from here."""
        if self._full is not None and self._full.is_attached and self._full.is_current:
            self._full.dismiss()
        self.display = False
        self.remove()

    def _answer(self, reply: Reply, *, interrupt: bool = False) -> None:
        if self.display:
            self.display = False
            self.post_message(self.Done(self, reply, interrupt=interrupt))

    # Painting

    def on_resize(self, _event: events.Resize) -> None:
        self._paint()

    @on(Sheet.LaidOut)
    def _laid_out(self, event: Sheet.LaidOut) -> None:
        event.stop()
        self._fit()

    def _paint(self) -> None:
        self.set_class(self.screen.size.height < LOW, "-low")
        asking = self._phase == "asking"
        self._row = min(self._row, len(self._shown) - 1)
        answers = self.query_one("#ask-answers", Sheet)
        answers.display = asking
        if asking:
            pointer = Pointer(self._row, frozenset(self._ticked) if self.question.multiple else None)
            answers.wrap = not self.has_class("-low")
            answers.put(answer_rows(self._shown, pointer, self._room))
        self._note()
        self._fit()

    def _note(self) -> None:
        """The rule that is about to be stored, or what is wrong with what was written."""
        words = self._fault
        if self._phase == "confirm" and self._confirming is not None:
            words = remembering(self._confirming.label, self._rule or "")
        note = self.query_one("#ask-note", Static)
        note.display = words is not None
        note.update(words or "")

    def _blame(self, words: str) -> None:
        self._fault = Content.styled(words, "$text-error")
        self._note()
        self._fit()

    def _fit(self) -> None:
        """Give each part its lines."""
        body, answers = self.query_one("#ask-body", Sheet), self.query_one("#ask-answers", Sheet)
        known, line = self.query_one("#ask-facts", Static), self.query_one("#ask-hint", Static)
        got = fit(self.screen.size.height, self._wanted(answers, body))
        self.set_class(got.air, "-air")
        known.update(facts(self.question, self.agent, one_line=got.facts < 2))
        known.styles.height = got.facts or "auto"
        answers.styles.height = got.answers or 1
        answers.scroll_to(y=max(0, self._row - got.answers + 1), animate=False)
        body.display = self._phase != "edit"
        body.styles.height = got.body
        line.display = got.hint > 0
        hidden = max(0, body.line_count - got.body)
        line.update(hint(self.question, self._phase, low=self.has_class("-low"), hidden=hidden))
        if isinstance(field := self._writing.field, ArgumentsInput):
            field.styles.max_height = max(3, got.body + 1)

    def _wanted(self, answers: Sheet, body: Sheet) -> Wanted:
        width = max(1, self.size.width)
        lines = min(MOST_FACTS, lines_of(facts(self.question, self.agent), width))
        below = 0
        if self._phase == "confirm":
            below = 2 + len(self._rule or "") // width
        elif self._phase == "edit":
            # The body is away meanwhile, and its lines are the field's.
            return Wanted(lines, self.screen.size.height, 0, below)
        elif self._phase != "asking":
            below = 1
        below += 1 if self._fault is not None else 0
        return Wanted(lines, body.line_count, answers.line_count if answers.display else 0, below)

    @property
    def _room(self) -> int:
        """Characters of a rule that stand behind its label; more of it where the row may fold."""
        return max(4, self.size.width - 33) if self.has_class("-low") else 160

    # Keys

    def on_key(self, event: events.Key) -> None:
        if self._held and event.key not in PASSING:
            taken = event.is_printable or event.key in {"enter", "escape", "tab", "up", "down", "backspace"}
        elif self._phase == "asking":
            taken = self._ask_key(event)
        elif self._phase == "confirm":
            taken = self._confirm_key(event.key)
        else:
            taken = self._field_key(event.key)
        if taken:
            event.stop()
            event.prevent_default()

    @property
    def _held(self) -> bool:
        return self._phase == "asking" and self._clock() - self._shown_at < IGNORED

    def _ask_key(self, event: events.Key) -> bool:
        key, question = event.key, self.question
        if key in {"up", "down"}:
            self._row = (self._row + (1 if key == "down" else -1)) % len(self._shown)
            self._paint()
        elif key == "enter":
            self._enter()
        elif key == "escape":
            self._answer(Reply("deny"), interrupt=True)
        elif key == "space" and question.multiple:
            self._tick(self._row)
        elif (row := row_of(key, self._answers)) is not None:
            self._row = min(row, len(self._shown) - 1)
            self._choose(row)
        elif question.kind == "permission" and key in {"e", "d", "r"}:
            self._aside(key)
        elif key == "d":
            self._open_in_full()
        elif self._only_words and event.character and event.is_printable:
            self._write("write", self._writing.kept("write") + event.character)
        else:
            return False
        return True

    def _aside(self, key: str) -> None:
        if key == "e":
            self._edit()
        elif key == "d":
            self._open_in_full()
        elif self._rule is not None:
            self._edit_rule()

    def _confirm_key(self, key: str) -> bool:
        answer = self._confirming
        if key == "enter" and answer is not None:
            self._answer(Reply("always" if answer.name == "always" else "session", rule=self._rule))
        elif key == "r":
            self._edit_rule()
        elif key == "d":
            self._open_in_full()
        elif key == "escape":
            self._turn_to("asking")
        else:
            # Any other answer key is a change of mind, and needs to be seen as one first.
            return key in {"up", "down", "tab"} or row_of(key, self._answers) is not None
        return True

    def _field_key(self, key: str) -> bool:
        field = self._writing.field
        if key == "escape":
            self._turn_to("asking")
        elif key == "ctrl+s" and isinstance(field, ArgumentsInput):
            self._accept(field.text)
        elif isinstance(field, WordsInput):
            if key == "enter":
                self._submit(field.value.strip())
            return key in {"enter", "tab", "up", "down"}
        else:
            return False
        return True

    @on(Sheet.Picked, "#ask-answers")
    def _clicked(self, event: Sheet.Picked) -> None:
        event.stop()
        if self._phase == "asking" and not self._held and event.row < len(self._shown):
            self._row = event.row
            self._choose(event.row)

    # Answers

    @property
    def _shown(self) -> tuple[Answer, ...]:
        """The rows that are painted: on a low screen the last one is in the hint."""
        low = self.has_class("-low") and self.question.kind == "permission"
        return self._answers[:-1] if low else self._answers

    @property
    def _only_words(self) -> bool:
        return self.question.kind == "choice" and not self.question.options

    def _enter(self) -> None:
        answer = self._answers[self._row]
        if self.question.multiple and answer.name == "option":
            picked = self._ticked or {self._row}
            self._answer(Reply("text", "\n".join(self._answers[row].label for row in sorted(picked))))
        else:
            self._choose(self._row)

    def _choose(self, row: int) -> None:
        answer = self._answers[row]
        match answer.name:
            case "once" | "go_on":
                self._answer(Reply("once"))
            case "no" | "stop":
                self._answer(Reply("deny"))
            case "always":
                self._turn_to("confirm", answer)
            case "session":
                if brief(answer.rule, self._room) == answer.rule:
                    self._answer(Reply("session", rule=self._rule))
                else:
                    self._turn_to("confirm", answer)
            case "words":
                self._write("words")
            case "write":
                self._write("write")
            case "option":
                if self.question.multiple:
                    self._tick(row)
                else:
                    self._answer(Reply("text", answer.label))

    def _tick(self, row: int) -> None:
        if self._answers[row].name == "option":
            self._row = row
            self._ticked ^= {row}
            self._paint()

    def _turn_to(self, phase: Phase, confirming: Answer | None = None) -> None:
        self._writing.close()
        self._phase, self._confirming, self._fault = phase, confirming, None
        self._paint()
        self.focus()

    # Writing

    def _write(self, phase: Phase, text: str | None = None) -> None:
        places: dict[Phase, str] = {"words": "What to do instead", "rule": "tool(pattern)"}
        words = self._writing.kept(phase) if text is None else text
        self._open_field(phase, WordsInput(words, places.get(phase, "Your answer")))

    def _edit_rule(self) -> None:
        if self._rule is not None and visible(self._rule) == self._rule:
            self._write("rule", self._rule)

    def _edit(self) -> None:
        self._draft = draft(self.question)
        self._open_field("edit", ArgumentsInput(self._writing.kept("edit", self._draft.text)))

    def _open_field(self, phase: Phase, field: WordsInput | ArgumentsInput) -> None:
        self._phase, self._fault = phase, None
        self._writing.open(phase, field)
        self._paint()

    def _submit(self, words: str) -> None:
        if self._phase == "rule":
            if fault := rule_fault(words):
                self._blame(fault)
                return
            self._rule = words
            self._answers = answers_to(self.question, words)
            self._turn_to("confirm", next(answer for answer in self._answers if answer.name == "always"))
        elif not words:
            self._blame("Write it, or Esc to go back.")
        elif self._phase == "words":
            self._answer(Reply("deny", words))
        else:
            picked = [self._answers[row].label for row in sorted(self._ticked)]
            self._answer(Reply("text", "\n".join([*picked, words])))

    def _accept(self, text: str) -> None:
        try:
            edited = accepted(self._draft, text, self.question.args)
        except UsageError as error:
            self._blame(f"{error} {error.hint}".strip())
            return
        self._answer(Reply("once", edited=edited))

    def _open_in_full(self) -> None:
        from ba_tui.faces.tui.inspector.pane import InspectorScreen  # noqa: PLC0415 - only when it is wanted

        self._full = InspectorScreen(in_full(self.question, self.agent))
        self.app.push_screen(self._full, self._came_back)  # pyright: ignore[reportUnknownMemberType] - App is generic

    def _came_back(self, _: None) -> None:
        """From the full text, by a key of the person's own: that needs no quiet moment."""
        self.call_after_refresh(self._forget_full)

    def _forget_full(self) -> None:
        self._full = None
