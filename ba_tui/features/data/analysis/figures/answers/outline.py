"""How an answer is built: headings, paragraphs, list items, table cells, and the sentences and clauses in them.

What the words mean is decided in mentions and scope.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.words.lexicon import listed

Span = tuple[int, int]
NOWHERE: Span = (0, 0)

_FENCE = regex(r"^[ \t]*(```+|~~~+)[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", 24)
"""MULTILINE and DOTALL."""
_CODE = regex(r"(?<!`)(`{1,3})(?!`)[^\n]*?[^`\n]\1(?!`)")
_RULE = regex(r"[ \t]*\|?[ \t]*:?-{2,}[-:| \t]*$")
_HEADING = regex(r"[ \t]*#{1,6}[ \t]")
_ITEM = regex(r"[ \t]*(?:[-*+•·‣]|\(?\d{1,3}[.)]|[a-z]\))[ \t]+")
_QUOTE = regex(r"[ \t]*>+[ \t]?")
_SENTENCE = regex(r"[。！？!?；](?:[”\"'）)]*)|[.;](?:\*\*|__|[\"”')\]])*(?=\s+(?![a-zäöüéè(])|\s*$)|\n")
LONGEST_CLAUSE = 400
_CLAUSE = regex(r"[,，、;；:()（）—]|\s[–-]\s")
_ABBREVIATED = listed(
    "approx ca vs e.g i.e z.b d.h bzw inkl incl nr no mio mrd tsd fig abb st dr mr mrs ms inc sog usw etc p.a"
)


@frozen
class Cell:
    """A cell of a table in an answer; ``label`` is the first cell of its row, ``header`` the head of its column."""

    span: Span
    label: Span
    header: Span
    column: int


@frozen
class Block:
    """A heading, a paragraph, a list item or a row of a table, with the heading that it stands under. ``lead`` is the
    block before a list, ``group`` the number of the list or table that it is part of."""

    span: Span
    kind: str
    heading: Span
    lead: Span
    group: int
    cells: tuple[Cell, ...] = ()


@frozen
class Outline:
    """The blocks of an answer in order. ``code`` are the spans of fences and of inline code."""

    text: str
    blocks: tuple[Block, ...]
    code: tuple[Span, ...]
    starts: tuple[int, ...]

    def block_at(self, place: int) -> Block:
        """The block that ``place`` stands in, or the last before it."""
        return self.blocks[max(0, bisect_right(self.starts, place) - 1)]


def code_spans(text: str) -> tuple[Span, ...]:
    """Where code stands, fences first, without overlaps and in order."""
    if "`" not in text and "~~~" not in text:
        return ()
    fences = [found.span() for found in _FENCE.finditer(text)]
    inline = [found.span() for found in _CODE.finditer(text) if not any(a <= found.start() < b for a, b in fences)]
    return tuple(sorted((*fences, *inline)))


class _Builder:
    """Reads line by line; what was seen last decides what a line belongs to."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.blocks: list[Block] = []
        self.heading: Span = NOWHERE
        self.lead: Span = NOWHERE
        self.group = 0
        self.kind = ""
        self.header: tuple[Span, ...] = ()

    def line(self, start: int, end: int, following: str) -> None:
        text = self.text
        head = text[start : start + 1]
        stripped = text[start:end].strip()
        if not stripped:
            self.kind = "" if self.kind != "item" else self.kind
            return
        if "|" in stripped and (stripped[0] == "|" or self.kind == "row" or _RULE.match(following)):
            self._row(start, end, following)
            return
        if head in "# \t" and _HEADING.match(text, start, end):
            self.heading, self.lead, self.kind = (start, end), NOWHERE, "heading"
            self._add((start, end), "heading")
        elif head in ">" and _QUOTE.match(text, start, end):
            self._add((start, end), "quote")
            self.kind = "quote"
        elif _ITEM.match(text, start, end):
            if self.kind != "item":
                self.group += 1
            self._add((start, end), "item")
            self.kind = "item"
        elif self.kind == "text":
            last = self.blocks[-1]
            self.blocks[-1] = Block((last.span[0], end), last.kind, last.heading, last.lead, last.group)
            self.lead = self.blocks[-1].span
        else:
            self._add((start, end), "text")
            self.lead, self.kind = (start, end), "text"

    def _add(self, span: Span, kind: str, cells: tuple[Cell, ...] = ()) -> None:
        group = self.group if kind in {"item", "row", "head"} else 0
        self.blocks.append(Block(span, kind, self.heading, self.lead if group else NOWHERE, group, cells))

    def _row(self, start: int, end: int, following: str) -> None:
        spans = _cells(self.text, start, end)
        if _RULE.match(self.text, start, end):
            return
        if self.kind != "row":
            self.group += 1
            self.header = spans if _RULE.match(following) else ()
            self.kind = "row"
            if self.header:
                self._add((start, end), "head", tuple(Cell(span, NOWHERE, NOWHERE, i) for i, span in enumerate(spans)))
                return
        heads = self.header
        label = spans[0] if spans else NOWHERE
        cells = (Cell(span, label, heads[i] if i < len(heads) else NOWHERE, i) for i, span in enumerate(spans))
        self._add((start, end), "row", tuple(cells))


def _cells(text: str, start: int, end: int) -> tuple[Span, ...]:
    bounds = [start - 1, *(place for place in range(start, end) if text[place] == "|"), end]
    spans = [(a + 1, b) for a, b in pairwise(bounds)]
    if spans and not text[slice(*spans[0])].strip():
        spans = spans[1:]
    if spans and not text[slice(*spans[-1])].strip():
        spans = spans[:-1]
    return tuple(spans)


def outline(text: str) -> Outline:
    """The structure of a normal text. Fenced code is no block."""
    code = code_spans(text)
    fences = [(a, b) for a, b in code if text[a:b].lstrip()[:3] in {"```", "~~~"} and "\n" in text[a:b]]
    builder = _Builder(text)
    start = 0
    for line in text.split("\n"):
        end = start + len(line)
        if not (fences and any(a <= start < b or a <= end - 1 < b for a, b in fences)):
            stop = text.find("\n", end + 1)
            builder.line(start, end, text[end + 1 : stop if stop >= 0 else len(text)])
        start = end + 1
    blocks = builder.blocks or [Block((0, len(text)), "text", NOWHERE, NOWHERE, 0)]
    return Outline(text, tuple(blocks), code, tuple(block.span[0] for block in blocks))


def sentences(text: str, span: Span) -> tuple[Span, ...]:
    """The sentences of a block, one after the other."""
    found: list[Span] = []
    start, end = span
    for mark in _SENTENCE.finditer(text, start, end):
        if (
            text[mark.start()] == "."
            and text[start : mark.start()].rpartition(" ")[2].lower().strip("(*") in _ABBREVIATED
        ):
            continue
        if mark.end() > start:
            found.append((start, mark.end()))
        start = mark.end()
    if start < end:
        found.append((start, end))
    return tuple(found)


def clause(text: str, sentence: Span, place: int) -> Span:
    """The part of ``sentence`` between commas, colons and brackets that ``place`` stands in; marks far from it
    are not looked for."""
    start, end = sentence
    for mark in _CLAUSE.finditer(text, max(start, place - LONGEST_CLAUSE), min(end, place + LONGEST_CLAUSE)):
        if (
            mark[0] in ",:"
            and text[mark.start() - 1 : mark.start()].isdigit()
            and text[mark.end() : mark.end() + 1].isdigit()
        ):
            continue
        if mark.start() >= place:
            return start, mark.start()
        start = mark.end()
    return start, end
