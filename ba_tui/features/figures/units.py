"""Units in answers and column names, conversion factors between them, and the parsing of numbers."""

from __future__ import annotations

import re
from decimal import Decimal
from functools import lru_cache

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.moments import listed

# Numbers as people and programs print them: separators, decimal marks, signs, magnitude suffixes. Which numbers of an
# answer are figures is decided in ``extract``.

MINUS = "-−–﹣"
SIGNS = "+" + MINUS
CURRENCIES = "$€£¥₹₩₽₺₫฿₱₦₴₪"
LONGEST = 400
"""Most digits; a longer number is skipped and has no value."""
_SPACES = "\u00a0\u2009\u202f "
_MARKS = str.maketrans(
    {
        **{
            chr(zero + digit): str(digit)
            for zero in (0xFF10, 0x0660, 0x06F0, 0x0966, 0x09E6, 0x0E50)
            for digit in range(10)
        },
        **dict(zip("．％＋－￥＄：（）／＝＃٬٫٪’ʼ﹪\u2007", ".%+-¥$:()/=#,.%''%\u00a0", strict=True)),
    }
)
"""Replaced one character by one, so that offsets stay valid."""
_WIDE_COMMA = regex(r"(?<=[０-９])，(?=[０-９]{3})")

_GROUPED = regex(
    rf"\d{{1,3}}(?P<mark>[,.'_{_SPACES}])\d{{3}}(?:(?P=mark)\d{{3}})*(?!\d)(?:(?!(?P=mark))(?P<point>[.,])\d+)?"
)
_INDIAN = regex(r"\d{1,2}(?:,\d\d)+,\d{3}(?:\.\d+)?(?!\d)")
_PLAIN = regex(r"\d+(?:[.,]\d+)?")
_LIST = regex(r"\d+(?:,\d+){2,40}(?![\d.])")
_EXPONENT = regex(
    rf"[eE](?P<raw>[+{MINUS}]?\d{{1,4}})(?![\w.])|\s?[×·]\s?10(?:\^|\*\*)?(?P<power>[+{MINUS}]?\d{{1,4}})"
)
_POWER = regex(r"(?:\^|\*\*)(\d{1,4})(?![\w.])")
_SUFFIX = regex(
    r"(?:(?P<tight>[kKMBTm]|bn|mn|tn)(?![A-Za-z0-9/²³%])"
    r"|[\u00a0\u202f ]?(?P<cjk>万亿|百万|千万|十亿|百亿|千亿|[万萬亿億兆])"
    r"|[\u00a0\u202f -]?(?P<word>thousand|millions?|billions?|trillions?|bn|mn|[Mm]io|[Mm]rd|[Tt]sd|Bio"
    r"|[Mm]illiarden?|milliards?|Millionen|Billionen|mil millones|mill[oó]n|millones|billones|mil|mille"
    r"|lakhs?|crores?|cr|M(?=\s?[€$£]))\b)"
)
_SCALES = {
    **dict.fromkeys(("k", "tsd", "thousand", "mil", "mille"), 3),
    **dict.fromkeys(("万", "萬"), 4),
    **dict.fromkeys(("lakh", "lakhs"), 5),
    **dict.fromkeys(("m", "mn", "mio", "million", "millions", "millionen", "millones", "millón", "millon", "百万"), 6),
    **dict.fromkeys(("crore", "crores", "cr", "千万"), 7),
    **dict.fromkeys(("亿", "億"), 8),
    **dict.fromkeys(("b", "bn", "mrd", "billion", "billions", "十亿", "mil millones"), 9),
    **dict.fromkeys(("milliarde", "milliarden", "milliard", "milliards"), 9),
    "百亿": 10,
    "千亿": 11,
    **dict.fromkeys(("t", "tn", "trillion", "trillions", "billionen", "billones", "bio", "兆", "万亿"), 12),
}
_ABBREVIATED = frozenset({"mio", "mrd", "tsd", "bio"})


@frozen
class Numeral:
    """A number in a text. ``step`` is the distance to the next number in this notation: 0.1 for ``12.3``, 100 for
    ``1.4k``. ``sign`` is ``"+"``, ``"-"`` or empty. ``other`` is the second reading of an ambiguous number such as
    ``1.234``. ``scale`` is the power of ten of a suffix."""

    start: int
    end: int
    value: Decimal
    step: Decimal
    sign: str = ""
    other: tuple[Decimal, Decimal] | None = None
    scale: int = 0


_POWER_OF_TEN = regex(r"10[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")


def normal(text: str) -> str:
    """Return ``text`` with digits and marks of other scripts as ASCII; the length does not change."""
    if text.isascii():
        return text
    text = _POWER_OF_TEN.sub(lambda found: found[0].translate(_RAISED), text)
    return (_WIDE_COMMA.sub(",", text) if "，" in text else text).translate(_MARKS)


def numeral_at(text: str, start: int, *, comma: bool = False) -> Numeral | None:
    """Return the number whose first digit is at ``start`` of a normalized text.

    ``comma``: decimals are written with a comma. Of a list such as ``1,2,3`` the first number is returned.
    """
    found = _INDIAN.match(text, start)
    if found is not None:
        body = found[0].replace(",", "")
        return _made(text, found, body, "." if "." in body else "")
    found = _GROUPED.match(text, start)
    if found is not None and not (found["mark"] == " " and _is_row(text, found)):
        return _grouped(text, found, comma=comma)
    found = _PLAIN.match(text, start)
    if found is None:
        return None
    body = found[0]
    if "," in body and _LIST.match(text, start):
        end = start + body.index(",")
        return Numeral(start, end, Decimal(text[start:end]), Decimal(1), sign_before(text, start))
    return _made(text, found, body, "." if "." in body else "," if "," in body else "")


def _is_row(text: str, found: re.Match[str]) -> bool:
    """Return whether spaces separate numbers of a row rather than groups of digits."""
    return text[found.start()] == "0" or text[found.end() : found.end() + 2].lstrip(" ")[:1].isdigit()


def _grouped(text: str, found: re.Match[str], *, comma: bool) -> Numeral:
    body, mark, point = found[0], found["mark"], found["point"] or ""
    one_group = mark in ".," and not point and body.count(mark) == 1
    if one_group and body[0] == "0":
        return _made(text, found, body, mark)
    whole = _made(text, found, body.replace(mark, ""), point)
    if not one_group:
        return whole
    parted = _made(text, found, body, mark)
    first, second = (parted, whole) if mark == ("," if comma else ".") else (whole, parted)
    return Numeral(
        first.start, first.end, first.value, first.step, first.sign, (second.value, second.step), first.scale
    )


def _made(text: str, found: re.Match[str], body: str, point: str) -> Numeral:
    """Return the number in ``body``, which has digits and at most one decimal mark, ``point``."""
    start, end = found.span()
    exponent = body.index(point) - len(body) + 1 if point else 0
    digits = body.replace(point, "") if point else body
    sign = sign_before(text, start)
    if len(digits) > LONGEST:
        return Numeral(start, end, Decimal("Infinity"), Decimal(1), sign)
    value = Decimal(digits)
    scale = 0
    following = text[end : end + 2]
    if following and following[0] not in "%|\n.,;:)":
        if after := _EXPONENT.match(text, end):
            exponent += _whole(after["raw"] or after["power"])
            end = after.end()
        elif not point and (power := _POWER.match(text, end)):
            value = value ** int(power[1]) if int(power[1]) * len(digits) <= LONGEST else Decimal("Infinity")
            end = power.end()
        else:
            scale, end = _scale_at(text, start, end)
            exponent += scale
    value = value.scaleb(exponent) if value.is_finite() else value
    return Numeral(start, end, -value if sign == "-" else value, Decimal(1).scaleb(exponent), sign, None, scale)


def _whole(text: str) -> int:
    return -int(text[1:]) if text[0] in MINUS else int(text)


def _scale_at(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the power of ten of a suffix at ``end``, or after marks there, and its end."""
    found = _SUFFIX.match(text, end + 2 if text.startswith("**", end) else end)
    if found is None:
        return 0, end
    name = found["tight"] or found["cjk"] or found["word"]
    if name in {"T", "m"} and not any(mark in CURRENCIES for mark in text[max(0, start - 2) : start]):
        return 0, end
    end = found.end()
    if text[end : end + 1] == "." and name.lower() in _ABBREVIATED and not text[end + 1 : end + 2].isalnum():
        end += 1
    return _SCALES[name.lower()], end


def sign_before(text: str, start: int) -> str:
    """Return the sign of the number at ``start``; hyphens in words and dashes of ranges are ignored."""
    place = start - 1
    while place >= 0 and text[place] in CURRENCIES:
        place -= 1
    if place < 0 or text[place] not in SIGNS:
        return ""
    before = text[place - 1] if place else " "
    if (before.isascii() and before.isalnum()) or before in "%)]°":
        return ""
    return "+" if text[place] == "+" else "-"


@frozen
class FigureUnit:
    """A unit. ``factor`` converts to the family's base unit. Families are money, percent, points, times and the
    physical ones."""

    family: str
    factor: float = 1.0


PERCENT = FigureUnit("percent")
POINTS = FigureUnit("points")
BASIS_POINTS = FigureUnit("points", 0.01)
TIMES = FigureUnit("times")
MONEY = FigureUnit("money")
YEARS = FigureUnit("years")


def _named(unit: FigureUnit, names: str) -> dict[str, FigureUnit]:
    return dict.fromkeys(names.split("|"), unit)


def _scaled(family: str, scales: dict[float, str]) -> dict[str, FigureUnit]:
    return {name: FigureUnit(family, factor) for factor, names in scales.items() for name in names.split("|")}


_UNITS = {
    **_named(PERCENT, "%|percent|per cent|prozent|pour cent|por ciento|パーセント|pct|percentage"),
    **_named(
        POINTS,
        "pp|ppt|ppts|percentage points|percentage point|%-points|prozentpunkte|prozentpunkten|prozentpunkt|%-punkte"
        "|points de pourcentage|point de pourcentage|puntos porcentuales|puntos"
        "|个百分点|百分点|ポイント|パーセントポイント|%ポイント",
    ),
    **_named(BASIS_POINTS, "bp|bps|basis points|basispunkte|basispunkten|个基点|基点|points de base|puntos básicos"),
    **_named(TIMES, "x|×|times|fold|-fold|倍|-mal|mal|fach|-fache|-fachen|fache|fachen|fois|veces"),
    **_named(
        MONEY,
        "$|€|£|¥|₹|usd|eur|gbp|chf|cny|rmb|jpy|inr|dollars|dollar|euros|euro|pounds|yuan|美元|元|欧元|人民币|日元|円|块"
        "|rupees|dólares|francs|franken|us-dollar|英镑|ドル|ユーロ",
    ),
    **_named(FigureUnit("money", 0.01), "cent|cents|ct|centimes|céntimos|pence"),
    **_named(YEARS, "years|year|yrs|yr|jahre|jahren|jahr|年|ans|an|années|años|año|岁"),
    **_scaled(
        "bytes",
        {
            1: "b|byte|bytes|字节|octets|バイト",
            1e3: "kb|kilobytes|ko",
            1e6: "mb|megabytes|mo|兆字节",
            1e9: "gb|gigabytes|go",
            1e12: "tb|terabytes",
            2**10: "kib",
            2**20: "mib",
            2**30: "gib",
            2**40: "tib",
        },
    ),
    **_scaled(
        "time",
        {
            1e-9: "ns",
            1e-6: "µs|us|μs|microseconds|微秒",
            1e-3: "ms|millis|milliseconds|msec|millisekunden|毫秒|ミリ秒|millisecondes|milisegundos",
            1: "s|sec|secs|second|seconds|sekunden|sekunde|sek|秒|秒钟|secondes|segundos",
            60: "min|mins|minute|minutes|minuten|分|分钟|minutos",
            3600: "h|hr|hrs|hour|hours|stunden|stunde|std|小时|时间|時間|heures|heure|horas|hora",
            86400: "d|day|days|tage|tagen|tag|天|日|jours|jour|días",
            604800: "week|weeks|wochen|woche|周|週間|semaines|semanas",
        },
    ),
    **_scaled(
        "length",
        {
            1e-3: "mm|毫米|ミリ|millimeters|millimetres",
            0.01: "cm|厘米|センチ",
            0.0254: "in|inch|inches",
            0.3048: "ft|feet|foot|英尺",
            1: "m|meter|meters|metre|metres|米|メートル|mètres",
            1e3: "km|kilometers|kilometres|kilometer|公里|千米|キロ|kilomètres|kilómetros",
            1609.344: "mi|mile|miles|英里|meilen|マイル|milles|millas",
            1852: "nm|nmi",
        },
    ),
    **_scaled(
        "mass",
        {
            1e-3: "mg|毫克",
            1: "g|gram|grams|gramm|克|grammes|gramos|グラム",
            1e3: "kg|kilograms|kilo|kilos|公斤|千克|キログラム",
            1e6: "t|tonnes|tonne|tons|tonnen|吨|トン",
            453.59237: "lb|lbs|pound|磅",
            28.349523125: "oz|ounces|盎司",
        },
    ),
    **_scaled("energy", {1: "wh", 1e3: "kwh", 1e6: "mwh", 1e9: "gwh", 1e12: "twh"}),
    **_scaled("power", {1: "w|watt|watts", 1e3: "kw", 1e6: "mw", 1e9: "gw"}),
    **_scaled(
        "speed",
        {1: "km/h|kmh|kph|公里/小时", 1.609344: "mph|miles/h|英里/小时", 3.6: "m/s|米/秒", 1.852: "knots|kn|kt|kts"},
    ),
    **_scaled("celsius", {1: "°c|℃|celsius|摄氏度|度"}),
    **_scaled("fahrenheit", {1: "°f|℉|fahrenheit"}),
}
_SPELLED = regex(
    r"[ \u00a0\u202f]?(?:\*\*|__)?[ \u00a0\u202f]?(?P<unit>%-?(?:[Pp]unkte|points)|%ポイント|%"
    r"|[-]?fach(?:en?)?\b|-[Ff]ache[nrs]?\b|-fold\b|-mal\b|×|[°℃℉][CF]?"
    r"|[$€£¥₹]|percentage points?|per cent\b|pour cent\b|por ciento\b|basis points?|points? de (?:pourcentage|base)"
    r"|puntos (?:porcentuales|básicos)|(?:km|miles|m|公里|英里|米)/(?:h|s|小时|秒)\b|[A-Za-zµμäöüÄÖÜéèñó]+(?:-Dollar)?"
    r"|个?(?:百分点|基点)|[\u3040-\u30ff\u4e00-\u9fff]{1,4})"
)
_CJK_UNITS = sorted((name for name in _UNITS if name[0] > "\u3000"), key=len, reverse=True)
_THOUSANDS = {
    **_named(FigureUnit("money", 1e3), "k|thousand|thousands|tsd|tausend|miles"),
    **_named(FigureUnit("money", 1e6), "mn|mio|million|millions|millionen|millones"),
    **_named(FigureUnit("money", 1e9), "bn|billion|billions|mrd|milliarden"),
}
_NO_UNITS = listed("an in time mal go mo dollar us year yr d t std min m s pound day jahr mi nm x an jahre")
"""Words of column names that usually mean something else: a minimum, a standard deviation, a date."""


@frozen
class WrittenUnit:
    """What follows a number: a unit (None for an unknown word), the lower-case word, and its end."""

    unit: FigureUnit | None
    word: str
    end: int


NOTHING = WrittenUnit(None, "", 0)


def unit_at(text: str, end: int) -> WrittenUnit:
    """Return the unit or noun after the number that ends at ``end``."""
    following = text[end : end + 1]
    if not following or following in "|\n.,;:)(":
        return NOTHING
    found = _SPELLED.match(text, end)
    if found is None:
        return NOTHING
    word = found["unit"].lower()
    start = found.start("unit")
    if word in CURRENCIES and text[found.end() : found.end() + 1].isdigit():
        return NOTHING
    if word[0] > "\u3000":
        known = next((name for name in _CJK_UNITS if word.startswith(name)), "")
        word = known or word[:2]
    unit = _UNITS.get(word)
    attached = start == end
    if unit is None and attached and word[-1:] == "s":
        unit = _UNITS.get(word[:-1])
    if unit is not None and word in {"in", "an", "t", "d", "b"} and not attached:
        unit = None
    return WrittenUnit(unit, word, start + len(word))


def unit_before(text: str, start: int) -> FigureUnit | None:
    """Return a currency sign or code before the number, with or without a space."""
    last = text[start - 1] if start else " "
    if last in CURRENCIES:
        return MONEY
    if last not in " \u00a0+-−*" and not last.isupper():
        return None
    head = text[max(0, start - 5) : start].rstrip(" \u00a0*+-−–")
    if head[-1:] and head[-1] in CURRENCIES:
        return MONEY
    return MONEY if head[-3:].isupper() and _UNITS.get(head[-3:].lower()) is MONEY else None


def converted(value: float, held: FigureUnit, wanted: FigureUnit) -> float | None:
    """Return a quantity in another unit of the same kind; None when there is no conversion between them."""
    if held == wanted:
        return None
    if (held.family, wanted.family) == ("celsius", "fahrenheit"):
        return value * 1.8 + 32
    if (held.family, wanted.family) == ("fahrenheit", "celsius"):
        return (value - 32) / 1.8
    return value * held.factor / wanted.factor if held.family == wanted.family else None


@lru_cache(maxsize=2048)
def unit_of_words(words: tuple[str, ...]) -> FigureUnit | None:
    """Return the unit at the end or start of a column name: ``duration_ms``, ``bytes``, ``share_pct``."""
    if len(words) > 1 and (thousands := _THOUSANDS.get(words[-1])):
        return thousands
    for word in (*words[-1:], *words[:1]):
        unit = _UNITS.get(word) if word not in _NO_UNITS else None
        if unit is not None and (len(word) > 1 or (len(words) > 1 and word == words[-1])):
            return unit
    return None


REPEATED = 0.25
"""That an answer names a scale which the table leaves to the words around it."""


@lru_cache(maxsize=4096)
def factors(
    shown: FigureUnit | None, held: FigureUnit | None, scale: int, printed: float = 1.0
) -> tuple[tuple[float, float], ...]:
    """Return the factors by which a stored value may be multiplied before printing, with their probabilities.

    ``scale`` is the power of ten of the shown magnitude suffix, ``printed`` the scale that the table's own words name.
    """
    if shown is None or shown.family in {"money", "years", "times"}:
        if printed != 1 and (held is None or held.family == "money"):
            return _printed(scale, printed)
        return _counted(shown.factor if shown else 1.0, held, scale)
    if shown.family == "percent":
        if held is not None:
            return ((1.0, 1.0),) if held.family == "percent" else ()
        return ((1.0, 0.5), (100.0, 0.5))
    if shown.family == "points":
        each = 1 / shown.factor
        return ((each, 0.5), (100 * each, 0.5))
    if held is not None and held.family == shown.family:
        return _within(shown, held)
    if held is not None and held.family not in {"money", "years"}:
        return ((1.0, 0.5 if shown.family == "speed" and held.family == "time" else 0.005),)
    return _guessed(shown)


def _printed(scale: int, printed: float) -> tuple[tuple[float, float], ...]:
    """Return factors for a table in thousands or millions: an answer converts its numbers, or leaves the scale out."""
    if scale:
        return (
            ((printed, 0.97), (1.0, 0.02), (10.0**scale, 0.01))
            if 10.0**scale != printed
            else ((printed, 0.98), (1.0, 0.02))
        )
    return ((1.0, 0.8), (printed, 0.2))


def _counted(shown: float, held: FigureUnit | None, scale: int) -> tuple[tuple[float, float], ...]:
    """Return factors for plain numbers and money; ``shown`` is 0.01 for cents. Columns in thousands are rarely named
    so, but this matters when the answer uses a suffix."""
    if held is not None and held.family == "money" and held.factor != shown:
        return ((held.factor / shown, 0.9 if scale else 0.6), (1 / shown, 0.1 if scale else 0.4))
    if shown != 1:
        return ((1 / shown, 0.7), (1.0, 0.3))
    odd = 0.03 if scale else 0.004
    likely = dict.fromkeys((1e3, 1e6, 1e-3), odd / 2)
    likely[10.0**scale] = likely.get(10.0**scale, 0.0) + (REPEATED if scale else 0.0)
    likely[1.0] = 1 - sum(likely.values())
    return tuple(likely.items())


def _within(shown: FigureUnit, held: FigureUnit) -> tuple[tuple[float, float], ...]:
    exact = held.factor / shown.factor
    if shown.family == "bytes" and shown.factor in {1e3, 1e6, 1e9, 1e12}:
        power = {1e3: 10, 1e6: 20, 1e9: 30, 1e12: 40}[shown.factor]
        return ((exact, 0.85), (held.factor / 2**power, 0.15))
    return ((exact, 1.0),)


_USUAL = {
    "bytes": (1.0,),
    "time": (1e-3, 1.0, 60.0, 3600.0),
    "length": (1.0, 1e3, 1609.344, 0.01, 1e-3),
    "mass": (1.0, 1e3),
    "energy": (1e3, 1e6, 1e9),
    "power": (1.0, 1e3, 1e6),
    "speed": (1.0, 1.609344, 3.6),
}


def _guessed(shown: FigureUnit) -> tuple[tuple[float, float], ...]:
    """Return factors for a column without unit in its name: most often the shown unit, else a usual one of its
    family."""
    same = 0.5 if shown.family == "bytes" else 0.8
    others = [held for held in _USUAL.get(shown.family, ()) if held != shown.factor]
    found = [(1.0, same)]
    for held in others:
        found += [
            (factor, (1 - same) * share / len(others))
            for factor, share in _within(shown, FigureUnit(shown.family, held))
        ]
    return tuple(found)
