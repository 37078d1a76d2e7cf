"""A dataset's profile as text, for a model's context and for people. What it shows of the values is a setting."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ba_tui.core.ports.tables import Cell, ColumnProfile, Dataset, DatasetProfile, Personal, Share
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
    """Return a few lines about a dataset, at most ``most`` characters. Never more of its rows than three values a
    column; those of columns that look personal are masked, but for the columns ``unmasked``."""
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
    """How the file was read, and what of it was not."""
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
    """What may make numbers of it wrong."""
    told = profile.told
    yield from (f"Careful: {one_line(each.message, 200)}" for each in told[:MOST_TRAPS])
    if len(told) > MOST_TRAPS:
        yield f"Careful: {count(len(told) - MOST_TRAPS, 'more trap')}."
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
