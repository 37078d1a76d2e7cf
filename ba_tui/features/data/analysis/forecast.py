"""Forecast of a column. The series is a result of the engine, a helper fits the model, and the forecast is a result
too."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any, Literal, TypeAlias

from ba_tui.core.errors import BaError
from ba_tui.core.ports.tables import Page, Progress, QueryResult
from ba_tui.core.text.wording import correction, count, quoted
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine import PAGE_ROWS, Analysis
from ba_tui.features.data.analysis.errors import EngineFailed, QueryFailed, progress_for
from ba_tui.processes.values import WorkerCrashed, WorkerEntry, WorkerFailed, WorkerSettings, WorkerTimeout

Step: TypeAlias = Literal["day", "weekday", "week", "month", "quarter", "year"]
SEASONS: Mapping[Step, int] = {"day": 7, "weekday": 5, "week": 52, "month": 12, "quarter": 4, "year": 1}
"""Periods after which a seasonal pattern may repeat."""
_MONTHS: Mapping[Step, int] = {"month": 1, "quarter": 3, "year": 12}
_LONGEST: tuple[tuple[float, Step], ...] = ((1.7, "day"), (10, "week"), (50, "month"), (200, "quarter"))
"""Most days between dates of a series with such periods."""
LEAST = 10
"""Least periods for a forecast."""
SHOWN_GAPS = 5


@frozen
class Point:
    """One period, identified by its first day; ``value`` is None when it is missing."""

    period: date
    value: float | None


def step_of(first: date, last: date, dates: int) -> Step:
    """Return the period length of a series with these distinct ``dates``."""
    days = (last - first).days / max(1, dates - 1)
    for longest, step in _LONGEST:
        if days <= longest:
            return step
    return "year"


def following(period: date, step: Step) -> date:
    """Return the first day of the next period."""
    if step == "day":
        return period + timedelta(1)
    if step == "weekday":
        return period + timedelta(3 if period.weekday() == 4 else 1)
    if step == "week":
        return period + timedelta(7)
    months = period.year * 12 + period.month - 1 + _MONTHS[step]
    return date(months // 12, months % 12 + 1, 1)


def whole_periods(points: Sequence[Point], last_day: date, dates: int, step: Step) -> tuple[Sequence[Point], str]:
    """Return ``points`` without an incomplete last period, and a sentence about it; empty when it is complete.
    ``last_day`` is the last date of the rows; a series with one date for each period has only complete ones."""
    if not points or dates <= len(points) or step in {"day", "weekday"}:
        return points, ""
    end = following(points[-1].period, step) - timedelta(1)
    # Series of business days may end a few days before the period does.
    if end - last_day <= timedelta(3):
        return points, ""
    return points[:-1], f"The period from {points[-1].period} is left out: its rows end on {last_day}, before {end}."


def of_weekdays(points: Sequence[Point]) -> bool:
    """Return whether a daily series has no Saturday and no Sunday."""
    return len(points) > SEASONS["weekday"] and all(point.period.weekday() < SEASONS["weekday"] for point in points)


def trouble(points: Sequence[Point], step: Step, ahead: int) -> str:
    """Return why ``points`` can't be forecast; empty when they can."""
    if len(points) < LEAST:
        return f"The series has {count(len(points), step)}; a forecast needs at least {LEAST}."
    if ahead > len(points) // 2:
        most = count(len(points) // 2, step)
        return f"{count(ahead, step)} ahead is too far for {len(points):,} of history: at most {most}."
    if gaps := list(_gaps(points, step)):
        shown = ", ".join(map(str, gaps[:SHOWN_GAPS])) + (" …" if len(gaps) > SHOWN_GAPS else "")
        return f"The series has {count(len(gaps), 'gap')}: no value for the {step} of {shown}."
    return ""


def _gaps(points: Sequence[Point], step: Step) -> Iterator[date]:
    known = {point.period for point in points if point.value is not None}
    period = points[0].period
    while period <= points[-1].period:
        if period not in known:
            yield period
        period = following(period, step)


ENTRY = "ba_tui.features.data.analysis.forecast_process:main"
PACKAGE = "statsmodels"
LATEST = 500
"""Most recent periods that a model is fitted to."""
SECONDS = 120.0
THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
AGGREGATES = ("sum", "avg", "min", "max", "median", "count")


@frozen
class ForecastRequest:
    """The series: ``values`` of ``table`` by ``day``, aggregated for each ``step`` (None: detected); ``periods`` to
    forecast; ``level`` of the interval."""

    table: str
    day: str
    values: str
    periods: int = 6
    step: Step | None = None
    aggregate: str = "sum"
    level: float = 0.95


@frozen
class Forecast:
    """``result`` has the series followed by the forecast, ``ahead`` the forecast, ``series`` the past. ``error`` and
    ``naive`` are the mean absolute errors of the model and of the best naive forecast on ``tested`` past values."""

    result: QueryResult
    ahead: Page
    series: QueryResult
    model: str
    step: Step
    error: float
    naive: float
    tested: int
    notes: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        better = f" ({1 - self.error / self.naive:.0%} less)" if self.naive else ""
        return (
            f"Model {self.model}. Forecasts of {count(self.tested, 'past value')} were off by {self.error:,.4g} on "
            f"average, naive ones by {self.naive:,.4g}{better}."
        )


async def forecast(
    analysis: Analysis,
    worker: WorkerSettings,
    asked: ForecastRequest,
    on_progress: Callable[[Progress], None] | None = None,
) -> Forecast:
    """Forecast a series. Raises QueryFailed: the series is too short or has gaps, a naive forecast is better, or the
    package is missing. AnalysisError: as ``Analysis.query``."""
    if importlib.util.find_spec(PACKAGE) is None:
        raise QueryFailed(f"A forecast needs the package {PACKAGE}.", "Run pip install 'ba-tui[forecast]'.")
    step, dates, last_day = await _periods(analysis, asked)
    series = await analysis.query(_series_query(asked, step), on_progress=on_progress)
    offset = max(0, series.rows - PAGE_ROWS)
    page = await analysis.page(series.handle, offset=offset, limit=PAGE_ROWS)
    points: Sequence[Point] = [
        Point(date.fromisoformat(str(period)), None if value is None else float(value)) for period, value in page.rows
    ]
    if step == "day" and of_weekdays(points):
        step = "weekday"
    points, note = whole_periods(points, last_day, dates, step)
    if why := trouble(points, step, asked.periods):
        raise QueryFailed(
            why, f"{series.handle} has the series. Choose longer periods or more history, or fill the gaps."
        )
    notes = [note] if note else []
    if len(points) > LATEST:
        notes.append(f"The model is fitted to the last {count(LATEST, step)}.")
        points = points[-LATEST:]
    fitted = await _fitted(worker, asked, points, step, on_progress)
    if fitted["error"] > fitted["naive"] * (1 + 1e-9) + 1e-12:
        naive = "the value of a season before" if fitted["baseline"] == "season" else "the last value"
        raise QueryFailed(
            f"No forecast: in the past the model was off by {fitted['error']:,.4g} on average, and repeating {naive} "
            f"by {fitted['naive']:,.4g}.",
            f"Say that the series can't be forecast from its past alone. {series.handle} has it.",
        )
    result = await analysis.query(_result_query(asked, series, points, fitted, step))
    ahead = await analysis.page(result.handle, offset=result.rows - asked.periods, limit=asked.periods)
    return Forecast(
        result, ahead, series, fitted["model"], step, fitted["error"], fitted["naive"], fitted["tested"], tuple(notes)
    )


async def _periods(analysis: Analysis, asked: ForecastRequest) -> tuple[Step, int, date]:
    """Return the period length, the number of dates, and the last date."""
    columns = (await analysis.page(asked.table, limit=0)).columns
    for name in filter(None, (asked.day, asked.values)):
        if name.lower() not in {column.name.lower() for column in columns}:
            raise QueryFailed(
                f"{asked.table} has no column {name}.", correction(name, [column.name for column in columns])
            )
    kinds = {column.name.lower(): column.kind for column in columns}
    if kinds[asked.day.lower()] not in {"date", "timestamp"}:
        raise QueryFailed(
            f"{asked.day} is no column of dates.", "Convert it in a query first, and forecast the result."
        )
    if asked.aggregate not in AGGREGATES:
        raise QueryFailed(f"There is no aggregate {asked.aggregate}.", f"Known are {', '.join(AGGREGATES)}.")
    if kinds[asked.values.lower()] not in {"integer", "decimal", "float"} and asked.aggregate != "count":
        raise QueryFailed(f"{asked.values} is no column of numbers.", "Use the aggregate count, or convert it first.")
    about = await analysis.column(asked.table, asked.day)
    if about.minimum is None or about.maximum is None:
        raise QueryFailed(f"{asked.day} has no dates.")
    first, last = (date.fromisoformat(str(value)[:10]) for value in (about.minimum, about.maximum))
    return asked.step or step_of(first, last, about.distinct), about.distinct, last


def _series_query(asked: ForecastRequest, step: Step) -> str:
    day = quoted(asked.day)
    unit = "day" if step == "weekday" else step
    period = f"CAST(date_trunc('{unit}', {day}) AS DATE)"
    value = f"CAST({asked.aggregate}({quoted(asked.values)}) AS DOUBLE)"
    return (
        f"SELECT {period} AS period, {value} AS value FROM {quoted(asked.table)} WHERE {day} IS NOT NULL "
        "GROUP BY 1 ORDER BY 1"
    )


async def _fitted(
    worker: WorkerSettings,
    asked: ForecastRequest,
    points: Sequence[Point],
    step: Step,
    on_progress: Callable[[Progress], None] | None,
) -> dict[str, Any]:
    from ba_tui.processes.worker import WorkerClient  # noqa: PLC0415 - rarely used

    payload = {
        "values": [point.value for point in points],
        "season": SEASONS[step],
        "ahead": asked.periods,
        "level": asked.level,
    }

    # The series are small: more threads for linear algebra would only wait for each other.
    alone = replace(worker, environment={**worker.environment, **dict.fromkeys(THREADS, "1")})
    helper = WorkerClient(WorkerEntry(ENTRY), alone)
    try:
        fitted: Any = await helper.request("forecast", payload, timeout=SECONDS, on_progress=progress_for(on_progress))
    except WorkerFailed as error:
        if error.kind == "missing":
            raise QueryFailed(f"A forecast needs the package {PACKAGE}: {error}.", "Install it again.") from error
        raise QueryFailed(str(error)) from error
    except WorkerTimeout as error:
        raise QueryFailed(f"The forecast took longer than {SECONDS:g} s.", "Use longer periods.", "timeout") from error
    except (WorkerCrashed, OSError, BaError) as error:
        raise EngineFailed(f"The helper for forecasts failed: {error}", "Run it again.") from error
    finally:
        await helper.close()
    numbers = [*fitted["values"], *fitted["low"], *fitted["high"], fitted["error"]]
    if not all(map(math.isfinite, numbers)):
        raise QueryFailed("The model gave no finite forecast.", "Use longer periods, or more history.")
    return fitted


def _result_query(
    asked: ForecastRequest, series: QueryResult, points: Sequence[Point], fitted: dict[str, Any], step: Step
) -> str:
    """Return a query for the past and the forecast in one table; the fitted values are literals in it."""
    rows: list[str] = []
    period = points[-1].period
    for value, low, high in zip(fitted["values"], fitted["low"], fitted["high"], strict=True):
        period = following(period, step)
        rows.append(f"(DATE '{period}', {value!r}::DOUBLE, {low!r}::DOUBLE, {high!r}::DOUBLE)")
    percent = f"{asked.level:.0%}".rstrip("%")
    return (
        f"/* {fitted['model']} of {fitted['engine']}, fitted to {series.handle} */\n"
        f"SELECT period, value AS actual, NULL::DOUBLE AS forecast, NULL::DOUBLE AS low_{percent}, "
        f"NULL::DOUBLE AS high_{percent} FROM {series.handle} WHERE period <= DATE '{points[-1].period}' UNION ALL "
        f"SELECT period, NULL, forecast, low, high FROM (VALUES {', '.join(rows)}) AS f(period, forecast, low, high) "
        "ORDER BY period"
    )
