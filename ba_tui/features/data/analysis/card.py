"""A dataset's profile as text, and the detection of columns with personal data."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from ba_tui.core.ports.settings import Share
from ba_tui.core.ports.tables import Cell, Column, ColumnProfile, Dataset, DatasetProfile, Personal
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line

MOST_CHARS = 6_000
"""About 1,500 tokens."""
MOST_COLUMNS = 60
MOST_BAD = 3
MOST_TRAPS = 10
CELL_CHARS = 40
MASKS: dict[Personal, str] = {"mail": "‹mail›", "phone": "‹phone›", "name": "‹name›", "iban": "‹IBAN›"}


def card(
    profile: DatasetProfile, share: Share = "sample", *, most: int = MOST_CHARS, unmasked: Iterable[str] = ()
) -> str:
    """Return a summary of a dataset in at most ``most`` characters. It shows at most three values of a column; values
    that look personal are masked unless the column is in ``unmasked``."""
    allowed = {name.lower() for name in unmasked}
    head = [_title(profile.dataset), *_reading(profile.dataset), *_traps(profile)]
    columns = [
        _column(each, profile, share, masked=each.column.name.lower() not in allowed) for each in profile.columns
    ]
    kept = columns[:MOST_COLUMNS]
    while kept and len("\n".join([*head, *kept])) > most - 60:
        kept.pop()
    if left := len(columns) - len(kept):
        kept.append(f"- and {count(left, 'more column')}: DESCRIBE {profile.dataset.name} lists all")
    return "\n".join([*head, *kept])[:most]


def _title(dataset: Dataset) -> str:
    part = f" ({one_line(dataset.part, 60)})" if dataset.part else ""
    rows = f"{count(dataset.rows, 'row')}, " if dataset.rows >= 0 else ""
    shape = f"{rows}{count(len(dataset.columns), 'column')}"
    return f"Table {dataset.name}: {one_line(dataset.source, 200)}{part}, {shape}"


def _reading(dataset: Dataset) -> Iterator[str]:
    """Yield how the file was read and what was skipped."""
    how: list[str] = []
    if dataset.encoding and dataset.encoding != "utf-8":
        how.append(f"encoding {dataset.encoding}")
    if dataset.delimiter not in {"", ","}:
        how.append(f"columns separated by {dataset.delimiter!r}")
    if len(dataset.files) > 1:
        how.append(f"{len(dataset.files):,} files")
    if how:
        yield f"Read: {', '.join(how)}."
    yield from (one_line(note, 200) for note in dataset.notes)
    if dataset.rows_skipped:
        lines = ", ".join(f"line {bad.line:,} ({bad.reason})" for bad in dataset.bad_rows[:MOST_BAD])
        more = " …" if dataset.rows_skipped > MOST_BAD else ""
        yield f"{count(dataset.rows_skipped, 'bad row')} left out: {lines}{more}"
    for each in dataset.conversions:
        if each.failed:
            yield f"{each.column}: values that did not fit are NULL; {each.raw} keeps the text."


def _traps(profile: DatasetProfile) -> Iterator[str]:
    """Yield the traps in the data."""
    findings = profile.told
    yield from (f"Careful: {one_line(each.message, 200)}" for each in findings[:MOST_TRAPS])
    if len(findings) > MOST_TRAPS:
        yield f"Careful: {count(len(findings) - MOST_TRAPS, 'more trap')}."
    yield from profile.notes


def _column(each: ColumnProfile, profile: DatasetProfile, share: Share, *, masked: bool) -> str:
    column, dataset = each.column, profile.dataset
    parts = [f"- {one_line(column.name, 80)} {column.type}"]
    converted = next((made.what for made in dataset.conversions if made.column == column.name), "")
    if converted:
        parts.append(f"from {converted}")
    if each.role:
        parts.append("probably a key" if each.role == "key" else "date")
    if share != "schema":
        mask = MASKS[each.personal] if masked and each.personal else ""
        parts += _figures(each, profile, mask)
        if each.sample and share == "sample":
            shown = mask or ", ".join(_cell(value) for value in each.sample)
            parts.append(f"such as {shown}")
    elif each.personal:
        parts.append("looks personal")
    return "; ".join(parts)


def _figures(each: ColumnProfile, profile: DatasetProfile, mask: str) -> Iterator[str]:
    rows = profile.dataset.rows
    if each.nulls:
        yield "all NULL" if each.nulls == rows else f"{each.nulls:,} NULL ({each.nulls / max(rows, 1):.1%})"
    about = "about " if profile.approximate else ""
    if each.distinct and each.role != "key":
        yield f"{about}{each.distinct:,} distinct"
    if mask:
        return
    if each.minimum is not None and (each.column.kind != "text" or not each.top):
        yield f"{_cell(each.minimum)} to {_cell(each.maximum)}"
    if each.column.numeric and each.quartiles:
        yield f"quartiles {', '.join(map(_cell, each.quartiles))}"
    if each.top and each.column.kind in {"text", "boolean"}:
        yield "most often " + ", ".join(f"{_cell(top.value)} ({top.count:,})" for top in each.top)


def _cell(value: Cell) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.6g}" if isinstance(value, float) else one_line(str(value), CELL_CHARS)


# Detection of personal data: mail addresses, phone numbers, IBANs and names of people.

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
    """Return the kind of personal data in a column, judged by its name and values."""
    values = [str(value).strip() for value in sample if value not in {None, ""}]
    for kind, pattern in _NAMED:
        if column.kind in {"text", "integer"} and pattern.search(column.name):
            return kind
    if not values or column.kind != "text":
        return ""
    if _mostly(values, _MAIL.fullmatch):
        return "mail"
    if _mostly(values, _iban):
        return "iban"
    if _mostly(values, _PHONE.fullmatch):
        return "phone"
    people = sum(bool(_PERSON.fullmatch(value)) for value in values)
    return "name" if _MAYBE.search(column.name) and people * 10 >= len(values) * 6 else ""


def _mostly(values: Sequence[str], fits: Callable[[str], object]) -> bool:
    return sum(bool(fits(value)) for value in values) * 2 >= len(values)


def _iban(value: str) -> bool:
    if not _IBAN.fullmatch(value):
        return False
    compact = value.replace(" ", "")
    digits = "".join(str(int(char, 36)) for char in compact[4:] + compact[:4])
    return int(digits) % 97 == 1
