"""Series of periods in a table: missing, repeated and incomplete periods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

from ba_tui.core.ports.tables import Column, Dataset, TrapFinding
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import quoted, text
from ba_tui.features.data.analysis.engine_process.traps.probes import Prober, words

MOST_TIMES = 100_000
FEWEST = 5
REGULAR = 0.75
"""Share of steps between times that must be equal."""
_MONTH, _QUARTER, _WEEK = regex(r"(\d{4})-(\d{2})"), regex(r"(\d{4})-?Q([1-4])"), regex(r"(\d{4})-?W(\d{2})")

_NAMES = (
    "jan feb mar apr may jun jul aug sep oct nov dec", "jan feb mär apr mai jun jul aug sep okt nov dez",
    "janv févr mars avr mai juin juil août sept oct nov déc", "ene feb mar abr may jun jul ago sep oct nov dic",
    "january february march april may june july august september october november december",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
)  # fmt: skip
_MONTHS = {name: number for names in _NAMES for number, name in enumerate(names.split(), 1)}
_NAMED = regex(r"([^\W\d_]+)\.?[ '/-]*(\d{4}|\d{2})|(\d{4})[ /-]+([^\W\d_]+)\.?")
_TURNED = regex(r"(?i)(?:Q([1-4])[ /-]*|([1-4])\. ?Quartal ?)(\d{4})")
_SLASHED = regex(r"(\d{1,2})[/.](\d{4})|(\d{4})[/.年](\d{1,2})月?")


def _plain(shown: str) -> str:
    """Return a month or quarter such as ``Jan 2023``, ``01/2023``, ``Q1 2023`` in ISO form; other texts unchanged."""
    if found := _TURNED.fullmatch(shown):
        return f"{found[3]}-Q{found[1] or found[2]}"
    year, month = "", 0
    if found := _NAMED.fullmatch(shown):
        year, month = found[2] or found[3], _MONTHS.get((found[1] or found[4]).lower(), 0)
    elif found := _SLASHED.fullmatch(shown):
        year, month = found[2] or found[3], int(found[1] or found[4])
    return f"{year if len(year) == 4 else f'20{year}'}-{month:02}" if month else shown


@frozen
class Period:
    """A time as a number of steps of its ``grain``, and the days that it covers, without ``end``."""

    grain: str
    number: int
    start: date
    end: date


def period(value: object) -> Period | None:
    """Parse a value of a time column: a year, ``2024-03``, ``2024-Q1``, ``2024-W05``, a day or a moment."""
    shown = _plain(str(value).strip())
    if shown.isdigit() and len(shown) == 4 and 1500 < int(shown) < 2200:
        return Period("year", int(shown), date(int(shown), 1, 1), date(int(shown) + 1, 1, 1))
    if (found := _MONTH.fullmatch(shown)) and 0 < int(found[2]) < 13:
        return _months("month", int(found[1]) * 12 + int(found[2]) - 1, 1)
    if found := _QUARTER.fullmatch(shown):
        return _months("quarter", int(found[1]) * 4 + int(found[2]) - 1, 3)
    if found := _WEEK.fullmatch(shown):
        try:
            start = date.fromisocalendar(int(found[1]), int(found[2]), 1)
        except ValueError:
            return None
        return Period("week", start.toordinal() // 7, start, start + timedelta(7))
    try:
        moment = datetime.fromisoformat(shown)
    except ValueError:
        return None
    if moment.year > 9990:
        return None
    if len(shown) == 10:
        return Period("day", moment.toordinal(), moment.date(), moment.date() + timedelta(1))
    seconds = int(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp())
    return Period("second", seconds, moment.date(), moment.date() + timedelta(1))


def _months(grain: str, number: int, months: int) -> Period:
    first, last = number * months, (number + 1) * months
    return Period(grain, number, date(first // 12, first % 12 + 1, 1), date(last // 12, last % 12 + 1, 1))


@frozen
class TimeSeries:
    """A time column with the positions of its values, and ``counts`` by position. ``entity`` is the column that
    identifies rows together with the time; empty for none."""

    dataset: Dataset
    column: Column
    grain: str
    counts: Counter[int]
    entity: str

    @property
    def step(self) -> int:
        """The usual distance; 0 for irregular times."""
        places = sorted(self.counts)
        steps = Counter(after - before for before, after in pairwise(places))
        if not steps:
            return 0
        step, often = steps.most_common(1)[0]
        if len(places) < FEWEST:
            # A few positions suffice if they are consecutive.
            near = step == 1 and self.grain in {"year", "quarter", "month"} and max(steps) == 2
            return step if often == steps.total() or (near and often == 2) else 0
        return step if often >= REGULAR * steps.total() else 0


def today_of(dataset: Dataset) -> date:
    """Return the date of the data: that of the newest file."""
    newest = max((each.mtime_ns for each in dataset.files), default=0)
    return datetime.fromtimestamp(newest / 1e9, UTC).date()


def times(dataset: Dataset, column: Column, probe: Prober, where: str = "") -> tuple[str, Counter[int]]:
    """Return the grain of a time column and how often each time occurs; empty when there are no times."""
    name = quoted(column.name)
    named = set(words(column.name))
    if column.numeric and not named & {"year", "jahr", "month", "period", "annee"}:
        return "", Counter()
    if column.kind not in {"date", "timestamp", "text", "integer"}:
        return "", Counter()
    head = probe.rows(f"SELECT CAST({name} AS VARCHAR) FROM {quoted(dataset.name)} WHERE {name} IS NOT NULL LIMIT 3")
    if any(period(value) is None for (value,) in head):
        return "", Counter()
    found = probe.rows(
        f"SELECT CAST(moment AS VARCHAR), n FROM (SELECT {name} AS moment, count(*) AS n FROM {quoted(dataset.name)} "
        f"WHERE {name} IS NOT NULL{f' AND {where}' if where else ''} GROUP BY 1 LIMIT {MOST_TIMES})"
    )
    periods = [(period(value), n) for value, n in found]
    if not found or len(found) >= MOST_TIMES or any(each is None for each, _ in periods):
        return "", Counter()
    known = [(each, int(n)) for each, n in periods if each]
    grains = {each.grain for each, _ in known}
    if len(grains) > 1:
        return "", Counter()
    numbers: Counter[int] = Counter()
    for each, n in known:
        numbers[each.number] += n
    grain = next(iter(grains))
    last = all(each.end.day == 1 for each, _ in known)
    if column.kind == "date" and len(known) > 3 and (last or all(each.start.day == 1 for each, _ in known)):
        return "month", Counter({each.start.year * 12 + each.start.month - 1: n for each, n in known})
    return grain, numbers


def series_findings(dataset: Dataset, probe: Prober) -> Iterator[TrapFinding]:
    """Yield the traps in the first time column that forms a series."""
    for column in dataset.columns[:20]:
        grain, counts = times(dataset, column, probe)
        if not counts:
            continue
        entity, keyed = _entity(dataset, column, counts, probe)
        series = TimeSeries(dataset, column, grain, counts, entity)
        yield from _unfinished(series, probe, keyed=keyed)
        if keyed:
            yield from _gaps(series, probe)
            if not entity:
                yield from _doublings(series)
        return


def _entity(dataset: Dataset, column: Column, counts: Counter[int], probe: Prober) -> tuple[str, bool]:
    """Return the column that identifies rows together with the time, and whether rows are identified in this way."""
    rows, distinct = counts.total(), len(counts)
    if rows - distinct <= 0.34 * rows and (rows == distinct or not _ids(dataset, column, probe)):
        return "", True
    name = quoted(column.name)
    for other in dataset.columns:
        if other.kind == "text" and other.name != column.name:
            key = quoted(other.name)
            row = probe.one(
                f"SELECT count(DISTINCT ({name}, {key})), count(DISTINCT {key}) FROM {quoted(dataset.name)} "
                f"WHERE {name} IS NOT NULL"
            )
            if row and row[0] >= 0.97 * rows and row[1] * 3 <= rows:
                return other.name, True
    return "", False


def _ids(dataset: Dataset, column: Column, probe: Prober) -> bool:
    """Return whether rows have an id: they are events, not readings."""
    first = dataset.columns[0]
    if first.name == column.name or first.kind not in {"integer", "text"}:
        return False
    name = quoted(first.name)
    row = probe.one(f"SELECT count(DISTINCT {name}), count(*) FROM {quoted(dataset.name)}")
    return bool(row) and row[0] >= 0.7 * row[1]


def _gaps(series: TimeSeries, probe: Prober) -> Iterator[TrapFinding]:
    if not series.entity:
        missing = _missing(series)
        if missing:
            yield _gap(series, missing, "")
        return
    key = quoted(series.entity)
    table = quoted(series.dataset.name)
    entities = probe.rows(f"SELECT {key}, count(*) FROM {table} WHERE {key} IS NOT NULL GROUP BY 1 LIMIT 200")
    if len(entities) > 100 or not series.step:
        return
    union = sorted(series.counts)
    for entity, _ in entities:
        _, counts = times(series.dataset, series.column, probe, f"{key} = {text(str(entity))}")
        if len(counts) < 3:
            continue
        inside = [each for each in union if min(counts) < each < max(counts)]
        missing = [each for each in inside if each not in counts]
        if missing and len(missing) < 0.7 * len(inside):
            yield _gap(series, missing, f" of {series.entity} {entity}")
            return


def _missing(series: TimeSeries) -> list[int]:
    """Return the positions missing in a regular series."""
    step, places = series.step, sorted(series.counts)
    if not step:
        return []
    missing = [
        place
        for before, after in pairwise(places)
        for place in range(before + step, after, step)
        if after - before < 400 * step
    ]
    if _is_schedule(series.grain, missing, places):
        return []
    if series.grain != "day" or step != 1 or any(date.fromordinal(place).weekday() > 4 for place in places):
        return missing if series.grain != "day" or len(missing) * 2 < len(places) else []
    working = [place for place in missing if date.fromordinal(place).weekday() < 5]
    runs = _runs(working)
    return [place for run in runs if len(run) > 2 for place in run]


def _is_schedule(grain: str, missing: Sequence[int], places: Sequence[int]) -> bool:
    """Return whether periods are always and only missing at the same point of a week, day or year, such as Mondays of a
    museum or nights of an office."""
    cycle = {"day": 7, "second": 86_400, "month": 12, "quarter": 4}.get(grain, 0)
    if not cycle:
        return False
    phases = Counter(place % cycle for place in missing)
    return bool(phases) and min(phases.values()) > 1 and not set(phases) & {place % cycle for place in places}


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Return runs of consecutive working days, across weekends."""
    runs: list[list[int]] = []
    for place in places:
        if runs and place - runs[-1][-1] <= (3 if date.fromordinal(place).weekday() == 0 else 1):
            runs[-1].append(place)
        else:
            runs.append([place])
    return runs


def _gap(series: TimeSeries, missing: Sequence[int], of: str) -> TrapFinding:
    dataset, column = series.dataset, series.column
    first = _shown(series, missing[0])
    message = f"{dataset.name}.{column.name} lacks {count(len(missing), _noun(series))}{of}, the first {first}."
    name = quoted(column.name)
    if series.column.kind == "text" and series.grain in {"month", "quarter"}:
        proof = f"SELECT {name}, count(*) AS n FROM {quoted(dataset.name)} WHERE {name} IS NOT NULL GROUP BY 1"
        return TrapFinding("time_gaps", dataset.name, message, proof, column.name)
    part = f" PARTITION BY {quoted(series.entity)}" if series.entity else ""
    proof = (
        f"SELECT {name} AS before, lead({name}) OVER ({part.strip()} ORDER BY {name}) AS after "
        f"FROM {quoted(dataset.name)} WHERE {name} IS NOT NULL "
        f"QUALIFY CAST(before AS VARCHAR) < {text(first)} AND CAST(after AS VARCHAR) > {text(first)}"
    )
    return TrapFinding("time_gaps", dataset.name, message, proof, column.name)


def _noun(series: TimeSeries) -> str:
    return "time" if series.grain == "second" else series.grain


def _shown(series: TimeSeries, place: int) -> str:
    """Return a position in the notation of the column."""
    if series.grain == "second":
        return datetime.fromtimestamp(place, UTC).strftime("%Y-%m-%d %H:%M:%S")
    if series.grain == "day":
        return date.fromordinal(place).isoformat()
    if series.grain == "month":
        shown = f"{place // 12}-{place % 12 + 1:02}"
        return f"{shown}-01" if series.column.kind == "date" else shown
    if series.grain == "quarter":
        return f"{place // 4}-Q{place % 4 + 1}"
    if series.grain == "week":
        # Positions count weeks from the first Monday of the calendar.
        year, week, _ = date.fromordinal(place * 7 + 1).isocalendar()
        return f"{year}-W{week:02}"
    return str(place)


def _doublings(series: TimeSeries) -> Iterator[TrapFinding]:
    twice = [place for place, n in series.counts.items() if n > 1]
    if not twice or len(series.counts) < 3 or not series.step:
        return
    dataset, column = series.dataset, series.column
    name = quoted(column.name)
    message = (
        f"{dataset.name}.{column.name} has {count(len(twice), _noun(series))} twice: {_shown(series, min(twice))}."
    )
    proof = f"SELECT {name}, count(*) AS n FROM {quoted(dataset.name)} GROUP BY 1 HAVING n > 1 ORDER BY 1"
    yield TrapFinding("time_doublings", dataset.name, message, proof, column.name)


def _unfinished(series: TimeSeries, probe: Prober, *, keyed: bool) -> Iterator[TrapFinding]:
    """Report a last period that was incomplete when the file was written."""
    if not keyed or series.grain in {"second", "day"} or not series.counts or (series.column.kind == "date" and (
        series.grain != "month"
    )):  # fmt: skip
        return
    last = period(
        _shown(series, max(series.counts))[:7] if series.grain == "month" else _shown(series, max(series.counts))
    )
    today = today_of(series.dataset)
    if last and last.start <= today < last.end and len(series.counts) > 2:
        dataset, name = series.dataset, quoted(series.column.name)
        shown = _shown(series, max(series.counts))
        message = f"{dataset.name}.{series.column.name}: {shown} was not over on {today}, the day of the file."
        written = probe.rows(
            f"SELECT DISTINCT CAST({name} AS VARCHAR) FROM {quoted(dataset.name)} WHERE {name} IS NOT NULL"
        )
        raw = next((value for (value,) in written if _plain(value) == shown), shown)
        proof = f"SELECT * FROM {quoted(dataset.name)} WHERE CAST({name} AS VARCHAR) = {text(raw)}"
        yield TrapFinding("partial_period", dataset.name, message, proof, series.column.name)
