"""A plan as a graph: boxes in layers from top to bottom, and lines between them. Where things stand, not how they look.

States change while a plan runs, and nothing moves for that: a box is a place, and whoever paints it looks up its step.
Lines of one source share a track between two layers; a line that crosses another passes over it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

from ba_tui.core.teamwork.plans import Plan
from ba_tui.core.values import frozen
from ba_tui.plotting.plans.layers import layered, reduced
from ba_tui.plotting.plans.signs import UNICODE, PlanSigns


@frozen
class Wire:
    """A line down from the column ``source`` to the columns ``targets``."""

    source: int
    targets: tuple[int, ...]

    @property
    def straight(self) -> bool:
        return set(self.targets) == {self.source}

    @property
    def span(self) -> tuple[int, int]:
        return min(self.source, *self.targets), max(self.source, *self.targets)


def tracks(wires: Sequence[Wire]) -> dict[Wire, int]:
    """The row of each line, from 1; those that go straight down need none."""
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
    """The lines that must lie above each one: where one comes down in the column in which another goes up."""
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
"""Columns of a box."""
HEIGHT = 4
"""Rows of a box: two of words, and its frame."""
SWEEPS = 4
"""How often layers are put into the order of their neighbours."""


@frozen
class Box:
    """Where a step stands: its left column, its first row, its columns and its layer."""

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
    """``boxes`` by step; ``lines``: the characters of each row that stand between the boxes, by column."""

    boxes: Mapping[str, Box]
    lines: Mapping[int, Mapping[int, str]]
    width: int
    height: int

    def row(self, y: int) -> Sequence[Box]:
        """The boxes that take a part of row ``y``, from left to right."""
        return sorted((box for box in self.boxes.values() if box.y <= y < box.y + HEIGHT), key=lambda box: box.x)

    def next(self, id: str, across: int, down: int) -> str:
        """The step that lies one step aside, or the nearest of the next layer; ``id`` where there is none."""
        here = self.boxes[id]
        if across:
            beside = [box for box in self.boxes.values() if box.layer == here.layer and (box.x - here.x) * across > 0]
            return min(beside, key=lambda box: abs(box.x - here.x), default=here).id
        layer = [box for box in self.boxes.values() if box.layer == here.layer + down]
        return min(layer, key=lambda box: abs(box.centre - here.centre), default=here).id


def drawing(plan: Plan, width: int, signs: PlanSigns = UNICODE) -> PlanDrawing:
    """Lay ``plan`` out for ``width`` columns; it may take more when its steps need each other across many layers."""
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
    """Columns that each box of a layer may take beside the lines that pass it."""
    boxes = sum(id in steps for id in row)
    return (width + GAP - (len(row) - boxes) * (1 + GAP)) // boxes - GAP


def _through(waits: Mapping[str, Sequence[str]], rows: list[list[str]]) -> dict[str, list[str]]:
    """What each place leads to in the next layer. Where a line passes a layer, a place of its own is put into it, which
    the lines to one step share; its name begins with a tab, as no step's does."""
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
    """Put each layer into the order of what it is joined to, down and up in turn, so that few lines cross."""
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
    """The centre of each place: near the middle of what it is joined to, and nothing upon another. ``of``: the columns
    of a box, and what is a step."""
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
        # Rounding may push two together.
        for a, b in pairwise(row):
            whole[b] = max(whole[b], whole[a] + after[a] + half[b] + 1 + GAP)
    return {id: value - left for id, value in whole.items()}


def _apart(wanted: Sequence[float], gaps: Sequence[int], ends: tuple[int, int]) -> list[float]:
    """The values nearest to ``wanted`` of which each is at least its gap behind the one before it, within ``ends`` as
    far as they fit."""
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
    """Boxes and lines; ``of``: the columns of a box, and what is a step."""
    width, steps = of
    boxes: dict[str, Box] = {}
    bits: dict[int, dict[int, int]] = {}
    arrows: dict[tuple[int, int], str] = {}
    y = 0
    for index, row in enumerate(rows):
        for id in row:
            if id in steps:
                boxes[id] = Box(id, centre[id] - width // 2, y, width, index)
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
    """A line from its source down to its track, along it and down to what it leads to; ``of``: track and rows."""
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
            # Another line crosses here: it passes over this one.
            continue
        cell[x] = cell.get(x, 0) | value


def _mark(bits: dict[int, dict[int, int]], y: int, x: int, value: int) -> None:
    cell = bits.setdefault(y, {})
    if value == 5 and cell.get(x, 0) == 10:
        cell[x] = 5
    else:
        cell[x] = cell.get(x, 0) | value
