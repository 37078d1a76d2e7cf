"""Dates, periods and times as answers and tables write them, brought to one form: ``2013``, ``2013-05``,
``2013-06-03``, ``2025-Q1``, ``--06-03`` (a day without its year), ``--Q1``, ``--06``.

What else is no figure is told in apart.
"""

from __future__ import annotations

import re

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.words.lexicon import MONTHS, listed

_YEAR = r"(?:1[0-9]|20|21)\d\d"
_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?"
_ISO = regex(
    rf"(?P<y>{_YEAR})(?P<s>[-/.])(?P<m>0[1-9]|1[0-2]|[1-9](?!\d))(?:(?P=s)(?P<d>[0-2]\d|3[01]|[1-9](?!\d)))?(?!\d)(?!\.\d)"
    rf"(?:[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?)?"
)
_PART_OF_YEAR = regex(rf"(?P<y>{_YEAR})[- ]?(?P<part>[QH][1-4]|W\d\d?)\b")
_YEARS = regex(rf"(?P<a>{_YEAR})(?P<dash>\s?[-–—/]\s?)(?P<b>{_YEAR}|\d\d)(?![\d.,%])")
_DECADE = regex(r"(?:1\d{3}|20\d\d)(?:s|er|年代)(?![a-z])|\d0(?:s|er)(?=[ ,.]|$)")
_DAY_FIRST = regex(
    rf"(?P<d>\d{{1,2}})(?:st|nd|rd|th|er|\.|º)?[ \u00a0-](?:of |de )?(?P<mon>{_MONTH})\b\.?"
    r"(?:,?(?: de)?[ -](?P<y>\d{4}))?",
    re.IGNORECASE,
)
_NUMERIC = regex(
    rf"(?P<a>\d{{1,2}})(?P<s>[./])(?P<b>\d{{1,2}})(?P=s)(?P<y>\d{{4}}|\d\d(?=\D|$))(?![\d.])(?: {_CLOCK})?"
)
_DAY_MONTH = regex(r"(?P<d>[0-3]?\d)\.(?P<m>0?[1-9]|1[0-2])\.(?!\d)")
_DAY_CUES = listed("am vom bis zum den der ab seit dem")
_CJK = regex(
    r"(?:(?P<y>\d{4})\s?年度?(?:\s?第?\s?(?P<q>[1-4一二三四])\s?(?:季度|四半期))?\s?)?"
    r"(?:(?P<m>\d{1,2})\s?月(?:份)?(?:\s?(?P<d>\d{1,2})\s?[日号號])?)?"
)
_CJK_QUARTER = regex(r"(?P<q>[1-4])\s?(?:季度|四半期)")
_CJK_DIGITS = {"一": "1", "二": "2", "三": "3", "四": "4"}
_QUARTER_FIRST = regex(
    r"(?P<q>[1-4])(?:Q ?(?P<short>\d\d|\d{4})?\b"
    r"|(?:st|nd|rd|th|er|e|ème|\.|º)? (?:[Qq]uarter|Quartal|trimestre)\b(?: (?:of |de |du )?(?P<y>\d{4}))?)"
)
_LETTERED = regex(
    r"(?P<kind>Q|H|FY|KW|W|CW|S|T|M)[ -]?(?P<n>\d{1,4})"
    r"(?:[ /-]?(?:of |de )?(?P<y>(?:19|20)\d\d)\b|[ ]?['’](?P<short>\d\d))?"
)
_TIME = regex(
    rf"{_CLOCK}(?:\s?[ap]\.?m\b\.?|\s?Uhr\b)?"
    r"|\d{1,2}\s?[ap]\.?m\b\.?|\d{1,2}(?:[.:]\d\d)?\s?Uhr\b|\d{1,2}h\d\d(?!\w)"
    r"|\d{1,2}\s?[点點時时](?:\s?\d{1,2}\s?分)?(?!间|間)"
)
_DAY_AND_YEAR = regex(
    rf"(?P<only>{_YEAR})(?![\d,.]*\d)|(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:(?:, ?| )(?P<y>{_YEAR})(?!\d))?(?![\d,.]*\d)"
)


@frozen
class Moment:
    """A date, a period or a time of day. ``key`` is its form for comparison; empty for a time of day."""

    start: int
    end: int
    key: str
    reason: str


def moment_at(text: str, start: int, end: int, word: str) -> Moment | None:
    """The date, period or time that the digits at ``start`` to ``end`` belong to; it may begin before them.

    ``word``: the word before them, in lower case.
    """
    if start and text[start - 1] <= "Z" and (found := _lettered(text, start)):
        return found
    if word in MONTHS and (found := _after_month(text, start, word)):
        return found
    following = text[end : end + 1]
    if not following or following in ",;)|\n%$€":
        return None
    if following in "-./":
        return _iso(text, start, end) or _numeric(text, start, end, word) or _worded(text, start, end)
    if following in ":hapU" or following in "点點時时":
        return _time(text, start)
    if following in "年月季四" or (following == " " and text[end + 1 : end + 2] in "年月季四点時"):
        return _cjk(text, start) or _time(text, start)
    if following == " " or following.isalpha() or following in "º\u00a0":
        return _worded(text, start, end)
    return None


def _lettered(text: str, start: int) -> Moment | None:
    at = start
    while at > 0 and start - at < 3 and (text[at - 1] in " -" or "A" <= text[at - 1] <= "Z"):
        at -= 1
    while at < start and not text[at].isalpha():
        at += 1
    if at == start or (at and (text[at - 1].isalnum() or text[at - 1] == "_")):
        return None
    found = _LETTERED.match(text, at)
    if found is None or found.start("n") != start or text[found.end() : found.end() + 1].isalnum():
        return None
    kind, number = found["kind"], found["n"]
    year = found["y"] or (f"20{found['short']}" if found["short"] else "")
    if kind == "FY":
        return Moment(at, found.end(), number if len(number) == 4 else f"20{number}", "period")
    if len(number) > (2 if kind in {"KW", "CW", "W", "M"} else 1) or (kind in "STM" and not year):
        return None
    name = {"T": "Q", "S": "H", "CW": "W", "KW": "W"}.get(kind, kind)
    return Moment(at, found.end(), f"{year or '-'}-{name}{number}", "period")


def _after_month(text: str, start: int, word: str) -> Moment | None:
    found = _DAY_AND_YEAR.match(text, start)
    if found is None:
        return None
    at = text.lower().rfind(word, max(0, start - len(word) - 4), start)
    if word in {"may", "mar", "march", "mars", "abr", "mai"} and text[at].islower():
        return None
    month = MONTHS[word]
    if found["only"]:
        return Moment(at, found.end(), f"{found['only']}-{month:02}", "date")
    if not 1 <= int(found["d"]) <= 31:
        return None
    return Moment(at, found.end(), f"{found['y'] or '-'}-{month:02}-{int(found['d']):02}", "date")


def _iso(text: str, start: int, end: int) -> Moment | None:
    if end - start != 4 or text[start] not in "12":
        return None
    if found := _ISO.match(text, start):
        day = f"-{int(found['d']):02}" if found["d"] else ""
        if found["s"] != "." or day:
            return Moment(start, found.end(), f"{found['y']}-{int(found['m']):02}{day}", "date")
    if found := _PART_OF_YEAR.match(text, start):
        return Moment(start, found.end(), f"{found['y']}-{found['part']}", "period")
    return None


def years_at(text: str, start: int) -> tuple[Moment, Moment] | None:
    """The two years of a range or a season, such as ``2013–2015`` and ``2013/14``, that begins at ``start``."""
    found = _YEARS.match(text, start)
    if found is None:
        return None
    first, last = found["a"], found["b"]
    if len(last) == 2:
        if int(last) != (int(first) + 1) % 100:
            return None
        last = f"{int(first) + 1}"
    elif last <= first:
        return None
    return Moment(start, found.end("a"), first, "date"), Moment(found.start("b"), found.end(), last, "date")


def _worded(text: str, start: int, end: int) -> Moment | None:
    digits = end - start
    if digits == 4 or text[end - 1] == "0":
        if found := _DECADE.match(text, start):
            return Moment(start, found.end(), "", "date")
        if digits == 4 and (found := _PART_OF_YEAR.match(text, start)):
            return Moment(start, found.end(), f"{found['y']}-{found['part']}", "period")
    if digits > 2:
        return None
    if (found := _DAY_FIRST.match(text, start)) and 1 <= int(found["d"]) <= 31:
        return Moment(
            start, found.end(), f"{found['y'] or '-'}-{MONTHS[found['mon'].lower()]:02}-{int(found['d']):02}", "date"
        )
    if digits == 1 and text[start] in "1234" and (found := _QUARTER_FIRST.match(text, start)):
        year = found["y"] or found["short"] or "-"
        return Moment(start, found.end(), f"{'20' + year if len(year) == 2 else year}-Q{found['q']}", "period")
    return _time(text, start)


def _numeric(text: str, start: int, end: int, word: str) -> Moment | None:
    if end - start > 2:
        return None
    if found := _NUMERIC.match(text, start):
        first, second, slash = int(found["a"]), int(found["b"]), found["s"] == "/"
        day, month = (second, first) if slash and first <= 12 else (first, second)
        if 1 <= month <= 12 and 1 <= day <= 31 and (slash or len(found["y"]) == 4):
            year = found["y"] if len(found["y"]) == 4 else f"20{found['y']}"
            return Moment(start, found.end(), f"{year}-{month:02}-{day:02}", "date")
    if word in _DAY_CUES and (found := _DAY_MONTH.match(text, start)) and 1 <= int(found["d"]) <= 31:
        return Moment(start, found.end(), f"--{int(found['m']):02}-{int(found['d']):02}", "date")
    return None


def _cjk(text: str, start: int) -> Moment | None:
    if found := _CJK_QUARTER.match(text, start):
        return Moment(start, found.end(), f"--Q{found['q']}", "period")
    found = _CJK.match(text, start)
    if found is None or found.end() == start:
        return None
    year, month, day, quarter = found["y"], found["m"], found["d"], found["q"]
    if year and not month and text[found.end() : found.end() + 1] == "间":
        return None
    end = found.end() - (text[found.end() - 1] == " ")
    part = f"-{int(month):02}" if month else f"-Q{_CJK_DIGITS.get(quarter, quarter)}" if quarter else ""
    return Moment(start, end, f"{year or '-'}{part}{f'-{int(day):02}' if day else ''}", "date")


def _time(text: str, start: int) -> Moment | None:
    found = _TIME.match(text, start)
    return Moment(start, found.end(), "", "time") if found else None
