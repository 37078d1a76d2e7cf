"""Find dates in English, German and Chinese text: written out, in figures, and relative ones such as "yesterday"."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from typing import NamedTuple, TypeAlias


def _numbered(names: str, first: int = 1) -> dict[str, int]:
    """Return the position of each name in ``names``; names joined by a bar share a position."""
    return {name: place for place, group in enumerate(names.split(), first) for name in group.split("|")}


def _words(text: str) -> list[str]:
    return text.split()


def one_of(words: Iterable[str]) -> str:
    """A pattern that matches any of the words, longer ones first."""
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


MONTHS: Mapping[str, int] = _numbered(
    "january|januar|jan february|februar|feb march|märz|mar april|apr may|mai june|juni|jun july|juli|jul august|aug"
    " september|sept|sep october|oktober|oct|okt november|nov december|dezember|dec|dez"
)
AMBIGUOUS = frozenset({"may", "march", "mar", "jan", "dec", "sep", "sept"})
"""Also an ordinary word or a name: counts as a month only with a day, a year or a preposition."""
WEEKDAYS: Mapping[str, int] = _numbered(
    "monday|montag tuesday|dienstag wednesday|mittwoch thursday|donnerstag friday|freitag saturday|samstag|sonnabend"
    " sunday|sonntag",
    0,
)
ORDINALS: Mapping[str, int] = _numbered(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth"
    " twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first"
)
NUMBERS: Mapping[str, int] = {
    **_numbered(
        "one|a|an|einem|einer|einen two|zwei|couple three|drei four|vier five|fünf six|sechs seven|sieben eight|acht"
        " nine|neun ten|zehn eleven|elf twelve|zwölf"
    ),
    "few": 3,
}
UNITS: Mapping[str, int] = {
    **dict.fromkeys(("day", "days", "tag", "tage", "tagen"), 1),
    **dict.fromkeys(("week", "weeks", "woche", "wochen"), 7),
    **dict.fromkeys(("fortnight",), 14),
    **dict.fromkeys(("weekend", "weekends", "wochenende", "wochenenden"), 7),
    **dict.fromkeys(("month", "months", "monat", "monate", "monaten"), 30),
    **dict.fromkeys(("year", "years", "jahr", "jahre", "jahren"), 365),
}
"""Days of a unit."""
SEASONS: Mapping[str, int] = {
    **dict.fromkeys(("spring", "frühling", "frühjahr"), 3),
    **dict.fromkeys(("summer", "sommer"), 6),
    **dict.fromkeys(("autumn", "fall", "herbst"), 9),
    **dict.fromkeys(("winter",), 12),
}
"""The first of three months, on the northern hemisphere."""
NEAR: Mapping[str, int] = {
    **dict.fromkeys(("yesterday", "last night", "gestern", "昨天", "昨晚"), -1),
    **dict.fromkeys(("today", "tonight", "this morning", "this afternoon", "this evening", "heute", "今天", "今晚"), 0),
    **dict.fromkeys(("tomorrow", "明天"), 1),
    **dict.fromkeys(("day before yesterday", "vorgestern", "前天"), -2),
    **dict.fromkeys(("day after tomorrow", "übermorgen", "后天"), 2),
}
"""Days from now."""
BACK = ("last", "past", "previous", "letzte", "letzten", "letzter", "letztes", "vorige", "vorigen", "voriges")
AHEAD = ("next", "coming", "nächste", "nächsten", "nächster", "nächstes", "kommende", "kommenden")
THIS = ("this", "diese", "diesen", "dieser", "dieses")
CHINESE_NEAR: Mapping[str, tuple[str, int]] = {
    **dict.fromkeys(("上周", "上个星期", "上星期"), ("week", -1)),
    **dict.fromkeys(("下周", "下个星期", "下星期"), ("week", 1)),
    **dict.fromkeys(("上个月",), ("month", -1)),
    **dict.fromkeys(("下个月",), ("month", 1)),
    **dict.fromkeys(("去年",), ("year", -1)),
    **dict.fromkeys(("明年",), ("year", 1)),
    **dict.fromkeys(("今年",), ("year", 0)),
}
TIME_WORDS = _words(
    "ago since until till by during morning afternoon evening night tonight midnight noon o'clock daily weekly monthly"
    " yearly annual every day days week weeks weekend weekends month months year years hour hours minutes today"
    " yesterday tomorrow early late vor seit bis täglich wöchentlich monatlich jährlich uhr stunde stunden tag tage"
    " tagen woche wochen monat monate monaten jahr jahre jahren gestern heute vorgestern"
)
"""Words that make it likely that a sentence says when something happens, or how long it takes."""
CHINESE_TIME_WORDS = _words("年 月 号 日 周 星期 点 天 早上 上午 下午 晚上 夜里 分钟 小时 季度")


READ = 4_000
"""Characters of a text in which dates are looked for."""
_MOST = 12


class Span(NamedTuple):
    """From one day to another, both included, as proleptic ordinals (``date.toordinal``)."""

    first: int
    last: int


class FoundDate(NamedTuple):
    """The days that ``text[start:end]`` names."""

    span: Span
    start: int
    end: int


Reader: TypeAlias = "Callable[[re.Match[str], date | None], Span | None]"


def dates(text: str, said: date | None = None) -> list[FoundDate]:
    """Return the days that ``text`` names, in order and without overlaps.

    ``said`` is the day on which the text was said. Without it, dates without a year and relative dates ("yesterday")
    are left out.
    """
    text = _lower(text)
    found: list[FoundDate] = []
    taken: list[tuple[int, int]] = []
    for pattern, read in _readers():
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            span = read(match, said)
            if span is not None:
                taken.append(match.span())
                found.append(FoundDate(span, *match.span()))
    return sorted(found, key=lambda each: each.start)[:_MOST]


def says_when(text: str) -> int:
    """Return the number of words about time in ``text``, at most 2."""
    found = _time_words().finditer(_lower(text))
    return len([match for match, _ in zip(found, range(2), strict=False)])


def _lower(text: str) -> str:
    """Return the beginning of ``text`` in lower case, with the same length."""
    lower = text[:READ].lower()
    return lower if len(lower) == len(text[:READ]) else text[:READ]


def overlap(asked: Sequence[Span], named: Sequence[Span]) -> bool:
    """Return whether any of the spans share a day."""
    return any(one.first <= other.last and other.first <= one.last for one in asked for other in named)


def days(span: Span) -> int:
    """Return the number of days in ``span``."""
    return span.last - span.first + 1


@cache
def _time_words() -> re.Pattern[str]:
    spaced = one_of([*TIME_WORDS, *MONTHS.keys() - AMBIGUOUS, *WEEKDAYS, *BACK, *AHEAD])
    return re.compile(rf"\b(?:{spaced}|(?:19|20)\d\d|\d+(?:st|nd|rd|th))\b|{one_of(CHINESE_TIME_WORDS)}")


@cache
def _readers() -> Sequence[tuple[re.Pattern[str], Reader]]:
    """Patterns over lower-case text and their readers, the more telling ones first."""
    month, weekday = one_of(MONTHS), one_of(WEEKDAYS)
    ordinal, number, unit = one_of(ORDINALS), one_of(NUMBERS), one_of(UNITS)
    back, ahead, this = one_of(BACK), one_of(AHEAD), one_of(THIS)
    later = one_of([*UNITS, *WEEKDAYS, *SEASONS, *MONTHS])
    day = rf"(?P<day>\d{{1,2}}|{ordinal})(?:st|nd|rd|th|\.)?"
    year = r"(?:,? (?P<year>(?:19|20)\d\d))?"
    sources: list[tuple[str, Reader]] = [
        (r"\b(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)-(?P<day>\d\d)\b", _calendar_day),
        (r"(?:(?P<year>(?:19|20)\d\d)年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号]", _calendar_day),
        (r"(?P<year>(?:19|20)\d\d)年(?P<month>\d{1,2})月", _calendar_day),
        (r"\b(?P<day>\d{1,2})\.(?P<month>\d{1,2})\.(?P<year>(?:19|20)\d\d)\b", _calendar_day),
        (rf"\b(?:the )?{day}(?: of)? (?P<month>{month})\b\.?{year}", _calendar_day),
        (rf"\b(?P<month>{month})\.? (?:the )?{day}\b(?! (?:{month})){year}", _calendar_day),
        (rf"\b(?P<month>{month})\.?,? (?P<year>(?:19|20)\d\d)\b", _calendar_day),
        (rf"\b(?P<season>{one_of(SEASONS)})(?: of)? (?P<year>(?:19|20)\d\d)\b", _season),
        (rf"(?<![a-zäöü])(?P<near>{one_of(NEAR)})(?![a-zäöü])", _near),
        (rf"(?P<chinese>{one_of(CHINESE_NEAR)})", _chinese),
        (rf"\b(?P<count>\d+|{number})(?: of)? (?P<unit>{unit}) ago\b", _ago),
        (rf"\bvor (?P<count>\d+|{number}) (?P<unit>{unit})\b", _ago),
        (rf"\b(?P<way>{back}|{ahead}|{this}) (?P<what>{later})\b", _step),
        (rf"\b(?P<month>{one_of(MONTHS.keys() - AMBIGUOUS)})\b", _calendar_day),
        (rf"\b(?:in|of|by|until|since|during|im|bis|seit) (?P<month>{one_of(AMBIGUOUS)})\b(?! i\b)", _calendar_day),
        (rf"\b(?P<weekday>{weekday})\b", _weekday),
        (r"(?<![\d.,-])(?P<year>(?:19|20)\d\d)(?![\d.,-]\d)\b", _calendar_day),
    ]
    return [(re.compile(source), read) for source, read in sources]


def _calendar_day(match: re.Match[str], said: date | None) -> Span | None:
    named = {name: text for name, text in match.groupdict().items() if text}
    year = int(named["year"]) if "year" in named else None
    month = named.get("month")
    number = None if month is None else MONTHS.get(month) or int(month) if not month.isdigit() else int(month)
    day = named.get("day")
    place = None if day is None else ORDINALS.get(day) or int(day)
    if year is None:
        year = _nearest_year(said, number, place)
    return None if year is None else _span(year, number, place)


def _nearest_year(said: date | None, month: int | None, day: int | None) -> int | None:
    """Return the year with which the date is nearest to ``said``."""
    if said is None or month is None:
        return None
    spans = {year: _span(year, month, day) for year in (said.year, said.year - 1, said.year + 1)}
    near = {year: abs(span.first - said.toordinal()) for year, span in spans.items() if span}
    return min(near, key=lambda year: near[year]) if near else None


def _span(year: int, month: int | None, day: int | None) -> Span | None:
    try:
        if month is None:
            return Span(date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal())
        if day is None:
            first = date(year, month, 1).toordinal()
            return Span(first, first + calendar.monthrange(year, month)[1] - 1)
        exact = date(year, month, day).toordinal()
    except ValueError:
        return None
    return Span(exact, exact)


def _season(match: re.Match[str], said: date | None) -> Span | None:
    return _quarter(int(match["year"]), SEASONS[match["season"]])


def _quarter(year: int, month: int) -> Span:
    start = date(year, month, 1)
    return Span(start.toordinal(), start.toordinal() + 91)


def _near(match: re.Match[str], said: date | None) -> Span | None:
    return _around(said, NEAR[match["near"]], 0)


def _chinese(match: re.Match[str], said: date | None) -> Span | None:
    what, steps = CHINESE_NEAR[match["chinese"]]
    return None if said is None else _moved(said, what, steps)


def _ago(match: re.Match[str], said: date | None) -> Span | None:
    count = int(match["count"]) if match["count"].isdigit() else NUMBERS[match["count"]]
    distance = UNITS[match["unit"]] * min(count, 1_000)
    return _around(said, -distance, 0 if distance < 7 else 3 if distance < 30 else distance // 8)


def _around(said: date | None, distance: int, play: int) -> Span | None:
    if said is None or not 400_000 < (middle := said.toordinal() + distance) < 1_000_000:
        return None
    return Span(middle - play, middle + play)


def _step(match: re.Match[str], said: date | None) -> Span | None:
    if said is None:
        return None
    steps = -1 if match["way"] in BACK else 1 if match["way"] in AHEAD else 0
    return _moved(said, match["what"], steps)


def _moved(said: date, what: str, steps: int) -> Span | None:
    """Return the day, week, month, season or year ``steps`` from ``said``."""
    if what in WEEKDAYS:
        return _day_of_week(said, WEEKDAYS[what], steps)
    if what in MONTHS:
        year = said.year + (steps > 0 and MONTHS[what] <= said.month) - (steps < 0 and MONTHS[what] >= said.month)
        return _span(year, MONTHS[what], None)
    if what in SEASONS:
        year = said.year + (steps > 0 and SEASONS[what] <= said.month) - (steps < 0 and SEASONS[what] >= said.month)
        return _quarter(year, SEASONS[what])
    size = UNITS[what]
    if size == 365:
        return _span(said.year + steps, None, None)
    if size == 30:
        months = said.year * 12 + said.month - 1 + steps
        return _span(months // 12, months % 12 + 1, None)
    if size == 1:
        return _around(said, steps, 0)
    monday = said - timedelta(days=said.weekday()) + timedelta(weeks=steps)
    return Span(monday.toordinal() + (5 if what.startswith(("weekend", "wochenende")) else 0), monday.toordinal() + 6)


def _day_of_week(said: date, weekday: int, steps: int) -> Span:
    back = (said.weekday() - weekday) % 7 or 7
    exact = said.toordinal() - back if steps < 0 else said.toordinal() + (weekday - said.weekday()) % 7
    return Span(exact, exact)


def _weekday(match: re.Match[str], said: date | None) -> Span | None:
    """Return the last such day: texts mostly describe past events."""
    return None if said is None else _day_of_week(said, WEEKDAYS[match["weekday"]], -1)


def spans(text: str, said: date | None = None) -> list[Span]:
    """Return the days of ``dates(text, said)``."""
    return [found.span for found in dates(text, said)]


def without_dates(text: str, said: date | None = None) -> str:
    """``text`` without the dates in it."""
    kept: list[str] = []
    at = 0
    for found in dates(text, said):
        kept.append(text[at : found.start])
        at = found.end
    return " ".join("".join((*kept, text[at:])).split())
