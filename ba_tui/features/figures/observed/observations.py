"""What a tool returned, taken apart into tables. One reading for every shape: the shape is found line by line."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.extract import duration_at
from ba_tui.features.figures.moments import MONTHS, YEAR_CUES, moment_at
from ba_tui.features.figures.observed.columns import (
    Cell,
    Column,
    Read,
    column_of,
    digits_end,
    moment_of,
    names_time,
    read_number,
    words_of,
)
from ba_tui.features.figures.observed.grids import Grid, cell_at, delimited, html, kind_of
from ba_tui.features.figures.observed.grids import aligned as grids_aligned
from ba_tui.features.figures.observed.keyed_lines import keyed_run, records
from ba_tui.features.figures.observed.literals import Item, literal_at, tables_of
from ba_tui.features.figures.observed.tables import Table, build, stacked
from ba_tui.features.figures.units import FigureUnit

Line = tuple[int, int]
"""Where a line begins and ends in the text, its line end left out."""

_TOKEN = regex(r"\S+")
_PAIRED = regex(r"\w=|\w: ")


def _grid(text: str, rows: Sequence[Sequence[Cell]], head: Sequence[str] = ()) -> Grid:
    """Return the grid of some places in a text, below names of columns."""
    cells = [tuple(cell_at(text, *cell) for cell in row) for row in rows]
    return Grid(((tuple((name, 0, 0) for name in head)), *cells) if head else tuple(cells), 1 if head else 0)


def aligned(call: str, text: str, lines: Sequence[Line], offset: int) -> tuple[list[Table], list[Line]]:
    """The tables of lines whose cells are below each other, and the lines that are in none."""
    found: list[Table] = []
    rest: list[Line] = []
    numbers = [_numbers(text, line) for line in lines]
    begin = at = 0
    while at + 1 < len(lines):
        if numbers[at + 1] and not numbers[at]:
            table, used = _below_header(call, text, lines[at:], numbers[at:], offset)
            if table is not None:
                above = at - (at > begin and _is_header(text, lines[at - 1]) and not numbers[at - 1])
                more, left = _without_header(call, text, lines[begin:above], numbers[begin:above], offset)
                found += [*more, table]
                rest += left
                at = begin = at + used
                continue
        at += 1
    more, left = _without_header(call, text, lines[begin:], numbers[begin:], offset)
    return [*found, *more], [*rest, *left]


def _headed(call: str, text: str, lines: Sequence[Line], offset: int) -> Table | None:
    """The table that all lines are when each number is exactly below a name of the first one or two."""
    if len(lines) < 2 or _numbers(text, lines[0]):
        return None
    if grid := _of_words(text, lines):
        return next(iter(build(call, grid, offset)), None)
    numbers = [_numbers(text, line) for line in lines]
    for first in (0, 1):
        if len(lines) > first + 1 and not numbers[first]:
            table, used = _below_header(call, text, lines[first:], numbers[first:], offset)
            if table is not None and used == len(lines) - first:
                return table
    return None


def _of_words(text: str, lines: Sequence[Line]) -> Grid | None:
    """The grid of lines with as many words each: names in the first, a label and numbers in the others."""
    words = [[found.span() for found in _TOKEN.finditer(text, *line)] for line in lines]
    width = len(words[0])
    if width < 2 or any(len(row) != width for row in words):
        return None
    if all(read_number(text, *cell) for row in words[1:] for cell in row[1:]):
        return Grid(tuple(tuple(cell_at(text, *cell) for cell in row) for row in words), 1)
    return None


def _numbers(text: str, line: Line) -> list[Cell]:
    """The words of a line that are numbers; the day behind the name of a month is none."""
    found: list[Cell] = []
    last = ""
    for token in _TOKEN.finditer(text, *line):
        word = token[0]
        if (word[0].isdigit() or word[-1].isdigit()) and last not in MONTHS and read_number(text, *token.span()):
            found.append(token.span())
        last = word.lower()
    return found


def _is_header(text: str, line: Line) -> bool:
    names = text[slice(*line)].split()
    return bool(names) and all(name[-1] not in ":,.;" and name[0] not in "-*>#[" for name in names)


def _below_header(
    call: str, text: str, lines: Sequence[Line], numbers: Sequence[list[Cell]], offset: int
) -> tuple[Table | None, int]:
    """The table under a line of column names, and how many lines it takes. Numbers end, or begin, below a name."""
    if not _is_header(text, lines[0]):
        return None, 0
    names = _names(text, lines[0])
    above = lines[0][0] - 1
    if above > 0 and _is_header(text, (line_start := text.rfind("\n", 0, above) + 1, above)):
        upper = [(start, end, name) for start, end, name in _names(text, (line_start, above))]
        if not any(a < end and start < b for start, end, _ in upper for a, b, _ in names):
            names = sorted([*upper, *names])
    ends = {end: at for at, (_, end, _) in enumerate(names)}
    starts = {start: at for at, (start, _, _) in enumerate(names)}
    grid: list[list[Cell]] = []
    total = 0
    for line, cells in zip(lines[1:], numbers[1:], strict=True):
        placed: dict[int, Cell] = {}
        for start, end in cells:
            at = ends.get(end - line[0], starts.get(start - line[0], -1))
            if at >= 0:
                placed.setdefault(at, (start, end))
        if not placed:
            break
        left = min(start for start, _ in placed.values())
        if any(cell[0] > left and cell not in placed.values() for cell in cells):
            break
        total += len(placed)
        indexed = (
            cells[0][0] < left and not text[line[0] : cells[0][0]].strip() and text[slice(*cells[0])] == f"{len(grid)}"
        )
        begin = cells[0][1] if indexed else line[0]
        label = (begin, left)
        if not text[begin:left].strip() and grid:
            label = grid[-1][0]
        grid.append([label, *(placed.get(at, (line[0], line[0])) for at in range(len(names)))])
    if not grid or (len(grid) == 1 and total < len(names)):
        return None, 0
    kept = [at for at in range(len(names)) if any(row[at + 1][0] != row[at + 1][1] for row in grid)]
    label = next((names[at][2] for at in range(len(names)) if at not in kept), "")
    header = [label or "\u200b", *(names[at][2] for at in kept)]
    made = build(call, _grid(text, [[row[0], *(row[at + 1] for at in kept)] for row in grid], header), offset)
    return (made[0] if made else None), 1 + len(grid)


def _names(text: str, line: Line) -> list[tuple[int, int, str]]:
    """The names of a line of them, with their places in the line."""
    return [(found.start() - line[0], found.end() - line[0], found[0]) for found in _TOKEN.finditer(text, *line)]


def _without_header(
    call: str, text: str, lines: Sequence[Line], numbers: Sequence[list[Cell]], offset: int
) -> tuple[list[Table], list[Line]]:
    """Runs of lines with as many words, or with a label and as many numbers at their end."""
    found: list[Table] = []
    rest: list[Line] = []
    tokens = [[token.span() for token in _TOKEN.finditer(text, *line)] for line in lines]
    plain = [bool(numbers[at]) and text[tokens[at][0][0]] not in "-*>#" for at in range(len(lines))]
    plain = [
        fit or (text[slice(*lines[at])].lstrip()[:2] in {"-r", "dr"} and bool(numbers[at]))
        for at, fit in enumerate(plain)
    ]
    paired = [bool(_PAIRED.search(text, *line)) for line in lines]
    at = 0
    while at < len(lines):
        same = tail = at + 1
        if plain[at] and not paired[at]:
            while same < len(lines) and plain[same] and len(tokens[same]) == len(tokens[at]):
                same += 1
            count = _trailing(tokens[at], numbers[at])
            while tail < len(lines) and count and plain[tail] and _trailing(tokens[tail], numbers[tail]) == count:
                tail += 1
        table = None
        if same - at > 1 and same >= tail and len(tokens[at]) > 1:
            table = next(iter(build(call, _grid(text, tokens[at:same]), offset)), None)
        elif tail - at > 1:
            count = _trailing(tokens[at], numbers[at])
            rows = zip(lines[at:tail], tokens[at:tail], strict=True)
            grid = [[(line[0], row[-count][0]), *row[-count:]] for line, row in rows]
            table, same = next(iter(build(call, _grid(text, grid), offset)), None), tail
        if table is None:
            rest.extend(lines[at:same])
        else:
            found.append(table)
        at = same
    return found, rest


def _trailing(tokens: Sequence[Cell], numbers: Sequence[Cell]) -> int:
    """How many numbers a line ends in, when something else comes before them."""
    count = 0
    while count < min(len(tokens), len(numbers)) and tokens[-1 - count] == numbers[-1 - count]:
        count += 1
    return count if count < len(tokens) else 0


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
    r"(?:(?P<tail>%|[KMGTk]i?B?\b|[a-zµ]{1,2}\b)|(?![A-Za-z]))"
)
_DIGITS = regex(r"\d[\d.,:-]*")
_NOTE = regex(r"\(\d{1,2}\)")
"""The mark of a footnote."""
_YEAR = regex(r"(?:19|20)\d\d(?![\d.,]*\d)")
_KEY_BEFORE = regex(r"([A-Za-z_\u3040-\u9fff][\w.%]*)\s?[=:]\s?$")
_WORD_BEHIND = regex(r"\s?(?:\(\w+\)\s)?(?:(?:in|of|for|von|de|en) )?([A-Za-z_\u3040-\u9fff][\w%]*)")
_WORD_BEFORE = regex(r"([A-Za-z_\u3040-\u9fff][\w%]*)\s$")
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
        if found.start() < place or (found["number"] and _NOTE.match(text, found.start() - 1)):
            continue
        gap = text[max(place, found.start() - 40) : found.start()]
        place = found.end()
        if found["skip"]:
            row.moment = row.moment or moment_of(found["skip"][:10])
            continue
        if _is_date(found["number"], gap):
            row.moment = row.moment or found["number"]
            continue
        if duration := duration_at(text, found.start()):
            place = duration[0]
            row.put("duration", Read(float(duration[1]), FigureUnit("time"), found.start(), place))
            continue
        before = _KEY_BEFORE.search(gap)
        behind = _WORD_BEHIND.match(text, place, end)
        if behind and text[behind.end() : behind.end() + 1] in {":", "="}:
            # That is the name of the next number.
            behind = None
        if before and behind and before[0].rstrip()[-1] == ":":
            # ``North: 48 in sales``: the text before the colon names the line.
            before = None
        near = _WORD_BEFORE.search(gap) if not (before or behind) else None
        name = next((each[1] for each in (before, behind, near) if each), "")
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
    return Table(call, tuple(columns), tuple(tuple(row.texts) for row in rows), tuple(moments), lines=True)


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
    done = 0
    for digits in _DIGITS.finditer(text):
        place = digits.start()
        if place < done or place in held or place - 1 in held or _NOTE.match(text, place - 1):
            continue
        words = text[max(0, place - 24) : place].replace(",", " ").split()
        if moment := moment_at(text, place, digits_end(text, place), words[-1].strip("(.").lower() if words else ""):
            done = moment.end
            continue
        if _YEAR.match(text, place):
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


_TABLE_TAG, _TABLE_END = regex(r"(?i)<table"), regex(r"(?i)</table")
_LINE_NUMBER = regex(r"[ ]*(\d{1,7})(?:\t|→|│)")
"""In front of a line of a file, as tools that read files print it."""
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
    plain = _unnumbered(text)
    if plain is None:
        return _LineScan(call, text, offset).whole()
    starts, removed = plain.starts, plain.removed
    found = _LineScan(call, plain.text, 0).whole()
    return [table.moved(lambda place: place + removed[bisect_right(starts, place) - 1] + offset) for table in found]


@frozen
class _Unnumbered:
    """A text without the numbers in front of its lines: where its lines start, and how much was removed before."""

    text: str
    starts: Sequence[int]
    removed: Sequence[int]


def _unnumbered(text: str) -> _Unnumbered | None:
    """Return a text without the numbers with which a tool counts its lines; None when it does not."""
    first = _LINE_NUMBER.match(text)
    if first is None:
        return None
    lines: list[str] = []
    starts, removed = [0], [0]
    expected, gone, place = int(first[1]), 0, 0
    for line in text.split("\n"):
        found = _LINE_NUMBER.match(line)
        if found is None or int(found[1]) != expected:
            if line.strip() and not line.startswith(("…", "[", "(")):
                return None
            cut = 0
        else:
            cut, expected = found.end(), expected + 1
        gone += cut
        lines.append(line[cut:])
        starts.append(place)
        removed.append(gone)
        place += len(line) - cut + 1
    return _Unnumbered("\n".join(lines), starts, removed) if len(lines) > 1 else None


class _LineScan:
    """One pass over the lines. ``lines`` are neighbours of one kind, ``rest`` those of no grid."""

    def __init__(self, call: str, text: str, offset: int) -> None:
        self.call, self.text, self.offset = call, text, offset
        self.found: list[Table] = []
        self.lines: list[Line] = []
        self.rest: list[Line] = []
        self.kind = ""
        self.remark = False
        """Whether the line before is a remark, such as ``# A tibble: 4 × 4``."""
        self.tried = 0
        """Where the lines end that are known to be no records."""

    def whole(self) -> list[Table]:
        text, place = self.text, 0
        while place <= len(text):
            stop = text.find("\n", place)
            end = stop if stop >= 0 else len(text)
            place = self._literal(place, end) or self._html(place, end) or self._keyed(place) or self._line(place, end)
        self._flush()
        found = [*stacked(self.found), *loose(self.call, text, self.rest, self.offset)]
        rest = leftovers(self.call, text, found, self.offset)
        return [*found, rest] if rest else found

    def _line(self, start: int, end: int) -> int:
        line = self.text[start:end]
        kind = kind_of(line)
        if kind == "rule":
            if self.kind == "" and self.lines and not any(mark in line for mark in "|+│┼"):
                return end + 1
            kind = "bar"
        blank = not line.strip()
        if kind != self.kind or blank or self.remark:
            self._flush()
            self.kind = kind
        self.remark = line.startswith("#")
        if not blank:
            self.lines.append((start, end - line.endswith("\r")))
        return end + 1

    def _keyed(self, start: int) -> int:
        """Where the records of names and values that begin on this line end; 0 when there are none."""
        if start < self.tried:
            return 0
        lines = keyed_run(self.text, start)
        self.tried = lines[-1][1] if lines else start
        grid = records(self.text, lines) if len(lines) > 2 else None
        found = build(self.call, grid, self.offset) if grid else []
        if not found:
            return 0
        self._flush()
        self.found += found
        return lines[-1][1] + 1

    def _html(self, start: int, end: int) -> int:
        """Where the HTML table that begins on this line ends; 0 when there is none."""
        opened = _TABLE_TAG.search(self.text, start, end)
        if opened is None:
            return 0
        begin = opened.start()
        closed = _TABLE_END.search(self.text, begin)
        stop = closed.start() if closed else len(self.text)
        self._flush()
        grid = html(self.text, begin, stop, self.text[max(0, begin - 200) : begin].strip())
        self.found += build(self.call, grid, self.offset) if grid else []
        close = self.text.find("\n", stop)
        return (close if close >= 0 else len(self.text)) + 1

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
        caption = self.text[max(0, lines[0][0] - 200) : lines[0][0]].strip()
        if self.kind:
            grids = delimited(self.text, lines, self.kind, caption)
            found = [table for grid in grids for table in build(self.call, grid, self.offset)]
            rest = [] if found else lines
        elif table := _headed(self.call, self.text, lines, self.offset):
            found, rest = [table], []
        else:
            grid, rest = grids_aligned(self.text, lines, caption)
            found = build(self.call, grid, self.offset) if grid else []
            if not found:
                found, rest = aligned(self.call, self.text, lines, self.offset)
        self.found += found
        self.rest += rest
