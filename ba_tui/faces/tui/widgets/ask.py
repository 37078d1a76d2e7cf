"""The approval panel: shows one question at a time and reports the answer."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from textual import events, on
from textual.content import Content
from textual.events import Key, Paste
from textual.message import Message
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widget import Widget

from ba_tui.core.errors import UsageError
from ba_tui.core.questions import Question, Reply
from ba_tui.core.values import frozen
from ba_tui.faces.tui.displays.renderer import renderer_of
from ba_tui.faces.tui.inspector.pane import InspectorScreen
from ba_tui.faces.tui.inspector.rows import RowView, visible
from ba_tui.faces.tui.screens.diff import DiffScreen
from ba_tui.faces.tui.widgets.ask_answers import (
    ArgumentsInput,
    AskAnswer,
    Phase,
    WordsInput,
    answers_to,
    brief,
    row_of,
    rule_fault,
)
from ba_tui.faces.tui.widgets.ask_body import (
    ArgumentDraft,
    AskLayout,
    Chosen,
    PlanEdit,
    PlanEditorClass,
    QuestionPreview,
    accepted,
    asker,
    choose_plan,
    draft,
    heading,
    in_full,
    plan_in,
    time_left,
)
from ba_tui.faces.tui.widgets.text_fields import RECENT, TypeAhead, is_text

PASSING = {"pageup", "pagedown", "shift+tab"}


class AskForm(AskLayout, can_focus=True):
    """``clock`` in seconds; it counts from the moment the form is made. ``writing``: whether the input holds text."""

    @dataclass
    class Done(Message):
        """The user's answer."""

        form: AskForm
        reply: Reply
        interrupt: bool

    def __init__(
        self,
        question: Question,
        agent: str,
        clock: Callable[[], float],
        writing: Callable[[], bool],
        plan_editor: Callable[[], PlanEditorClass | None] = lambda: None,
    ) -> None:
        super().__init__(question, agent, writing)
        self._clock = clock
        self._plan_editor = plan_editor
        self._shown_at = clock()
        self._early = TypeAhead()
        self._draft = ArgumentDraft(None, "")
        self._full: ModalScreen[Chosen | None] | ModalScreen[None] | ModalScreen[PlanEdit] | None = None
        self._plan_texts: dict[str, str] = {}
        """A plan from the editor that could not be applied yet."""

    def on_mount(self) -> None:
        self.set_class(self.question.kind == "permission", "-permission")
        self.query_one(QuestionPreview).ask(self.question)
        self._paint()
        self.input_changed()
        if not self._input_holds_text():
            self.focus()
        self.watch(self.screen, "stack_updates", self._came_into_sight, init=False)

    def input_changed(self) -> None:
        """Block answers while the input has text, and for a moment after."""
        self.can_focus = not self._input_holds_text()
        self._shown_at = self._clock()
        self._fit()

    def word(self, event: events.Key | events.Paste) -> list[events.Key] | None:
        """Return the letters that go to the input before ``event``; None if the question gets the event. The input gets
        keys that are no answers, and words that were begun before the question could be read.
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
        """Restart the quiet time, because the question is visible only now that another screen has closed."""
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
        """Whether the user writes in the input, not in a field of this question."""
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
        """Allow the call, or the one with the chosen changes."""
        chosen = self._chosen
        if chosen is not None and chosen.question is None:
            self._turn_to("asking")
            self._blame(chosen.told)
            return
        edited = self._current.args if chosen is not None else None
        self._answer(Reply(choice, rule=self._rule(choice), edited=edited))

    @property
    def _current(self) -> Question:
        """The question with the chosen changes."""
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
        # Several rules, a line each, can't be edited.
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
        first, now = plan_in(self.question), plan_in(self._current)
        if first and now and (make := self._plan_editor()):
            self._full = editor = make(first, PlanEdit(now, self._plan_texts))
            self.app.push_screen(editor, self._plan_edited)  # pyright: ignore[reportUnknownMemberType] - App is generic

    def _plan_edited(self, edit: PlanEdit | None) -> None:
        if edit is not None:
            self._plan_texts = edit.texts
            self._came_back(choose_plan(self.question, edit.plan))

    def _open_in_full(self) -> None:
        if self.question.preview and renderer_of(self.question.preview).has_changes:
            self._full = diff = DiffScreen(self.question, self.agent, self._chosen)
            self.app.push_screen(diff, self._came_back)  # pyright: ignore[reportUnknownMemberType] - App is generic
        else:
            self._full = text = InspectorScreen(in_full(self.question, self.agent))
            self.app.push_screen(text, self._came_back)  # pyright: ignore[reportUnknownMemberType] - see above

    def _came_back(self, chosen: Chosen | None) -> None:
        """Take the choice of a screen that the user opened; no quiet time is needed."""
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


LETTER = 0.15
"""Seconds for which a letter waits for the next one of a word before it answers."""


@frozen
class WaitingQuestion:
    """``since``: when it came, by the panel's clock."""

    ask_id: str
    question: Question
    agent: str
    since: float


class AskPanel(Widget):
    """Questions queue; the first is shown. It takes the focus while it asks and gives it back afterwards."""

    DEFAULT_CSS = """
    AskPanel {
        height: auto;
        max-height: 70%;
        display: none;
        background: $surface;
        border-top: solid $foreground 30%;
        border-title-color: $text-accent;
        border-title-style: bold;
        border-title-background: $surface;
        padding: 0 1;
    }
    AskPanel:focus-within { border-top: solid $accent; }
    """

    @dataclass
    class Answered(Message):
        """The user's answer; ``interrupt`` when the turn should stop as well."""

        ask_id: str
        reply: Reply
        interrupt: bool = False

    def __init__(
        self,
        *,
        writing: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = time.monotonic,
        plan_editor: Callable[[], PlanEditorClass | None] = lambda: None,
    ) -> None:
        """``writing``: whether the input holds text; answer keys wait meanwhile. ``plan_editor`` returns
        the screen that edits a proposed plan, if there is one."""
        super().__init__()
        self._writing = writing
        self._clock = clock
        self._plan_editor = plan_editor
        self._queue: deque[WaitingQuestion] = deque()
        self._done = 0
        self._form: AskForm | None = None
        self._came_from: Widget | None = None
        self._tick: Timer | None = None
        self._letter: Key | None = None
        """A letter that is an answer unless another one follows immediately."""
        self._letter_timer: Timer | None = None

    @property
    def waiting(self) -> int:
        """The number of unanswered questions, the shown one included."""
        return len(self._queue)

    def ask(self, ask_id: str, question: Question, agent: str) -> None:
        """Show the question, or queue it behind those that wait."""
        self._queue.append(WaitingQuestion(ask_id, question, agent, self._clock()))
        if len(self._queue) == 1:
            self._came_from = self.screen.focused
            self._open()
        self._count()

    def input_changed(self) -> None:
        """The input has got its first text, or has become empty: then the question gets the keys."""
        if self._form is None:
            return
        mine = self._form.has_focus
        self._form.input_changed()
        if self._writing() and mine and self._came_from is not None:
            self._came_from.focus()
        elif not self._writing() and self.screen.focused in (None, self._came_from):
            self._form.focus()

    def word(self, event: Key | Paste) -> list[Key] | None:
        """Return the letters that go to the input before ``event``; None when that is for the question."""
        first = self._take_letter()
        if first and isinstance(event, Key) and is_text(event) and event.character != first.character:
            return [first]
        self._deliver(first)
        return self._form.word(event) if self._form else []

    def hold_back(self, key: Key) -> bool:
        """Hold back a letter that would answer, because it may begin a word. Return False for other keys."""
        if self._form is None or not self._form.answers(key):
            return False
        self._letter = key
        self._letter_timer = self.set_timer(LETTER, self.release)
        return True

    def release(self) -> None:
        """Process the letter that was held back as an answer."""
        self._deliver(self._take_letter())

    def _take_letter(self) -> Key | None:
        letter, self._letter = self._letter, None
        if self._letter_timer:
            self._letter_timer.stop()
            self._letter_timer = None
        return letter

    def _deliver(self, letter: Key | None) -> None:
        if letter and self._form:
            self._form.post_message(Key(letter.key, letter.character))

    def withdraw(self, ask_id: str) -> None:
        """Take a question away that needs no answer any more."""
        shown = bool(self._queue) and self._queue[0].ask_id == ask_id
        self._queue = deque(item for item in self._queue if item.ask_id != ask_id)
        if shown:
            self._open()
        self._count()

    def withdraw_all(self, agent: str = "") -> None:
        """Take all of them away, or all of ``agent``: its turn is over."""
        shown = self._queue[0] if self._queue else None
        self._queue = deque(item for item in self._queue if agent and item.agent != agent)
        if not self._queue or self._queue[0] is not shown:
            self._open()
            self._count()

    @on(AskForm.Done)
    def _answered(self, event: AskForm.Done) -> None:
        event.stop()
        if event.form is not self._form or not self._queue:
            return
        waiting = self._queue.popleft()
        self._done += 1
        self._open()
        self._count()
        self.post_message(self.Answered(waiting.ask_id, event.reply, event.interrupt))

    def _open(self) -> None:
        """Show the first of the queue, or go away when it is empty."""
        self._watch_time()
        had_focus = self.has_focus_within
        if self._form is not None:
            self._form.close()
            self._form = None
        if self._queue:
            first = self._queue[0]
            self._form = AskForm(first.question, first.agent, self._clock, self._writing, self._plan_editor)
            self.display = True
            self.mount(self._form)
            return
        self.display, self._done = False, 0
        if had_focus and self._came_from is not None and self._came_from.is_attached:
            self._came_from.focus()
        self._came_from = None

    def _count(self) -> None:
        """Show the title: the question, its place in the queue, and the time left."""
        if not self._queue:
            return
        first = self._queue[0]
        total = self._done + len(self._queue)
        who = asker(first.agent)
        parts = [f"{who} asks: {heading(first.question)}" if who else heading(first.question)]
        if total > 1:
            parts.append(f"{self._done + 1} of {total}")
        if first.question.timeout is not None:
            left = max(0.0, first.since + first.question.timeout - self._clock())
            long = time_left(left, first.question.on_timeout)
            room = self.size.width - len(" · ".join(parts)) - 9
            parts.append(long if len(long) <= room or not self.size else long.partition(" in ")[2])
        title = Content(f" {' · '.join(parts)} ")
        if title != self.border_title:
            self.border_title = title

    def _watch_time(self) -> None:
        """Count down once a second while a question with a time limit is shown."""
        runs_out = bool(self._queue) and self._queue[0].question.timeout is not None
        if self._tick is not None and not runs_out:
            self._tick.stop()
            self._tick = None
        elif self._tick is None and runs_out:
            self._tick = self.set_interval(1.0, self._count)

    def focus(self, scroll_visible: bool = True, *, from_app_focus: bool = False) -> AskPanel:
        """Focus the question that is shown."""
        if self._form is not None:
            self._form.focus(scroll_visible)
        return self
