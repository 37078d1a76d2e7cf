"""Dates, periods and times in answers and tables, in one notation: ``2013``, ``2013-05``, ``2013-06-03``, ``2025-Q1``,
``--06-03`` (a day without year), ``--Q1``, ``--06``."""

from __future__ import annotations

import re

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

# Words of six languages that show what a figure is: an estimate, a date, a label, a countable thing.


def listed(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero ene jänner janv",
            "february feb februar février febrero févr",
            "march mar märz mars marzo mrz",
            "april apr avril abril abr avr",
            "may mai mayo",
            "june jun juni juin junio",
            "july jul juli juillet julio juil",
            "august aug août agosto ago",
            "september sep sept septembre septiembre",
            "october oct oktober okt octobre octubre",
            "november nov novembre noviembre",
            "december dec dezember dez décembre diciembre dic déc",
        ),
        1,
    )
    for name in names.split()
}


def _phrases(kind: str, words: str) -> dict[str, str]:
    return dict.fromkeys(words.split("|"), kind)


HEDGES = {
    **_phrases(
        "near",
        "about|around|roughly|approximately|approx|approx.|close to|circa|ca.|ca|some|region of|order of|approaching"
        "|an estimated|rund|etwa|ungefähr|ungefaehr|zirka|environ|près de|peu près|autour de|quelque"
        "|alrededor de|aproximadamente|unos|unas|cerca de",
    ),
    **_phrases(
        "over",
        "over|more than|above|at least|upwards of|exceeds|exceeded|exceeding|north of|just over|slightly over|über"
        "|mehr als|gut|mindestens|knapp über|plus de|au moins|más de|al menos|a little over",
    ),
    **_phrases(
        "under",
        "under|less than|below|fewer than|up to|at most|nearly|almost|just under|just below|unter"
        "|weniger als|höchstens|bis zu|knapp|fast|beinahe|moins de|au plus|presque|menos de|como máximo|casi|not quite",
    ),
}
"""Before a number, at most two words."""
CJK_HEDGES = (
    ("大约|大概|大致|大約|约为|约|約|およそ|ほぼ|だいたい", "near"),
    ("超过|超過|逾|多于|至少|高于|不少于", "over"),
    ("将近|接近|近|不到|不足|少于|低于|未満|至多", "under"),
)
TILDES = "~≈∼～〜"
HEDGED_BEHIND = {
    "左右": "near",
    "上下": "near",
    "前後": "near",
    "ほど": "near",
    "程度": "near",
    "多": "over",
    "余": "over",
    "以上": "over",
}
ACROSS = listed(
    "average mean averaged year annum median total sum spread distributed added taken computed im pro par al"
)
"""Before ``over``, which then means across and is no hedge."""

YEAR_CUES = listed(
    "in since from until till by year years of during before after between and to through mid end fiscal "
    "early late seit von bis ab jahr jahre jahren im um nach vor und auf zwischen ende anfang mitte en "
    "depuis de à entre et année vers desde hasta año y a del al than for as with against versus vs vs. "
    "gegenüber was"
)
CJK_YEAR_CUES = "自从至到在于与和、，"

STRONG_LABELS = {
    **_phrases("line_numbers", "line|lines|zeile|zeilen|ligne|lignes|línea|líneas"),
    **_phrases(
        "figure_ref",
        "page|pages|p.|pp.|section|sections|chapter|chapters|figure|figures|fig|fig.|table|tables|tab.|appendix|annex|seite|seiten|abschnitt"
        "|kapitel|abbildung|abb|abb.|tabelle|anlage|absatz|chapitre|tableau|annexe|página|páginas|sección|capítulo|figura|tabla|anexo"
        "|slide|footnote|eq.|equation|schritt|step|steps|phase|étape|paso|chart|diagram|exhibit|box|annexes",
    ),
    **_phrases("status_code", "http|http/1.1|http/2|status|exit|error|errno|fehler|erreur|statuscode|rc"),
    **_phrases(
        "version",
        "version|versions|v|v.|python|node|node.js|ruby|java|rust|php|perl|swift|kotlin|scala|julia|lua|postgresql|postgres|mysql"
        "|mariadb|sqlite|duckdb|pandas|numpy|polars|ubuntu|debian|fedora|macos|ios|android|windows|linux|kernel|chrome|firefox|safari"
        "|gcc|clang|django|flask|react|vue|angular|textual|msrv|tls|ssl|unicode|cuda|openssl|docker|kubernetes|terraform|spark|kafka"
        "|redis|nginx|qt|cmake|npm|pip|pytest|gpt|claude|gemini|llama|qwen|release|build|utf|http",
    ),
    **_phrases(
        "label",
        "port|ports|pid|issue|issues|pr|mr|ticket|tickets|room|raum|salle|sala|no.|nr|nr.|num|num.|№|n°|nº|nummer|numéro|número|boeing"
        "|airbus|rfc|iso|iec|din|ansi|pep|id|isbn|zip|plz|postcode|platz|rang|rank|ranks|ranked|place|stelle|puesto|klasse|variante|flight"
        "|flug|vol|train|gate|terminal|route|highway|apollo|district|revision|rev|commit|artikel|art.|§|paragraph|band|teil|frage"
        "|question|scenario|experiment|variant|zone|level|tier|stage|grade|round|stufe|grupo|groupe|anexo|seed|top|topic|chapter",
    ),
}
"""Words that make the number after them a label rather than a figure."""
WEAK_LABELS = listed(
    "row rows cell column part case model type class group cluster batch run test rule area item items day week layer"
)
"""The same, unless a countable noun follows."""
CJK_LABELS = (
    "第",
    "图",
    "表",
    "步骤",
    "版本",
    "编号",
    "端口",
    "状态码",
    "退出码",
    "错误码",
    "页码",
    "章节",
    "ページ",
    "バージョン",
    "ステップ",
)
CJK_ORDINALS = "名位个次季期行页天周号条项回番章节列步级轮"
GERMAN_RANKED = listed(
    "platz rang stelle quartal halbjahr jahrhundert perzentil woche spieltag runde tag monat jahr zeile "
    "spalte dezil quartil auflage kapitel schritt"
)
RANK_HEADERS = listed(
    "# rank rang ranking nr nr. no no. n° pos pos. position place platz puesto rangs 排名 名次 序号 順位 "
    "编号 № id index idx 位次"
)
CODE_WORDS = listed("code codes")
PREFIXES = listed("x us usd eur chf gbp cny rmb inr jpy rs rs. r$ aud cad nzd hkd sgd sek nok dkk pln brl mxn")
"""Signs right before the digits of a figure that do not make it a name."""
NO_NOUNS = listed(
    "is was has does as its this plus versus vs across thus less minus les des das als bis aus les nos "
    "ses ces las los es sus más years months days weeks"
)
NO_COUNTED = "年月日至到的和与为在是、比共但而之中"


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
    """A date, a period or a time of day. ``key`` is its comparable form; empty for a time of day."""

    start: int
    end: int
    key: str
    reason: str


def moment_at(text: str, start: int, end: int, word: str) -> Moment | None:
    """Return the date, period or time of the digits at ``start`` to ``end``; it may start before them.

    ``word`` is the preceding word, in lower case.
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
    """Return the two years of a range or season at ``start``, such as ``2013–2015`` and ``2013/14``."""
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
