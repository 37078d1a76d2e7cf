"""A chart as an SVG file: bar, line, scatter or hist, with axes from nice numbers and a text that says what it shows.

In: {"kind": "bar", "path": "sales.csv", "x": "region", "y": "amount", "aggregate": "sum", "output": "out/sales.svg"}
or {"kind": "line", "data": [{"x": "2024-01", "y": 3}, …], …}. Also group (a column: one series each), title, unit,
x_label, y_label, sort ("x", "-x", "y", "-y"), limit (bars), bins (hist), zero, width, height, overwrite.
"""

from __future__ import annotations

import csv
import json
import math
import sys
from collections import defaultdict
from collections.abc import Callable
from statistics import median

from drawing import Picture, draw
from workspace import Args, Refused, encoding_of, option, run, shown, source, target

KNOWN = (
    "kind path data x y group aggregate output overwrite title unit x_label y_label sort limit bins zero width height"
)
WAYS: dict[str, Callable[[list[float]], float]] = {
    "sum": math.fsum,
    "count": len,
    "mean": lambda values: math.fsum(values) / len(values),
    "median": median,
    "min": min,
    "max": max,
}
Point = tuple[str, str, float]


def chart(args: Args) -> Args:
    kind = option(args, "kind", str, "")
    if kind not in {"bar", "line", "scatter", "hist"}:
        raise Refused('"kind" is bar, line, scatter or hist')
    points, read, left = points_of(args, kind)
    if not points:
        raise Refused(f"there is nothing to draw: {read} rows, {sum(left.values())} without a usable value")
    way = option(args, "aggregate", str, "")
    if kind in {"bar", "line"}:
        points = gathered(points, way)
        points = ordered(points, option(args, "sort", str, "x" if kind == "line" else ""))
    points, cut = shortened(points, kind, option(args, "limit", int, 40))
    path = target(args)
    if path.suffix.lower() != ".svg":
        raise Refused('"output" must end in .svg')
    labels = (
        option(args, "x_label", str, option(args, "x", str, "")),
        option(args, "y_label", str, label_y(args, kind)),
    )
    size = (between(option(args, "width", int, 760), 320, 4000), between(option(args, "height", int, 420), 200, 4000))
    picture = Picture(kind, points, option(args, "title", str, ""), labels, option(args, "unit", str, ""), size)
    picture.bins = between(option(args, "bins", int, 0), 0, 200)
    picture.zero = kind == "bar" or option(args, "zero", bool, False)
    path.write_text(draw(picture), encoding="utf-8")
    values = [value for _, _, value in points]
    facts = {"rows": read, "drawn": len(points), "left_out": dict(left), "bars_cut": cut}
    figures = {"min": min(values), "max": max(values), "sum": math.fsum(values)}
    return {"written": shown(path), **facts, "aggregate": way or None, "values": figures, "says": picture.said()}


def between(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def label_y(args: Args, kind: str) -> str:
    way, name = option(args, "aggregate", str, ""), option(args, "y", str, "")
    if kind == "hist":
        return "rows"
    return f"{way} of {name}" if way and name else name or way


def points_of(args: Args, kind: str) -> tuple[list[Point], int, dict[str, int]]:
    """Where each row lies: (series, x, y); what has no number is counted, not drawn as zero."""
    rows = rows_of(args)
    named = option(args, "x", str, "x"), option(args, "y", str, "y"), option(args, "group", str, "")
    wanted = [named[0], *([named[1]] if needs_y(args, kind) else []), *([named[2]] if named[2] else [])]
    known = {key for row in rows for key in row}
    if absent := [name for name in wanted if name not in known]:
        raise Refused(f"no column {', '.join(absent)}; there are {', '.join(sorted(known))}")
    points: list[Point] = []
    left: dict[str, int] = defaultdict(int)
    for row in rows:
        x = str(row.get(named[0], "")).strip() if row.get(named[0]) is not None else ""
        y = x if kind == "hist" else row.get(named[1]) if needs_y(args, kind) else 1
        number = numeric(y)
        if number is None or (kind == "scatter" and numeric(x) is None):
            left["no number"] += 1
        elif not x:
            left[f"no {named[0]}"] += 1
        else:
            points.append((str(row.get(named[2], "") or "(none)") if named[2] else "", x, number))
    return points, len(rows), left


def needs_y(args: Args, kind: str) -> bool:
    return kind != "hist" and not (option(args, "aggregate", str, "") == "count" and "y" not in args)


def rows_of(args: Args) -> list[Args]:
    if ("data" in args) == ("path" in args):
        raise Refused('give either "path" (CSV or JSON) or "data" (a list of objects)')
    if "data" in args:
        held: object = option(args, "data", list, [])
    else:
        path = source(args)
        data = path.read_bytes()
        text = data.decode(encoding_of(data), "replace")
        try:
            held = json.loads(text) if path.suffix.lower() == ".json" else table(text)
        except (ValueError, RecursionError, csv.Error) as error:
            raise Refused(f"{shown(path)}: {error}") from None
    if not isinstance(held, list) or not all(isinstance(row, dict) for row in held):
        raise Refused("the data must be a list of objects, one a row")
    return held


def table(text: str) -> list[Args]:
    first = text.split("\n", 1)[0]
    rows = csv.DictReader(text.splitlines(), delimiter=max(",;\t|", key=first.count))
    return [{(key or "").strip(): value for key, value in row.items() if key} for row in rows]


def numeric(value: object) -> float | None:
    """Numbers as programs write them; "1,200" and "12 %" are text and must be cleaned first."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(str(value).strip())
    except ValueError:
        return None
    return number if math.isfinite(number) and abs(number) < 1e300 else None


def gathered(points: list[Point], way: str) -> list[Point]:
    """One value for each place; several without a word on how to join them would draw one over the other."""
    places: dict[tuple[str, str], list[float]] = defaultdict(list)
    for series, x, y in points:
        places[series, x].append(y)
    if way and way not in WAYS:
        raise Refused(f'"aggregate" is one of {", ".join(WAYS)}')
    twice = next((place for place, values in places.items() if len(values) > 1), None)
    if twice and not way:
        raise Refused(f'{twice[1]!r} has several rows: set "aggregate" ({", ".join(WAYS)}), or "group"')
    return [(*place, float(WAYS[way or "sum"](values))) for place, values in places.items()]


def ordered(points: list[Point], sort: str) -> list[Point]:
    if sort.lstrip("-") not in {"", "x", "y"}:
        raise Refused('"sort" is x, -x, y or -y')
    if not sort:
        return points
    totals: dict[str, float] = defaultdict(float)
    for _, x, y in points:
        totals[x] += y
    numbers = all(numeric(x) is not None for x in totals)

    def place(point: Point) -> tuple[float, str]:
        if sort.endswith("y"):
            return totals[point[1]], point[1]
        return (numeric(point[1]) or 0.0, "") if numbers else (0.0, point[1])

    return sorted(points, key=place, reverse=sort.startswith("-"))


def shortened(points: list[Point], kind: str, most: int) -> tuple[list[Point], int]:
    """Bars beyond the limit are left out, and their number is told."""
    names = list(dict.fromkeys(x for _, x, _ in points)) if kind == "bar" else []
    kept = set(names[: max(most, 1)])
    return ([point for point in points if point[1] in kept], len(names) - len(kept)) if names else (points, 0)


if __name__ == "__main__":
    sys.exit(run(chart, KNOWN))
