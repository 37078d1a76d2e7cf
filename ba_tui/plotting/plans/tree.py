"""A plan as a tree: a line for each step, under the last one of those that it waits for.

An only child stands on the level of its parent, so that a long chain does not run out of the screen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ba_tui.core.teamwork.plans import Plan, SubTask
from ba_tui.core.values import frozen
from ba_tui.plotting.plans.layers import depths, reduced
from ba_tui.plotting.plans.signs import UNICODE, PlanSigns, step_name, words

DEEPEST = 8
"""Levels that are indented; what lies deeper stands on the last of them."""


@frozen
class TreeLine:
    """``rails``: what stands before the step's mark. ``also``: the other steps that it waits for, by their
    ids, without those that follow from the rest."""

    step: SubTask
    rails: str
    also: tuple[str, ...] = ()


def tree_lines(plan: Plan, signs: PlanSigns = UNICODE) -> list[TreeLine]:
    """Return every step once. A plan that waits for itself in a circle is shown too."""
    children, also = _family(plan)
    lines: list[TreeLine] = []
    # The step, the rails before it, what joins it to them, and the rails of what follows below it.
    roots = children.get("", ())
    stack = _pushed(roots, "", signs) if len(roots) > 1 else [(step, "", "") for step in roots]
    while stack:
        step, joined, below = stack.pop()
        lines.append(TreeLine(step, joined, also.get(step.id, ())))
        stack += _pushed(children.get(step.id, ()), below, signs)
    return lines


def _pushed(steps: Sequence[SubTask], rails: str, signs: PlanSigns) -> list[tuple[SubTask, str, str]]:
    """The steps below ``rails``, the first one last."""
    if len(steps) == 1:
        return [(steps[0], rails + signs.then, rails)]
    deep = len(rails) >= DEEPEST * len(signs.rail)
    found: list[tuple[SubTask, str, str]] = []
    for place, step in enumerate(steps):
        last = place == len(steps) - 1
        joined = rails + (signs.last if last else signs.branch)
        below = rails if deep else rails + (" " * len(signs.rail) if last else signs.rail)
        found.append((step, joined, below))
    return found[::-1]


def _family(plan: Plan) -> tuple[Mapping[str, Sequence[SubTask]], Mapping[str, tuple[str, ...]]]:
    """The steps below each id (those that wait for nothing below the empty one), and what else a step waits for."""
    depth, waits = depths(plan), reduced(plan)
    place = {step.id: index for index, step in enumerate(plan.subtasks)}
    children: dict[str, list[SubTask]] = {}
    also: dict[str, tuple[str, ...]] = {}
    for step in plan.subtasks:
        # Only a step that lies less deep can be a parent: so nothing is below itself.
        needed = [id for id in waits[step.id] if depth[id] < depth[step.id]]
        parent = max(needed, key=lambda id: (depth[id], place[id]), default="")
        children.setdefault(parent, []).append(step)
        also[step.id] = tuple(id for id in waits[step.id] if id != parent)
    return children, also


def tree_text(plan: Plan, signs: PlanSigns = UNICODE) -> list[str]:
    """The tree as plain lines."""
    return [
        f"{line.rails}{signs.mark(line.step.status)} {step_name(line.step)}{after(line)}"
        for line in tree_lines(plan, signs)
    ]


def after(line: TreeLine) -> str:
    """What else the step waits for, in words; empty when the tree says it all."""
    return f"  (also after {', '.join(map(words, line.also))})" if line.also else ""
