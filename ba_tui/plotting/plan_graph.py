"""Lay out a plan: as a graph of boxes in layers with lines between them, and as a tree. Positions, not looks.

States change while a plan runs, and boxes do not move for that: a box is a position, and the painter looks up its step.
Lines of one source share a track between two layers; crossing lines pass over each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from rich.cells import cell_len, set_cell_size

from ba_tui.core.teamwork import Plan, SubTask
from ba_tui.core.text.cells import clip, hard_cuts
from ba_tui.core.values import frozen
from ba_tui.plotting.plan_signs import UNICODE, PlanSigns, step_name, words


def needs(plan: Plan) -> dict[str, list[str]]:
    """Return the known dependencies of each step, without duplicates and itself."""
    known = {step.id for step in plan.subtasks}
    return {
        step.id: [id for id in dict.fromkeys(step.dependencies) if id in known and id != step.id]
        for step in plan.subtasks
    }


def sorted_ids(waits: Mapping[str, Sequence[str]]) -> tuple[list[str], list[str]]:
    """Return the ids, each after its dependencies, and those in or behind a dependency circle."""
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
    """Return ``needs`` without circles: steps in one depend only on those written before them."""
    waits = needs(plan)
    _, circling = sorted_ids(waits)
    place = {id: index for index, id in enumerate(waits)}
    caught = set(circling)
    return {
        id: [other for other in others if id not in caught or other not in caught or place[other] < place[id]]
        for id, others in waits.items()
    }


def depths(plan: Plan) -> dict[str, int]:
    """Return the length of the longest dependency chain before each step."""
    waits = straightened(plan)
    found: dict[str, int] = {}
    for id in sorted_ids(waits)[0]:
        found[id] = max((found[other] + 1 for other in waits[id]), default=0)
    return found


def all_before(waits: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """Return the direct and indirect dependencies of each id outside circles."""
    found: dict[str, set[str]] = {}
    for id in sorted_ids(waits)[0]:
        found[id] = set(waits[id]).union(*(found[other] for other in waits[id]))
    return found


def reduced(plan: Plan) -> dict[str, list[str]]:
    """Return the dependencies of each step without those implied by others: with a before b before c, a before c is
    implied."""
    waits = straightened(plan)
    before = all_before(waits)
    return {
        id: [other for other in others if not any(other in before[third] for third in others if third != other)]
        for id, others in waits.items()
    }


def layered(waits: Mapping[str, Sequence[str]], most: int) -> list[list[str]]:
    """Return the ids in layers of at most ``most``, each after the layers of its dependencies."""
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


@frozen
class Wire:
    """A line from column ``source`` down to the columns ``targets``."""

    source: int
    targets: tuple[int, ...]

    @property
    def straight(self) -> bool:
        return set(self.targets) == {self.source}

    @property
    def span(self) -> tuple[int, int]:
        return min(self.source, *self.targets), max(self.source, *self.targets)


def tracks(wires: Sequence[Wire]) -> dict[Wire, int]:
    """Return the row of each line, from 1; straight lines need none."""
    bent = [wire for wire in wires if not wire.straight]
    found: dict[Wire, int] = {}
    taken: list[list[tuple[int, int]]] = []
    above = _above(bent)
    for wire in _sorted(bent, above):
        first = max((found[other] for other in above[wire] if other in found), default=0)
        while first < len(taken) and any(_touch(wire.span, span) for span in taken[first]):
            first += 1
        while first >= len(taken):
            taken.append([])
        taken[first].append(wire.span)
        found[wire] = first + 1
    return found


def _above(wires: Sequence[Wire]) -> dict[Wire, list[Wire]]:
    """Return the lines that must be above each one: those that go up in a column where it comes down."""
    return {wire: [other for other in wires if other is not wire and other.source in wire.targets] for wire in wires}


def _sorted(wires: Sequence[Wire], above: dict[Wire, list[Wire]]) -> Sequence[Wire]:
    try:
        return tuple(TopologicalSorter(above).static_order())
    except CycleError:
        return wires


def _touch(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] + 1 and other[0] <= one[1] + 1


GAP = 2
"""Columns between two boxes."""
NARROWEST, WIDEST = 18, 30
"""Minimum and maximum columns of a box."""
HEIGHT = 4
"""Rows of a box: two of words, and its frame."""
SWEEPS = 4
"""Passes to order layers by their neighbours."""


@frozen
class StepBox:
    """Position of a step: its left column, first row, width in columns and layer."""

    id: str
    x: int
    y: int
    width: int
    layer: int

    @property
    def centre(self) -> int:
        return self.x + self.width // 2


@frozen
class PlanDrawing:
    """A laid out plan. ``boxes`` by step; ``lines``: the characters of each row between the boxes, by column."""

    boxes: Mapping[str, StepBox]
    lines: Mapping[int, Mapping[int, str]]
    width: int
    height: int

    def row(self, y: int) -> Sequence[StepBox]:
        """Return the boxes that cover row ``y``, from left to right."""
        return sorted((box for box in self.boxes.values() if box.y <= y < box.y + HEIGHT), key=lambda box: box.x)

    def next(self, id: str, across: int, down: int) -> str:
        """Return the neighbouring step, or the nearest of the next layer; ``id`` if there is none."""
        here = self.boxes[id]
        if across:
            beside = [box for box in self.boxes.values() if box.layer == here.layer and (box.x - here.x) * across > 0]
            return min(beside, key=lambda box: abs(box.x - here.x), default=here).id
        layer = [box for box in self.boxes.values() if box.layer == here.layer + down]
        return min(layer, key=lambda box: abs(box.centre - here.centre), default=here).id


def drawing(plan: Plan, width: int, signs: PlanSigns = UNICODE) -> PlanDrawing:
    """Lay out ``plan`` for ``width`` columns; it may exceed them if dependencies cross many layers."""
    waits = reduced(plan)
    if not waits:
        return PlanDrawing({}, {}, 0, 0)
    rows = layered(waits, max(1, (width + GAP) // (NARROWEST + GAP)))
    edges = _through(waits, rows)
    box = max(NARROWEST, min(WIDEST, *(_room(row, set(waits), width) for row in rows)))
    _order(rows, edges)
    places = _placed(rows, edges, (box, set(waits)), width)
    return _joined(rows, edges, places, (box, set(waits)), signs)


def _room(row: Sequence[str], steps: set[str], width: int) -> int:
    """Return the columns for each box of a layer, besides the lines that pass it."""
    boxes = sum(id in steps for id in row)
    return (width + GAP - (len(row) - boxes) * (1 + GAP)) // boxes - GAP


def _through(waits: Mapping[str, Sequence[str]], rows: list[list[str]]) -> dict[str, list[str]]:
    """Return the successors of each place in the next layer. Where a line passes a layer, it gets a place there, shared
    by the lines to one step; its name begins with a tab, unlike those of steps."""
    layer = {id: index for index, row in enumerate(rows) for id in row}
    edges: dict[str, dict[str, None]] = {id: {} for id in layer}
    for id, others in waits.items():
        for other in others:
            last = other
            for index in range(layer[other] + 1, layer[id]):
                passing = f"\t{index}\t{id}"
                if passing not in edges:
                    edges[passing] = {}
                    rows[index].append(passing)
                edges[last][passing] = None
                last = passing
            edges[last][id] = None
    return {id: list(others) for id, others in edges.items()}


def _order(rows: list[list[str]], edges: Mapping[str, Sequence[str]]) -> None:
    """Sort each layer by its neighbours, down and up in turn, to reduce crossings."""
    above: dict[str, list[str]] = {}
    for id, others in edges.items():
        for other in others:
            above.setdefault(other, []).append(id)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        joined: Mapping[str, Sequence[str]] = above if down else edges
        for index in range(1, len(rows)):
            here, beside = (index, index - 1) if down else (-index - 1, -index)
            place = {id: at for at, id in enumerate(rows[beside])}
            own = {id: float(at) for at, id in enumerate(rows[here])}
            weight = {id: _mean([place[other] for other in joined.get(id, ())], own[id]) for id in rows[here]}
            rows[here].sort(key=lambda id, weight=weight: weight[id])


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def _placed(
    rows: Sequence[Sequence[str]], edges: Mapping[str, Sequence[str]], of: tuple[int, set[str]], width: int
) -> dict[str, int]:
    """Return the centre column of each place: near the middle of its neighbours, without overlaps. ``of``: the columns
    of a box, and the ids of steps."""
    box, known = of
    half = {id: box // 2 if id in known else 0 for row in rows for id in row}
    after = {id: (box - 1) // 2 if id in known else 0 for id in half}
    above: dict[str, list[str]] = {}
    for id, others in edges.items():
        for other in others:
            above.setdefault(other, []).append(id)
    centre: dict[str, float] = {}
    for row in rows:
        at = 0
        for id in row:
            centre[id] = at + half[id]
            at += half[id] + after[id] + 1 + GAP
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        joined: Mapping[str, Sequence[str]] = above if down else edges
        for row in rows if down else reversed(rows):
            wanted = [_mean([centre[other] for other in joined.get(id, ())], centre[id]) for id in row]
            gaps = [0, *(after[a] + half[b] + 1 + GAP for a, b in pairwise(row))]
            ends = half[row[0]], width - 1 - after[row[-1]]
            centre.update(zip(row, _apart(wanted, gaps, ends), strict=True))
    whole = {id: round(value) for id, value in centre.items()}
    left = min(whole[id] - half[id] for id in whole)
    for row in rows:
        # Rounding may make two overlap.
        for a, b in pairwise(row):
            whole[b] = max(whole[b], whole[a] + after[a] + half[b] + 1 + GAP)
    return {id: value - left for id, value in whole.items()}


def _apart(wanted: Sequence[float], gaps: Sequence[int], ends: tuple[int, int]) -> list[float]:
    """Return the values nearest to ``wanted`` with at least their gap to the one before, within ``ends`` if they
    fit."""
    blocks: list[tuple[float, int]] = []
    offsets: list[float] = []
    offset = 0.0
    for value, gap in zip(wanted, gaps, strict=True):
        offset += gap
        offsets.append(offset)
        mean, size = value - offset, 1
        while blocks and blocks[-1][0] >= mean:
            before, number = blocks.pop()
            mean, size = (before * number + mean * size) / (number + size), number + size
        blocks.append((mean, size))
    first, last = ends[0], max(ends[0], ends[1] - offset)
    means = [min(max(mean, first), last) for mean, size in blocks for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]


def _joined(
    rows: Sequence[Sequence[str]],
    edges: Mapping[str, Sequence[str]],
    centre: Mapping[str, int],
    of: tuple[int, set[str]],
    signs: PlanSigns,
) -> PlanDrawing:
    """Return boxes and lines; ``of``: the columns of a box, and the ids of steps."""
    width, steps = of
    boxes: dict[str, StepBox] = {}
    bits: dict[int, dict[int, int]] = {}
    arrows: dict[tuple[int, int], str] = {}
    y = 0
    for index, row in enumerate(rows):
        for id in row:
            if id in steps:
                boxes[id] = StepBox(id, centre[id] - width // 2, y, width, index)
            else:
                for line in range(y, y + HEIGHT):
                    _mark(bits, line, centre[id], 5)
        y += HEIGHT
        wires = [Wire(centre[id], tuple(centre[other] for other in edges[id])) for id in row if edges[id]]
        if not wires:
            continue
        found = tracks(wires)
        high = max(found.values(), default=-1) + 2
        for wire in wires:
            _draw(bits, wire, y, (found.get(wire), high))
        for id in row:
            arrows.update({(y + high - 1, centre[other]): signs.arrow for other in edges[id] if other in steps})
        y += high
    lines = {at: {x: signs.lines[value] for x, value in cells.items()} for at, cells in bits.items()}
    for (at, x), arrow in arrows.items():
        lines.setdefault(at, {})[x] = arrow
    right = max((box.x + box.width for box in boxes.values()), default=0)
    right = max([right, *(x + 1 for cells in lines.values() for x in cells)])
    return PlanDrawing(boxes, lines, right, y)


def _draw(bits: dict[int, dict[int, int]], wire: Wire, top: int, of: tuple[int | None, int]) -> None:
    """Draw a line from its source down to its track, along it, and down to its targets; ``of``: track and rows."""
    track, high = of
    at = high if track is None else track
    for row in range(at):
        _mark(bits, top + row, wire.source, 5)
    if track is None:
        return
    ends = sorted({wire.source, *wire.targets})
    _mark(bits, top + track, wire.source, 1)
    for target in wire.targets:
        _mark(bits, top + track, target, 4)
        for row in range(track + 1, high):
            _mark(bits, top + row, target, 5)
    for x in range(ends[0], ends[-1] + 1):
        cell = bits.setdefault(top + track, {})
        value = (2 if x < ends[-1] else 0) | (8 if x > ends[0] else 0)
        if x not in ends and cell.get(x, 0) == 5:
            # A crossing line passes over this one.
            continue
        cell[x] = cell.get(x, 0) | value


def _mark(bits: dict[int, dict[int, int]], y: int, x: int, value: int) -> None:
    cell = bits.setdefault(y, {})
    if value == 5 and cell.get(x, 0) == 10:
        cell[x] = 5
    else:
        cell[x] = cell.get(x, 0) | value


def box_line(step: SubTask, box: StepBox, row: int, signs: PlanSigns, mark: str = "") -> str:
    """Return row ``row`` (from 0) of the box in full width; ``mark`` replaces the sign of its state."""
    left, flat, right, upright, low_left, low_right = signs.box
    if row == 0:
        return left + flat * (box.width - 2) + right
    if row == HEIGHT - 1:
        return low_left + flat * (box.width - 2) + low_right
    return f"{upright}{box_words(step, box, signs, mark)[row - 1]}{upright}"


def box_words(step: SubTask, box: StepBox, signs: PlanSigns, mark: str = "") -> tuple[str, str]:
    """Return the two lines inside the frame."""
    room = box.width - 4
    text = step_name(step)
    first = _upto(text, room)
    rest = text[len(first) :].strip()
    second = clip(rest, room, signs.more)
    sign = mark or signs.mark(step.status)
    return f"{sign} {set_cell_size(first.strip(), room)}", f"  {set_cell_size(second, room)}"


def _upto(text: str, room: int) -> str:
    """Return as many words of ``text`` as fit into ``room`` cells, or a part of a longer word."""
    if cell_len(text) <= room:
        return text
    cut = hard_cuts(text, room)[0][1]
    space = text.rfind(" ", 0, cut + 1)
    return text[:space] if space > 0 else text[:cut]


def graph_text(plan: Plan, width: int, signs: PlanSigns = UNICODE) -> list[str]:
    """Return the graph as plain lines."""
    drawn = drawing(plan, width, signs)
    steps = {step.id: step for step in plan.subtasks}
    found: list[str] = []
    for y in range(drawn.height):
        line = ""
        cells = drawn.lines.get(y, {})
        parts = [(box.x, box_line(steps[box.id], box, y - box.y, signs)) for box in drawn.row(y)]
        for x, text in sorted([*parts, *cells.items()]):
            line = line.ljust(x) + text
        found.append(line)
    return found


DEEPEST = 8
"""Maximum number of indented levels; deeper steps use the last one."""


@frozen
class TreeLine:
    """A line of the tree. ``rails``: the text before the step's mark. ``also``: ids of its other dependencies, without
    implied ones."""

    step: SubTask
    rails: str
    also: tuple[str, ...] = ()


def tree_lines(plan: Plan, signs: PlanSigns = UNICODE) -> list[TreeLine]:
    """Return the plan as a tree with a line for each step, below the last of its dependencies; circles are shown too.
    An only child is on the level of its parent, so that a long chain fits on the screen."""
    children, also = _family(plan)
    lines: list[TreeLine] = []
    # Entries: the step, the rails with its branch, and the rails of its children.
    roots = children.get("", ())
    stack = _pushed(roots, "", signs) if len(roots) > 1 else [(step, "", "") for step in roots]
    while stack:
        step, joined, below = stack.pop()
        lines.append(TreeLine(step, joined, also.get(step.id, ())))
        stack += _pushed(children.get(step.id, ()), below, signs)
    return lines


def _pushed(steps: Sequence[SubTask], rails: str, signs: PlanSigns) -> list[tuple[SubTask, str, str]]:
    """Return the steps below ``rails``, the first one last."""
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
    """Return the children of each id (roots under the empty id), and the other dependencies of each step."""
    depth, waits = depths(plan), reduced(plan)
    place = {step.id: index for index, step in enumerate(plan.subtasks)}
    children: dict[str, list[SubTask]] = {}
    also: dict[str, tuple[str, ...]] = {}
    for step in plan.subtasks:
        # A parent must be less deep, so that no step is below itself.
        needed = [id for id in waits[step.id] if depth[id] < depth[step.id]]
        parent = max(needed, key=lambda id: (depth[id], place[id]), default="")
        children.setdefault(parent, []).append(step)
        also[step.id] = tuple(id for id in waits[step.id] if id != parent)
    return children, also


def tree_text(plan: Plan, signs: PlanSigns = UNICODE) -> list[str]:
    """Return the tree as plain lines."""
    return [
        f"{line.rails}{signs.mark(line.step.status)} {step_name(line.step)}{after(line)}"
        for line in tree_lines(plan, signs)
    ]


def after(line: TreeLine) -> str:
    """Return the other dependencies in words; empty if there are none."""
    return f"  (also after {', '.join(map(words, line.also))})" if line.also else ""
