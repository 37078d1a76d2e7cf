"""Find the grids in what a tool returned: rows of cells with their places, whatever the form in which they are printed.

Forms are Markdown and box tables, CSV, tabs, HTML, columns aligned by blanks, and JSON or Python literals. What the
cells mean is decided in ``tables``.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen

Span = tuple[int, int]
BLANK = ("", 0, 0)
MOST_COLUMNS = 200

GridCell = tuple[str, int, int]
"""The text of a cell without surrounding blanks, and its place; 0 and 0 for a name that has none."""


@frozen
class Grid:
    """Rows of cells. ``head`` counts the rows at the top that the form itself marks as column names, ``caption`` is the
    text right before the grid."""

    rows: tuple[tuple[GridCell, ...], ...]
    head: int = 0
    caption: str = ""


_RULE = regex(r"[\s|:+\-=─━┄═┌┐└┘├┤┬┴┼╞╪╡╘╧╛╒╤╕┏┓┗┛┡╇┩╭╮╰╯]+$")
_BARS = "│┃║|"
_QUOTED = regex(r'\s*"(?:[^"]|"")*"')
_PRINTED = regex(r"\S\s{2,}\S|\s[$€£(]?\s?\d{1,3},\d{3}(?!\d)|(?<!\d)\d{1,3},\d{3}\s\S")
"""Wide gaps, or a number with separators next to a blank: no line that commas part."""
_GAP = regex(r"\s{2,}|\t")
_NUMBER_LIKE = regex(r"[(\[]?\s?[+\-−–]?\s?(?:[A-Z]{0,3}[$€£¥₹]|[A-Z]{3} )?\s?[+\-−(]?\s?\d")
_NUMBER_CELL = regex(
    r"[(\[]?\s?[+\-−–]?\s?(?:[A-Z]{0,3}[$€£¥₹]|[A-Z]{3} )?\s*[+\-−(]?\s?\d[\d.,' \u00a0/:-]*(?:[eE][+-]?\d+)?\s?\)?"
    r"\s?(?:%|‰|°?[CF]|[kKMGT]i?[bB]?|x|pp|bps?|[a-zµ]{1,3}|[$€£¥₹])?\s?\)?%?(?:\s?(?:\(\w{1,2}\)|\[\w{1,2}\]|[*†‡§]+))*"
)
_WORD = regex(r"\S+")
_YEAR = regex(r"(?:19|20)\d\d|[12]?\d,|3[01],")
_ROW_TAG = regex(r"<tr\b[^>]*>(.*?)(?=<tr\b|</table|\Z)", 18)
_CELL_TAG = regex(r"<(t[dh])\b([^>]*)>(.*?)(?=</t[dh]|<t[dh]\b|</tr|\Z)", 18)
_COLSPAN = regex(r"colspan\s*=\s*[\"']?(\d{1,2})", 2)
_TAG = regex(r"<[^>]*>")


def cell_at(text: str, start: int, end: int) -> GridCell:
    """Return the cell between two places, without blanks and marks of emphasis or quotation around it."""
    while start < end and text[start] in " \t\r\n\"'*`\u00a0":
        start += 1
    while end > start and text[end - 1] in " \t\r\n\"'*`\u00a0":
        end -= 1
    return (text[start:end], start, end) if end > start else ("", start, start)


def kind_of(line: str) -> str:
    """Return the form of a line: ``rule``, ``bar``, ``tab``, ``comma``, ``semicolon``, or empty for any other."""
    stripped = line.strip()
    if not stripped:
        return ""
    if stripped.endswith("\\\\") or (stripped.startswith("\\") and "line" in stripped):
        return "ampersand" if " & " in stripped else "rule"
    if stripped[0] in "-+=|:─━═┌└├╭╰┏┗┡╒╘╞" and _RULE.match(stripped):
        return "rule"
    if any(bar in line for bar in _BARS):
        return "bar"
    if "\t" in line:
        return "tab"
    for name, mark in (("semicolon", ";"), ("comma", ",")):
        if mark in line:
            bare = _QUOTED.sub("", line)
            spaced = f"{mark} " in bare.strip() or "=" in bare or (mark == "," and _PRINTED.search(bare))
            if mark in bare and not spaced:
                return name
    return ""


def bars(text: str, start: int, end: int) -> list[GridCell]:
    """Return the cells of a line between bars."""
    line = text[start:end]
    bar = next(bar for bar in _BARS if bar in line)
    places = [at for at in range(start, end) if text[at] == bar and (at == start or text[at - 1] != "\\")]
    bounds = [start - 1, *places, end]
    cells = [cell_at(text, a + 1, b) for a, b in pairwise(bounds)]
    if line.lstrip().startswith(bar):
        cells = cells[1:]
    if line.rstrip().endswith(bar) and line.strip() != bar:
        cells = cells[:-1]
    return cells


def fields(text: str, start: int, end: int, mark: str) -> list[GridCell]:
    """Return the fields of a line that ``mark`` separates; those in quotation marks may hold it."""
    cells: list[GridCell] = []
    at = start
    while at <= end:
        stop = end
        if text[at:end].lstrip()[:1] == '"':
            found = _QUOTED.match(text, at, end)
            stop = text.find(mark, found.end() if found else at, end)
        else:
            stop = text.find(mark, at, end)
        stop = end if stop < 0 else stop
        cells.append(cell_at(text, at, stop))
        if len(cells) > MOST_COLUMNS:
            break
        at = stop + 1
    return cells


def delimited(text: str, lines: Sequence[Span], kind: str, caption: str) -> list[Grid]:
    """Return the grids of lines of one form; a new one begins where the number of cells changes for good."""
    if kind == "bar":
        head = 0
        rows: list[tuple[GridCell, ...]] = []
        for start, end in lines:
            if kind_of(text[start:end]) == "rule":
                head = head or len(rows)
            else:
                rows.append(tuple(bars(text, start, end)))
        return [Grid(tuple(rows), head if head < len(rows) else 0, caption)] if rows else []
    if kind == "ampersand":
        lines = [(start, start + len(text[start:end].split("\\\\")[0].rstrip())) for start, end in lines]
    mark = {"tab": "\t", "comma": ",", "semicolon": ";", "ampersand": "&"}[kind]
    made = [tuple(fields(text, start, end, mark)) for start, end in lines]
    found: list[Grid] = []
    first = 0
    for at in range(1, len(made) + 1):
        if at == len(made) or len(made[at]) != len(made[first]):
            if at - first > 1 or kind == "tab" or len(made) == 1:
                found.append(Grid(tuple(made[first:at]), 0, caption))
            first = at
    return found


def html(text: str, start: int, end: int, caption: str) -> Grid | None:
    """Return the grid of an HTML table; a cell over several columns is in each of them."""
    rows: list[tuple[GridCell, ...]] = []
    head = 0
    for row in _ROW_TAG.finditer(text, start, end):
        cells: list[GridCell] = []
        heads = 0
        for found in _CELL_TAG.finditer(text, row.start(1), row.end(1)):
            inner = found.span(3)
            tags = [tag.span() for tag in _TAG.finditer(text, *inner)]
            a, b = inner
            while tags and not text[a : tags[0][0]].strip():
                a = tags.pop(0)[1]
            while tags and not text[tags[-1][1] : b].strip():
                b = tags.pop()[0]
            span = _COLSPAN.search(found[2])
            cell = cell_at(text, a, b)
            cells += [cell] * (int(span[1]) if span else 1)
            heads += found[1].lower() == "th"
        if cells:
            head += heads == len(cells) and head == len(rows)
            rows.append(tuple(cells[:MOST_COLUMNS]))
    return Grid(tuple(rows), head, caption) if rows else None


@frozen
class _Chunk:
    """A piece of a line between wide gaps; places count from the start of the line."""

    start: int
    end: int
    number: bool | None
    """Whether it is a number; None when it only begins like one."""


def aligned(text: str, lines: Sequence[Span], caption: str) -> tuple[Grid | None, Sequence[Span]]:
    """Return the grid of lines that wide gaps part into columns, and the lines behind it; None when their cells do not
    stand below each other, or when a cell that begins like a number is none."""
    chunked = _parted(text, lines, [_chunks(text, line) for line in lines])
    while chunked and len(chunked[-1]) < 2:
        chunked.pop()
    lines, behind = lines[: len(chunked)], lines[len(chunked) :]
    grid = _grid(text, lines, chunked, caption)
    return grid, behind if grid else ()


def _grid(text: str, lines: Sequence[Span], chunked: Sequence[Sequence[_Chunk]], caption: str) -> Grid | None:
    columns = _columns([chunk for chunks in chunked for chunk in chunks if chunk.number])
    wide = [chunks for chunks in chunked if len(chunks) > 1]
    if not columns or len(wide) < 2 or len(wide) * 2 < len(lines):
        return None
    if any(_breaks(chunks) for chunks in chunked):
        return None
    left = min(start for start, _ in columns)
    heads = _columns([chunk for chunks in chunked for chunk in chunks if chunk.end <= left and not chunk.number])
    bounds = sorted([*heads, *columns])
    starts = [start for start, _ in bounds]
    rows: list[tuple[GridCell, ...]] = []
    for line, chunks in zip(lines, chunked, strict=True):
        row: list[GridCell] = [BLANK] * len(bounds)
        for chunk in chunks:
            cell = cell_at(text, line[0] + chunk.start, line[0] + chunk.end)
            over = [at for at, (a, b) in enumerate(bounds) if a < chunk.end and chunk.start < b]
            over = over or [max(0, bisect_right(starts, chunk.start) - 1)]
            for at in over[:1] if chunk.number else over:
                row[at] = cell if not row[at][0] else (f"{row[at][0]} {cell[0]}", row[at][1], cell[2])
        rows.append(tuple(row))
    return Grid(tuple(rows), 0, caption)


def _parted(text: str, lines: Sequence[Span], chunked: Sequence[list[_Chunk]]) -> list[list[_Chunk]]:
    """Return the chunks of lines; numbers that one blank parts from what is left of them are chunks of their own when
    they stand below a name of the first line or in a column of other lines."""
    columns = _columns([chunk for chunks in chunked for chunk in chunks if chunk.number])
    heads = [chunks for chunks in chunked[:3] if len(chunks) > 1 and all(chunk.number is False for chunk in chunks)]
    columns += [(chunk.start, chunk.end) for chunk in (heads[0] if heads else ())]
    found: list[list[_Chunk]] = []
    for (start, _), chunks in zip(lines, chunked, strict=True):
        parts: list[_Chunk] = []
        for chunk in chunks:
            taken = [each for each in chunks if each is not chunk]
            parts += [chunk] if chunk.number else _split(text, start, chunk, columns, taken)
        found.append(parts)
    return found


def _split(text: str, start: int, chunk: _Chunk, columns: Sequence[Span], taken: Sequence[_Chunk]) -> Sequence[_Chunk]:
    words = [(found.start(), found.end()) for found in _WORD.finditer(text, start + chunk.start, start + chunk.end)]
    tail: list[_Chunk] = []
    while words:
        a, b = words[-1][0] - start, words[-1][1] - start
        below = next(((x, y) for x, y in columns if x < b and a < y), None)
        word = text[slice(*words[-1])]
        if below is None or not _is_whole(word) or not word[-1].isdigit() or _YEAR.fullmatch(word):
            break
        if any(each.start < below[1] and below[0] < each.end for each in taken):
            break
        tail.append(_Chunk(a, b, True))
        words.pop()
    if not tail:
        return [chunk]
    head = [_Chunk(chunk.start, words[-1][1] - start, False)] if words else []
    return [*head, *reversed(tail)]


def _breaks(chunks: Sequence[_Chunk]) -> bool:
    """Return whether a line has numbers and, behind its first cell, something that only begins like one."""
    return any(chunk.number for chunk in chunks) and any(chunk.number is None for chunk in chunks[1:])


def _chunks(text: str, line: Span) -> list[_Chunk]:
    start, end = line
    found: list[_Chunk] = []
    at = start
    for gap in (*_GAP.finditer(text, start, end), None):
        stop = gap.start() if gap else end
        if text[at:stop].strip():
            number = bool(_NUMBER_LIKE.match(text, at, stop))
            found.append(_Chunk(at - start, stop - start, _is_whole(text[at:stop]) if number else False))
        at = gap.end() if gap else end
    return found


def _is_whole(chunk: str) -> bool | None:
    """Return True for a number with its signs and unit, None for one that other words follow."""
    return True if _NUMBER_CELL.fullmatch(chunk.strip()) else None


def _columns(chunks: Sequence[_Chunk]) -> list[Span]:
    """Return the stretches that overlapping chunks cover."""
    found: list[list[int]] = []
    for chunk in sorted(chunks, key=lambda chunk: chunk.start):
        if found and chunk.start < found[-1][1]:
            found[-1][1] = max(found[-1][1], chunk.end)
        else:
            found.append([chunk.start, chunk.end])
    return [(start, end) for start, end in found]
