"""A proposed plan is changed before it is agreed to: step by step with keys, or as a whole in the person's editor.

Every change is checked before it is taken, so what comes back can be carried out. What can't be taken stays where it
was typed, with the reason.
"""

from __future__ import annotations

import time
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_tui.core.errors import UsageError
from ba_tui.core.events.plan_course import PlanRecord
from ba_tui.core.teamwork.plans import Plan, SubTask
from ba_tui.core.text.wording import count
from ba_tui.faces.tui.plan.view import PlanView
from ba_tui.faces.tui.plan.yaml_form import (
    FormRefused,
    plan_form,
    read_plan,
    read_step,
    remarked,
    step_form,
    without_remarks,
)
from ba_tui.faces.tui.widgets.ask_inputs import ArgumentsInput
from ba_tui.faces.tui.widgets.ask_plan import PlanEdit
from ba_tui.plotting.plans.changing import added, changed, dependents, differences, free_id, moved, removed, skipped
from ba_tui.plotting.plans.signs import counted, step_name, words

KEYS = (
    "Enter edit step · a add · d delete · s skip · Shift+↑ ↓ move · u undo\n"
    "Ctrl+G edit all in your editor · g tree or graph · Esc done"
)
WRITING = "Ctrl+S takes the step · Esc back (your text is kept)"


class PlanEditor(ModalScreen[PlanEdit]):
    """Gives back what ``edit`` became. ``first``: the plan as it was proposed."""

    DEFAULT_CSS = """
    PlanEditor {
        background: $surface; padding: 0 1;
        & .title { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & .said { height: auto; max-height: 3; margin-top: 1; }
        & .keys { height: auto; max-height: 2; color: $text-muted; text-overflow: ellipsis; }
        & ArgumentsInput { max-height: 60%; margin-top: 1; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Done", show=False),
        Binding("ctrl+s", "save", "Done", show=False),
        Binding("ctrl+g", "external", "Edit all in your editor", show=False),
        Binding("a,insert", "add", "Add a step", show=False),
        Binding("d,delete", "delete", "Delete the step", show=False),
        Binding("s", "skip", "Skip the step, or no longer", show=False),
        Binding("u,ctrl+z", "undo", "Undo", show=False),
        Binding("shift+up,K", "move(-1)", "Move up", show=False),
        Binding("shift+down,J", "move(1)", "Move down", show=False),
        Binding("g", "switch", "Tree or graph", show=False),
    ]

    def __init__(self, first: Plan, edit: PlanEdit) -> None:
        super().__init__()
        self.view = PlanView()
        self._first = first
        self._plan = edit.plan
        self._texts = dict(edit.texts)
        self._undo: list[Plan] = []
        self._field: ArgumentsInput | None = None
        self._step: SubTask | None = None
        """The one that is written: new where the plan has none of its id."""
        self._after = ""
        self._sure = ""
        """The step that another d deletes."""

    def compose(self) -> ComposeResult:
        yield Static(classes="title", markup=False)
        yield self.view
        yield Static(classes="said", markup=False)
        yield Static(KEYS, classes="keys", markup=False)

    def on_mount(self) -> None:
        self.view.focus()
        self.call_after_refresh(self._show)
        if "" in self._texts:
            self._say("Your text of the whole plan could not be taken yet. Ctrl+G opens it again.", wrong=True)

    def _show(self) -> None:
        self.view.show(PlanRecord(self._plan, time.time()))
        goal = words(self._plan.task.goal or self._plan.task.original_query)
        said = differences(self._first, self._plan) or f"{counted(self._plan)} done"
        parts = ("Edit: ", ""), (goal or "the plan", "bold"), (f"  {said}", "$text-muted")
        self.query_one(".title", Static).update(Content.assemble(*parts))

    def _say(self, text: str, *, wrong: bool = False) -> None:
        self.query_one(".said", Static).update(Content.styled(words(text), "$text-error" if wrong else "$text-warning"))

    def _take(self, plan: Plan, said: str = "") -> None:
        if plan != self._plan:
            self._undo.append(self._plan)
            self._plan = plan
        self._say(said)
        self._show()

    @property
    def _here(self) -> SubTask:
        """The step with the cursor. Raises UsageError."""
        step = self.view.step
        if step is None:
            raise UsageError("No step is chosen.")
        return step

    # Single keys

    def on_key(self, event: Key) -> None:
        if event.key not in {"d", "delete"}:
            self._sure = ""

    def action_delete(self) -> None:
        """At once when nothing waits for it; else with a second press."""
        try:
            step = self._here
            waiting = dependents(self._plan, step.id)
            plan = removed(self._plan, step.id)
        except UsageError as error:
            self._say(error.with_hint, wrong=True)
            return
        if waiting and self._sure != step.id:
            self._sure = step.id
            names = ", ".join(words(each.id) for each in waiting)
            instead = ", ".join(map(words, step.dependencies)) or "nothing"
            waits = "waits" if len(waiting) == 1 else "wait"
            self._say(
                f"{count(len(waiting), 'step')} {waits} for “{step_name(step)}”: {names}. "
                f"Press d again to delete it; then they wait for {instead} instead."
            )
            return
        self._sure = ""
        self._take(plan, f"Deleted “{step_name(step)}”. u brings it back.")

    def action_skip(self) -> None:
        try:
            self._take(skipped(self._plan, self._here.id))
        except UsageError as error:
            self._say(error.with_hint, wrong=True)

    def action_move(self, by: int) -> None:
        if self.view.chosen:
            self._take(moved(self._plan, self.view.chosen, by))

    def action_undo(self) -> None:
        if not self._undo:
            self._say("Nothing to undo.")
            return
        self._plan = self._undo.pop()
        self._say("Undone.")
        self._show()

    def action_switch(self) -> None:
        self.view.switch()

    # One step as text

    @on(PlanView.Opened)
    def _opened(self, event: PlanView.Opened) -> None:
        event.stop()
        if event.step.status in {"completed", "executing"}:
            self._say(f"“{step_name(event.step)}” is {event.step.status}, and stays as it is.", wrong=True)
            return
        self._write(event.step)

    def action_add(self) -> None:
        """A new step that waits for the one with the cursor."""
        here = self.view.chosen
        self._after = here
        self._write(SubTask(free_id(self._plan), "", dependencies=(here,) if here else ()))

    def _write(self, step: SubTask) -> None:
        self._step = step
        self._field = field = ArgumentsInput(self._texts.get(step.id, step_form(step)))
        self._say("")
        self.mount(field, before=self.query_one(".said"))
        self.query_one(".keys", Static).update(WRITING)
        field.focus()

    def _close_field(self) -> None:
        if self._field is not None:
            self._field.remove()
        self._field = self._step = None
        self.query_one(".keys", Static).update(KEYS)
        self.view.focus()

    def action_save(self) -> None:
        """Take the text of the step; without one, leave."""
        field, step = self._field, self._step
        if field is None or step is None:
            self.dismiss(PlanEdit(self._plan, self._texts))
            return
        known = self._plan.find(step.id) is not None
        try:
            made = read_step(field.text, step)
            plan = changed(self._plan, step.id, made) if known else added(self._plan, made, self._after)
        except UsageError as error:
            # It stays in the field.
            self._say(error.with_hint, wrong=True)
            return
        self._texts.pop(step.id, None)
        self._close_field()
        self._take(plan)
        self.view.choose(made.id)

    def action_leave(self) -> None:
        """Out of the text, which is kept; else done."""
        if self._field is None or self._step is None:
            self.dismiss(PlanEdit(self._plan, self._texts))
            return
        if self._field.text != step_form(self._step):
            self._texts[self._step.id] = self._field.text
        self._close_field()
        self._say("")

    # All of it in the person's editor

    def action_external(self) -> None:
        if self._field is None:
            self._edit_all()

    @work(exclusive=True, group="editor", exit_on_error=False)
    async def _edit_all(self) -> None:
        """Faults stand in the text at their lines when it is opened again."""
        from ba_tui.faces.tui.external import edited, editor_command  # noqa: PLC0415 - only when it is wanted

        before = self._texts.get("", plan_form(self._plan))
        fault: UsageError | None = None
        text = before
        try:
            command = editor_command()
            with self.app.suspend():  # pyright: ignore[reportUnknownMemberType] - App is generic
                try:
                    text = await edited(before, command, ".yaml")
                except UsageError as error:
                    fault = error
        except SuspendNotSupported:
            fault = UsageError("Another program can't be opened here.", "Change the steps with keys.")
        except UsageError as error:
            fault = error
        if fault:
            self._say(fault.with_hint, wrong=True)
            return
        self.take_text(text)

    def take_text(self, text: str) -> None:
        """Take the whole plan from ``text``; what is wrong with it is said, and it is kept."""
        try:
            plan = read_plan(text, self._plan)
        except FormRefused as error:
            self._texts[""] = remarked(text, error.found)
            self._say(f"{error} Ctrl+G opens your text again, with the faults at their lines.", wrong=True)
            return
        self._texts.pop("", None)
        if without_remarks(text).strip():
            self._take(plan)
        else:
            self._say("The file was empty: the plan is as it was.")
