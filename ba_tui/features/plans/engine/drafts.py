"""Plans as a model writes them: parsed from a call of submit_plan or from JSON in a text, tidied, and checked for
faults.

The answer may contain anything. All faults are collected, because the model gets them in one reply.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast

from ba_tui.core.effects import Effect
from ba_tui.core.messages import Message
from ba_tui.core.teamwork import SubTask
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.untrusted import hidden_removed
from ba_tui.core.text.wording import clipped, count, nearest, one_line, slip, suggestion
from ba_tui.core.tool import Tool
from ba_tui.core.values import frozen
from ba_tui.plotting.plan_edits import REFERENCE, references
from ba_tui.settings.document import KeyPath

QUESTIONED = 20
"""Number of steps above which the user gets a warning."""
MOST = 200
"""Number of steps above which a plan is refused."""


@frozen
class WrittenPlan:
    """A plan as the model wrote it, before the checks. ``covers``: the wishes of the request, with the ids of the steps
    that fulfil them. ``wrong``: unreadable parts. ``size``: number of steps; with more than MOST none is read.
    """

    goal: str = ""
    subtasks: tuple[SubTask, ...] = ()
    assumptions: tuple[str, ...] = ()
    question: str = ""
    covers: tuple[tuple[str, tuple[str, ...]], ...] = ()
    wrong: tuple[str, ...] = ()
    size: int = 0


@frozen
class PlanResources:
    """What a plan may use: tools by name, and roles with their purposes. ``done``: ids of completed steps when a plan
    is replaced.
    """

    tools: Mapping[str, Tool]
    roles: Mapping[str, str]
    done: Sequence[str] = ()


NAME = "submit_plan"
LOOPS = 10
"""Default model requests of a step."""
MOST_LOOPS = 500
LONGEST = 8_000
"""Maximum characters of a text in a plan."""
_APART = regex(r"[^\w-]+")
BRACKETS = 40
"""Maximum places in a text that are tried as the start of JSON."""


def submitted(reply: Message) -> dict[str, Any] | None:
    """Return the plan in ``reply`` as written; None if there is none."""
    for call in reply.calls:
        if call.name == NAME and call.malformed is None:
            inner = call.input.get("plan")
            if "subtasks" not in call.input and isinstance(inner, dict):
                return cast("dict[str, Any]", inner)
            return call.input
    malformed = [call.malformed for call in reply.calls if call.name == NAME and call.malformed]
    return next((found for text in (*malformed, reply.text) for found in _plans(text)), None)


def _plans(text: str) -> Iterator[dict[str, Any]]:
    """Yield everything in ``text`` that looks like a plan."""
    from ba_tui.providers.text_calls.json_dialects import JsonDecoder  # noqa: PLC0415 - most plans come as a call

    decoder, at = JsonDecoder(), 0
    for _ in range(BRACKETS):
        starts = [place for place in (text.find("{", at), text.find("[", at)) if place >= 0]
        if not starts:
            return
        at = min(starts)
        try:
            found, end = decoder.value(text, at)
        except ValueError:
            at += 1
            continue
        at = max(end, at + 1)
        if isinstance(found, list):
            steps = cast("list[Any]", found)
            found = {"subtasks": steps} if steps and all(isinstance(each, dict) for each in steps) else {}
        plan = cast("dict[str, Any]", found)
        inner = plan.get("plan")
        plan = cast("dict[str, Any]", inner) if isinstance(inner, dict) else plan
        if isinstance(plan.get("subtasks"), list) or plan.get("question"):
            yield plan


def written(plan: Mapping[str, Any]) -> WrittenPlan:
    """Return ``plan`` as values; unreadable parts are listed in ``wrong``, one line each."""
    steps, wrong = plan.get("subtasks", []), list[str]()
    if not isinstance(steps, list):
        return WrittenPlan(question=_text(plan.get("question")), wrong=("subtasks: expected a list",))
    listed = cast("list[Any]", steps)
    head = (_text(plan.get("goal")), _texts(plan.get("assumptions")), _text(plan.get("question")))
    if len(listed) > MOST:
        return WrittenPlan(head[0], (), *head[1:], size=len(listed))
    objects = [
        (number, cast("dict[str, Any]", each)) for number, each in enumerate(listed, 1) if isinstance(each, dict)
    ]
    subtasks = tuple([_step(number, each, wrong) for number, each in objects])
    wrong += [
        f"step {number}: expected an object" for number, each in enumerate(listed, 1) if not isinstance(each, dict)
    ]
    return WrittenPlan(head[0], subtasks, *head[1:], _covers(plan.get("covers")), tuple(wrong), len(listed))


def _step(number: int, step: dict[str, Any], wrong: list[str]) -> SubTask:
    raw = _text(step.get("id"))
    name = _id(raw) or f"s{number}"
    if name != raw:
        told = f"{clipped(raw, 64)!r} is no id: write letters, digits, - and _" if raw else "lacks an id"
        wrong.append(f"step {number}: {told}")
    args: Any = step.get("tool_args") or {}
    if not isinstance(args, dict):
        wrong.append(f"step {name}: tool_args: expected an object")
        args = {}
    description, tool = _text(step.get("description")), _text(step.get("tool_name"))
    if not description and not tool:
        wrong.append(f"step {name}: lacks a description")
    loops = step.get("max_loops")
    return SubTask(
        name,
        description or (f"Call {tool}" if tool else ""),
        _text(step.get("expected_output")),
        tool,
        cast("dict[str, Any]", args),
        tuple(_id(each) for each in _texts(step.get("dependencies"))),
        tuple(_id(each) for each in _texts(step.get("optional"))),
        _text(step.get("role")),
        critical=step.get("critical") is True,
        max_loops=min(max(loops, 1), MOST_LOOPS) if type(loops) is int else LOOPS,
    )


def _id(text: str) -> str:
    return _APART.sub("-", text).strip("-")[:64]


def _covers(value: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(value, list):
        return ()
    each = [cast("dict[str, Any]", one) for one in cast("list[Any]", value) if isinstance(one, dict)]
    return tuple((one_line(_text(one.get("wanted")), 200), _texts(one.get("subtasks"))) for one in each[:MOST])


def _text(value: Any) -> str:
    """Return text for display, without invisible characters."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    return hidden_removed(value).strip()[:LONGEST] if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(text for text in map(_text, listed[:MOST]) if text))


TOLD = 40
"""Maximum complaints that are sent back to a model."""


def tidied(plan: WrittenPlan, means: PlanResources) -> WrittenPlan:
    """Return ``plan`` with obvious intentions made explicit: a step waits for the results it uses, a role in the place
    of a tool becomes the role, completed steps are not repeated.
    """
    known = {*means.done, *(step.id for step in plan.subtasks)}
    steps = [_tidied(step, known, means) for step in plan.subtasks if step.id not in means.done]
    return replace(plan, subtasks=tuple(steps))


def _tidied(step: SubTask, known: set[str], means: PlanResources) -> SubTask:
    if step.tool_name and step.tool_name not in means.tools and step.tool_name in means.roles:
        step = replace(step, tool_name="", tool_args={}, role=step.role or step.tool_name)
    return waiting(step, known)


def waiting(step: SubTask, known: set[str]) -> SubTask:
    """Return ``step`` with dependencies on all of ``known`` that it uses."""
    used = [id for id in sorted(references(step) & known) if id != step.id]
    waits = tuple(dict.fromkeys([*step.dependencies, *used]))
    return replace(step, dependencies=waits, optional=tuple(id for id in step.optional if id in waits))


def complaints(plan: WrittenPlan, means: PlanResources) -> list[str]:
    """Return the faults of a tidied ``plan``, one line each; at most TOLD lines."""
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


def _wrong(step: SubTask, known: Sequence[str], means: PlanResources) -> Iterator[str]:
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
    """Return why the call of ``step`` can't be made; empty if it can, or if the step has no call."""
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
    """Return how ``args`` violate the schema of ``tool``. Values with references to results are not checked."""
    from ba_tui.tools.guards.validate import literal_complaints  # noqa: PLC0415 - brings jsonschema

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
    """Return names in braces that match no result. In arguments most braces are code: there a name is reported only if
    it nearly matches an id.
    """
    others = {*known} - {step.id}
    said = references(replace(step, tool_args={}))
    return [name for name in sorted(references(step) - others) if name in said or slip(name, known)]


def circle_of(steps: Sequence[SubTask]) -> list[str]:
    """Return the ids of steps that wait for each other in a circle, each before its dependent; empty without a
    circle.
    """
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
