"""English, German and Chinese words for months, days of the week, numbers and relative dates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def _numbered(names: str, first: int = 1) -> dict[str, int]:
    """The position of each name in ``names``; names joined by a bar share a position."""
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
"""The first month of three, on the northern half of the earth."""
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
