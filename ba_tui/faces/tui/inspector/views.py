"""The ways in which the inspector can show one result, the best one first."""

from __future__ import annotations

import asyncio
from typing import Literal, TypeAlias

from ba_tui.core.displays.charts import Chart
from ba_tui.core.errors import BaError
from ba_tui.core.results import Table
from ba_tui.core.values import frozen
from ba_tui.faces.tui.displays.renderers import renderer_of
from ba_tui.faces.tui.grid.outputs import LOOK, output_format
from ba_tui.faces.tui.inspector.json_values import LOOK as JSON_LOOK
from ba_tui.faces.tui.inspector.json_values import Parsed, begins_like_json, parsed_json
from ba_tui.faces.tui.inspector.model import DataTable, Inspected, Whole

MOST = 1_000_000
"""Bytes of a stored result that are read as JSON, or copied."""

ViewName: TypeAlias = Literal["tree", "result", "pages", "grid", "chart"]
"""A tree of JSON; what the conversation holds; all that is stored, page by page; a table of the session's data; a chart
of it."""


@frozen
class ResultViews:
    """``value``: what a tree shows; ``table``: what a grid shows."""

    names: tuple[ViewName, ...] = ("result",)
    value: Parsed = None
    table: DataTable | None = None

    def after(self, name: ViewName) -> ViewName:
        """The view that follows ``name``, round the end."""
        return self.names[(self.names.index(name) + 1) % len(self.names)]

    def words(self, name: ViewName) -> str:
        """What the key that leads to it is called."""
        result = "text" if "tree" in self.names else "short form"
        return {"result": result, "pages": "whole text"}.get(name, name)


async def views_of(inspected: Inspected) -> ResultViews:
    """Read what is needed off the UI loop."""
    if inspected.datasets and isinstance(inspected.display, Chart):
        return ResultViews(("chart",))
    # A picture of its own (a difference, a table, todos) says more than the text that it was made of.
    complete = inspected.display is not None and renderer_of(inspected.display).complete
    names: list[ViewName] = ["result"]
    if inspected.whole:
        names = ["result", "pages"] if complete else ["pages", "result"]
    if result := _result(inspected):
        return ResultViews(("grid", *names), None, result)
    value = None if complete else await _json(inspected)
    table = None if complete or value is not None else await asyncio.to_thread(_output, inspected)
    found: list[ViewName] = [*(["tree"] if value is not None else []), *names, *(["grid"] if table else [])]
    return ResultViews(tuple(found), value, table)


def _result(inspected: Inspected) -> DataTable | None:
    """The result of a query, which the engine keeps."""
    display = inspected.display
    if inspected.datasets and isinstance(display, Table) and display.handle:
        return DataTable(inspected.datasets, display.handle)
    return None


def _output(inspected: Inspected) -> DataTable | None:
    """Output that can become a table. Blocks."""
    if inspected.datasets is None:
        return None
    try:
        text = inspected.whole.reader.read(inspected.whole.ref, 0, LOOK).text if inspected.whole else text_of(inspected)
    except BaError:
        return None
    format = output_format(text)
    return DataTable(inspected.datasets, "", format) if format else None


def text_of(inspected: Inspected) -> str:
    """The result without gutters and decoration."""
    display = inspected.display
    return renderer_of(display).text(display) if display else inspected.text


async def table_name(table: DataTable, inspected: Inspected) -> str:
    """The name of the table, which is made now if there is none yet. Raises BaError."""
    if table.name:
        return table.name
    ref = inspected.whole.ref if inspected.whole else None
    return (await table.datasets.register_output(text_of(inspected), table.format, ref)).name


async def _json(inspected: Inspected) -> Parsed:
    if inspected.whole:
        return await asyncio.to_thread(_stored, inspected.whole)
    text = text_of(inspected)
    return await asyncio.to_thread(parsed_json, text) if begins_like_json(text) else None


def _stored(whole: Whole) -> Parsed:
    """None too for what is larger than MOST, and for what can't be read any more: its pages say so."""
    try:
        if not begins_like_json(whole.reader.read(whole.ref, 0, JSON_LOOK).text):
            return None
        page = whole.reader.read(whole.ref, 0, MOST)
    except BaError:
        return None
    return parsed_json(page.text) if page.last else None
