"""A chart as a Vega-Lite specification, from the same data as the drawing in the terminal."""

from __future__ import annotations

from typing import Any

from ba_tui.core.displays.charts import Chart
from ba_tui.plotting.canvas import safe

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
WIDTH, HEIGHT = 640, 360
BAR = 26
PALETTE = ("#3b6fb6", "#d9822b", "#3a8f5c", "#b8475a", "#7a5aa6", "#8c6d4f", "#c06ba8", "#6b7280")
"""Colours of series that differ in brightness, too."""
MARKS = {"bar": "bar", "line": "line", "area": "area", "scatter": "point", "histogram": "bar", "pie": "arc"}


def specification(chart: Chart) -> dict[str, Any]:
    """Return a Vega-Lite specification that contains its data, so that drawing it loads nothing."""
    title: dict[str, Any] = {"text": safe(chart.title), "anchor": "start"}
    if chart.notes:
        title["subtitle"] = [safe(note) for note in chart.notes]
    view: dict[str, Any] = {
        "$schema": SCHEMA,
        "title": title,
        "background": "white",
        "config": {"range": {"category": list(PALETTE)}, "axis": {"labelLimit": 240}, "numberFormat": ",~r"},
    }
    if chart.empty:
        return {**view, "data": {"values": []}, "mark": "text", "width": WIDTH, "height": 60}
    match chart.kind:
        case "box":
            return {**view, **_boxes(chart)}
        case "heatmap":
            return {**view, **_heatmap(chart)}
        case "histogram":
            return {**view, **_histogram(chart)}
        case "pie":
            return {**view, **_pie(chart)}
        case "bar":
            return {**view, **_bars(chart)}
        case _:
            return {**view, **_places(chart)}


def _unit(chart: Chart) -> str:
    title = safe(chart.y_title)
    return f"{title} ({safe(chart.request.unit)})" if chart.request.unit else title


def _values(chart: Chart) -> list[dict[str, Any]]:
    """A record for each point; names of columns are never names of fields, which have a syntax of their own."""
    found: list[dict[str, Any]] = []
    for number, series in enumerate(chart.series):
        weights = series.weights or (1,) * len(series.x)
        for x, y, weight in zip(series.x, series.y, weights, strict=True):
            if y is not None and not (chart.request.log and y <= 0):
                place: Any = safe(chart.labels[int(x)]) if chart.axis == "category" and chart.labels else x
                place = place * 1000 if chart.axis == "time" else place
                found.append({"x": place, "y": y, "s": safe(series.name), "i": number, "n": weight})
    return found


def _scale(chart: Chart, *, zero: bool) -> dict[str, Any]:
    if chart.request.log:
        return {"type": "log"}
    limits = {"domainMin": chart.request.low, "domainMax": chart.request.high} if not zero else {}
    return {"zero": zero, **{name: value for name, value in limits.items() if value is not None}}


def _colour(chart: Chart) -> dict[str, Any]:
    if len(chart.series) < 2:
        return {"value": PALETTE[0]}
    names = [safe(each.name) for each in chart.series]
    return {"field": "s", "type": "nominal", "sort": names, "title": safe(chart.request.series) or None}


def _bars(chart: Chart) -> dict[str, Any]:
    labels = [safe(each) for each in chart.labels]
    lying = max(map(len, labels), default=0) > 14 or len(labels) > 24
    named: dict[str, Any] = {"field": "x", "type": "nominal", "sort": labels, "title": safe(chart.x_title) or None}
    amount: dict[str, Any] = {
        "field": "y", "type": "quantitative", "title": _unit(chart), "scale": _scale(chart, zero=True),
    }  # fmt: skip
    several, stacked = len(chart.series) > 1, chart.request.stacked
    mark: dict[str, Any] = {"type": "bar"}
    if several and not stacked:
        amount["stack"] = None
    along, across = ("y", "x") if lying else ("x", "y")
    if not lying and sum(map(len, labels)) < 80:
        named["axis"] = {"labelAngle": 0}
    encoding = {along: named, across: amount, "color": _colour(chart), "order": {"field": "i"}}
    if several and not stacked:
        names = [safe(each.name) for each in chart.series]
        encoding[f"{along}Offset"] = {"field": "s", "sort": names}
    size = {"width": WIDTH, "height": {"step": 8 if several and not stacked else BAR}} if lying else _size()
    return {"data": {"values": _values(chart)}, "mark": mark, "encoding": encoding, **size}


def _size() -> dict[str, Any]:
    return {"width": WIDTH, "height": HEIGHT}


def _places(chart: Chart) -> dict[str, Any]:
    kinds = {"category": "ordinal", "number": "quantitative", "time": "temporal"}
    place: dict[str, Any] = {"field": "x", "type": kinds[chart.axis], "title": safe(chart.x_title) or None}
    if chart.axis == "category":
        place["sort"] = [safe(each) for each in chart.labels]
    elif chart.axis == "number":
        place["scale"] = {"zero": False}
        whole = [value for each in chart.series for value in each.x]
        if all(value == int(value) and 1500 <= value <= 2200 for value in whole):
            place["axis"] = {"format": "d"}
    else:
        place["scale"] = {"type": "utc"}
    amount = {
        "field": "y", "type": "quantitative", "title": _unit(chart), "scale": _scale(chart, zero=chart.kind == "area"),
    }  # fmt: skip
    encoding: dict[str, Any] = {"x": place, "y": amount, "color": _colour(chart)}
    if chart.kind == "area":
        encoding["order"] = {"field": "i"}
    mark: dict[str, Any] = {"type": MARKS[chart.kind]}
    if chart.kind == "scatter":
        mark |= {"filled": True, "opacity": 0.6}
        if any(each.weights for each in chart.series):
            encoding["size"] = {"field": "n", "type": "quantitative", "title": "rows"}
    elif len(chart.series) > 1 and chart.kind == "line":
        encoding["strokeDash"] = {**encoding["color"], "legend": None}
    if all(len(each.x) == 1 for each in chart.series) and chart.kind != "scatter":
        mark = {"type": "point", "filled": True}
    return {"data": {"values": _values(chart)}, "mark": mark, "encoding": encoding, **_size()}


def _histogram(chart: Chart) -> dict[str, Any]:
    values = [{**each, "end": each["x"] + chart.step} for each in _values(chart)]
    unit = f" ({safe(chart.request.unit)})" if chart.request.unit else ""
    encoding = {
        "x": {
            "field": "x",
            "type": "quantitative",
            "bin": {"binned": True, "step": chart.step},
            "title": safe(chart.x_title) + unit,
        },
        "x2": {"field": "end"},
        "y": {
            "field": "y", "type": "quantitative", "title": safe(chart.y_title), "scale": _scale(chart, zero=True),
        },
        "color": {"value": PALETTE[0]},
    }  # fmt: skip
    return {"data": {"values": values}, "mark": "bar", "encoding": encoding, **_size()}


def _pie(chart: Chart) -> dict[str, Any]:
    labels = [safe(each) for each in chart.labels]
    encoding = {
        "theta": {"field": "y", "type": "quantitative", "stack": True},
        "color": {"field": "x", "type": "nominal", "sort": labels, "title": safe(chart.x_title) or None},
        "order": {"field": "place", "type": "quantitative"},
    }
    values = [{**each, "place": place} for place, each in enumerate(_values(chart))]
    return {"data": {"values": values}, "mark": {"type": "arc"}, "encoding": encoding, **_size()}


def _heatmap(chart: Chart) -> dict[str, Any]:
    labels, names = [safe(each) for each in chart.labels], [safe(each.name) for each in chart.series]
    encoding = {
        "x": {"field": "x", "type": "ordinal", "sort": labels, "title": safe(chart.x_title) or None},
        "y": {"field": "s", "type": "ordinal", "sort": names, "title": safe(chart.request.series) or None},
        "color": {"field": "y", "type": "quantitative", "title": _unit(chart), "scale": {"scheme": "blues"}},
    }
    return {
        "data": {"values": _values(chart)},
        "mark": "rect",
        "encoding": encoding,
        "width": WIDTH,
        "height": {"step": BAR},
    }


def _boxes(chart: Chart) -> dict[str, Any]:
    names = [safe(each.label) for each in chart.boxes]
    values = [
        {"k": name, "low": each.low, "q1": each.first, "q2": each.median, "q3": each.third, "high": each.high}
        for name, each in zip(names, chart.boxes, strict=True)
    ]
    along = {"field": "k", "type": "nominal", "sort": names, "title": safe(chart.x_title) or None}
    scale = _scale(chart, zero=False)

    def figure(name: str) -> dict[str, Any]:
        return {"field": name, "type": "quantitative", "title": _unit(chart), "scale": scale}

    layer = [
        {"mark": "rule", "encoding": {"y": along, "x": figure("low"), "x2": {"field": "high"}}},
        {
            "mark": {"type": "bar", "size": 14, "color": PALETTE[0]},
            "encoding": {"y": along, "x": figure("q1"), "x2": {"field": "q3"}},
        },
        {
            "mark": {"type": "tick", "size": 14, "color": "white", "thickness": 2},
            "encoding": {"y": along, "x": figure("q2")},
        },
    ]
    return {"data": {"values": values}, "layer": layer, "width": WIDTH, "height": {"step": BAR}}
