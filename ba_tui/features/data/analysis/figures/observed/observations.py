"""What a tool returned, taken apart into tables. One reading for every shape: the shape is found line by line."""

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
from ba_tui.features.data.analysis.figures.observed.grids import Line, aligned, delimited, kind_of
from ba_tui.features.data.analysis.figures.observed.literals import Item, literal_at, tables_of
from ba_tui.features.data.analysis.figures.observed.tables import Table, stacked
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


HEAD, TAIL = 96_000, 32_000
"""Characters that are read from the beginning and the end of a long text."""


def parts(text: str) -> tuple[tuple[int, str], ...]:
    """The parts of a text that are read, each with its place: all of it, or its beginning and its end."""
    if len(text) <= HEAD + TAIL:
        return ((0, text),)
    cut = text.rfind("\n", 0, HEAD)
    resume = text.find("\n", len(text) - TAIL)
    first = cut if cut > HEAD // 2 else HEAD
    second = resume + 1 if 0 <= resume < len(text) - TAIL // 2 else len(text) - TAIL
    return (0, text[:first]), (second, text[second:])


def tables(call: str, text: str, offset: int = 0) -> list[Table]:
    """The tables of an observation; those of single lines come last. ``offset`` is where ``text`` begins in it."""
    return _Reading(call, text, offset).whole()


class _Reading:
    """One pass over the lines. ``lines`` are those of one kind that stand together, ``rest`` those of no grid."""

    def __init__(self, call: str, text: str, offset: int) -> None:
        self.call, self.text, self.offset = call, text, offset
        self.found: list[Table] = []
        self.lines: list[Line] = []
        self.rest: list[Line] = []
        self.kind = ""

    def whole(self) -> list[Table]:
        text, place = self.text, 0
        while place <= len(text):
            stop = text.find("\n", place)
            end = stop if stop >= 0 else len(text)
            place = self._literal(place, end) or self._line(place, end)
        self._flush()
        found = [*stacked(self.found), *loose(self.call, text, self.rest, self.offset)]
        rest = leftovers(self.call, text, found, self.offset)
        return [*found, rest] if rest else found

    def _line(self, start: int, end: int) -> int:
        kind = kind_of(self.text, start, end)
        if kind == "rule":
            line = self.text[start:end]
            if self.kind == "" and self.lines and "|" not in line and "+" not in line:
                return end + 1
            kind = self.kind if self.kind in {"box", "pipe"} else "pipe" if "|" in line or "+" in line else "box"
        blank = not self.text[start:end].strip()
        if kind != self.kind or blank:
            self._flush()
            self.kind = kind
        if not blank:
            self.lines.append((start, end))
        return end + 1

    def _literal(self, start: int, end: int) -> int:
        """Where the literal that begins on this line ends, line end included; 0 when there is none."""
        text = self.text
        first = text[start:end].lstrip()[:1]
        if not first or first not in "{[":
            return 0
        read = literal_at(text, text.index(first, start), len(text))
        found = list(tables_of(self.call, read[0], self.offset)) if read else []
        if read is None or not found:
            return 0
        self._flush()
        if first == "{" and read[1] <= end and text[end + 1 : end + 40].lstrip()[:1] == "{":
            return self._records(start)
        self.found += found
        return max(end, read[1]) + 1

    def _records(self, start: int) -> int:
        """Read lines that are a record each; returns where the next line begins."""
        text = self.text
        records: list[Item] = []
        place = start
        while place < len(text):
            stop = text.find("\n", place)
            end = stop if stop >= 0 else len(text)
            first = text.find("{", place, end)
            read = literal_at(text, first, end) if first >= 0 and not text[place:first].strip() else None
            if read is None:
                break
            records.append(read[0])
            place = end + 1
        self.found += tables_of(self.call, records, self.offset)
        return place

    def _flush(self) -> None:
        lines, self.lines = self.lines, []
        if not lines:
            return
        if self.kind:
            found, rest = delimited(self.call, self.text, lines, self.kind, self.offset), []
            rest = [] if found else lines
        else:
            found, rest = aligned(self.call, self.text, lines, self.offset)
        self.found += found
        self.rest += rest
