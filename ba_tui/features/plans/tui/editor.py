"""Editor of a proposed plan: step by step with keys, or as a whole in the user's text editor.

Every change is validated before it is applied, so the result can be executed. A rejected text stays in its field, with
the reason. Completed steps are not part of the text: they stay unchanged.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, cast

import yaml
from textual import on, work
from textual.app import ComposeResult, SuspendNotSupported
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Static

from ba_tui.core.errors import UsageError
from ba_tui.core.plan_folds import PlanTimeline
from ba_tui.core.teamwork import Plan, SubTask
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import count, did_you_mean
from ba_tui.core.values import frozen
from ba_tui.faces.tui.acts.editor import edited, editor_command
from ba_tui.faces.tui.widgets.ask_answers import ArgumentsInput
from ba_tui.faces.tui.widgets.ask_body import PlanEdit
from ba_tui.features.plans.tui.view import PlanView
from ba_tui.plotting.plan_edits import (
    LOCKED,
    added,
    changed,
    dependents,
    differences,
    faults,
    free_id,
    moved,
    removed,
    skipped,
)
from ba_tui.plotting.plan_signs import counted, step_name, words
from ba_tui.settings.document import parse_document

REMARK = "#! "
"""Prefix of the lines that say what is wrong with the line above them."""
HEAD = """\
# The steps of the plan. Save and close to go on with them; an empty file
# changes nothing.
#   after: the steps whose results are needed first
#   optional: those of them that may be missing
#   skip: true leaves a step out
#   {id} in a text or an argument stands for the result of the step id
"""
_TEXTS = {"id": "id", "does": "description", "gives": "expected_output", "role": "role", "tool": "tool_name"}
_LISTS = {"after": "dependencies", "optional": "optional"}
_KEYS = (*_TEXTS, *_LISTS, "args", "critical", "skip")


@frozen
class FormFault:
    """``line`` from 1; 0 for a fault of the whole text."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"Line {self.line}: {self.text}" if self.line else f"{self.text[:1].upper()}{self.text[1:]}"


class FormRefused(UsageError):
    """The text is not a valid plan. ``found``: all faults."""

    def __init__(self, found: Sequence[FormFault]) -> None:
        more = f" {len(found) - 1} more below." if len(found) > 1 else ""
        super().__init__(f"{found[0]}.{more}".replace("..", ".").replace("?.", "?"))
        self.found = found


def plan_form(plan: Plan) -> str:
    """Return the unfinished steps as YAML, with instructions at the top."""
    done = [step for step in plan.subtasks if step.status in LOCKED]
    head = HEAD + (f"# Done already, and kept: {', '.join(step.id for step in done)}\n" if done else "")
    steps = [_fields(step) for step in plan.subtasks if step.status not in LOCKED]
    return paintable(head + _dumped({"goal": plan.task.goal, "steps": steps}))


def step_form(step: SubTask) -> str:
    """Return one step as YAML."""
    return paintable(_dumped(_fields(step, all_keys=True)))


def _fields(step: SubTask, *, all_keys: bool = False) -> dict[str, Any]:
    found: dict[str, Any] = {key: getattr(step, name) for key, name in _TEXTS.items()}
    found |= {key: list(getattr(step, name)) for key, name in _LISTS.items()}
    found["args"] = step.tool_args
    asked = {"id", "does", "gives", "after"} if all_keys else {"id", "does"}
    if all_keys and step.tool_name:
        asked.add("args")
    found = {key: value for key, value in found.items() if value or key in asked}
    if step.critical:
        found["critical"] = True
    if step.status == "skipped":
        found["skip"] = True
    return found


def _dumped(value: Mapping[str, Any]) -> str:
    class Dumper(yaml.SafeDumper):
        """Writes texts of several lines as blocks, and short lists on one line."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    def text(dumper: Any, data: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style="|" if "\n" in data else None)

    def items(dumper: Any, data: list[Any]) -> yaml.SequenceNode:
        flat = all(isinstance(each, str) for each in data)
        return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flat)

    Dumper.add_representer(str, text)
    Dumper.add_representer(list, items)
    return yaml.dump(dict(value), Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)


def read_plan(text: str, plan: Plan) -> Plan:
    """Return ``plan`` as edited in ``text``; ``plan`` itself for an empty text. Raises FormRefused: a line is wrong."""
    text = without_remarks(text)
    data, lines, found = _parsed(text)
    if not data and not found:
        return plan
    found += [
        FormFault(lines.get((key,), 0), f"{key} is not known here: use goal and steps")
        for key in data
        if key not in {"goal", "steps"}
    ]
    goal, rows = data.get("goal", plan.task.goal), data.get("steps")
    if not isinstance(goal, str):
        found.append(FormFault(lines.get(("goal",), 0), "goal: expected text"))
    if not isinstance(rows, list):
        raise FormRefused([*found, FormFault(lines.get(("steps",), 0), "steps: expected a list of steps")])
    steps: list[SubTask] = []
    for place, row in enumerate(cast("list[Any]", rows)):
        where = {path[2:]: line for path, line in lines.items() if path[:2] == ("steps", place)}
        id = str(cast("dict[str, Any]", row).get("id", "")) if isinstance(row, dict) else ""
        step, wrong = _step(row, where, plan.find(id))
        found += wrong
        if step:
            steps.append(step)
    if found:
        raise FormRefused(sorted(found, key=lambda fault: fault.line))
    kept = [step for step in plan.subtasks if step.status in LOCKED]
    made = replace(plan, task=replace(plan.task, goal=str(goal)), subtasks=(*kept, *steps))
    _check(made, lines, len(kept))
    return made


def _check(plan: Plan, lines: Mapping[Any, int], kept: int) -> None:
    wrong = [
        FormFault(_line(lines, ("steps", fault.step - kept, fault.field)), f"{fault.field}: {fault.text}")
        for fault in faults(plan)
    ]
    if wrong:
        raise FormRefused(sorted(wrong, key=lambda fault: fault.line))


def read_step(text: str, before: SubTask) -> SubTask:
    """Return ``before`` as edited in ``text``. Raises FormRefused."""
    data, lines, found = _parsed(without_remarks(text))
    step, wrong = (None, found) if found else _step(data, lines, before)
    if wrong or step is None:
        raise FormRefused(wrong or [FormFault(0, "the step is empty")])
    return step


def _parsed(text: str) -> tuple[dict[str, Any], dict[Any, int], list[FormFault]]:
    document = parse_document(Path("plan"), text)
    found = [FormFault(each.line, f"{each.key}: {each.text}" if each.key else each.text) for each in document.problems]
    return dict(document.data), dict(document.lines), found


def _line(lines: Mapping[Any, int], path: tuple[Any, ...]) -> int:
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0)


def _step(row: Any, lines: Mapping[Any, int], before: SubTask | None = None) -> tuple[SubTask | None, list[FormFault]]:
    """Return one step of the text, and its faults."""
    here = min(lines.values(), default=0)
    if not isinstance(row, dict):
        return None, [FormFault(here, "expected a step: id, does, after …")]
    fields = cast("dict[str, Any]", row)
    found = [
        FormFault(_line(lines, (key,)), f"{key}: not known{did_you_mean(key, _KEYS)}")
        for key in fields
        if key not in _KEYS
    ]
    values: dict[str, Any] = {}
    for key, name in _TEXTS.items():
        value = fields.get(key, "")
        values[name] = "" if value is None else str(value) if isinstance(value, str | int | float) else ""
        if isinstance(value, list | dict):
            found.append(FormFault(_line(lines, (key,)), f"{key}: expected text"))
    for key, name in _LISTS.items():
        value: Any = fields.get(key) or []
        # A single id needs no brackets.
        several = cast("list[Any]", value) if isinstance(value, list) else [value]
        values[name] = tuple(str(each) for each in several)
        if any(isinstance(each, list | dict) for each in several):
            found.append(FormFault(_line(lines, (key,)), f"{key}: expected ids of steps"))
    values["tool_args"] = fields.get("args") or {}
    if not isinstance(values["tool_args"], dict):
        found.append(FormFault(_line(lines, ("args",)), "args: expected lines of `name: value`"))
    switches = [key for key in ("critical", "skip") if not isinstance(fields.get(key) or False, bool)]
    found += [FormFault(_line(lines, (key,)), f"{key}: expected true or false") for key in switches]
    if found:
        return None, found
    known = before or SubTask(values["id"], "")
    status = "skipped" if fields.get("skip") else "pending"
    error = (known.error or "You skipped it.") if status == "skipped" else ""
    critical = bool(fields.get("critical"))
    return replace(known, **values, critical=critical, status=status, error=error), []


def remarked(text: str, found: Sequence[FormFault]) -> str:
    """Return ``text`` with each fault inserted below its line."""
    lines = without_remarks(text).split("\n")
    for fault in sorted(found, key=lambda each: -each.line):
        place = min(len(lines), fault.line)
        lines.insert(place, f"{REMARK}{fault.text}")
    return "\n".join(lines)


def without_remarks(text: str) -> str:
    """Return ``text`` without the lines that ``remarked`` inserted."""
    return "\n".join(line for line in text.split("\n") if not line.startswith(REMARK))


KEYS = (
    "Enter edit step · a add · d delete · s skip · Shift+↑ ↓ move · u undo\n"
    "Ctrl+G edit all in your editor · g tree or graph · Esc done"
)
WRITING = "Ctrl+S takes the step · Esc back (your text is kept)"


class PlanEditor(ModalScreen[PlanEdit]):
    """Returns the edited ``edit``. ``first``: the plan as proposed."""

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
        self.view.show(PlanTimeline(self._plan, time.time()))
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
        """Return the step at the cursor. Raises UsageError."""
        step = self.view.step
        if step is None:
            raise UsageError("No step is chosen.")
        return step

    # Single keys

    def on_key(self, event: Key) -> None:
        if event.key not in {"d", "delete"}:
            self._sure = ""

    def action_delete(self) -> None:
        """Delete the step; if other steps wait for it, only on a second press."""
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
        """Add a step that waits for the one at the cursor."""
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
        """Apply the text of the step; without a text, leave."""
        field, step = self._field, self._step
        if field is None or step is None:
            self.dismiss(PlanEdit(self._plan, self._texts))
            return
        known = self._plan.find(step.id) is not None
        try:
            made = read_step(field.text, step)
            plan = changed(self._plan, step.id, made) if known else added(self._plan, made, self._after)
        except UsageError as error:
            # The text stays in the field.
            self._say(error.with_hint, wrong=True)
            return
        self._texts.pop(step.id, None)
        self._close_field()
        self._take(plan)
        self.view.choose(made.id)

    def action_leave(self) -> None:
        """Leave the text, which is kept; otherwise close the editor."""
        if self._field is None or self._step is None:
            self.dismiss(PlanEdit(self._plan, self._texts))
            return
        if self._field.text != step_form(self._step):
            self._texts[self._step.id] = self._field.text
        self._close_field()
        self._say("")

    # The whole plan in the user's editor

    def action_external(self) -> None:
        if self._field is None:
            self._edit_all()

    @work(exclusive=True, group="editor", exit_on_error=False)
    async def _edit_all(self) -> None:
        """Open the whole plan in an editor. After a rejected edit, faults are marked at their lines."""
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
        """Apply the whole plan from ``text``; report its faults and keep the text if it is wrong."""
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
