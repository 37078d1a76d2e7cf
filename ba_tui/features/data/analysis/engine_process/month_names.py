"""Dates with German, French, Spanish and Italian names of months, in SQL: names become numbers."""

from __future__ import annotations

from ba_tui.core.text.patterns import regex
from ba_tui.features.data.analysis.engine_process.database import text

MONTHS = (
    "januar jänner jan janvier janv enero ene gennaio gen january",
    "februar feb février fevrier févr fevr febrero febbraio february",
    "märz maerz mär mrz mars marzo march mar",
    "april apr avril avr abril abr aprile",
    "mai mayo maggio mag may",
    "juni jun juin junio giugno giu june",
    "juli jul juillet juil julio luglio lug july",
    "august aug août aout agosto ago",
    "september sept sep septembre septiembre settembre set",
    "oktober okt octobre oct octubre ottobre ott october",
    "november nov novembre noviembre",
    "dezember dez décembre decembre déc dec diciembre dic dicembre december",
)
FORMATS = ("%d %m %Y", "%d. %m %Y", "%d-%m-%Y", "%d.%m.%Y")
_DATE = regex(r"(?i)\s*\d{1,2}(?:er|º)?[ .-]{1,2}([^\W\d_]{3,10})\.?[ -]\d{4}(?: .*)?")
_KNOWN = frozenset(" ".join(MONTHS).split())


def named_month(value: str) -> bool:
    """Whether a value is a date with a month that is written as a word."""
    found = _DATE.fullmatch(value)
    return bool(found and found[1].lower() in _KNOWN)


def numbered(expression: str) -> str:
    """SQL for ``expression`` with numbers in place of the names of months."""
    made = f"regexp_replace(lower({expression}), '^(\\d+)(?:er|º)', '\\1')"
    for number, names in enumerate(MONTHS, 1):
        choice = "|".join(sorted(names.split(), key=len, reverse=True))
        pattern, written = f"([ .-])(?:{choice})\\.?([ -])", f"\\1{number:02d}\\2"
        made = f"regexp_replace({made}, {text(pattern)}, {text(written)})"
    return made
