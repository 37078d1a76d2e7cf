"""Reading a number as people and programs print it: separators, decimal marks, signs, magnitude suffixes.

Which numbers of an answer are figures is decided in extract.
"""

from __future__ import annotations

import re
from decimal import Decimal

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

MINUS = "-−–﹣"
SIGNS = "+" + MINUS
CURRENCIES = "$€£¥₹₩₽₺₫฿₱₦₴₪"
LONGEST = 400
"""Digits; a longer number is read to its end, but has no value."""
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
"""One character for one, so that offsets stay."""
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
    """A number in a text. ``step`` is the distance to the next number of the same form: 0.1 for ``12.3``, 100 for
    ``1.4k``. ``sign`` is ``"+"``, ``"-"`` or empty. ``other`` is the second reading of what may be three decimals or a
    group of three digits, such as ``1.234``. ``scale`` is the power of ten that a suffix stands for."""

    start: int
    end: int
    value: Decimal
    step: Decimal
    sign: str = ""
    other: tuple[Decimal, Decimal] | None = None
    scale: int = 0


def normal(text: str) -> str:
    """``text`` with the digits and marks of other scripts as ASCII ones; as long as before."""
    if text.isascii():
        return text
    return (_WIDE_COMMA.sub(",", text) if "，" in text else text).translate(_MARKS)


def numeral_at(text: str, start: int, *, comma: bool = False) -> Numeral | None:
    """The number whose first digit stands at ``start`` of a normal text.

    ``comma``: the text writes decimals with a comma. Of a list such as ``1,2,3`` the first number.
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
    """Whether blanks part the numbers of a row rather than the groups of one number."""
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
    """``body``: digits and at most one mark, ``point``, before the decimals."""
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
    """The power of ten that a suffix at ``end``, or behind marks there, stands for, and where the suffix ends."""
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
    """The sign that belongs to the number at ``start``: no hyphen of a word and no dash of a range."""
    place = start - 1
    while place >= 0 and text[place] in CURRENCIES:
        place -= 1
    if place < 0 or text[place] not in SIGNS:
        return ""
    before = text[place - 1] if place else " "
    if (before.isascii() and before.isalnum()) or before in "%)]°":
        return ""
    return "+" if text[place] == "+" else "-"
