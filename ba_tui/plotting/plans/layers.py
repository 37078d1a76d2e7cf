"""The layers of a plan: what may run at the same time, one below the other. Circles and unknown ids do no harm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ba_tui.core.teamwork.plans import Plan


def needs(plan: Plan) -> dict[str, list[str]]:
    """The known ids that each step waits for, each once and never itself."""
    known = {step.id for step in plan.subtasks}
    return {
        step.id: [id for id in dict.fromkeys(step.dependencies) if id in known and id != step.id]
        for step in plan.subtasks
    }


def sorted_ids(waits: Mapping[str, Sequence[str]]) -> tuple[list[str], list[str]]:
    """The ids, each behind those that it waits for, and those that wait for each other in a circle, or behind one."""
    left = {id: len(others) for id, others in waits.items()}
    followers: dict[str, list[str]] = {id: [] for id in waits}
    for id, others in waits.items():
        for other in others:
            followers[other].append(id)
    ready = [id for id, number in left.items() if not number]
    for id in ready:
        for follower in followers[id]:
            left[follower] -= 1
            if not left[follower]:
                ready.append(follower)
    found = set(ready)
    return ready, [id for id in waits if id not in found]


def straightened(plan: Plan) -> dict[str, list[str]]:
    """``needs`` without what would close a circle: of each step in one, only those written before it count."""
    waits = needs(plan)
    _, circling = sorted_ids(waits)
    place = {id: index for index, id in enumerate(waits)}
    caught = set(circling)
    return {
        id: [other for other in others if id not in caught or other not in caught or place[other] < place[id]]
        for id, others in waits.items()
    }


def depths(plan: Plan) -> dict[str, int]:
    """How many steps lie before each one on the longest way to it."""
    waits = straightened(plan)
    found: dict[str, int] = {}
    for id in sorted_ids(waits)[0]:
        found[id] = max((found[other] + 1 for other in waits[id]), default=0)
    return found


def reduced(plan: Plan) -> dict[str, list[str]]:
    """What each step waits for, without what follows from the rest: a before b before c says that a is before c."""
    waits = straightened(plan)
    before: dict[str, set[str]] = {}
    for id in sorted_ids(waits)[0]:
        before[id] = set[str]().union(waits[id], *(before[other] for other in waits[id]))
    return {
        id: [other for other in others if not any(other in before[third] for third in others if third != other)]
        for id, others in waits.items()
    }


def layered(waits: Mapping[str, Sequence[str]], most: int) -> list[list[str]]:
    """The ids in layers of at most ``most``, each behind the layers of those that it waits for."""
    layer: dict[str, int] = {}
    rows: list[list[str]] = []
    for id in sorted_ids(waits)[0]:
        at = max((layer[other] + 1 for other in waits[id]), default=0)
        while at < len(rows) and len(rows[at]) >= most:
            at += 1
        while at >= len(rows):
            rows.append([])
        rows[at].append(id)
        layer[id] = at
    return rows
