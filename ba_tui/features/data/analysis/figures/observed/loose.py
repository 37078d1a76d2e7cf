"""Lines of an observation that are no grid: ``key=value``, log lines, prose. Their numbers, and the tables that similar
lines make.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.text.patterns import regex
from ba_tui.features.data.analysis.figures.observed.columns import (
    Cell,
    Column,
    Read,
    column_of,
    moment_of,
    names_time,
    read_number,
    words_of,
)
from ba_tui.features.data.analysis.figures.observed.tables import Table
from ba_tui.features.data.analysis.figures.words.lexicon import YEAR_CUES

MOST_PER_LINE = 2_000
MOST_LEFT = 300
"""Numbers outside of tables that are kept of one text."""
SHORT = 40
"""Characters; a longer text is a sentence rather than a name."""
MOST_WORDS = 6

_PARTS = regex(r"\S+(?: \S+)*")
_PAIR = regex(r"(?P<key>[A-Za-z_][\w.%-]*(?: [A-Za-z_][\w.%-]*){0,2})\s?[=:]\s?(?P<value>\S.*)$")
_ITEM = regex(
    r"(?P<skip>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?Z?)?|\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b"
    r"|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w* +\d{1,2}\b"
    r"|\b(?=\d*[a-f])(?=[a-f]*\d)[0-9a-f]{7,40}\b|\d+(?:\.\d+){2,})"
    r"|(?P<number>(?<![\w.])[+\-−]?[$€£¥₹]?\d(?:[\d,']*\d)?(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"(?P<tail>%|[KMGTk]i?B?\b|[a-zµ]{1,2}\b)?"
)
_DIGITS = regex(r"\d[\d.,:-]*")
_KEY_BEFORE = regex(r"([A-Za-z_\u3040-\u9fff][\w.%]*)\s?[=:]\s?$")
_WORD_BEHIND = regex(r"\s?(?:\(\w+\)\s)?([A-Za-z_\u3040-\u9fff][\w%]*)")
_NAME = regex(r"[^\W\d_][\w./-]*")


class _Row:
    """A line: its numbers by key, and the words that are left."""

    def __init__(self) -> None:
        self.cells: dict[str, Read] = {}
        self.texts: list[str] = []
        self.moment = ""

    def put(self, key: str, read: Read) -> None:
        while key in self.cells:
            key += "'"
        self.cells[key] = read


def loose(call: str, text: str, lines: Sequence[Cell], offset: int) -> list[Table]:
    """The tables of lines that share a key, and one of all other numbers."""
    rows = [row for row in (_row(text, *line) for line in lines) if row.cells]
    groups: dict[str, list[_Row]] = {}
    for row in rows:
        groups.setdefault(_signature(row), []).append(row)
    alone = [group[0] for group in groups.values() if len(group) == 1 and len(group[0].cells) == 1]
    found = [_table(call, group, offset) for group in groups.values() if len(group) > 1 or len(group[0].cells) > 1]
    return [*found, _record(call, alone, offset)] if alone else found


def _signature(row: _Row) -> str:
    first = next(iter(row.cells))
    return "|".join(row.cells) if first.startswith("#") else first.rstrip("s")


def _row(text: str, start: int, end: int) -> _Row:
    row = _Row()
    parts = [found.span() for found in _PARTS.finditer(text, start, end)]
    pairs = [_PAIR.fullmatch(text, *part) for part in parts]
    if all(pair and (len(parts) == 1 or "=" in pair[0]) for pair in pairs):
        for pair in pairs:
            if pair:
                _value(row, text, pair["key"], pair.span("value"))
        if row.cells:
            return row
    row = _Row()
    _scan(row, text, start, end)
    row.texts.append(text[start:end].strip())
    return row


def _value(row: _Row, text: str, key: str, span: Cell) -> None:
    shown = text[slice(*span)]
    if read := read_number(text, *span):
        row.put(key, read)
    elif moment := moment_of(shown):
        row.moment = moment
    else:
        row.texts += [key, shown.strip("\"' ")]
        _scan(row, text, *span, key)


def _scan(row: _Row, text: str, start: int, end: int, key: str = "") -> None:
    """Put every number of a line into ``row``, under the word before or behind it."""
    place = start
    for count, found in enumerate(_ITEM.finditer(text, start, end)):
        gap = text[max(place, found.start() - 40) : found.start()]
        place = found.end()
        if found["skip"]:
            row.moment = row.moment or moment_of(found["skip"][:10])
            continue
        if _is_date(found["number"], gap):
            row.moment = row.moment or found["number"]
            continue
        before = _KEY_BEFORE.search(gap)
        behind = _WORD_BEHIND.match(text, place, end)
        name = before[1] if before else behind[1] if behind else ""
        read = read_number(text, *found.span()) or read_number(text, *found.span("number"))
        if read:
            row.put(name.lower() or key or f"#{count}", read)
        if count > MOST_PER_LINE:
            break


def _is_date(number: str, gap: str) -> bool:
    """Whether four digits in a line of prose are a year, by the word before them."""
    if len(number) != 4 or not number.isdigit() or not "1900" <= number <= "2100":
        return False
    words = gap.lower().split()
    return bool(words) and words[-1].strip("(") in YEAR_CUES


def _is_year(value: float) -> bool:
    return 1000 <= value < 2200 and value % 1 == 0


def _table(call: str, rows: Sequence[_Row], offset: int) -> Table:
    if len(rows) > 1:
        _keep_differences(rows)
    keys: dict[str, dict[str, None]] = {}
    for row in rows:
        for key in row.cells:
            keys.setdefault(key if key.startswith("#") else key.rstrip("s"), {})[key] = None
    columns: list[Column] = []
    for key, names in keys.items():
        cells = [_first(row, names) for row in rows]
        name = "" if key.startswith("#") else next(iter(names))
        dated = names_time(name) and all(cell is None or _is_year(cell.value) for cell in cells)
        columns.append(column_of(name, cells, offset, time=dated))
    moments = [row.moment for row in rows]
    years = next((column for column in columns if column.time), None)
    if years:
        dated = zip(moments, years.values, strict=True)
        moments = [moment or (f"{int(value)}" if value == value else "") for moment, value in dated]
    return Table(call, tuple(columns), tuple(tuple(row.texts) for row in rows), tuple(moments))


def _first(row: _Row, names: dict[str, None]) -> Read | None:
    return next((row.cells[name] for name in names if name in row.cells), None)


def _keep_differences(rows: Sequence[_Row]) -> None:
    """Leave of the texts of lines only the words that tell them apart."""
    words = [[word for text in row.texts for word in _NAME.findall(text)] for row in rows]
    shared = set(words[0]).intersection(*words[1:])
    for row, mine in zip(rows, words, strict=True):
        if sum(map(len, row.texts)) > SHORT:
            row.texts = [word for word in dict.fromkeys(mine) if word not in shared][:MOST_WORDS]


def _record(call: str, rows: Sequence[_Row], offset: int) -> Table:
    """Lines with nothing shared: the columns of one row, named by their keys or by the words of their lines."""
    columns: list[Column] = []
    for row in rows:
        for key, read in row.cells.items():
            column = column_of(key, [read], offset)
            words = column.words or words_of(" ".join(row.texts))[:MOST_WORDS]
            columns.append(replace(column, words=words))
    return Table(call, tuple(columns), ((),), ("",), loose=True)


def leftovers(call: str, text: str, tables: Sequence[Table], offset: int) -> Table | None:
    """The numbers of a text that are in none of its tables, such as those in names and in column heads."""
    held = {start - offset for table in tables for column in table.columns for start in column.starts}
    row = _Row()
    for digits in _DIGITS.finditer(text):
        place = digits.start()
        if place in held or place - 1 in held:
            continue
        found = _ITEM.match(text, place)
        if found is None or found["skip"]:
            continue
        if read := read_number(text, *found.span()) or read_number(text, *found.span("number")):
            behind = _WORD_BEHIND.match(text, found.end())
            row.put(behind[1].lower() if behind else "#", read)
            if len(row.cells) >= MOST_LEFT:
                break
    return _record(call, [row], offset) if row.cells else None
