"""The figures of an answer, separated from other digits such as dates, names and list numbers.

Whether four digits are a year may depend on the data: such figures have ``year`` set.
"""

from __future__ import annotations

import re
from decimal import Decimal

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.moments import (
    ACROSS,
    CJK_HEDGES,
    CJK_YEAR_CUES,
    HEDGED_BEHIND,
    HEDGES,
    NO_COUNTED,
    NO_NOUNS,
    TILDES,
    YEAR_CUES,
    Moment,
    listed,
    moment_at,
    years_at,
)
from ba_tui.features.figures.outline import (
    AnswerOutline,
    Apart,
    Cell,
    apart_column,
    chained,
    fixed,
    labelled,
    name_around,
    name_behind,
    ordinal,
    outline,
    ratio_base,
    special_at,
)
from ba_tui.features.figures.units import (
    SIGNS,
    TIMES,
    FigureUnit,
    Numeral,
    WrittenUnit,
    normal,
    numeral_at,
    unit_at,
    unit_before,
)

_MARKS = "$€£¥₹+-−( *_"


def hedge_of(text: str, start: int, end: int, words: tuple[str, str]) -> str:
    """Return ``"near"``, ``"over"``, ``"under"`` or empty text. ``words`` are the last two before the figure, in lower
    case."""
    before = text[start - 1] if start else " "
    place = start
    while place and text[place - 1] in _MARKS:
        place -= 1
    before = text[place - 1] if place else " "
    if before in TILDES:
        return "near"
    if before > "\u2fff":
        return _cjk(text[max(0, place - 3) : place]) or _behind(text, end)
    if text[end : end + 1] == "+" and not text[end + 1 : end + 2].isdigit():
        return "over"
    first, last = words
    last = last.rstrip(_MARKS)
    found = HEDGES.get(f"{first} {last}") or HEDGES.get(last, "")
    if found == "over" and last == "over" and first in ACROSS:
        return ""
    return found or _behind(text, end)


def _cjk(head: str) -> str:
    return next((kind for names, kind in CJK_HEDGES for name in names.split("|") if head.endswith(name)), "")


def _behind(text: str, end: int) -> str:
    following = text[end : end + 6].lstrip()
    if not following or following[0] < "\u2fff":
        return ""
    return next((kind for name, kind in HEDGED_BEHIND.items() if name in following[:4]), "")


MOST = 5_000
"""Most figures read in one answer; the rest is reported as not checked."""

_DIGITS = regex(r"\d+")
_UNIT_OF_TIME = (
    r"(?:days?|d|Tagen?|hours?|hrs?|h|Std\.?|Stunden?|heures?|horas?|小时|小時|時間|天|minutes?|mins?|min|m|Min\.?|Minuten|分钟|分"
    r"|seconds?|secs?|sec|s|Sekunden?|Sek\.?|secondes?|segundos?|秒钟?)(?![A-Za-z])"
)
_PART = rf"\d+(?:[.,]\d+)?[ \u00a0-]?{_UNIT_OF_TIME}"
_DURATION = regex(rf"{_PART}(?:[ \u00a0]?(?:,|and|und|et|y|e)?[ \u00a0]?{_PART}){{1,3}}")
_PARTS = regex(r"(\d+(?:[.,]\d+)?)[ \u00a0-]?([A-Za-z\u3000-\u9fff])(?:[A-Za-z]+\b|[时間时钟]|小时)?")
_CLOCKED = regex(
    r"(\d{1,3}):([0-5]\d)(?::([0-5]\d))?"
    r"(?=[ \u00a0]?(?P<unit>min|h|hours?|minutes?|Minuten|Stunden|Std|hrs?|分钟|小时|mm:ss|m:ss)(?!\w))"
)
_SECONDS = {"d": 86400, "t": 86400, "天": 86400, "h": 3600, "小": 3600, "時": 3600, "m": 60, "分": 60, "s": 1, "秒": 1}
_STARTS_DURATION = frozenset("dhmstDHMST小時天分 -\u00a0:.,")
_COMMA = regex(
    r"(?<![\d.,])(?:\d{1,3}(?:[.\u00a0\u202f ]\d{3})*|\d+),(?:\d{1,2}|\d{4,})(?![\d,])(?!\.\d)"
    r"|(?<![\d.,])\d{1,3}(?:\.\d{3}){2,}(?![.\d])"
)
_POINT = regex(
    r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})*|\d+)\.(?:\d{1,2}|\d{4,})(?![\d.])|(?<![\d.,])\d{1,3}(?:,\d{3}){2,}(?![,\d])"
)
_COMMA_WORDS = listed("der die das und ist sind von mit auf le la les est des et sont el los las una que del por")
_POINT_WORDS = listed("the and of is are in with by was from")
_SPLIT = regex(r"(?<=\*\*)\d[\d.,]*\*\*[\d.,]*\d(?![\d*])|(?<![\d*.,])\d[\d.,]*\*\*[\d.,]*\d(?=\*\*)")
"""A number that is partly bold; not ``2**10``."""
_OPENING = "(*_[\"'“|`"
_OFTEN = frozenset({"times", "mal", "fois", "veces"})
"""After a large whole number, these words count occurrences rather than compare."""
_TAIL = " \u00a0:=*_`([$€£¥₹+-−"


@frozen
class Figure:
    """A figure of an answer at ``start`` to ``end`` (code points). ``value`` is exact and scaled (1400 for ``1.4k``),
    ``step`` the distance to the next number in this notation, ``scale`` the power of ten of its suffix, ``hedge``
    one of ``"", "near", "over", "under"``, ``noun`` the following word, ``year`` the likelihood that it is a year:
    ``"", "perhaps", "likely"``."""

    start: int
    end: int
    text: str
    value: Decimal
    step: Decimal
    sign: str = ""
    unit: FigureUnit | None = None
    noun: str = ""
    hedge: str = ""
    scale: int = 0
    other: tuple[Decimal, Decimal] | None = None
    year: str = ""
    duration: bool = False


@frozen
class Extraction:
    """The parts of an answer, in order. ``unread`` is the number of figures beyond ``MOST``."""

    outline: AnswerOutline
    figures: tuple[Figure, ...]
    apart: tuple[Apart, ...]
    moments: tuple[Moment, ...]
    unread: int = 0


def extract(answer: str, prompt: str = "") -> Extraction:
    """Extract every figure of ``answer``, except verbatim quotes of ``prompt``."""
    return _AnswerScan(answer, prompt).whole()


def comma_decimals(text: str) -> bool:
    """Return whether a normalized text has decimal commas: judged by unambiguous numbers, else by its language."""
    commas, points = (sum(1 for _ in form.finditer(text)) for form in (_COMMA, _POINT))
    if commas != points:
        return commas > points
    words = text[:4000].lower().split()
    return sum(word in _COMMA_WORDS for word in words) > sum(word in _POINT_WORDS for word in words)


class _AnswerScan:
    """A scan of one answer, from digits to digits."""

    def __init__(self, answer: str, prompt: str) -> None:
        self.answer = answer
        self.text, self.moved = _joined(normal(answer))
        text = self.text
        self.outline = outline(text)
        self.comma = comma_decimals(text)
        self.closed = fixed(text, normal(prompt), self.outline)
        self.figures: list[Figure] = []
        self.apart: list[Apart] = []
        self.moments: list[Moment] = []
        self.unread = 0

    def whole(self) -> Extraction:
        done, at, closed = 0, 0, self.closed
        for digits in _DIGITS.finditer(self.text):
            start, end = digits.span()
            if start < done:
                continue
            while at < len(closed) and closed[at].end <= start:
                at += 1
            if at < len(closed) and closed[at].start <= start:
                done = self._leave(closed[at])
            elif len(self.figures) >= MOST:
                self.unread += 1
                done = end
            else:
                done = max(end, self._token(start, end))
        return Extraction(self.outline, tuple(self.figures), tuple(self.apart), tuple(self.moments), self.unread)

    def _leave(self, what: Apart) -> int:
        self.apart.append(what)
        return what.end

    def _token(self, start: int, end: int) -> int:
        """Read the token that the digits at ``start`` belong to; return its end."""
        text = self.text
        if text[end : end + 1] in _STARTS_DURATION and (stop := self._duration(start)):
            return stop
        words = _words_before(text, start)
        if moment := moment_at(text, start, end, words[1]):
            self.moments.append(moment)
            return self._leave(Apart(moment.start, moment.end, moment.reason))
        if end - start == 4 and (years := years_at(text, start)):
            self.moments += years
            return self._leave(Apart(start, years[1].end, "date"))
        if found := special_at(text, start, end) or name_around(text, start, end):
            return self._leave(found)
        numeral = numeral_at(text, start, comma=self.comma)
        return end if numeral is None else self._number(numeral, words)

    def _number(self, numeral: Numeral, words: tuple[str, str]) -> int:
        text, start, end = self.text, numeral.start, numeral.end
        behind = unit_at(text, end)
        unit = behind.unit or unit_before(text, start)
        if unit is TIMES and numeral.step == 1 and numeral.value > 20 and behind.word in _OFTEN:
            unit = None
        whole = numeral.step == 1 and not numeral.sign
        following = text[end : end + 1]
        if behind.unit is None and following.isalpha() and following < "ɐ":
            return self._leave((ordinal(text, start, end) if whole else None) or name_behind(text, start, end))
        if unit is None and not numeral.sign:
            found = self._apart_whole(start, end, words, behind) if whole else None
            found = found or labelled(text, start, end, words, noun=_countable(behind.word))
            if found is not None and (whole or found.reason in {"version", "label", "figure_ref"}):
                return self._leave(found)
        self._add(numeral, behind, unit, words)
        return end

    def _apart_whole(self, start: int, end: int, words: tuple[str, str], behind: WrittenUnit) -> Apart | None:
        """Return why a whole number without a unit is no figure; None when it is one."""
        text = self.text
        if found := ordinal(text, start, end):
            return found
        if ratio_base(text, start, end):
            return Apart(start, end, "ratio_base")
        if chained(text, self.apart[-1] if self.apart else None, start):
            return Apart(start, end, self.apart[-1].reason)
        cell = self._cell(start)
        if cell is not None and (reason := apart_column(text[slice(*cell.header)])):
            return Apart(start, end, reason)
        return None

    def _cell(self, place: int) -> Cell | None:
        for cell in self.outline.block_at(place).cells:
            if cell.span[0] <= place < cell.span[1]:
                return cell
        return None

    def _add(self, numeral: Numeral, behind: WrittenUnit, unit: FigureUnit | None, words: tuple[str, str]) -> None:
        text, start, end = self.text, numeral.start, numeral.end
        hedge = hedge_of(text, start, end, words)
        year = "" if unit or numeral.sign else self._year(start, end, behind, words)
        if year and hedge:
            year = "" if hedge == "near" else "perhaps"
        if numeral.sign and text[start - 1] in SIGNS:
            start -= 1
        start = self.moved.get(start, start)
        shown = self.answer[start:end]
        value, step, sign = numeral.value, numeral.step, numeral.sign
        self.figures.append(
            Figure(start, end, shown, value, step, sign, unit, behind.word, hedge, numeral.scale, numeral.other, year)
        )
        if year:
            self.moments.append(Moment(start, end, shown, "date"))

    def _year(self, start: int, end: int, behind: WrittenUnit, words: tuple[str, str]) -> str:
        text = self.text
        if end - start != 4 or not "1000" <= text[start:end] <= "2199" or not text[start:end].isdigit():
            return ""
        modern = "1900" <= text[start:end] <= "2100"
        cued = words[1] in YEAR_CUES or words[1][-1:] in CJK_YEAR_CUES or text[start - 1 : start] == "("
        if behind.word == "年":
            return "likely"
        if _countable(behind.word) and not (cued and modern):
            return "perhaps" if modern else ""
        cell = self._cell(start)
        if cell is not None:
            return "likely" if cell.span == cell.label else "perhaps" if modern else ""
        return "likely" if modern or cued or text[end : end + 1] == ":" else "perhaps"

    def _duration(self, start: int) -> int:
        found = duration_at(self.text, start)
        if found is None:
            return 0
        end, value, step = found
        hedge = hedge_of(self.text, start, end, _words_before(self.text, start))
        self.figures.append(
            Figure(
                start,
                end,
                self.answer[start:end],
                value,
                step,
                unit=FigureUnit("time"),
                hedge=hedge,
                duration=True,
            )
        )
        return end


def duration_at(text: str, start: int) -> tuple[int, Decimal, Decimal] | None:
    """Return the end, the seconds and the last unit's seconds of a duration such as ``12m 41s`` or ``1:30 h``."""
    if (found := _DURATION.match(text, start)) and (parts := _falling(text, start, found.end())):
        seconds = sum((Decimal(number) * scale for number, scale, _ in parts), Decimal(0))
        return parts[-1][2], seconds, Decimal(parts[-1][1])
    if found := _CLOCKED.match(text, start):
        numbers = [number for number in found.groups()[:3] if number]
        scales = (3600, 60, 1) if len(numbers) == 3 else (3600, 60) if found["unit"][0] in "hS小" else (60, 1)
        seconds = sum((Decimal(number) * scale for number, scale in zip(numbers, scales, strict=True)), Decimal(0))
        return found.end(), seconds, Decimal(scales[-1])
    return None


def _joined(text: str) -> tuple[str, dict[int, int]]:
    """Return ``text`` with the marks inside a partly bold number, such as ``**1**,234``, moved before it, and the
    original positions of such numbers."""
    moved: dict[int, int] = {}

    def join(found: re.Match[str]) -> str:
        digits = found[0].replace("*", "")
        moved[found.end() - len(digits)] = found.start()
        return digits.rjust(len(found[0]), "*")

    return (_SPLIT.sub(join, text) if "**" in text else text), moved


def _falling(text: str, start: int, end: int) -> list[tuple[str, int, int]]:
    """Return the parts of a duration, with their ends, while each unit is smaller than the one before; at least two."""
    found: list[tuple[str, int, int]] = []
    for part in _PARTS.finditer(text, start, end):
        seconds = _SECONDS[part[2].lower()]
        if found and seconds >= found[-1][1]:
            break
        found.append((part[1].replace(",", "."), seconds, part.end()))
    return found if len(found) > 1 else []


def _words_before(text: str, start: int) -> tuple[str, str]:
    """Return the last two words before ``start`` on its line, in lower case, ignoring marks before the number."""
    head = text[max(0, start - 32) : start]
    if "\n" in head:
        head = head[head.rindex("\n") + 1 :]
    words = head.rstrip(_TAIL).lower().rsplit(None, 2)
    last = words[-1] if words else ""
    first = words[-2] if len(words) > 1 else ""
    return first.lstrip(_OPENING), last.lstrip(_OPENING)


def _countable(word: str) -> bool:
    """Return whether a word after a number looks like something countable."""
    if not word:
        return False
    if word[0] > "\u2fff":
        return word[0] not in NO_COUNTED
    return word.endswith("s") and word not in NO_NOUNS and len(word) > 3
