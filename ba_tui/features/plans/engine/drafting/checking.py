"""Finds what is wrong with a plan that a model wrote, all at once, in lines that the model is sent back. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast

from ba_tui.core.teamwork.plans import SubTask
from ba_tui.core.text.wording import count, nearest, slip, suggestion
from ba_tui.core.tool import Tool
from ba_tui.features.plans.engine.drafting.values import MOST, Means, Written
from ba_tui.plotting.plans.checking import REFERENCE, references
from ba_tui.settings.document import KeyPath

TOLD = 40
"""Complaints that a model is sent back at most."""


def tidied(plan: Written, means: Means) -> Written:
    """``plan`` with what is meant beyond doubt: a result that is used is waited for, a role in the place of a tool is a
    role, steps that are completed are not done again."""
    known = {*means.done, *(step.id for step in plan.subtasks)}
    steps = [_tidied(step, known, means) for step in plan.subtasks if step.id not in means.done]
    return replace(plan, subtasks=tuple(steps))


def _tidied(step: SubTask, known: set[str], means: Means) -> SubTask:
    if step.tool_name and step.tool_name not in means.tools and step.tool_name in means.roles:
        step = replace(step, tool_name="", tool_args={}, role=step.role or step.tool_name)
    return waiting(step, known)


def waiting(step: SubTask, known: set[str]) -> SubTask:
    """``step``, which waits for all of ``known`` that it uses."""
    used = [id for id in sorted(references(step) & known) if id != step.id]
    waits = tuple(dict.fromkeys([*step.dependencies, *used]))
    return replace(step, dependencies=waits, optional=tuple(id for id in step.optional if id in waits))


def complaints(plan: Written, means: Means) -> list[str]:
    """All that is wrong with a tidied ``plan``, a line each; at most TOLD lines."""
    if plan.size > MOST:
        return [f"the plan has {plan.size:,} steps; at most {MOST} are allowed, and 20 are many"]
    found = list(plan.wrong)
    if not plan.subtasks and not plan.question and not found:
        found.append("the plan has no step")
    ids = Counter(step.id for step in plan.subtasks)
    found += [f"{count(number, 'step')} have the id {id!r}" for id, number in ids.items() if number > 1]
    known = [*means.done, *ids]
    for step in plan.subtasks:
        found += (f"step {step.id}: {line}" for line in _wrong(step, known, means))
    circle = circle_of(plan.subtasks)
    if circle:
        found.append(f"steps wait for each other: {' → '.join([*circle, circle[0]])}")
    for wanted, by in plan.covers:
        if wanted and not any(id in known for id in by):
            found.append(f"no step does this: {wanted}")
    return found if len(found) <= TOLD else [*found[:TOLD], f"and {len(found) - TOLD} more"]


def _wrong(step: SubTask, known: Sequence[str], means: Means) -> Iterator[str]:
    for other in step.dependencies:
        if other == step.id:
            yield "it waits for itself"
        elif other not in known:
            yield f"there is no step {other!r}; {suggestion(other, known[:20])}"
    if trouble := tool_trouble(step, means.tools):
        yield trouble
    if unknown_role(step, means.roles):
        yield f"there is no role {step.role!r}; {suggestion(step.role, means.roles)}"
    for name in unresolved(step, known):
        yield f"{{{name}}} is not the id of a step; {suggestion(name, known[:20])}"


def unknown_role(step: SubTask, roles: Mapping[str, str]) -> bool:
    return bool(step.role and roles and step.role not in roles)


def tool_trouble(step: SubTask, tools: Mapping[str, Tool]) -> str:
    """Why the call of ``step`` can't be made; empty when it can, or when there is none."""
    if not step.tool_name:
        return ""
    tool = tools.get(step.tool_name)
    if tool is None:
        close = nearest(step.tool_name, tools)
        meant = f"; did you mean {close!r}?" if close else "; leave tool_name out, and an agent does the step"
        return f"there is no tool {step.tool_name!r}{meant}"
    wrong = args_trouble(step.tool_args, tool)
    return f"arguments of {tool.name}: {'; '.join(wrong[:3])}" if wrong else ""


def args_trouble(args: Mapping[str, Any], tool: Tool) -> list[str]:
    """How ``args`` do not fit the schema of ``tool``. Values with results in them are not known yet."""
    from ba_tui.tools.schemas import literal_complaints  # noqa: PLC0415 - brings jsonschema

    unsure = [name for name, value in args.items() if _refers(value)]
    return [f"{_at(path)}{text}" for path, text in literal_complaints(args, tool.input_schema, unsure)]


def _at(path: KeyPath) -> str:
    return f"{'.'.join(map(str, path))}: " if path else ""


def _refers(value: Any) -> bool:
    match value:
        case str():
            return REFERENCE.search(value) is not None
        case dict():
            return any(_refers(each) for each in cast("dict[str, Any]", value).values())
        case list():
            return any(_refers(each) for each in cast("list[Any]", value))
        case _:
            return False


def unresolved(step: SubTask, known: Sequence[str]) -> list[str]:
    """Names in braces that no result will ever stand for. In arguments most braces are code: there only a name that is
    nearly an id is meant as one."""
    others = {*known} - {step.id}
    said = references(replace(step, tool_args={}))
    return [name for name in sorted(references(step) - others) if name in said or slip(name, known)]


def circle_of(steps: Sequence[SubTask]) -> list[str]:
    """The ids of steps that wait for each other, each before the one that waits for it; empty when there are none."""
    known = dict.fromkeys(step.id for step in steps)
    graph: dict[str, list[str]] = {id: [] for id in known}
    for step in steps:
        graph[step.id] += [id for id in step.dependencies if id in known and id != step.id]
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle[:-1]
    return []
