"""What a person types and presses to arrange rows, as values: sorting by a column, filters, and both in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Arrangement, Column, ColumnProfile, RowFilter, RowOrder
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count, one_line
from ba_tui.faces.tui.grid.cells import cell_text

_NULL = regex(r"(?i)(?:is\s+)?null")
_NOT_NULL = regex(r"(?i)(?:is\s+)?not\s+null|!\s*null")
_COMPARED = regex(r"(?s)(!=|<>|<=|>=|=|<|>)\s*(.+)")
_AND = regex(r"(?i)\s+and\s+(?=[=<>!])")
LONGEST = 60
TOP = 8


def sorted_by(arrangement: Arrangement, column: str, *, more: bool) -> Arrangement:
    """Sort by ``column``: first ascending, then descending, then not; ``more`` keeps the other columns."""
    before = next((each for each in arrangement.order if each.column == column), None)
    others = tuple(each for each in arrangement.order if each.column != column) if more else ()
    if before is None:
        return replace(arrangement, order=(*others, RowOrder(column)))
    if before.descending:
        return replace(arrangement, order=others)
    after = RowOrder(column, descending=True)
    order = tuple(after if each.column == column else each for each in arrangement.order) if more else (after,)
    return replace(arrangement, order=order)


def filtered_by(arrangement: Arrangement, column: Column, text: str) -> Arrangement:
    """Replace the filters on ``column`` by what ``text`` says; without text they are gone."""
    others = tuple(each for each in arrangement.filters if each.column != column.name)
    return replace(arrangement, filters=(*others, *_filters(column, text.strip())))


def _filters(column: Column, text: str) -> Sequence[RowFilter]:
    if not text:
        return ()
    return [_filter(column, part.strip()) for part in _AND.split(text)]


def _filter(column: Column, text: str) -> RowFilter:
    if _NOT_NULL.fullmatch(text):
        return RowFilter(column.name, "is not null")
    if _NULL.fullmatch(text):
        return RowFilter(column.name, "is null")
    if found := _COMPARED.fullmatch(text):
        return _compared(column, found[1], found[2].strip())
    if text[0] in "=<>!" and text.strip("=<>! ") == "":
        raise UsageError(f"{text} has no value behind it.")
    return RowFilter(column.name, "contains" if column.kind in {"text", "other"} else "=", text)


def _compared(column: Column, sign: str, value: str) -> RowFilter:
    match sign:
        case "=" | "!=" | "<" | "<=" | ">" | ">=":
            return RowFilter(column.name, sign, value)
        case _:
            return RowFilter(column.name, "!=", value)


def filter_text(arrangement: Arrangement, column: str) -> str:
    """The filters on ``column`` as they would be typed."""
    return " and ".join(_condition(each) for each in arrangement.filters if each.column == column)


def _condition(each: RowFilter) -> str:
    if each.operator in {"is null", "is not null"}:
        return each.operator.removeprefix("is ")
    return str(each.value) if each.operator == "contains" else f"{each.operator} {each.value}"


def arrangement_words(arrangement: Arrangement) -> str:
    """``region contains north · sorted by amount ↓``; empty for the table as it is."""
    parts = [_said(each) for each in arrangement.filters]
    if arrangement.search:
        parts.append(f"found {one_line(repr(arrangement.search), LONGEST)}")
    if arrangement.order:
        names = ", ".join(
            f"{one_line(each.column, 40)} {'↓' if each.descending else '↑'}" for each in arrangement.order
        )
        parts.append(f"sorted by {names}")
    return " · ".join(parts)


def _said(each: RowFilter) -> str:
    value = "" if each.operator in {"is null", "is not null"} else f" {one_line(str(each.value), LONGEST)}"
    return f"{one_line(each.column, 40)} {each.operator}{value}"


def statistics(profile: ColumnProfile, rows: int) -> str:
    """The statistics of a column, of ``rows`` rows, in three lines."""
    share = f" ({profile.nulls / rows:.1%})" if profile.nulls and rows else ""
    head = [f"{profile.column.name} {profile.column.type}", count(rows, "row"), f"{profile.nulls:,} NULL{share}"]
    head.append(f"{profile.distinct:,} distinct")
    spread = [("min", profile.minimum)]
    if len(profile.quartiles) == 3:
        spread += list(zip(("25 %", "median", "75 %"), profile.quartiles, strict=True))
    spread += [("max", profile.maximum), ("mean", profile.mean)]
    figures = [f"{name} {_short(value)}" for name, value in spread if value is not None]
    top = [f"{_short(each.value)} ×{each.count:,}" for each in profile.top[:TOP]]
    lines = [" · ".join(head), " · ".join(figures), f"most frequent: {', '.join(top)}" if top else ""]
    return "\n".join(cell_text(line, 1_000) for line in lines if line)


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.6g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else one_line(str(value), 40)
