"""The tool chart: a chart of the session's data for the person, and in words for the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from ba_tui.context.session_data import dataset_kind
from ba_tui.core.displays.charts import Chart, ChartRequest, PictureFormat
from ba_tui.core.errors import UsageError
from ba_tui.core.results import Display, Prose, ToolResult
from ba_tui.core.text.wording import byte_size, one_line
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import UnknownTable
from ba_tui.features.data.tools.exports import picture_format
from ba_tui.features.data.tools.query_data import reporter
from ba_tui.permissions.paths import Workspace, is_secret
from ba_tui.tools.definitions import Definition
from ba_tui.tools.editing.disk import place_file
from ba_tui.tools.failed import Failed

NAME = "chart"
SAVE = "save"


def chart_tool(definition: Definition, analysis: Analysis, workspace: Workspace, asks: Callable[[str], str]) -> Tool:
    """``asks`` says why to ask before a file is read as data; empty for most."""
    saved: set[str] = set()

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        from ba_tui.features.data.analysis.charts.describing import description  # noqa: PLC0415 - not before the first chart

        wanted = chart_request(args)
        try:
            chart = await analysis.charts.compute(wanted, on_progress=reporter(call.report))
        except UnknownTable:
            if not dataset_kind(wanted.data):
                raise
            (dataset, *_) = await analysis.register(wanted.data, on_progress=reporter(call.report))
            named = chart_request({**args, "data": dataset.name})
            chart = await analysis.charts.compute(named, on_progress=reporter(call.report))
        text = f"{description(chart)}\nThe person sees the chart."
        if path := args.get(SAVE):
            shown, size = await _save(chart, path)
            saved.add(shown)
            text = f"{text}\nSaved as {shown} ({byte_size(size)})."
        return ToolResult(text, chart, summary=f"{chart.kind} · {one_line(chart.title, 60)}")

    async def _save(chart: Chart, path: str) -> tuple[str, int]:
        target = await asyncio.to_thread(workspace.resolve, path)
        shown = workspace.shown(target)
        if is_secret(target):
            raise Failed("permission_denied", f"{shown} is a file for secrets.", "Choose another name.")
        async with analysis.charts.picture(chart, _format(path)) as file:
            return shown, await asyncio.to_thread(place_file, file, target, overwrite=True, shown=shown)

    async def preview(args: Mapping[str, Any]) -> Display | None:
        """What would be saved. Raises BaError for a path that can't be a picture."""
        if path := args.get(SAVE):
            _format(path)
            return Prose(f"Save a chart of {one_line(str(args['data']), 80)} as {one_line(path, 200)}.")
        return None

    async def concern(args: Mapping[str, Any]) -> str:
        return await asyncio.to_thread(_concern, args)

    def _concern(args: Mapping[str, Any]) -> str:
        """Why to ask: a rule about a data file, or a picture of somebody else's that would be replaced."""
        reasons = [asks(args["data"])] if dataset_kind(args["data"]) else []
        if path := args.get(SAVE):
            target = workspace.resolve(path)
            if target.exists() and workspace.shown(target) not in saved:
                reasons.append(f"{workspace.shown(target)} exists and would be replaced")
        return "; ".join(filter(None, reasons))

    facts = ToolFacts(category="data", target="data", writes=SAVE, tags=("chart", "plot", "graph", "picture", "png"))
    return Tool(
        NAME,
        definition.description,
        definition.input_schema,
        run,
        Effect.READ,
        timeout=None,
        idempotent=False,
        facts=facts,
        preview=preview,
        concern=concern,
    )


def _format(path: str) -> PictureFormat:
    try:
        return picture_format(path)
    except UsageError as error:
        raise Failed("validation_error", str(error), error.hint) from error


def chart_request(args: Mapping[str, Any]) -> ChartRequest:
    """The request that arguments of a call describe; ``y`` may be one name."""
    known = {each.name for each in fields(ChartRequest)}
    given = {name: value for name, value in args.items() if name in known and value is not None}
    y = given.pop("y", ())
    return ChartRequest(**given, y=(y,) if isinstance(y, str) else tuple(y))
