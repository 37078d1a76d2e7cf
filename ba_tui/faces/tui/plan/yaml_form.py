"""A plan as YAML that a person edits, and back. Faults name their line; nothing that was typed is thrown away.

Steps that are done are not among it: they stay as they are, whatever is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork.plans import Plan, SubTask
from ba_tui.core.text.untrusted import paintable
from ba_tui.core.text.wording import did_you_mean
from ba_tui.core.values import frozen
from ba_tui.plotting.plans.changing import LOCKED
from ba_tui.plotting.plans.checking import faults

REMARK = "#! "
"""Begins the lines that say what is wrong with the line above them."""
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
    """``line`` from 1; 0 where it is about the whole."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"Line {self.line}: {self.text}" if self.line else f"{self.text[:1].upper()}{self.text[1:]}"


class FormRefused(UsageError):
    """The text is no plan. ``found``: all that is wrong with it."""

    def __init__(self, found: Sequence[FormFault]) -> None:
        more = f" {len(found) - 1} more below." if len(found) > 1 else ""
        super().__init__(f"{found[0]}.{more}".replace("..", ".").replace("?.", "?"))
        self.found = found


def plan_form(plan: Plan) -> str:
    """The steps that are not done yet, as YAML with a head that says how."""
    done = [step for step in plan.subtasks if step.status in LOCKED]
    head = HEAD + (f"# Done already, and kept: {', '.join(step.id for step in done)}\n" if done else "")
    steps = [_fields(step) for step in plan.subtasks if step.status not in LOCKED]
    return paintable(head + _dumped({"goal": plan.task.goal, "steps": steps}))


def step_form(step: SubTask) -> str:
    """One step as YAML."""
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
    import yaml  # noqa: PLC0415 - only when a plan is edited

    class Dumper(yaml.SafeDumper):
        """Texts of several lines as blocks, short lists on one line."""

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
    """The plan that ``text`` makes of ``plan``; ``plan`` itself for a text without words.

    Raises:
        FormRefused: a line is wrong.
    """
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
    """The step that ``text`` makes of ``before``. Raises FormRefused."""
    data, lines, found = _parsed(without_remarks(text))
    step, wrong = (None, found) if found else _step(data, lines, before)
    if wrong or step is None:
        raise FormRefused(wrong or [FormFault(0, "the step is empty")])
    return step


def _parsed(text: str) -> tuple[dict[str, Any], dict[Any, int], list[FormFault]]:
    from ba_tui.settings.document import parse_document  # noqa: PLC0415 - only when a plan is edited

    document = parse_document(Path("plan"), text)
    found = [FormFault(each.line, f"{each.key}: {each.text}" if each.key else each.text) for each in document.problems]
    return dict(document.data), dict(document.lines), found


def _line(lines: Mapping[Any, int], path: tuple[Any, ...]) -> int:
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 0)


def _step(row: Any, lines: Mapping[Any, int], before: SubTask | None = None) -> tuple[SubTask | None, list[FormFault]]:
    """One step of the text, and what is wrong with it."""
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
        # One id needs no brackets.
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
    """``text`` with what is wrong below each line."""
    lines = without_remarks(text).split("\n")
    for fault in sorted(found, key=lambda each: -each.line):
        place = min(len(lines), fault.line)
        lines.insert(place, f"{REMARK}{fault.text}")
    return "\n".join(lines)


def without_remarks(text: str) -> str:
    """``text`` without the lines that ``remarked`` put in."""
    return "\n".join(line for line in text.split("\n") if not line.startswith(REMARK))
