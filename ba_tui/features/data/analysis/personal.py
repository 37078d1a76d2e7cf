"""Which columns look personal: they hold mail addresses, phone numbers, IBANs or names of people."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ba_tui.core.ports.tables import Cell, Column, Personal
from ba_tui.core.text.patterns import regex

_MAIL = regex(r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}")
_IBAN = regex(r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}")
_PHONE = regex(r"(?:\+|00)\d[\d ()/.-]{6,20}|\(?0\d{1,5}\)?[ /-][\d -]{4,15}")
_PERSON = regex(r"[^\W\d_][\w'’.-]+(?:,? [^\W\d_][\w'’.-]*){1,3}")
_NAMED: tuple[tuple[Personal, re.Pattern[str]], ...] = (
    ("mail", regex(r"e-?mail|mail_?address|^mail$", re.IGNORECASE)),
    ("phone", regex(r"phone|telefon|(?:^|_)(?:tel|fax|handy|mobile?|cell)(?:$|_)", re.IGNORECASE)),
    ("iban", regex(r"(?:^|_)(?:iban|account_?(?:no|number)|kontonummer)(?:$|_)", re.IGNORECASE)),
    (
        "name",
        regex(
            r"(?:first|last|sur|fore|family|given|middle|maiden|full|person|contact|employee|patient)[ _]?names?$"
            r"|^(?:vor|nach|familien)name$|^姓名$",
            re.IGNORECASE,
        ),
    ),
)
_MAYBE = regex(
    r"^(?:name|customer|client|kunde|contact|employee|person|patient|owner|author)(?:_?name)?$", re.IGNORECASE
)


def personal_kind(column: Column, sample: Sequence[Cell]) -> Personal:
    """What kind of personal data a column seems to hold, by its values and its name."""
    values = [str(value).strip() for value in sample if value not in {None, ""}]
    for kind, pattern in _NAMED:
        if column.kind in {"text", "integer"} and pattern.search(column.name):
            return kind
    if not values or column.kind != "text":
        return ""
    if _mostly(values, _mail):
        return "mail"
    if _mostly(values, _iban):
        return "iban"
    if _mostly(values, _phone):
        return "phone"
    people = sum(bool(_PERSON.fullmatch(value)) for value in values)
    return "name" if _MAYBE.search(column.name) and people * 10 >= len(values) * 6 else ""


def _mostly(values: Sequence[str], fits: Callable[[str], bool]) -> bool:
    return sum(map(fits, values)) * 2 >= len(values)


def _mail(value: str) -> bool:
    return bool(_MAIL.fullmatch(value))


def _phone(value: str) -> bool:
    return bool(_PHONE.fullmatch(value))


def _iban(value: str) -> bool:
    if not _IBAN.fullmatch(value):
        return False
    compact = value.replace(" ", "")
    digits = "".join(str(int(char, 36)) for char in compact[4:] + compact[:4])
    return int(digits) % 97 == 1
