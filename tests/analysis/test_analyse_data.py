"""The tool analyse_data: each operation gives its result, and wrong arguments are one line."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from ba_tui.core.results import Table, ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.data.analysis.calendars import calendar_query
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import AnalysisError, QueryFailed
from ba_tui.features.data.analysis.forecast import (
    Point,
    Step,
    following,
    of_weekdays,
    step_of,
    trouble,
    whole_periods,
)
from ba_tui.features.data.tools.query_data import ANALYSE, DataOperations, analyse_data_tool
from ba_tui.processes.values import WorkerSettings
from ba_tui.resources import bundled
from ba_tui.tools.definitions import load_definitions
from ba_tui.tools.failures import ToolFailure

pytestmark = pytest.mark.asyncio(loop_scope="module")
Put = Callable[[str, bytes | str], str]
Run = Callable[..., Any]


async def nothing(args: Mapping[str, Any]) -> str:
    return str(args["sql"])


@pytest.fixture
def tool(engine: Analysis, files: Path) -> Tool:
    definitions = load_definitions(bundled("config") / "prompts" / "tools")
    worker = WorkerSettings(files, {"PATH": os.defpath})
    return analyse_data_tool(definitions[ANALYSE], DataOperations(engine, worker, "sample", 4), nothing)


@pytest_asyncio.fixture(loop_scope="module")
async def run(tool: Tool) -> Run:
    async def running(operation: str, **args: Any) -> ToolResult:
        return await tool.run({"operation": operation, **args}, Call("c1", Branch(Turn(), Transcript())))

    return running


async def test_profiles_and_comparisons_of_files(run: Run, put: Put) -> None:
    left, right = put("old.csv", "id,v\n1,5\n2,6\n"), put("new.csv", "id,v\n1,5\n2,7\n")
    assert (await run("profile", table=left)).text.startswith("Table old: ")
    result = await run("compare", table=left, other=right)
    assert "Rows: 1 equal, 1 changed, 0 only in old, 0 only in new." in result.text
    assert isinstance(result.display, Table)
    assert result.display.rows == (("changed", 2, 6, 7),)
    same = await run("compare", table="old", other="old")
    assert (same.summary, same.display) == ("no difference", None)


async def test_cross_tables_and_calendars_are_results(run: Run, put: Put) -> None:
    path = put("units.csv", "region,year,units\nN,2023,1\nN,2024,2\nS,2024,4\n")
    result = await run("pivot", table=path, rows=["region"], columns=["year"], values="units")
    assert result.display.rows[-1] == (None, 1, 6, 7, True)
    calendar = await run("calendar", start="2026-03-30", end="2026-04-07", country="DE")
    free = [(row[0], row[7]) for row in calendar.display.rows if row[7]]
    assert free == [("2026-04-03", "Good Friday"), ("2026-04-06", "Easter Monday")]
    assert [row[9:] for row in calendar.display.rows[1:3]] == [(2026, 4, 12), (2027, 1, 1)]


async def test_a_forecast_continues_the_series(run: Run, put: Put) -> None:
    months = [date(2021 + n // 12, n % 12 + 1, 1) for n in range(36)]
    rows = "".join(f"{day},{100 + 2 * n + n % 3}\n" for n, day in enumerate(months))
    path = put("monthly.csv", f"day,sold\n{rows}")
    result = await run("forecast", table=path, date="day", values="sold", periods=2)
    ahead = [row for row in result.display.rows if row[2] is not None]
    assert [row[0] for row in ahead] == ["2024-01-01", "2024-02-01"]
    for _, actual, value, low, high in ahead:
        assert actual is None
        assert low < value < high
        assert abs(value - 173) < 8
    assert "past values were off by" in result.text


@pytest.mark.parametrize(
    ("content", "args", "said"),
    [
        ("d,v\n2024-01-01,1\n2024-02-01,2\n", {}, "The series has 2 months; a forecast needs at least 10."),
        ("d,v\n", {}, "d is no column of dates."),
        ("d,v\n2024-01-01,1\n", {"values": "w"}, "has no column w."),
        ("d,v\n2024-01-01,x\n", {}, "v is no column of numbers."),
    ],
)
async def test_a_series_that_can_not_be_forecast(
    run: Run, put: Put, content: str, args: Mapping[str, Any], said: str
) -> None:
    given = {"table": put("s.csv", content), "date": "d", "values": "v", "periods": 3, **args}
    with pytest.raises(AnalysisError) as caught:
        await run("forecast", **given)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("operation", "args", "said"),
    [
        ("compare", {"table": "a"}, "compare needs other."),
        ("forecast", {"table": "a"}, "forecast needs date and values and periods."),
        ("profile", {"table": "a", "keys": ["x"]}, "profile does not take keys."),
        ("calendar", {"start": "2026-01-01", "end": "2026-02-01", "contry": "DE"}, "calendar does not take contry."),
    ],
)
async def test_wrong_arguments_are_one_line(run: Run, operation: str, args: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        await run(operation, **args)
    assert str(caught.value) == said
    assert caught.value.hint


async def test_files_that_a_call_names_are_asked_about(tool: Tool) -> None:
    assert tool.concern
    assert await tool.concern({"operation": "compare", "table": "a.csv", "other": "R1"}) == "FROM 'a.csv'"
    assert await tool.concern({"operation": "profile", "table": "book.xlsx#Sheet1"}) == "FROM 'book.xlsx'"
    assert await tool.concern({"operation": "profile", "table": "sales"}) == ""


@pytest.mark.parametrize(
    ("span", "said"),
    [
        (("2024-1-1", "2024-02-01"), "'2024-1-1' is no date."),
        (("2024-02-01", "2024-01-01"), "The calendar ends on 2024-01-01, before it begins on 2024-02-01."),
        (("1800-01-01", "2024-01-01"), "A calendar has at most 100 years."),
        (("2024-01-01", "2024-01-02", "Germany"), "No holidays are known for Germany."),
        (("2024-01-01", "2024-01-02", "DE-QQ"), "DE has no part QQ."),
        (("2024-01-01", "2024-01-02", "", 13), "A fiscal year begins in a month from 1 to 12."),
    ],
)
async def test_a_calendar_that_can_not_be_is_one_line(span: tuple[Any, ...], said: str) -> None:
    with pytest.raises(QueryFailed) as caught:
        calendar_query(*span)
    assert str(caught.value) == said


@pytest.mark.parametrize(("days", "step"), [(1, "day"), (7, "week"), (31, "month"), (91, "quarter"), (365, "year")])
async def test_the_length_of_a_period_is_found(days: int, step: Step) -> None:
    first = date(2020, 1, 1)
    assert step_of(first, date.fromordinal(first.toordinal() + days * 20), 21) == step
    assert following(first, step) > first


async def test_gaps_and_periods_that_are_not_over_are_told() -> None:
    points = [Point(date(2023 + n // 12, n % 12 + 1, 1), math.sin(n)) for n in range(24)]
    assert trouble(points, "month", 6) == ""
    assert trouble(points, "month", 13) == "13 months ahead is too far for 24 of history: at most 12 months."
    holed = [*points[:3], Point(points[3].period, None), *points[5:]]
    assert trouble(holed, "month", 3) == "The series has 2 gaps: no value for the month of 2023-04-01, 2023-05-01."
    kept, note = whole_periods(points, date(2024, 12, 9), 700, "month")
    assert (len(kept), note) == (
        23,
        "The period from 2024-12-01 is left out: its rows end on 2024-12-09, before 2024-12-31.",
    )
    assert whole_periods(points, date(2024, 12, 30), 700, "month") == (points, "")
    working = [Point(date(2024, 1, 1 + n), 1.0) for n in range(12) if date(2024, 1, 1 + n).weekday() < 5]
    assert of_weekdays(working)
    assert trouble(working, "weekday", 2) == ""
