"""Registers files as tables: detects the format, loads them, converts text columns, names, profiles and stores them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb

from ba_tui.core.ports.tables import FILES, Conversion, Dataset, DatasetProfile
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import (
    WORK,
    Database,
    columns_of,
    fetch_number,
    quoted,
    text,
    unreadable,
)
from ba_tui.features.data.analysis.engine_process.profiles import approximate, profiles_of
from ba_tui.features.data.analysis.engine_process.row_files import (
    RowSource,
    load_arrow,
    load_sheet,
    load_sqlite,
    parts_of_sqlite,
    parts_of_workbook,
)
from ba_tui.features.data.analysis.engine_process.store import DataStore, FingerprintThread, StoredDataset
from ba_tui.features.data.analysis.engine_process.text_files import (
    LOADING,
    FoundFormat,
    LoadedTable,
    TextSource,
    detect_format,
    load_csv,
    load_json,
    parquet_reader,
    view_parquet,
)
from ba_tui.features.data.analysis.engine_process.traps.datasets import findings_of_dataset
from ba_tui.processes.serving import RequestCancelled, WorkerRequest

# Dates with German, French, Spanish and Italian month names: SQL replaces the names by numbers.

MONTHS = (
    "januar jänner jan janvier janv enero ene gennaio gen january",
    "februar feb février fevrier févr fevr febrero febbraio february", "märz maerz mär mrz mars marzo march mar",
    "april apr avril avr abril abr aprile", "mai mayo maggio mag may", "juni jun juin junio giugno giu june",
    "juli jul juillet juil julio luglio lug july", "august aug août aout agosto ago",
    "september sept sep septembre septiembre settembre set", "oktober okt octobre oct octubre ottobre ott october",
    "november nov novembre noviembre", "dezember dez décembre decembre déc dec diciembre dic dicembre december",
)  # fmt: skip
FORMATS = ("%d %m %Y", "%d. %m %Y", "%d-%m-%Y", "%d.%m.%Y")
_DATE_WITH_MONTH = regex(r"(?i)\s*\d{1,2}(?:er|º)?[ .-]{1,2}([^\W\d_]{3,10})\.?[ -]\d{4}(?: .*)?")
_KNOWN = frozenset(" ".join(MONTHS).split())


def named_month(value: str) -> bool:
    """Return whether a value is a date with a month name."""
    found = _DATE_WITH_MONTH.fullmatch(value)
    return bool(found and found[1].lower() in _KNOWN)


def numbered(expression: str) -> str:
    """Return SQL for ``expression`` with numbers in place of month names."""
    made = f"regexp_replace(lower({expression}), '^(\\d+)(?:er|º)', '\\1')"
    for number, names in enumerate(MONTHS, 1):
        choice = "|".join(sorted(names.split(), key=len, reverse=True))
        pattern, written = f"([ .-])(?:{choice})\\.?([ -])", f"\\1{number:02d}\\2"
        made = f"regexp_replace({made}, {text(pattern)}, {text(written)})"
    return made


LIKELY = 0.8
"""Share of the sample that must fit before all values are tried."""
NEEDED = 0.95
MOST_EXAMPLES = 3
LONGEST_NUMBER = 40
DIGITS, PLACES = 18, 6
CURRENCY = r"[$€£¥₹₽₩₺]|(?i:\b(?:USD|EUR|GBP|CHF|JPY|CNY|SEK|NOK|DKK|PLN|CZK|HUF|AUD|CAD|NZD|INR|BRL|MXN|ZAR)\b)"
SPACES = r"[\s\x{00a0}\x{202f}\x{2009}'’]"
GROUPED = rf"\d{{1,3}}(?:{SPACES}\d{{3}})+(?:[.,]\d+)?"
POINT = r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][+-]?\d+)?"
COMMA = r"[+-]?(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?"
DATES = (
    "%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y",
    "%m-%d-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y", "%Y.%m.%d",
)  # fmt: skip
TIMES = (" %H:%M:%S", " %H:%M", "T%H:%M:%S")
MISSING = ("", "-", "–", "—", "n/a", "na", "#n/a", "null", "none", "nan", "?", ".", "k.a.", "keine angabe")
_SHORT_NUMBER = regex(r"[^\w%$€£¥₹₽₩₺()+-]{0,3}.{0,6}\d[\d.,'’\s\u00a0\u202f]*.{0,6}")
_DATE = regex(
    r"\s*(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|\d{1,2}[ -][A-Za-z]{3,9}[ -]\d{2,4}|[A-Za-z]{3,9} \d{1,2}, \d{4})"
)


@frozen
class ConvertedColumn:
    """The new column: ``expression`` is its SQL, ``conversion`` its description."""

    expression: str
    conversion: Conversion


@frozen
class TextColumn:
    """``column`` of ``table``. ``plain``: digits without any sign are converted too, as in a file whose other values
    are words."""

    cursor: duckdb.DuckDBPyConnection
    table: str
    column: str
    plain: bool

    @property
    def name(self) -> str:
        return quoted(self.column)

    @property
    def present(self) -> str:
        """Return SQL for whether there is a value."""
        missing = ", ".join(map(text, MISSING))
        return f"({self.name} IS NOT NULL AND lower(trim({self.name})) NOT IN ({missing}))"

    def figures(self, expressions: str, source: str = "") -> Sequence[Any]:
        """Return one row of figures about the table."""
        return self.cursor.execute(f"SELECT {expressions} FROM {source or self.table}").fetchone() or ()

    def proved(self, expression: str, what: str, *, doubtful: bool = False) -> ConvertedColumn:
        """Return the conversion with the number of values that don't fit. ``doubtful``: the text is kept as well
        anyway."""
        wrong = f"{self.table} WHERE {self.present} AND ({expression}) IS NULL"
        failures, examples = self.figures(f"count(*), list(DISTINCT left({self.name}, 40))", wrong)
        if failures:
            what = f"{what}; {count(failures, 'value')} did not fit"
        shown = tuple(sorted(map(str, examples or ()))[:MOST_EXAMPLES])
        return ConvertedColumn(expression, Conversion(self.column, what, failures, shown, doubtful=doubtful))


def conversion_of(column: TextColumn, sample: Sequence[str]) -> ConvertedColumn | None:
    """Return the conversion of a text column to numbers or dates; None when it stays text."""
    values = [value for value in sample if value.strip().lower() not in MISSING]
    if not values:
        return None
    if sum(bool(_DATE.match(value)) for value in values) >= LIKELY * len(values):
        return _dates(column, f"trim({column.name})", DATES)
    if sum(map(named_month, values)) >= LIKELY * len(values):
        return _dates(column, numbered(f"trim({column.name})"), FORMATS)
    short = [value for value in values if len(value) <= LONGEST_NUMBER]
    if sum(bool(_SHORT_NUMBER.fullmatch(value.strip())) for value in short) >= LIKELY * len(values):
        return _numbers(column)
    return None


def _numbers(column: TextColumn) -> ConvertedColumn | None:
    present, trimmed = column.present, f"trim({column.name})"
    bare = f"regexp_replace({trimmed}, {text(f'{CURRENCY}|{SPACES}|%')}, '', 'g')"
    # Digits separated by spaces are one number only in groups of three.
    bare = f"CASE WHEN {_apart(trimmed)} THEN {trimmed} ELSE {bare} END"
    bare = f"regexp_replace({bare}, '^\\((.*)\\)$', '-\\1')"
    bare = f"regexp_replace({bare}, '^([\\d.,]+)-$', '-\\1')"
    given, points, commas, money, percent, spaced, zeros, grouped, signs, longest, holes, negative = column.figures(
        f"""count(*) FILTER (present), count(*) FILTER (present AND regexp_full_match(v, {text(POINT)})),
            count(*) FILTER (present AND regexp_full_match(v, {text(COMMA)})),
            count(*) FILTER (present AND regexp_matches(t, {text(CURRENCY)})),
            count(*) FILTER (present AND contains(t, '%')),
            count(*) FILTER (present AND regexp_matches(t, {text(SPACES)})),
            count(*) FILTER (present AND regexp_matches(v, '^[+-]?0\\d')),
            count(*) FILTER (present AND contains(v, ',')),
            list_sort(list(DISTINCT regexp_extract(t, {text(CURRENCY)})) FILTER (present)),
            max(length(v)) FILTER (present), count(*) FILTER (NOT present AND t <> ''),
            count(*) FILTER (present AND regexp_matches(t, '^\\(.*\\)$|\\d-$'))""",
        f"(SELECT {present} AS present, {bare} AS v, {trimmed} AS t FROM {column.table})",
    )
    if not given or zeros or max(points, commas) < NEEDED * given:
        return None
    # An ambiguous column, such as one with only 1,234, is read with a decimal point, as in most files.
    comma = commas > points
    if not (money or percent or spaced or comma or grouped or column.plain):
        return None
    plain = f"replace(replace({bare}, '.', ''), ',', '.')" if comma else f"replace({bare}, ',', '')"
    fits = f"{present} AND regexp_full_match({bare}, {text(COMMA if comma else POINT)})"
    kind = _number_type(column, plain, fits, longest)
    found = [sign for sign in signs or () if sign]
    parts = (
        f"currency {' and '.join(found)}" if money else "",
        "percent (5 means 5 %)" if percent else "",
        "decimal comma" if comma else "thousands separators" if grouped else "",
    )
    what = ", ".join(filter(None, parts)) or "numbers among other text"
    doubtful = len(found) > 1 or bool(holes or negative or (spaced and not money))
    return column.proved(f"CASE WHEN {fits} THEN TRY_CAST({plain} AS {kind}) END", what, doubtful=doubtful)


def _apart(value: str) -> str:
    """Return SQL for whether spaces separate digits other than in groups of three."""
    spaced, grouped = text(rf"\d{SPACES}+\d"), text(rf"\D*{GROUPED}\D*")
    return f"(regexp_matches({value}, {spaced}) AND NOT regexp_full_match({value}, {grouped}))"


def _number_type(column: TextColumn, value: str, fits: str, longest: int) -> str:
    """Return integer, exact decimal, or floating point if neither has all digits."""
    places, scientific = column.figures(
        "max(length(regexp_extract(v, '\\.(\\d+)', 1))), bool_or(regexp_matches(v, '[eE]'))",
        f"(SELECT {value} AS v FROM {column.table} WHERE {fits})",
    )
    if scientific or longest > DIGITS or (places or 0) > PLACES:
        return "DOUBLE"
    return f"DECIMAL({DIGITS},{places})" if places else "BIGINT"


def _dates(column: TextColumn, trimmed: str, days: Sequence[str]) -> ConvertedColumn | None:
    formats = [*days, *(day + time for day in days for time in TIMES)]
    counts = ", ".join(_fitting(trimmed, each) for each in formats)
    given, *found = column.figures(f"count(*) FILTER ({column.present}), {counts}")
    hits = dict(zip(formats, found, strict=True))
    # When both orders of day and month fit, the one that fits more values is used for the whole column.
    kept: list[str] = []
    for each in sorted(formats, key=lambda each: -hits[each]):
        if hits[each] and _other_order(each) not in kept:
            kept.append(each)
    if not given or not kept:
        return None
    both = any(hits.get(_other_order(each)) == hits[each] for each in kept)
    # A two-digit year would be read as the year 24.
    kept.sort(key=lambda each: "%Y" in each)
    kind = "TIMESTAMP" if any("%H" in each for each in kept) else "DATE"
    written = sorted(kept, key=lambda each: -hits[each])[:3]
    what = f"dates written {' and '.join(written)}" if days is DATES else "dates with names of months"
    if both:
        what += "; day and month may be the other way round"
    made = column.proved(
        f"CAST(try_strptime({trimmed}, [{', '.join(map(text, kept))}]) AS {kind})", what, doubtful=both
    )
    return made if made.conversion.failed <= (1 - NEEDED) * given else None


def _fitting(value: str, format: str) -> str:
    """Return SQL that counts the values written in ``format``."""
    count = f"count(try_strptime({value}, {text(format)}))"
    return f"{count} FILTER (regexp_matches({value}, '\\d{{4}}'))" if "%Y" in format else count


def _other_order(format: str) -> str:
    for first, second in (("%d/%m", "%m/%d"), ("%d-%m", "%m-%d")):
        if first in format:
            return format.replace(first, second)
        if second in format:
            return format.replace(second, first)
    return ""


CONVERTED = '"~converted"'
SAMPLE_ROWS, TAIL_ROWS = 5_000, 1_000
MOST_TEXT = 500
"""Most text columns checked for numbers and dates."""
LONGEST_NAME = 60
MOST_EMPTY = 5
"""Most empty files of a pattern named in a note."""
_NOT_NAME = regex(r"[^\w]+")
_MAGIC = regex(r"[*?\[]")
_RESULT = regex(r"r\d+")


@frozen
class _LoadResult:
    """How LOADING was filled; ``reading`` as in ``Dataset``."""

    loaded: LoadedTable
    conversions: tuple[Conversion, ...] = ()
    reading: str = ""


@frozen
class DatasetRegistry:
    """The datasets of a session. ``changed`` is called with the name of a table whose rows have changed."""

    database: Database
    store: DataStore
    changed: Callable[[str], None]

    def register(
        self, request: WorkerRequest, source: str, paths: Sequence[Path], name: str, part: str
    ) -> list[Dataset]:
        """Return the datasets of the files, named in ``source`` as the caller wrote it; ``name`` overrides the table
        name. Registered files that did not change are not read again."""
        found = _one_format(paths)
        known = [each for each in self.store.datasets if _same(each, paths, part)]
        if known and all(_unchanged(each) for each in known):
            return [each.dataset for each in known]
        parts = _parts(found, paths, part)
        return [self._load(request, source, paths, name, found, each).dataset for each in parts]

    def refreshed(self, request: WorkerRequest, names: Sequence[str]) -> list[str]:
        """Read datasets again whose files changed. Return a sentence for each of them, and for missing files."""
        notes: list[str] = []
        for name in names:
            stored = self.store.dataset(name)
            if stored is None or _unchanged(stored):
                continue
            paths = [Path(path) for path in stored.paths]
            if gone := next((path for path in paths if not path.exists()), None):
                if stored.dataset.format == "parquet":
                    raise unreadable(f"{gone.name} is gone, which {name} reads.", "Restore the file.")
                notes.append(f"{gone.name} is gone; {name} is the copy that ba read before.")
                continue
            dataset = stored.dataset
            self._load(request, dataset.source, paths, "", _one_format(paths), dataset.part)
            notes.append(f"{name} was read again because its file changed.")
        return notes

    def profile(self, request: WorkerRequest, stored: StoredDataset) -> DatasetProfile:
        """Return the statistics, computed at the first request."""
        if stored.profile:
            return stored.profile
        with self.database.loading(request, self.store.standing()) as cursor:
            return self._profiled(cursor, request, stored)

    def _load(
        self,
        request: WorkerRequest,
        source: str,
        paths: Sequence[Path],
        named: str,
        found: FoundFormat,
        part: str,
    ) -> StoredDataset:
        known = next(
            (each for each in self.store.datasets if _same(each, paths, part) and each.dataset.part == part), None
        )
        name = known.dataset.name if known else named or self._name(source, paths, part)
        number = known.number if known else max((each.number for each in self.store.datasets), default=0) + 1
        reading = self.store.standing() | {str(path) for path in paths}
        scratch = self.database.folder / WORK
        doing = f"reading {paths[0].name if len(paths) == 1 else source}"
        with (
            self.database.loading(request, reading, doing) as cursor,
            FingerprintThread(request, paths) as prints,
        ):
            try:
                filled = self._filled(cursor, request, found, part, paths)
                loaded = filled.loaded
                notes = (*loaded.notes, *_empty_note(paths))
                dataset = Dataset(
                    name, source, part, found.format, 0, (), prints.result(), loaded.encoding, loaded.delimiter,
                    loaded.rows_skipped, loaded.bad_rows, filled.conversions, notes, time.time(), filled.reading,
                    _day_first(cursor, loaded, filled.conversions),
                )  # fmt: skip
                stored = self._keep(cursor, StoredDataset(number, tuple(map(str, paths)), dataset))
            finally:
                _clear(cursor, scratch)
            self.database.report_no_more(cursor)
            self._profiled(cursor, request, stored)
        self.changed(name)
        return self.store.dataset(name) or stored

    def _filled(
        self,
        cursor: duckdb.DuckDBPyConnection,
        request: WorkerRequest,
        found: FoundFormat,
        part: str,
        paths: Sequence[Path],
    ) -> _LoadResult:
        """Fill LOADING; Parquet files are not copied."""
        if found.format == "parquet":
            return _LoadResult(LoadedTable("parquet"), (), f"FROM {parquet_reader(FILES, len(paths))}")

        def scratch(name: str) -> Path:
            return self.database.folder / WORK / name

        if found.format in {"csv", "json"}:
            text = TextSource(tuple(_with_content(paths)), found, scratch, lambda: self.database.widen(cursor))
            loaded = load_csv(cursor, text) if found.format == "csv" else load_json(cursor, text)
        else:
            if found.format == "arrow":
                return _LoadResult(load_arrow(cursor, paths[0]))

            def tick(rows: int) -> None:
                _check(request)
                request.progress({"doing": f"reading {part or paths[0].name}, {count(rows, 'row')}", "share": None})

            rows = RowSource(paths[0], scratch, tick)
            loaded = load_sheet(cursor, rows, part) if found.format == "excel" else load_sqlite(cursor, rows, part)
        _check(request)
        selected, conversions = _converted(cursor, plain=loaded.plain)
        return _LoadResult(loaded, conversions, f"SELECT {selected} FROM {loaded.reader}" if loaded.reader else "")

    def _keep(self, cursor: duckdb.DuckDBPyConnection, stored: StoredDataset) -> StoredDataset:
        """Rename LOADING and store its description, in one transaction."""
        dataset = stored.dataset
        name = quoted(dataset.name)
        cursor.execute("BEGIN")
        try:
            if dataset.format == "parquet":
                view_parquet(cursor, dataset.name, _with_content([Path(path) for path in stored.paths]))
            else:
                _drop(cursor, dataset.name)
                cursor.execute(f"ALTER TABLE {LOADING} RENAME TO {name}")
            rows = fetch_number(cursor, f"SELECT count(*) FROM {name}")
            kept = replace(stored, dataset=replace(dataset, rows=rows, columns=columns_of(cursor, name)))
            self.store.write_dataset(cursor, kept)
            cursor.execute("COMMIT")
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
        self.store.noted(kept)
        return kept

    def _profiled(
        self, cursor: duckdb.DuckDBPyConnection, request: WorkerRequest, stored: StoredDataset
    ) -> DatasetProfile:
        started = time.monotonic()
        dataset = stored.dataset

        def tick(share: float) -> None:
            _check(request)
            request.progress({"doing": f"profiling {dataset.name}", "share": round(share, 3)})

        try:
            columns = profiles_of(cursor, quoted(dataset.name), dataset.rows, tick)
        except duckdb.OutOfMemoryException:
            self.database.widen(cursor)
            columns = profiles_of(cursor, quoted(dataset.name), dataset.rows, tick)
        seconds = time.monotonic() - started
        findings, notes = findings_of_dataset(cursor, request, dataset, seconds)
        rough = approximate(dataset.rows, len(columns))
        profile = DatasetProfile(dataset, columns, rough, round(time.monotonic() - started, 3), findings, notes)
        kept = replace(stored, profile=profile)
        cursor.execute("BEGIN")
        self.store.write_dataset(cursor, kept)
        cursor.execute("COMMIT")
        self.store.noted(kept)
        return profile

    def _name(self, source: str, paths: Sequence[Path], part: str) -> str:
        """Return an unused table name made from the file's name: letters, digits and underscores."""
        path = paths[0]
        stem = path.name if len(paths) == 1 else _MAGIC.split(Path(source).name)[0] or path.parent.name
        while (short := Path(stem).stem) != stem:
            stem = short
        base = _as_name(stem) or _as_name(path.parent.name) or "data"
        several = part and _as_name(part).lower() != base.lower()
        base = f"{base}_{_as_name(part)}" if several else base
        taken = self.store.names()
        return next(each for each in _numbered_names(base) if each.lower() not in taken)


def _day_first(
    cursor: duckdb.DuckDBPyConnection, loaded: LoadedTable, conversions: Sequence[Conversion]
) -> tuple[str, ...]:
    """Return the date columns of LOADING that were text with the day or month first."""
    if not loaded.date_format or loaded.date_format.startswith("%Y"):
        return ()
    columns = columns_of(cursor, LOADING) if loaded.format != "parquet" else ()
    made = {each.column for each in conversions}
    return tuple(column.name for column in columns if column.kind == "date" and column.name not in made)


def _as_name(text: str) -> str:
    name = _NOT_NAME.sub("_", text).strip("_").lower()[:LONGEST_NAME]
    return f"t_{name}" if name[:1].isdigit() or _RESULT.fullmatch(name) else name


def _drop(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    views = fetch_number(
        cursor, "SELECT count(*) FROM duckdb_views() WHERE schema_name = 'main' AND view_name = ?", [name]
    )
    cursor.execute(f"DROP {'VIEW' if views else 'TABLE'} IF EXISTS {quoted(name)}")


def _clear(cursor: duckdb.DuckDBPyConnection, scratch: Path) -> None:
    for path in scratch.iterdir():
        path.unlink(missing_ok=True)
    for table in (LOADING, CONVERTED):
        cursor.execute(f"DROP TABLE IF EXISTS {table}")


def _check(request: WorkerRequest) -> None:
    if request.cancelled.is_set():
        raise RequestCancelled


def _one_format(paths: Sequence[Path]) -> FoundFormat:
    paths = _with_content(paths)
    found = [detect_format(path) for path in paths]
    other = next((path for path, each in zip(paths, found, strict=True) if each.format != found[0].format), None)
    if other:
        raise unreadable(f"{paths[0].name} and {other.name} are of different formats.", "Name files of one format.")
    if len(paths) > 1 and found[0].format in {"excel", "sqlite", "arrow"}:
        raise unreadable(f"Several {found[0].format} files can't be one table.", "Mention them one by one.")
    return found[0]


def _with_content(paths: Sequence[Path]) -> Sequence[Path]:
    """Return the non-empty files of several; all of them when none has content."""
    return [path for path in paths if path.exists() and path.stat().st_size] or paths


def _empty_note(paths: Sequence[Path]) -> tuple[str, ...]:
    empty = [path.name for path in paths if path not in _with_content(paths)]
    return (f"{count(len(empty), 'empty file')} left out: {', '.join(empty[:MOST_EMPTY])}",) if empty else ()


def _parts(found: FoundFormat, paths: Sequence[Path], part: str) -> list[str]:
    """Return the sheets or tables to read; one empty name for other files."""
    if found.format not in {"excel", "sqlite"}:
        if part:
            raise unreadable(f"{paths[0].name} has no sheets or tables to choose from.")
        return [""]
    workbook = found.format == "excel"
    names = parts_of_workbook(paths[0]) if workbook else parts_of_sqlite(paths[0])
    what = "sheet" if workbook else "table"
    if not names:
        raise unreadable(f"{paths[0].name} has no {what} with rows.")
    if not part:
        return names
    found_part = next((name for name in names if name.lower() == part.lower()), None)
    if found_part is None:
        raise unreadable(f"{paths[0].name} has no {what} {part}.", f"It has {', '.join(names[:20])}.")
    return [found_part]


def _same(stored: StoredDataset, paths: Sequence[Path], part: str) -> bool:
    return stored.paths == tuple(map(str, paths)) and (not part or stored.dataset.part.lower() == part.lower())


def _unchanged(stored: StoredDataset) -> bool:
    for each in stored.dataset.files:
        try:
            now = Path(each.path).stat()
        except OSError:
            return False
        if (now.st_size, now.st_mtime_ns) != (each.size, each.mtime_ns):
            return False
    return True


def _converted(cursor: duckdb.DuckDBPyConnection, *, plain: bool) -> tuple[str, tuple[Conversion, ...]]:
    """Convert text columns of LOADING to numbers or dates. Also returns the columns as SQL."""
    columns = columns_of(cursor, LOADING)
    texts = [column for column in columns if column.type == "VARCHAR"][:MOST_TEXT]
    if not texts:
        return "*", ()
    names = ", ".join(quoted(column.name) for column in texts)
    rows = cursor.execute(f"SELECT {names} FROM {LOADING} LIMIT {SAMPLE_ROWS}").fetchall()
    rows += cursor.execute(
        f"SELECT {names} FROM {LOADING} WHERE rowid >= (SELECT count(*) FROM {LOADING}) - {TAIL_ROWS}"
    ).fetchall()
    made: dict[str, ConvertedColumn] = {}
    for place, column in enumerate(texts):
        sample = [row[place] for row in rows if row[place] is not None]
        if found := conversion_of(TextColumn(cursor, LOADING, column.name, plain), sample):
            made[column.name] = found
    if not made:
        return "*", ()
    taken = {column.name.lower() for column in columns}
    parts: list[str] = []
    conversions: list[Conversion] = []
    for column in columns:
        name = quoted(column.name)
        if found := made.get(column.name):
            parts.append(f"{found.expression} AS {name}")
            conversion = found.conversion
            if conversion.failed or conversion.doubtful:
                raw = next(each for each in _numbered_names(f"{column.name}_raw") if each.lower() not in taken)
                taken.add(raw.lower())
                parts.append(f"{name} AS {quoted(raw)}")
                conversion = replace(conversion, raw=raw)
            conversions.append(conversion)
        else:
            parts.append(name)
    selected = ", ".join(parts)
    cursor.execute(f"CREATE OR REPLACE TABLE {CONVERTED} AS SELECT {selected} FROM {LOADING}")
    cursor.execute(f"DROP TABLE {LOADING}")
    cursor.execute(f"ALTER TABLE {CONVERTED} RENAME TO {LOADING}")
    return selected, tuple(conversions)


def _numbered_names(name: str) -> Iterator[str]:
    """Yield ``name``, then ``name`` with a number from 2."""
    yield name
    yield from (f"{name}_{each}" for each in itertools.count(2))
