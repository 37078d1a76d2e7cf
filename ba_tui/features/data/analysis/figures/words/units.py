"""Units: how they are written in answers and in column names, and by what a value is multiplied between two of them."""

from __future__ import annotations

from functools import lru_cache

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.words.lexicon import listed
from ba_tui.features.data.analysis.figures.words.numerals import CURRENCIES


@frozen
class Unit:
    """``factor``: how many of the family's base unit it is. Families are money, percent, points, times and the
    physical ones."""

    family: str
    factor: float = 1.0


PERCENT = Unit("percent")
POINTS = Unit("points")
BASIS_POINTS = Unit("points", 0.01)
TIMES = Unit("times")
MONEY = Unit("money")
YEARS = Unit("years")


def _named(unit: Unit, names: str) -> dict[str, Unit]:
    return dict.fromkeys(names.split("|"), unit)


def _scaled(family: str, scales: dict[float, str]) -> dict[str, Unit]:
    return {name: Unit(family, factor) for factor, names in scales.items() for name in names.split("|")}


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
    **_named(Unit("money", 0.01), "cent|cents|ct|centimes|céntimos|pence"),
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
FRACTIONS = (100.0, 1.0)
_THOUSANDS = {
    **_named(Unit("money", 1e3), "k|thousand|thousands|tsd|tausend|miles"),
    **_named(Unit("money", 1e6), "mn|mio|million|millions|millionen|millones"),
    **_named(Unit("money", 1e9), "bn|billion|billions|mrd|milliarden"),
}
_NO_UNITS = listed("an in time mal go mo dollar us year yr d t std min m s pound day jahr mi nm x an jahre")
"""Words of column names that are more often something else: a minimum, a standard deviation, a date."""


@frozen
class Written:
    """What stands behind a number: a unit (None for an unknown word), the word itself in lower case, its end."""

    unit: Unit | None
    word: str
    end: int


NOTHING = Written(None, "", 0)


def unit_at(text: str, end: int) -> Written:
    """The unit or the noun behind the number that ends at ``end``."""
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
    return Written(unit, word, start + len(word))


def unit_before(text: str, start: int) -> Unit | None:
    """Money whose mark or code stands before the number, with or without a blank."""
    last = text[start - 1] if start else " "
    if last in CURRENCIES:
        return MONEY
    if last not in " \u00a0+-−*" and not last.isupper():
        return None
    head = text[max(0, start - 5) : start].rstrip(" \u00a0*+-−–")
    if head[-1:] and head[-1] in CURRENCIES:
        return MONEY
    return MONEY if head[-3:].isupper() and _UNITS.get(head[-3:].lower()) is MONEY else None


@lru_cache(maxsize=2048)
def unit_of_words(words: tuple[str, ...]) -> Unit | None:
    """The unit that a column name ends in, or begins with: ``duration_ms``, ``bytes``, ``share_pct``."""
    if len(words) > 1 and (thousands := _THOUSANDS.get(words[-1])):
        return thousands
    for word in (*words[-1:], *words[:1]):
        unit = _UNITS.get(word) if word not in _NO_UNITS else None
        if unit is not None and (len(word) > 1 or (len(words) > 1 and word == words[-1])):
            return unit
    return None


@lru_cache(maxsize=4096)
def factors(shown: Unit | None, held: Unit | None, scale: int) -> tuple[tuple[float, float], ...]:
    """By what a held value may be multiplied to print as shown, each with the probability that it is that.

    ``scale`` is the power of ten of the magnitude suffix of what is shown.
    """
    if shown is None or shown.family in {"money", "years", "times"}:
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


def _counted(shown: float, held: Unit | None, scale: int) -> tuple[tuple[float, float], ...]:
    """Of plain numbers and of money; ``shown`` is 0.01 for cents. What counts thousands rarely says so, but it matters
    where the answer writes a suffix."""
    if held is not None and held.family == "money" and held.factor != shown:
        return ((held.factor / shown, 0.9 if scale else 0.6), (1 / shown, 0.1 if scale else 0.4))
    if shown != 1:
        return ((1 / shown, 0.7), (1.0, 0.3))
    odd = 0.03 if scale else 0.004
    likely = dict.fromkeys((1e3, 1e6, 1e-3), odd / 2)
    likely[10.0**scale] = likely.get(10.0**scale, 0.0) + (odd if scale else 0.0)
    likely[1.0] = 1 - sum(likely.values())
    return tuple(likely.items())


def _within(shown: Unit, held: Unit) -> tuple[tuple[float, float], ...]:
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


def _guessed(shown: Unit) -> tuple[tuple[float, float], ...]:
    """The column does not name its unit: most often it is the one shown, else a usual one of its family."""
    same = 0.5 if shown.family == "bytes" else 0.8
    others = [held for held in _USUAL.get(shown.family, ()) if held != shown.factor]
    found = [(1.0, same)]
    for held in others:
        found += [
            (factor, (1 - same) * share / len(others)) for factor, share in _within(shown, Unit(shown.family, held))
        ]
    return tuple(found)
