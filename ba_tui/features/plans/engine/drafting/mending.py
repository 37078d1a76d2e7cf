"""Repairs a plan with faults so that it can be executed, and reports the changes. Pure."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, cast

from ba_tui.core.effects import Effect
from ba_tui.core.teamwork import SubTask
from ba_tui.core.text.wording import clipped, count
from ba_tui.core.tool import Tool
from ba_tui.features.plans.engine.drafting.reading import (
    PlanResources,
    circle_of,
    tool_trouble,
    unknown_role,
    unresolved,
    waiting,
)
from ba_tui.plotting.plan_edits import REFERENCE, references

TINY = 6
"""Maximum words of a step that is too small to be a step."""
ROW = 3
"""Number of consecutive tiny steps that are joined into one."""
SINGLE = 10
"""Maximum edges that are dropped one by one; in a plan with more circles, steps wait only for those written before
them.
"""


def mended(steps: Sequence[SubTask], means: PlanResources, *, sound: bool) -> tuple[tuple[SubTask, ...], list[str]]:
    """Return ``steps`` without faults, and the changes, one sentence each. ``sound``: no fault was found."""
    notes: list[str] = []
    straight = list(steps) if sound else _without_faults(steps, means, notes)
    once = _once(straight, means, notes)
    return tuple(_joined(once, notes)), notes


def _without_faults(steps: Sequence[SubTask], means: PlanResources, notes: list[str]) -> list[SubTask]:
    notes += [f"Step {step.id} says nothing, so it was left out." for step in steps if not step.description]
    named = _named_apart([step for step in steps if step.description], means.done, notes)
    known = [*means.done, *(step.id for step in named)]
    whole = [_mended(waiting(step, {*known}), known, means, notes) for step in named]
    return _straight(whole, notes)


def _named_apart(steps: Sequence[SubTask], done: Sequence[str], notes: list[str]) -> list[SubTask]:
    taken, found = {*done, *(step.id for step in steps)}, list[SubTask]()
    seen = set[str]()
    for step in steps:
        id = step.id
        if id in seen:
            number = next(number for number in range(2, len(taken) + 3) if f"{id}-{number}" not in taken)
            step = replace(step, id=f"{id}-{number}")
            notes.append(f"Two steps had the id {id}; the second one is {step.id} now.")
        seen.add(step.id)
        taken.add(step.id)
        found.append(step)
    return found


def _mended(step: SubTask, known: Sequence[str], means: PlanResources, notes: list[str]) -> SubTask:
    gone = [id for id in step.dependencies if id not in known or id == step.id]
    if gone:
        notes.append(f"Step {step.id} no longer waits for {', '.join(gone)}, which can't be waited for.")
        step = _without(step, gone)
    if loose := unresolved(step, known):
        notes.append(f"Step {step.id} names a result that does not exist: {', '.join(loose)}. It reads as text now.")
        step = _plain(step, loose)
    if trouble := tool_trouble(step, means.tools):
        notes.append(f"Step {step.id} is done by an agent, because its call is impossible: {trouble}.")
        step = _for_an_agent(step, means.tools)
    if unknown_role(step, means.roles):
        notes.append(f"Step {step.id} names the role {step.role!r}, which does not exist. Any agent may do it.")
        step = replace(step, role="")
    return step


def _for_an_agent(step: SubTask, tools: Collection[str]) -> SubTask:
    args = clipped(json.dumps(step.tool_args, ensure_ascii=False, default=str), 1_000) if step.tool_args else ""
    meant = step.tool_name if step.tool_name in tools else "a tool that does not exist"
    told = f" (Planned as a call of {meant}{f' with {args}' if args else ''}. Find out how it can be done.)"
    return replace(step, tool_name="", tool_args={}, description=f"{step.description}{told}")


def _without(step: SubTask, ids: Sequence[str]) -> SubTask:
    waits = tuple(id for id in step.dependencies if id not in ids)
    return _plain(replace(step, dependencies=waits, optional=tuple(id for id in step.optional if id in waits)), ids)


def _plain(step: SubTask, names: Sequence[str]) -> SubTask:
    """Return ``step`` with references to ``names`` as plain words."""

    def bare(found: re.Match[str]) -> str:
        return found[0][1:-1] if found[1] in names else found[0]

    def put(text: str) -> str:
        return REFERENCE.sub(bare, text)

    if step.tool_name and _mapped(step.tool_args, put) != step.tool_args:
        # A call without the result that it was to use would be a different call.
        step = _for_an_agent(step, (step.tool_name,))
    return replace(step, description=put(step.description), expected_output=put(step.expected_output))


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    match value:
        case str():
            return change(value)
        case dict():
            return {key: _mapped(each, change) for key, each in cast("dict[str, Any]", value).items()}
        case list():
            return [_mapped(each, change) for each in cast("list[Any]", value)]
        case _:
            return value


def _straight(steps: list[SubTask], notes: list[str]) -> list[SubTask]:
    """Return ``steps`` without circles: the cheapest edge of each is dropped."""
    found = {step.id: step for step in steps}
    place = {step.id: number for number, step in enumerate(steps)}
    for _ in range(SINGLE):
        circle = circle_of(list(found.values()))
        if not circle:
            return list(found.values())
        waits = zip([*circle[1:], circle[0]], circle, strict=True)
        waiter, needed = min(waits, key=lambda edge: _price(found[edge[0]], found[edge[1]], place))
        found[waiter] = _without(found[waiter], [needed])
        notes.append(f"Steps waited for each other ({' → '.join(circle)}): {waiter} no longer waits for {needed}.")
    notes.append("Many steps waited for each other. Each waits only for steps that are written before it now.")
    straight: list[SubTask] = []
    for step in found.values():
        later = [id for id in step.dependencies if place.get(id, -1) >= place[step.id]]
        straight.append(_without(step, later) if later else step)
    return straight


def _price(waiter: SubTask, needed: SubTask, place: dict[str, int]) -> int:
    """Return the cost of dropping the dependency of ``waiter`` on ``needed``: a lost result, or a lost order."""
    uses, before = needed.id in references(waiter), place[needed.id] < place[waiter.id]
    return 4 * uses + 2 * before + needed.critical - (needed.id in waiter.optional)


def _once(steps: list[SubTask], means: PlanResources, notes: list[str]) -> list[SubTask]:
    """Merge equal read-only calls into one."""
    first: dict[str, str] = {}
    same: dict[str, str] = {}
    for step in steps:
        tool: Tool | None = means.tools.get(step.tool_name)
        if tool is None or tool.effect_of(step.tool_args) is not Effect.READ or tool.facts.repeatable:
            continue
        key = json.dumps([step.tool_name, step.tool_args, sorted(step.dependencies)], sort_keys=True, default=str)
        if key in first:
            same[step.id] = first[key]
        else:
            first[key] = step.id
    if not same:
        return steps
    notes.extend(f"Step {id} was the same call as {other}: it is made once." for id, other in same.items())
    return [_renamed(step, same) for step in steps if step.id not in same]


def _renamed(step: SubTask, names: dict[str, str]) -> SubTask:
    """Return ``step`` with other ids in its references and dependencies."""
    if not ({*step.dependencies} & names.keys()):
        return step

    def put(text: str) -> str:
        return REFERENCE.sub(lambda found: f"{{{names.get(found[1], found[1])}{found[2]}}}", text)

    waits = tuple(dict.fromkeys(names.get(id, id) for id in step.dependencies))
    optional = tuple(dict.fromkeys(names.get(id, id) for id in step.optional))
    args = cast("dict[str, Any]", _mapped(step.tool_args, put))
    texts = (put(step.description), put(step.expected_output))
    return replace(
        step, description=texts[0], expected_output=texts[1], tool_args=args, dependencies=waits, optional=optional
    )


def _joined(steps: list[SubTask], notes: list[str]) -> list[SubTask]:
    """Join consecutive tiny steps of the same agent whose results no other step needs."""
    needed = Counter(id for step in steps for id in step.dependencies)
    followed = {id: step for step in steps for id in step.dependencies if len(step.dependencies) == 1}
    tiny = {step.id: step for step in steps if _tiny(step)}
    joined: dict[str, SubTask] = {}
    gone = set[str]()
    for step in steps:
        if step.id in gone or step.id not in tiny or (step.dependencies and _goes_on(step, tiny, needed)):
            continue
        row = [step]
        while needed[row[-1].id] == 1 and (then := followed.get(row[-1].id)) and _alike(row[-1], then, tiny):
            row.append(then)
        if len(row) >= ROW:
            gone.update(each.id for each in row[:-1])
            joined[row[-1].id] = _one(row)
            notes.append(f"{count(len(row), 'tiny step')} in a row are one now: {', '.join(each.id for each in row)}.")
    return [joined.get(step.id, step) for step in steps if step.id not in gone]


def _goes_on(step: SubTask, tiny: dict[str, SubTask], needed: Counter[str]) -> bool:
    """Return whether ``step`` only continues the one before it, so that no row can begin with it."""
    (first, *others) = step.dependencies
    return not others and needed[first] == 1 and first in tiny and _alike(tiny[first], step, tiny)


def _alike(one: SubTask, then: SubTask, tiny: dict[str, SubTask]) -> bool:
    return then.id in tiny and then.role == one.role


def _tiny(step: SubTask) -> bool:
    own = step.tool_name or step.expected_output or step.critical or step.optional
    return not own and len(step.description.split()) <= TINY


def _one(row: Sequence[SubTask]) -> SubTask:
    """Return the steps of ``row`` as one, with the id of the last, which other steps wait for."""
    inside = [step.id for step in row]
    texts = [_plain(step, inside).description.rstrip(".") for step in row]
    return replace(row[-1], description=f"{'; then: '.join(texts)}.", dependencies=row[0].dependencies)
