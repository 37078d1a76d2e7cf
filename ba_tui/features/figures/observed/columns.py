"""A column of numbers as evidence, and how a cell is read as a number or as a date.

``tables`` builds tables from columns.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.moments import listed, moment_at
from ba_tui.features.figures.observed.grids import GridCell
from ba_tui.features.figures.units import (
    CURRENCIES,
    PERCENT,
    FigureUnit,
    normal,
    numeral_at,
    unit_at,
    unit_before,
    unit_of_words,
)

NAN = math.nan
Cell = tuple[int, int]
"""Where the text of a cell begins and ends."""
TIME_NAMES = listed(
    "year yr y jahr année annee année año ano anio 年 年份 年度 date day month month_name monat mois mes "
    "月 月份 日期 quarter qtr q quartal trimestre 季度 week wk woche semaine semana 周 period periode "
    "période periodo datum fecha time timestamp ts dt fy d t mon time_hour"
)
_ID_NAMES = listed(
    "id ids key uuid code zip postcode plz index idx nr no flight tailnum pid port row rownum rn sha hash"
)
_SIZES = {"G": 1e9, "T": 1e12, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
"""Sizes as df, du and kubectl print them. K and M are read as thousands and millions."""
_QUANTILES = {
    **dict.fromkeys(("50%", "p50", "q50", "q2", "0.5"), ("median",)),
    **dict.fromkeys(("25%", "p25", "q25", "q1", "0.25"), ("quartile", "lower")),
    **dict.fromkeys(("75%", "p75", "q75", "q3", "0.75"), ("quartile", "upper")),
}
_WORDS = regex(r"[A-Za-zÀ-ÿ]+?(?=[A-Z][a-z])|[A-Za-zÀ-ÿ]+|[\u3040-\u30ff]+|[\u4e00-\u9fff]+")
_NUMBER_START = regex(r"\s*[+\-−–(]?\s?(?:[$€£¥₹~≈]|[A-Z]{3} )?\s*[+\-−(]?\s?[$€£¥₹]?\s?\d")


@frozen
class Column:
    """A column of numbers. ``values`` has NaN where a row has none; ``starts`` and ``ends`` are places in the text, 0
    for values without one. ``time`` marks years and dates, ``key`` identifiers: both are never added up."""

    name: str
    words: tuple[str, ...]
    values: array[float]
    starts: array[int]
    ends: array[int]
    unit: FigureUnit | None = None
    time: bool = False
    key: bool = False

    def span(self, row: int) -> Cell:
        """The place of the number of a row."""
        return self.starts[row], self.ends[row]


@frozen
class Read:
    """A cell that is a number; ``quoted`` is its text when it is in quotation marks."""

    value: float
    unit: FigureUnit | None = None
    start: int = 0
    end: int = 0
    quoted: str = ""


def column_of(name: str, cells: Sequence[Read | None], offset: int = 0, *, time: bool = False) -> Column:
    """The column of some cells. ``offset`` is added to their places."""
    words = words_of(name)
    shown = {cell.unit for cell in cells if cell}
    percent = sum(cell.unit is PERCENT for cell in cells if cell)
    unit = (
        shown.pop() if len(shown) == 1 else PERCENT if 2 * percent > sum(cell is not None for cell in cells) else None
    )
    if unit is None and not moment_in(name):
        unit = unit_of_words(words)
        if unit and unit.family in {"years", "time"} and " " in name:
            # “1 to 3 years” says which amounts are in a column, not in what they are measured.
            unit = None
    return Column(
        name,
        words,
        array("d", [cell.value if cell else NAN for cell in cells]),
        array("L", [cell.start + offset if cell and cell.end else 0 for cell in cells]),
        array("L", [cell.end + offset if cell and cell.end else 0 for cell in cells]),
        unit,
        time,
        bool(words) and words[-1] in _ID_NAMES,
    )


def words_of(name: str) -> tuple[str, ...]:
    """The words of a column name in lower case: ``avg_salary``, ``gdpPercap``; ``median`` for ``50%`` and its like."""
    return _QUANTILES.get(name.lower()) or tuple(word.lower() for word in _WORDS.findall(name))


def names_time(name: str) -> bool:
    """Whether a column with this name holds dates."""
    words = words_of(name)
    return name.lower() in TIME_NAMES or (bool(words) and words[-1] in TIME_NAMES)


def read_number(text: str, start: int, end: int) -> Read | None:
    """The number that a cell is, its blanks, quotes, currency and unit apart; None for any other text."""
    while start < end and text[start] in " \t\"'*`":
        start += 1
    while end > start and text[end - 1] in " \t\"'*`":
        end -= 1
    if start == end:
        return None
    token = text[start:end]
    if token[-1].isdigit() and "_" not in token:
        try:
            value = float(token)
        except ValueError:
            pass
        else:
            return Read(value, None, start, end) if token.isascii() and math.isfinite(value) else None
    if not _NUMBER_START.match(token):
        return None
    return _read_shown(text, start, end)


_FOOTNOTE = regex(r"(?<=[\d)%])\s?(?:\(\w{1,2}\)|\[\w{1,2}\]|[*†‡§]+)\s*$")
"""A mark behind a number: ``12.3 (1)``."""
_IN_BRACKETS = regex(r"[$€£¥₹]?\s?\(\s?[$€£¥₹]?\s?\d[^()]*\)?\s?%?$")
"""A number below zero as accountants write it: ``(19.2)``."""


def _read_shown(text: str, start: int, end: int) -> Read | None:
    shown = normal(text[start:end])
    if "(" in shown or "[" in shown or shown[-1] in "*†‡§":
        while mark := _FOOTNOTE.search(shown):
            shown = shown[: mark.start()]
    if _IN_BRACKETS.match(shown):
        opened = shown.index("(")
        inner = shown.replace("(", " ", 1)
        closed = inner.find(")", opened)
        inner = inner if closed < 0 else inner[:closed] + " " + inner[closed + 1 :]
        read = _read_plain(text, inner, start)
        return read and replace(read, value=-read.value)
    return _read_plain(text, shown, start)


def _read_plain(text: str, shown: str, start: int) -> Read | None:
    first = next(place for place, letter in enumerate(shown) if letter.isdigit())
    before = shown[:first].strip()
    coded = len(before) == 3 and before.isupper() and unit_before(shown, first) is not None
    if (any(letter not in " +-−–($€£¥₹~≈" for letter in before) and not coded) or moment_at(
        shown, first, digits_end(shown, first), ""
    ):
        return None
    numeral = numeral_at(shown, first)
    if numeral is None or not numeral.value.is_finite():
        return None
    behind = unit_at(shown, numeral.end)
    rest = shown[behind.end if behind.unit else numeral.end :].strip(" )*")
    value, unit = float(numeral.value), behind.unit or unit_before(shown, first)
    if numeral.sign == "" and "-" in before.replace("−", "-").replace("–", "-"):
        # A minus before a currency sign and a blank.
        value = -abs(value)
    tail = shown[numeral.end :].strip(" )*")
    if tail in _SIZES:
        unit = FigureUnit("bytes", _SIZES[tail])
    elif rest and rest not in CURRENCIES:
        return None
    if not math.isfinite(value):
        return None
    return Read(value, unit, start + first - len(numeral.sign), start + numeral.end)


def digits_end(text: str, place: int) -> int:
    """Return where the digits from ``place`` on end."""
    while place < len(text) and text[place].isdigit():
        place += 1
    return place


def moment_of(text: str) -> str:
    """The date or period that a cell is, in the form of moments; empty for any other text."""
    text = text.strip(" \t\"'")
    if not 2 <= len(text) <= 30:
        return ""
    if len(text) == 4 and text.isdigit():
        return text if "1000" <= text < "2200" else ""
    first = next((place for place, letter in enumerate(text) if letter.isdigit()), -1)
    if first < 0:
        return ""
    word = text[:first].strip(" .,").lower()
    found = moment_at(text, first, digits_end(text, first), word)
    return found.key if found and found.start == 0 and found.end >= len(text) - 1 else ""


MOST_NAME = 120
_DIGITS = regex(r"\d+")
_YEARS_IN = regex(r"(?<![\d.,])(?:19|20)\d\d(?![\d.,]*\d)")


def moment_in(name: str) -> str:
    """Return the only date or period in a name, or the only year; empty when there is none or several."""
    if moment := moment_of(name):
        return moment
    if not any(letter.isdigit() for letter in name) or len(name) > MOST_NAME:
        return ""
    found: dict[str, None] = {}
    done = 0
    for digits in _DIGITS.finditer(name):
        if digits.start() < done:
            continue
        words = name[: digits.start()].replace(",", " ").split()
        word = words[-1].strip("(.").lower() if words else ""
        if moment := moment_at(name, *digits.span(), word):
            done = moment.end
            found[moment.key] = None
        elif _YEARS_IN.fullmatch(digits[0]):
            found[digits[0]] = None
    keys = [key for key in found if key]
    dated = [key for key in keys if key[0] != "-"]
    if len(keys) == 1:
        return keys[0]
    if len(dated) == 1:
        month = next((key for key in keys if key[0] == "-"), "")
        return month.replace("-", dated[0], 1) if len(dated[0]) == 4 and len(keys) == 2 else dated[0]
    return ""


def read_cell(cell: GridCell) -> Read | None:
    """Return the number that a cell is."""
    if not cell[0]:
        return None
    read = read_number(cell[0], 0, len(cell[0]))
    if read is None:
        return None
    place = cell[1]
    return Read(read.value, read.unit, read.start + place, read.end + place if cell[2] else 0, read.quoted)
