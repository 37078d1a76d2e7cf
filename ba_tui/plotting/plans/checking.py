"""What is wrong with a plan, step by step: what nobody could carry out. Whether its tools exist is not known here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import cast

from ba_tui.core.teamwork.plans import Plan, SubTask
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import did_you_mean
from ba_tui.core.values import frozen
from ba_tui.plotting.plans.layers import needs, sorted_ids
from ba_tui.plotting.plans.signs import words

REFERENCE = regex(r"(?<!\{)\{([A-Za-z_][\w-]*|\d+)((?:\.[\w-]+)*)\}(?!\})")
ID = regex(r"[\w.-]{1,64}")


@frozen
class Fault:
    """``step``: the place of the step in the plan, from 0; -1 for the plan itself. ``field``: what of it is wrong."""

    step: int
    field: str
    text: str


def faults(plan: Plan) -> list[Fault]:
    """Ids that are missing, twice, unknown or wait for each other, and results that nobody gives."""
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
    before = _before(plan)
    for place, step in enumerate(plan.subtasks):
        for id in sorted(references(step) - before[step.id]):
            # Anything else in braces is plain text: only the id of a step is meant as a result.
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
    """The ids of one circle, in the order in which they wait."""
    waits, left = needs(plan), set(caught)
    if not left:
        return []
    # From any of them, back along what it waits for, until one comes twice.
    at, way = min(left, key=list(waits).index), list[str]()
    while at not in way:
        way.append(at)
        at = next(other for other in waits[at] if other in left)
    return way[way.index(at) :]


def _before(plan: Plan) -> dict[str, set[str]]:
    waits = needs(plan)
    found: dict[str, set[str]] = {}
    for id in sorted_ids(waits)[0]:
        found[id] = set[str]().union(waits[id], *(found[other] for other in waits[id]))
    return found


def references(step: SubTask) -> set[str]:
    """The ids whose results the texts and arguments of the step name."""
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
    """The arguments of its call as JSON on one line."""
    return json.dumps(step.tool_args, ensure_ascii=False, default=str)
