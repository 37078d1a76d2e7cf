"""Lines of an observation that are a grid: boxes, pipes, tabs, commas, columns aligned by blanks."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.features.data.analysis.figures.observed.columns import Cell, read_number
from ba_tui.features.data.analysis.figures.observed.tables import Table, build
from ba_tui.features.data.analysis.figures.words.lexicon import MONTHS, listed

Line = tuple[int, int]
"""Where a line begins and ends in the text, its line end left out."""

_RULE = regex(r"[\s|:+\-=─━┄═┌┐└┘├┤┬┴┼╞╪╡╘╧╛╒╤╕┏┓┗┛┡╇┩╭╮╰╯]+$")
_BARS = "│┃║"
_CSV_CELL = regex(r'"(?:[^"]|"")*"|[^,]*')
_TYPES = listed(
    "varchar int64 int32 int16 int8 uint64 double float float64 bigint integer hugeint int128 decimal "
    "date timestamp boolean bool str object text i64 f64 i32 u32 real int interval blob time uuid"
)
_TYPE = regex(r"(?:decimal|varchar|numeric)\(.*\)$|timestamp.*$")
_TOKEN = regex(r"\S+")
_PAIRED = regex(r"\w=|\w: ")


def kind_of(text: str, start: int, end: int) -> str:
    """What kind of grid a line may belong to: ``box``, ``pipe``, ``tab``, ``comma``, ``rule`` or nothing."""
    line = text[start:end]
    if any(bar in line for bar in _BARS):
        return "box"
    if not line.strip():
        return ""
    if line.strip()[0] in "-+=|:─━═┌└├╭╰┏┗┡╒╘╞" and _RULE.match(line):
        return "rule"
    if "|" in line:
        return "pipe"
    if "\t" in line:
        return "tab"
    if "," in line and ", " not in line and "=" not in line:
        return "comma"
    return ""


def delimited(call: str, text: str, lines: Sequence[Line], kind: str, offset: int) -> list[Table]:
    """The tables of lines of one kind; several where the number of cells changes for good."""
    if kind == "comma":
        return _by_width(call, text, [_commas(text, *line) for line in lines], offset)
    if kind == "tab":
        return _by_width(call, text, [_split(text, *line, "\t") for line in lines], offset)
    grid = [_bars(text, *line) for line in lines if not _RULE.match(text[slice(*line)])]
    ruled = any(_RULE.match(text[slice(*line)]) for line in lines)
    return _made(call, text, grid, offset, headed=ruled)


def _by_width(call: str, text: str, rows: list[list[Cell]], offset: int) -> list[Table]:
    found: list[Table] = []
    first = 0
    for at in range(1, len(rows) + 1):
        if at == len(rows) or len(rows[at]) != len(rows[first]):
            if at - first > 1 or len(rows) == 1:
                found += _made(call, text, rows[first:at], offset, headed=False)
            first = at
    return found


def _made(call: str, text: str, grid: list[list[Cell]], offset: int, *, headed: bool) -> list[Table]:
    grid = [row for row in grid if not _is_types(text, row)]
    header: list[str] = []
    if len(grid) > 1:
        first = [text[a:b].strip() for a, b in grid[0]]
        if not any(read_number(text, a, b) for a, b in grid[0]) or (
            headed and not any(char.isdigit() for char in "".join(first))
        ):
            header = first
            grid = grid[1:]
    table = build(call, text, header, grid, offset)
    return [table] if table else []


def _is_types(text: str, row: Sequence[Cell]) -> bool:
    names = [text[a:b].strip().lower() for a, b in row]
    return bool(names) and all(name in _TYPES or not name or _TYPE.match(name) for name in names) and any(names)


def _split(text: str, start: int, end: int, mark: str) -> list[Cell]:
    cells: list[Cell] = []
    while (place := text.find(mark, start, end)) >= 0:
        cells.append((start, place))
        start = place + len(mark)
    return [*cells, (start, end)]


def _bars(text: str, start: int, end: int) -> list[Cell]:
    line = text[start:end]
    bar = next((bar for bar in _BARS if bar in line), "|")
    cells = _split(text, start, end, bar)
    if line.lstrip().startswith(bar):
        cells = cells[1:]
    if line.rstrip().endswith(bar) and (bar != "|" or line.lstrip().startswith(bar)):
        cells = cells[:-1]
    return cells


def _commas(text: str, start: int, end: int) -> list[Cell]:
    if '"' not in text[start:end]:
        return _split(text, start, end, ",")
    cells: list[Cell] = []
    while start <= end:
        found = _CSV_CELL.match(text, start, end)
        stop = found.end() if found else end
        cells.append((start, stop))
        if stop >= end or text[stop] != ",":
            break
        start = stop + 1
    return cells


def aligned(call: str, text: str, lines: Sequence[Line], offset: int) -> tuple[list[Table], list[Line]]:
    """The tables of lines whose cells stand below each other, and the lines that are in none."""
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
    table = build(call, text, header, [[row[0], *(row[at + 1] for at in kept)] for row in grid], offset)
    return table, 1 + len(grid)


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
            table = build(call, text, [], tokens[at:same], offset)
        elif tail - at > 1:
            count = _trailing(tokens[at], numbers[at])
            rows = zip(lines[at:tail], tokens[at:tail], strict=True)
            grid = [[(line[0], row[-count][0]), *row[-count:]] for line, row in rows]
            table, same = build(call, text, [], grid, offset), tail
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
