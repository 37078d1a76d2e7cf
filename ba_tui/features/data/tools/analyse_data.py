"""The tool analyse_data: profiles, comparisons, cross tables, forecasts and calendars.

One tool for all: its schema takes a third fewer tokens than five (540 and 760), and small models choose between fewer
tools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ba_tui.context.session_data import dataset_kind
from ba_tui.core.ports.tables import Progress, QueryResult, Share
from ba_tui.core.results import ToolResult
from ba_tui.core.text.wording import count, nearest
from ba_tui.core.tool import Call, Concern, Effect, Tool, ToolFacts
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.card import card
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.tools.query_data import reporter, result_table, result_text, rows_text, shortened
from ba_tui.processes.worker_values import WorkerSettings
from ba_tui.tools.definitions import Definition
from ba_tui.tools.failed import Failed

if TYPE_CHECKING:
    from ba_tui.features.data.analysis.comparison import Comparison

NAME = "analyse_data"
NEEDS: Mapping[str, Sequence[str]] = {
    "profile": ("table",),
    "compare": ("table", "other"),
    "pivot": ("table", "rows"),
    "forecast": ("table", "date", "values", "periods"),
    "calendar": ("start", "end"),
}
"""What each operation can't do without."""
TAKES: Mapping[str, Sequence[str]] = {
    "profile": (),
    "compare": ("keys", "tolerance"),
    "pivot": ("columns", "values", "aggregate"),
    "forecast": ("step", "aggregate"),
    "calendar": ("country", "fiscal_start"),
}
Listener = Callable[[Progress], None]


@frozen
class AnalysisPlace:
    """What the operations use: the ``engine``, how a ``worker`` for forecasts is started, what a profile gives
    (``share``), and the month in which a fiscal year begins."""

    engine: Analysis
    worker: WorkerSettings
    share: Share
    fiscal_start: int


def analyse_data_tool(definition: Definition, place: AnalysisPlace, concern: Concern) -> Tool:
    """``concern`` says why to ask about the files that a call names."""
    each = _Operations(place)
    operations: Mapping[str, Callable[[Mapping[str, Any], Listener], Awaitable[ToolResult]]] = {
        "profile": each.profile,
        "compare": each.compare,
        "pivot": each.pivot,
        "forecast": each.forecast,
        "calendar": each.calendar,
    }

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        given = checked(args)
        return await operations[args["operation"]](given, reporter(call.report))

    async def asked(args: Mapping[str, Any]) -> str:
        named = (args.get("table"), args.get("other"))
        names = [name.partition("#")[0] for name in named if name and _is_file(name)]
        # The concern of queries reads the names of files from SQL.
        return await concern({"sql": " UNION ALL ".join(f"FROM {_quoted(name)}" for name in names)}) if names else ""

    return Tool(
        NAME,
        definition.description,
        definition.input_schema,
        run,
        Effect.READ,
        # The engine keeps time itself, and what ended its helper is not repeated unseen.
        timeout=None,
        idempotent=False,
        facts=ToolFacts(
            category="data", target="table", tags=("compare", "pivot", "forecast", "profile", "calendar"), bulky=True
        ),
        shorten=shortened,
        so_far=lambda _: "",
        concern=asked,
    )


def checked(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of the operation. Raises Failed for one that is missing or belongs to another operation."""
    operation: str = args["operation"]
    given = {name: value for name, value in args.items() if name != "operation" and value not in ("", [], None)}
    needed, taken = NEEDS[operation], (*NEEDS[operation], *TAKES[operation])
    if missing := [name for name in needed if name not in given]:
        raise Failed("validation_error", f"{operation} needs {' and '.join(missing)}.", f"It takes {', '.join(taken)}.")
    if wrong := next((name for name in given if name not in taken), ""):
        close = nearest(wrong, taken)
        hint = f"Did you mean {close}?" if close else f"It takes {', '.join(taken)}."
        raise Failed("validation_error", f"{operation} does not take {wrong}.", hint)
    return given


@frozen
class _Operations:
    place: AnalysisPlace

    async def profile(self, given: Mapping[str, Any], listener: Listener) -> ToolResult:
        table = await self._table(given["table"], listener)
        profile = await self.place.engine.profile(table, on_progress=listener)
        size = f"{count(profile.dataset.rows, 'row')}, {count(len(profile.columns), 'column')}"
        return ToolResult(card(profile, self.place.share), summary=f"{table} · {size}", kind="table")

    async def compare(self, given: Mapping[str, Any], listener: Listener) -> ToolResult:
        left, right = [await self._table(given[name], listener) for name in ("table", "other")]
        found = await self.place.engine.derived.compare(
            left, right, given.get("keys", ()), tolerance=given.get("tolerance", 0.0), on_progress=listener
        )
        return compared_result(found)

    async def pivot(self, given: Mapping[str, Any], listener: Listener) -> ToolResult:
        table = await self._table(given["table"], listener)
        default = "sum" if "values" in given else "count"
        result = await self.place.engine.derived.pivot(
            table, given["rows"], given.get("columns", ()), given.get("values", ""), given.get("aggregate", default)
        )
        return _of(result)

    async def forecast(self, given: Mapping[str, Any], listener: Listener) -> ToolResult:
        from ba_tui.features.data.analysis.forecasting.forecast import ForecastRequest, forecast  # noqa: PLC0415 - few ask for one

        table = await self._table(given["table"], listener)
        request = ForecastRequest(
            table, given["date"], given["values"], given["periods"], given.get("step"), given.get("aggregate", "sum")
        )
        made = await forecast(self.place.engine, self.place.worker, request, listener)
        handle = made.result.handle
        lines = [
            made.line,
            *made.notes,
            f"{handle} is the past with the forecast behind it, {made.series.handle} the past alone. The forecast:",
            *rows_text(made.ahead.columns, made.ahead.rows),
        ]
        summary = f"{handle} · {count(len(made.ahead.rows), made.step)} ahead"
        meta = {"result": handle}
        return ToolResult("\n".join(lines), result_table(made.result), summary=summary, kind="table", meta=meta)

    async def calendar(self, given: Mapping[str, Any], listener: Listener) -> ToolResult:
        from ba_tui.features.data.analysis.calendars import CalendarSpan, calendar_query  # noqa: PLC0415 - few ask for one

        fiscal = given.get("fiscal_start", self.place.fiscal_start)
        span = CalendarSpan(given["start"], given["end"], given.get("country", ""), fiscal)
        sql = await asyncio.to_thread(calendar_query, span)
        return _of(await self.place.engine.query(sql, on_progress=listener))

    async def _table(self, name: str, listener: Listener) -> str:
        """The name of the table; a file is registered first."""
        if not _is_file(name):
            return name
        source, _, part = name.partition("#")
        names = [each.name for each in await self.place.engine.register(source, part=part, on_progress=listener)]
        if len(names) > 1:
            raise Failed(
                "validation_error", f"{source} holds several tables.", f"Name one of them: {', '.join(names[:12])}."
            )
        return names[0]


def compared_result(found: Comparison) -> ToolResult:
    """What a model and people read of a comparison."""
    from ba_tui.features.data.analysis.comparison import comparison_lines  # noqa: PLC0415 - few ask for one

    lines = list(comparison_lines(found))
    result = found.result
    if result is None:
        return ToolResult("\n".join(lines), summary="no difference" if found.equal else "equal rows", kind="table")
    lines.append(f"The rows that differ are the table {result.handle}.")
    changed = f"{found.changed:,} changed, {found.only_left + found.only_right:,} in one table only"
    meta = {"result": result.handle}
    summary = f"{result.handle} · {changed}"
    return ToolResult("\n".join(lines), result_table(result), summary=summary, kind="table", meta=meta)


def _of(result: QueryResult, *lines: str) -> ToolResult:
    return ToolResult(
        "\n".join([*lines, result_text(result)]),
        result_table(result),
        summary=" · ".join([result.handle, count(result.rows, "row")]),
        kind="table",
        meta={"result": result.handle},
    )


def _is_file(name: str) -> bool:
    return bool(dataset_kind(name.partition("#")[0]))


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
