"""Text columns that are numbers or dates: decimal commas, thousands separators, currencies, percent, date formats.

What a column is gets decided by a sample, and then proved on all of its values: those that do not fit are counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from ba_tui.core.ports.tables import Conversion
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import quoted, text
from ba_tui.features.data.analysis.engine_process.month_names import FORMATS, named_month, numbered

LIKELY = 0.8
"""Part of the sample that must fit before all values are tried."""
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
class Converted:
    """``expression`` is the new column in SQL; ``conversion`` what to say of it."""

    expression: str
    conversion: Conversion


@frozen
class TextColumn:
    """``column`` of ``table``. ``plain``: numbers without any sign of their own count too, as in a file where some
    values are words."""

    cursor: duckdb.DuckDBPyConnection
    table: str
    column: str
    plain: bool

    @property
    def name(self) -> str:
        return quoted(self.column)

    @property
    def present(self) -> str:
        """SQL: whether there is a value."""
        missing = ", ".join(map(text, MISSING))
        return f"({self.name} IS NOT NULL AND lower(trim({self.name})) NOT IN ({missing}))"

    def figures(self, expressions: str, source: str = "") -> Sequence[Any]:
        """One row of figures about the table."""
        return self.cursor.execute(f"SELECT {expressions} FROM {source or self.table}").fetchone() or ()

    def proved(self, expression: str, what: str, *, doubtful: bool = False) -> Converted:
        """The conversion, with the values that it does not fit. ``doubtful``: the text is kept beside it anyway."""
        wrong = f"{self.table} WHERE {self.present} AND ({expression}) IS NULL"
        failures, examples = self.figures(f"count(*), list(DISTINCT left({self.name}, 40))", wrong)
        if failures:
            what = f"{what}; {count(failures, 'value')} did not fit"
        shown = tuple(sorted(map(str, examples or ()))[:MOST_EXAMPLES])
        return Converted(expression, Conversion(self.column, what, failures, shown, doubtful=doubtful))


def conversion_of(column: TextColumn, sample: Sequence[str]) -> Converted | None:
    """Return how a text column becomes numbers or dates; None when it stays text."""
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


def _numbers(column: TextColumn) -> Converted | None:
    present, trimmed = column.present, f"trim({column.name})"
    bare = f"regexp_replace({trimmed}, {text(f'{CURRENCY}|{SPACES}|%')}, '', 'g')"
    # Digits that spaces keep apart are one number only in groups of three.
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
    # What fits both, as 1,234 beside nothing else, is read with a point: the thousands of most files.
    comma = commas > points
    if not (money or percent or spaced or comma or grouped or column.plain):
        return None
    shape, plain = (
        (COMMA, f"replace(replace({bare}, '.', ''), ',', '.')") if comma else (POINT, f"replace({bare}, ',', '')")
    )
    fits = f"{present} AND regexp_full_match({bare}, {text(shape)})"
    kind = _number_type(column, plain, fits, longest)
    found = [sign for sign in signs or () if sign]
    parts = (
        f"currency {' and '.join(found)}" if money else "",
        "percent (5 means 5 %)" if percent else "",
        "decimal comma" if comma else "thousands separators" if grouped else "",
    )
    what = ", ".join(part for part in parts if part) or "numbers among other text"
    doubtful = len(found) > 1 or bool(holes or negative or (spaced and not money))
    return column.proved(f"CASE WHEN {fits} THEN TRY_CAST({plain} AS {kind}) END", what, doubtful=doubtful)


def _apart(value: str) -> str:
    """SQL: whether spaces keep digits apart otherwise than between groups of three."""
    spaced, grouped = text(rf"\d{SPACES}+\d"), text(rf"\D*{GROUPED}\D*")
    return f"(regexp_matches({value}, {spaced}) AND NOT regexp_full_match({value}, {grouped}))"


def _number_type(column: TextColumn, value: str, fits: str, longest: int) -> str:
    """Whole numbers, exact decimals, or floating point where neither holds all digits."""
    places, scientific = column.figures(
        "max(length(regexp_extract(v, '\\.(\\d+)', 1))), bool_or(regexp_matches(v, '[eE]'))",
        f"(SELECT {value} AS v FROM {column.table} WHERE {fits})",
    )
    if scientific or longest > DIGITS or (places or 0) > PLACES:
        return "DOUBLE"
    return f"DECIMAL({DIGITS},{places})" if places else "BIGINT"


def _dates(column: TextColumn, trimmed: str, days: Sequence[str]) -> Converted | None:
    formats = [*days, *(day + time for day in days for time in TIMES)]
    counts = ", ".join(_fitting(trimmed, each) for each in formats)
    given, *found = column.figures(f"count(*) FILTER ({column.present}), {counts}")
    hits = dict(zip(formats, found, strict=True))
    # Where both orders of day and month fit, the one that fits more values decides for the whole column.
    kept: list[str] = []
    for each in sorted(formats, key=lambda each: -hits[each]):
        if hits[each] and _other_order(each) not in kept:
            kept.append(each)
    if not given or not kept:
        return None
    both = any(hits.get(_other_order(each)) == hits[each] for each in kept)
    # A year of two digits would pass for the year 24.
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
    """SQL that counts the values written in ``format``."""
    count = f"count(try_strptime({value}, {text(format)}))"
    return f"{count} FILTER (regexp_matches({value}, '\\d{{4}}'))" if "%Y" in format else count


def _other_order(format: str) -> str:
    for first, second in (("%d/%m", "%m/%d"), ("%d-%m", "%m-%d")):
        if first in format:
            return format.replace(first, second)
        if second in format:
            return format.replace(second, first)
    return ""
