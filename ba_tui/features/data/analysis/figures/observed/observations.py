"""What a tool returned, taken apart into tables. One reading for every shape: the shape is found line by line."""

from __future__ import annotations

from ba_tui.features.data.analysis.figures.observed.grids import Line, aligned, delimited, kind_of
from ba_tui.features.data.analysis.figures.observed.literals import Item, literal_at, tables_of
from ba_tui.features.data.analysis.figures.observed.loose import leftovers, loose
from ba_tui.features.data.analysis.figures.observed.tables import Table, stacked

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
