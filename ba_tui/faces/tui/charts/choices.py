"""What the keys of a chart change: the next kind, column or aggregate, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, TypeAlias, TypeVar

from ba_tui.core.displays.charts import AGGREGATES, KINDS, Chart, ChartKind, ChartRequest
from ba_tui.core.ports.tables import Column
from ba_tui.core.values import frozen

Change: TypeAlias = Literal["kind", "x", "y", "series", "aggregate", "stacked", "log"]
T = TypeVar("T")
GROUPED = frozenset({"bar", "line", "area", "heatmap"})


@frozen
class ChartWish:
    """``request``: what the person wants; ``otherwise``: the same where that can't be drawn, with fewer demands."""

    request: ChartRequest
    otherwise: ChartRequest | None = None


def changed(wanted: ChartRequest, chart: Chart | None, columns: Sequence[Column], change: Change) -> ChartWish:
    """Return what one key makes of a chart; ``chart`` is what is drawn of ``wanted``, if anything is."""
    now = chart.request if chart else wanted
    numbers = [each.name for each in columns if each.numeric]
    names = [each.name for each in columns]
    match change:
        case "kind":
            kind: ChartKind = _next(KINDS, wanted.kind or now.kind)
            bare = ChartRequest(wanted.data, kind, log=wanted.log)
            return ChartWish(replace(wanted, kind=kind), bare)
        case "x":
            x = _next(names, wanted.x or now.x)
            series = "" if wanted.series == x else wanted.series
            y = tuple(each for each in wanted.y if each != x)
            return ChartWish(replace(wanted, x=x, y=y, series=series), ChartRequest(wanted.data, None, x))
        case "y":
            current = next(iter(wanted.y or now.y), "")
            y = _next(["", *numbers] if (now.kind in GROUPED) else numbers, current)
            count = "count" if not y else None if wanted.aggregate == "count" else wanted.aggregate
            return ChartWish(replace(wanted, x=wanted.x or now.x, y=(y,) if y else (), aggregate=count))
        case "series":
            groups = ["", *(each.name for each in columns if not each.numeric and each.name != now.x)]
            return ChartWish(replace(wanted, x=now.x, y=now.y[:1], series=_next(groups, wanted.series or now.series)))
        case "aggregate":
            aggregate = _next(AGGREGATES, wanted.aggregate or now.aggregate)
            return ChartWish(replace(wanted, x=wanted.x or now.x, y=wanted.y or now.y, aggregate=aggregate))
        case "stacked":
            return ChartWish(replace(wanted, stacked=not wanted.stacked))
        case "log":
            return ChartWish(replace(wanted, log=not wanted.log))


def _next(choices: Sequence[T], current: T | None) -> T:
    """The choice behind ``current``, round the end."""
    found = [place for place, each in enumerate(choices) if each == current]
    return choices[(found[0] + 1) % len(choices)] if found else choices[0]
