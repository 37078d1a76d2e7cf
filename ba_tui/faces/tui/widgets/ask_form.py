"""The form of one question: its text, its answers and the keys that pick them. The queue is the panel's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from textual import events, on
from textual.message import Message
from textual.screen import ModalScreen

from ba_tui.core.errors import UsageError
from ba_tui.core.questions import Question, Reply
from ba_tui.faces.tui.displays.renderers import renderer_of
from ba_tui.faces.tui.inspector.row_view import RowView
from ba_tui.faces.tui.inspector.rows import visible
from ba_tui.faces.tui.widgets.ask_answers import (
    AskAnswer,
    Phase,
    answers_to,
    brief,
    row_of,
    rule_fault,
)
from ba_tui.faces.tui.widgets.ask_body import in_full
from ba_tui.faces.tui.widgets.ask_edit import ArgumentDraft, Chosen, accepted, draft
from ba_tui.faces.tui.widgets.ask_inputs import ArgumentsInput, WordsInput
from ba_tui.faces.tui.widgets.ask_layout import AskLayout
from ba_tui.faces.tui.widgets.ask_plan import PlanEdit, choose_plan, plan_in
from ba_tui.faces.tui.widgets.ask_preview import QuestionPreview
from ba_tui.faces.tui.widgets.ask_typing import RECENT, TypeAhead

PASSING = {"pageup", "pagedown", "shift+tab"}


class AskForm(AskLayout, can_focus=True):
    """``clock`` in seconds; it counts from the moment the form is made. ``writing``: whether the input holds text."""

    class Done(Message):
        """The person's answer."""

        def __init__(self, form: AskForm, reply: Reply, *, interrupt: bool) -> None:
            super().__init__()
            self.form = form
            self.reply = reply
            self.interrupt = interrupt

    def __init__(self, question: Question, agent: str, clock: Callable[[], float], writing: Callable[[], bool]) -> None:
        super().__init__(question, agent, writing)
        self._clock = clock
        self._shown_at = clock()
        self._early = TypeAhead()
        self._draft = ArgumentDraft(None, "")
        self._full: ModalScreen[Chosen | None] | ModalScreen[None] | ModalScreen[PlanEdit] | None = None
        self._plan_texts: dict[str, str] = {}
        """What was written in the plan's editor and could not be taken yet."""

    def on_mount(self) -> None:
        self.set_class(self.question.kind == "permission", "-permission")
        self.query_one(QuestionPreview).ask(self.question)
        self._paint()
        self.input_changed()
        if not self._input_holds_text():
            self.focus()
        self.watch(self.screen, "stack_updates", self._came_into_sight, init=False)

    def input_changed(self) -> None:
        """Answers wait while the input holds text, and for a moment after it."""
        self.can_focus = not self._input_holds_text()
        self._shown_at = self._clock()
        self._fit()

    def word(self, event: events.Key | events.Paste) -> list[events.Key] | None:
        """Return the letters that go to the input before ``event``; None when that is for the question.

        Whatever answers nothing is for the input, and so is a word that was begun before the question was read.
        """
        if self._writing.field is not None:
            return None
        if isinstance(event, events.Paste) or self._input_holds_text():
            return []
        answers = self._answers_with(event.key) or (self._only_words and not self._held)
        return self._early.word(event, answers=answers, held=self._held, now=self._clock())

    def answers(self, key: events.Key) -> bool:
        """Return whether ``key`` is a letter or digit that would answer or open something now."""
        asks = self._phase in {"asking", "confirm"} and self._writing.field is None and not self._held
        return (
            asks and not self._only_words and key.key != "space" and self._answers_with(key.key) and len(key.key) == 1
        )

    def _answers_with(self, key: str) -> bool:
        aside = {"e", "d", "r"} if self.question.kind == "permission" else {"d"}
        return key in aside or row_of(key, self._answers) is not None

    def _came_into_sight(self) -> None:
        """Another screen went from above: only now is the question read, and the quiet moment begins anew."""
        if not self._full:
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

    # Keys

    def on_key(self, event: events.Key) -> None:
        if (self._held or self._waits) and event.key not in PASSING:
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
        return self._phase == "asking" and self._clock() - self._shown_at < RECENT

    @property
    def _waits(self) -> bool:
        """Whether somebody writes in the input, and not in a field of this question."""
        return self._writing.field is None and self._input_holds_text()

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
            if not self._current.fixed:
                self._edit()
        elif key == "d":
            self._open_in_full()
        else:
            self._edit_rule()

    def _confirm_key(self, key: str) -> bool:
        answer = self._confirming
        if key == "enter" and answer is not None:
            self._allow("always" if answer.name == "always" else "session")
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

    @on(RowView.Picked, "#ask-answers")
    def _clicked(self, event: RowView.Picked) -> None:
        event.stop()
        if self._phase == "asking" and not self._held and event.row < len(self._shown):
            self._row = event.row
            self._choose(event.row)

    # Answers

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

    def _allow(self, choice: Literal["once", "session", "always"]) -> None:
        """A yes: to the call as it came, or to the one with the chosen changes."""
        chosen = self._chosen
        if chosen is not None and chosen.question is None:
            self._turn_to("asking")
            self._blame(chosen.told)
            return
        edited = self._current.args if chosen is not None else None
        self._answer(Reply(choice, rule=self._rule(choice), edited=edited))

    @property
    def _current(self) -> Question:
        """The question as the chosen changes make it."""
        return (self._chosen and self._chosen.question) or self.question

    def _choose(self, row: int) -> None:
        answer = self._answers[row]
        match answer.name:
            case "once" | "go_on":
                self._allow("once")
            case "edits":
                self._allow("session")
            case "plan":
                self._edit_plan()
            case "no" | "stop":
                self._answer(Reply("deny"))
            case "always":
                self._turn_to("confirm", answer)
            case "session":
                if brief(answer.rule, self._room) == answer.rule:
                    self._allow("session")
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

    def _turn_to(self, phase: Phase, confirming: AskAnswer | None = None) -> None:
        self._writing.close()
        self._phase, self._confirming, self._fault = phase, confirming, None
        self._paint()
        self.focus()

    # Writing

    def _write(self, phase: Phase, text: str | None = None) -> None:
        instead = "What to change in the plan" if self.question.kind == "plan" else "What to do instead"
        places: dict[Phase, str] = {"words": instead, "rule": "tool(pattern)"}
        words = self._writing.kept(phase) if text is None else text
        self._open_field(phase, WordsInput(words, places.get(phase, "Your answer")))

    def _edit_rule(self) -> None:
        confirming = self._confirming.name if self._confirming else "always"
        rule = self._rule(confirming) or self._rule("session") or ""
        # Several rules, a line each, are kept as they are or not at all.
        if rule and visible(rule) == rule:
            self._write("rule", rule)

    def _edit(self) -> None:
        before, self._draft = self._draft, draft(self._current)
        kept = self._writing.kept("edit", self._draft.text) if before == self._draft else self._draft.text
        self._open_field("edit", ArgumentsInput(kept))

    def _open_field(self, phase: Phase, field: WordsInput | ArgumentsInput) -> None:
        self._phase, self._fault = phase, None
        self._writing.open(phase, field)
        self._paint()

    def _submit(self, words: str) -> None:
        if self._phase == "rule":
            if fault := rule_fault(words):
                self._blame(fault)
                return
            self._edited_rule = words
            self._answers = answers_to(self.question, words)
            self._turn_to("confirm", next(answer for answer in self._answers if answer.name == "always"))
        elif not words:
            self._blame("Type an answer, or Esc to go back.")
        elif self._phase == "words":
            self._answer(Reply("deny", words))
        else:
            picked = [self._answers[row].label for row in sorted(self._ticked)]
            self._answer(Reply("text", "\n".join([*picked, words])))

    def _accept(self, text: str) -> None:
        try:
            edited = accepted(self._draft, text, self._current.args)
        except UsageError as error:
            self._blame(error.with_hint)
            return
        if edited is None:
            self._allow("once")
        else:
            self._answer(Reply("once", edited=edited))

    def _edit_plan(self) -> None:
        from ba_tui.faces.tui.plan.editor import PlanEditor  # noqa: PLC0415 - only when it is wanted

        first, now = plan_in(self.question), plan_in(self._current)
        if first and now:
            self._full = editor = PlanEditor(first, PlanEdit(now, self._plan_texts))
            self.app.push_screen(editor, self._plan_edited)  # pyright: ignore[reportUnknownMemberType] - App is generic

    def _plan_edited(self, edit: PlanEdit | None) -> None:
        if edit is not None:
            self._plan_texts = edit.texts
            self._came_back(choose_plan(self.question, edit.plan))

    def _open_in_full(self) -> None:
        if self.question.preview and renderer_of(self.question.preview).changes:
            from ba_tui.faces.tui.screens.diff import DiffScreen  # noqa: PLC0415 - only when it is wanted

            self._full = diff = DiffScreen(self.question, self.agent, self._chosen)
            self.app.push_screen(diff, self._came_back)  # pyright: ignore[reportUnknownMemberType] - App is generic
        else:
            from ba_tui.faces.tui.inspector.pane import InspectorScreen  # noqa: PLC0415 - see above

            self._full = text = InspectorScreen(in_full(self.question, self.agent))
            self.app.push_screen(text, self._came_back)  # pyright: ignore[reportUnknownMemberType] - see above

    def _came_back(self, chosen: Chosen | None) -> None:
        """By a key of the person's own, which needs no quiet moment."""
        self.call_after_refresh(self._forget_full)
        if chosen is not None and self.display:
            before = self._current
            self._chosen = None if chosen.whole else chosen
            if self._current is not before:
                self.query_one(QuestionPreview).ask(self._current)
            self._fault = None
            self._paint()

    def _forget_full(self) -> None:
        self._full = None
