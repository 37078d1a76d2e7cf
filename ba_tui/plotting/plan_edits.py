"""Check plans, and edit them for the user: each edit returns a new plan, or raises UsageError for one that cannot run.

Whether the tools of a plan exist is not checked here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from ba_tui.core.errors import UsageError
from ba_tui.core.teamwork import Plan, SubTask
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import did_you_mean
from ba_tui.core.values import frozen
from ba_tui.plotting.plan_graph import all_before, needs, sorted_ids
from ba_tui.plotting.plan_signs import step_name, words

REFERENCE = regex(r"(?<!\{)\{([A-Za-z_][\w-]*|\d+)((?:\.[\w-]+)*)\}(?!\})")
ID = regex(r"[\w.-]{1,64}")


@frozen
class Fault:
    """A fault of a plan. ``step``: index of the step, -1 for the plan itself. ``field``: the faulty field."""

    step: int
    field: str
    text: str


def faults(plan: Plan) -> list[Fault]:
    """Return missing, duplicate, unknown and circular ids, and references to results that are not available."""
    found: list[Fault] = [] if plan.subtasks else [Fault(-1, "steps", "the plan has no step")]
    number = Counter(step.id for step in plan.subtasks)
    for place, step in enumerate(plan.subtasks):
        found += (Fault(place, *each) for each in _own(step, number))
    if found:
        return found
    _, circling = sorted_ids(needs(plan))
    places = {step.id: place for place, step in enumerate(plan.subtasks)}
    circle = _circle(plan, circling)
    if circle:
        way = " → ".join([*circle, circle[0]])
        return [Fault(places[circle[0]], "after", f"steps wait for each other: {way}")]
    before = all_before(needs(plan))
    for place, step in enumerate(plan.subtasks):
        for id in sorted(references(step) - before[step.id]):
            # Other text in braces is plain text: only ids of steps refer to results.
            if id in places:
                found.append(Fault(place, "after", f"uses the result of {id}, and does not wait for it: add it"))
    return found


def _own(step: SubTask, number: Mapping[str, int]) -> Iterable[tuple[str, str]]:
    id = words(step.id)
    if not ID.fullmatch(step.id):
        yield "id", "an id has 1 to 64 letters, digits, - or _" if step.id else "the id is missing"
    elif number[step.id] > 1:
        yield "id", f"two steps have the id {id}"
    if not step.description.strip():
        yield "does", "what the step does is missing"
    for other in step.dependencies:
        if other == step.id:
            yield "after", "the step waits for itself"
        elif other not in number:
            yield "after", f"there is no step {words(other)}{did_you_mean(other, number)}"
    for other in step.optional:
        if other not in step.dependencies:
            yield "optional", f"{words(other)} is not among the steps that it waits for"


def _circle(plan: Plan, caught: Iterable[str]) -> list[str]:
    """Return the ids of one dependency circle, in order."""
    waits, left = needs(plan), set(caught)
    if not left:
        return []
    # Follow the dependencies of any of them until one comes twice.
    at, way = min(left, key=list(waits).index), list[str]()
    while at not in way:
        way.append(at)
        at = next(other for other in waits[at] if other in left)
    return way[way.index(at) :]


def references(step: SubTask) -> set[str]:
    """Return the ids whose results the texts and arguments of the step use."""
    texts = (step.description, step.expected_output, *_texts(step.tool_args))
    return {match[1] for text in texts for match in REFERENCE.finditer(text)}


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in cast("dict[str, object]", value).values():
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in cast("list[object]", value):
            yield from _texts(each)


def arguments_text(step: SubTask) -> str:
    """Return the arguments of its call as JSON on one line."""
    return json.dumps(step.tool_args, ensure_ascii=False, default=str)


LOCKED = frozenset(("completed", "executing"))
"""States in which a step cannot be edited: it is done or running."""


def dependents(plan: Plan, id: str) -> list[SubTask]:
    """Return the steps that depend on ``id`` directly."""
    return [step for step in plan.subtasks if id in step.dependencies]


def removed(plan: Plan, id: str) -> Plan:
    """Return the plan without the step; its dependents depend on its dependencies. Raises UsageError."""
    gone = _open(plan, id)
    if len(plan.subtasks) == 1:
        raise UsageError("A plan needs at least one step.", "Reject the plan instead.")
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
    """Return the plan with ``step`` after the step ``after``, or at the end."""
    place = next((index for index, each in enumerate(plan.subtasks, 1) if each.id == after), len(plan.subtasks))
    return _sound(replace(plan, subtasks=(*plan.subtasks[:place], step, *plan.subtasks[place:])))


def free_id(plan: Plan) -> str:
    """Return an unused id: ``step-8``."""
    number = len(plan.subtasks) + 1
    while plan.find(f"step-{number}"):
        number += 1
    return f"step-{number}"


def skipped(plan: Plan, id: str) -> Plan:
    """Return the plan with the step skipped, or no longer skipped. Raises UsageError."""
    step = _open(plan, id)
    back = step.status == "skipped"
    return plan.updated(replace(step, status="pending" if back else "skipped", error="" if back else "You skipped it."))


def moved(plan: Plan, id: str, by: int) -> Plan:
    """Return the plan with the step moved ``by`` places, among those that may run concurrently."""
    steps = [step for step in plan.subtasks if step.id != id]
    place = next(index for index, step in enumerate(plan.subtasks) if step.id == id)
    steps.insert(max(0, min(len(steps), place + by)), plan.subtasks[place])
    return replace(plan, subtasks=tuple(steps))


def changed(plan: Plan, id: str, step: SubTask) -> Plan:
    """Return the plan with ``step`` in place of ``id``; a new id is replaced in its dependents and references. Raises
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
    """Return what the user changed, in a few words; empty for nothing."""
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
