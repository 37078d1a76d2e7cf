"""Changes of a plan by a person, each a new plan. What would leave a plan that nobody can carry out is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork.plans import Plan, SubTask
from ba_tui.plotting.plans.checking import REFERENCE, faults, references
from ba_tui.plotting.plans.signs import step_name, words

LOCKED = frozenset(("completed", "executing"))
"""States in which a step stays as it is: its work is done, or being done."""


def dependents(plan: Plan, id: str) -> list[SubTask]:
    """The steps that wait for ``id`` itself."""
    return [step for step in plan.subtasks if id in step.dependencies]


def removed(plan: Plan, id: str) -> Plan:
    """Without the step; what waited for it waits for what it waited for. Raises UsageError."""
    gone = _open(plan, id)
    if len(plan.subtasks) == 1:
        raise UsageError("A plan needs a step.", "Reject the plan instead.")
    users = [step.id for step in plan.subtasks if step.id != id and id in references(step)]
    if users:
        raise UsageError(
            f"{', '.join(map(words, users))} needs the result of {words(id)}.", f"Take {{{words(id)}}} out there first."
        )

    def without(step: SubTask) -> SubTask:
        if id not in step.dependencies:
            return step
        waits = [other for each in step.dependencies for other in (gone.dependencies if each == id else (each,))]
        optional = tuple(other for other in step.optional if other != id)
        return replace(step, dependencies=tuple(dict.fromkeys(waits)), optional=optional)

    return _sound(replace(plan, subtasks=tuple(without(step) for step in plan.subtasks if step.id != id)))


def added(plan: Plan, step: SubTask, after: str) -> Plan:
    """With ``step`` written behind the step ``after``; at the end where there is none."""
    place = next((index for index, each in enumerate(plan.subtasks, 1) if each.id == after), len(plan.subtasks))
    return _sound(replace(plan, subtasks=(*plan.subtasks[:place], step, *plan.subtasks[place:])))


def free_id(plan: Plan) -> str:
    """An id that no step has: ``step-8``."""
    number = len(plan.subtasks) + 1
    while plan.find(f"step-{number}"):
        number += 1
    return f"step-{number}"


def skipped(plan: Plan, id: str) -> Plan:
    """The step is left out, or no longer. Raises UsageError."""
    step = _open(plan, id)
    back = step.status == "skipped"
    return plan.updated(replace(step, status="pending" if back else "skipped", error="" if back else "You skipped it."))


def moved(plan: Plan, id: str, by: int) -> Plan:
    """The step ``by`` places later; where it stands among those that may begin at the same time."""
    steps = [step for step in plan.subtasks if step.id != id]
    place = next(index for index, step in enumerate(plan.subtasks) if step.id == id)
    steps.insert(max(0, min(len(steps), place + by)), plan.subtasks[place])
    return replace(plan, subtasks=tuple(steps))


def changed(plan: Plan, id: str, step: SubTask) -> Plan:
    """With ``step`` in the place of ``id``; a new id goes into what waits for it and uses its result. Raises
    UsageError."""
    _open(plan, id)
    new = replace(plan, subtasks=tuple(step if each.id == id else each for each in plan.subtasks))
    return _sound(new if step.id == id else _renamed(new, id, step.id))


def _renamed(plan: Plan, old: str, new: str) -> Plan:
    def text(value: object) -> object:
        if isinstance(value, str):
            return REFERENCE.sub(lambda match: f"{{{new}{match[2]}}}" if match[1] == old else match[0], value)
        if isinstance(value, dict):
            return {key: text(each) for key, each in cast("dict[str, object]", value).items()}
        if isinstance(value, list):
            return [text(each) for each in cast("list[object]", value)]
        return value

    def ids(found: Sequence[str]) -> tuple[str, ...]:
        return tuple(new if id == old else id for id in found)

    return replace(
        plan,
        subtasks=tuple(
            replace(
                step,
                description=str(text(step.description)),
                expected_output=str(text(step.expected_output)),
                tool_args={key: text(value) for key, value in step.tool_args.items()},
                dependencies=ids(step.dependencies),
                optional=ids(step.optional),
            )
            for step in plan.subtasks
        ),
    )


def _open(plan: Plan, id: str) -> SubTask:
    step = plan.find(id)
    if step is None:
        raise UsageError(f"There is no step {words(id)}.")
    if step.status in LOCKED:
        raise UsageError(f"“{step_name(step)}” is {step.status}, and stays as it is.")
    return step


def _sound(plan: Plan) -> Plan:
    found = faults(plan)
    if found:
        first = found[0]
        where = f"{words(plan.subtasks[first.step].id)}: " if first.step >= 0 else ""
        raise UsageError(f"{where}{first.text}.".replace("..", ".").replace("?.", "?"))
    return plan


def differences(before: Plan, after: Plan) -> str:
    """What a person changed, in a few words; empty for nothing."""
    old = {step.id: step for step in before.subtasks}
    new = {step.id: step for step in after.subtasks}
    numbers = {
        "added": sum(id not in old for id in new),
        "removed": sum(id not in new for id in old),
        "skipped": sum(
            step.status == "skipped" and old[id].status != "skipped" for id, step in new.items() if id in old
        ),
        "changed": sum(
            id in old and replace(step, status=old[id].status, error=old[id].error) != old[id]
            for id, step in new.items()
        ),
    }
    said = [f"{number} {what}" for what, number in numbers.items() if number]
    if not said and [*old] != [*new]:
        said = ["order changed"]
    if before.task != after.task:
        said.append("goal changed")
    return ", ".join(said)
