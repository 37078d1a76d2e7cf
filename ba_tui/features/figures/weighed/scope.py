"""The text around a figure: the names, dates, words and hints of its clause, its sentence, its block and its
heading.

What follows from them for rows and columns of a table is worked out in focus.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from functools import lru_cache

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.extract import Extraction, Figure
from ba_tui.features.figures.moments import MONTHS, listed
from ba_tui.features.figures.observed.columns import Column, moment_in
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.observed.tables import Table
from ba_tui.features.figures.outline import NOWHERE, Block, Span, clause, sentences
from ba_tui.features.figures.units import FigureUnit
from ba_tui.features.figures.wording import concepts, hints, tokens_of

_CALL = regex(r"\b[A-Z]{1,4}\d{1,5}\b|\b(?:call|toolu)_[\w-]+")


BRACKETS = 14
"""Characters between a figure and the brackets that name what it belongs to."""


@frozen
class Names:
    """What a part of the answer says: words and concepts, row names, moments, hints, calls."""

    words: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()
    moments: frozenset[str] = frozenset()
    hints: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()


NOTHING = Names()


@frozen
class Scope:
    """The surroundings of a figure, nearest first. ``spans`` are the places of clause, sentence and block,
    ``section`` the calls that are named under the same heading."""

    near: Names
    sentence: Names
    block: Names
    above: Names
    spans: tuple[Span, Span, Span]
    section: frozenset[str] = frozenset()
    cell: bool = False

    @property
    def calls(self) -> frozenset[str]:
        """The calls that the sentence names, else those of the block, else those of the section."""
        return self.sentence.calls or self.block.calls or self.section

    @property
    def parts(self) -> tuple[Names, Names, Names, Names]:
        """Clause, sentence, block and the text above."""
        return self.near, self.sentence, self.block, self.above


class Surroundings:
    """The words of an answer by place, and the scopes of its figures; each part is gathered once."""

    def __init__(self, extraction: Extraction, evidence: Evidence) -> None:
        self.outline = extraction.outline
        self.text = extraction.outline.text
        self.tokens = tokens_of(self.text)
        self.starts = [start for _, start, _ in self.tokens]
        self.labels: list[Span] = []
        self._marks: list[tuple[int, int, int, str]] = []
        self._find(evidence)
        dated = [(moment.start, moment.end, 1, moment.key) for moment in extraction.moments if moment.key]
        covered = {moment.start for moment in extraction.moments}
        for word, start, end in self.tokens:
            if word in MONTHS and len(word) > 2 and self.text[start].isupper() and start not in covered:
                dated.append((start, end, 1, f"--{MONTHS[word]:02}"))
        self._marks = sorted([*self._marks, *dated])
        self._mark_starts = [mark[0] for mark in self._marks]
        self._headings = [block.span[0] for block in self.outline.blocks if block.kind == "heading"]
        self._held: dict[tuple[Span, ...], Names] = {}
        self._sentences: dict[Span, tuple[Span, ...]] = {}
        self._calls = [(found.start(), found[0]) for found in _CALL.finditer(self.text) if found[0] in evidence.by_call]

    def _find(self, evidence: Evidence) -> None:
        """Look for row names, hints and concepts from each word on."""
        tables = ((2, hints()), (3, concepts()))
        names = evidence.names
        tokens = self.tokens
        skip_to = 0
        for at, (word, start, _) in enumerate(tokens):
            if word in names:
                longest, name = 0, ""
                for rest, key in names[word]:
                    size = len(rest)
                    if size + 1 > longest and (
                        not size or tuple(token for token, _, _ in tokens[at + 1 : at + 1 + size]) == rest
                    ):
                        longest, name = size + 1, key
                if longest == 1 and len(word) == 1 and not _is_letter_name(self.text, start):
                    longest = 0
                if longest and at >= skip_to:
                    end = tokens[at + longest - 1][2]
                    self._marks.append((start, end, 0, name))
                    skip_to = at + longest
                    shown = self.text[start:end]
                    if any(letter.isdigit() for letter in shown) and any(letter.isalpha() for letter in shown):
                        self.labels.append((start, end))
            for kind, phrases in tables:
                for rest, value in phrases.get(word, ()):
                    size = len(rest)
                    if not size or tuple(token for token, _, _ in tokens[at + 1 : at + 1 + size]) == rest:
                        self._marks.append((start, tokens[at + size][2], kind, value))
                        if kind == 3:
                            break

    def names_in(self, *spans: Span) -> Names:
        """What the parts of the answer at ``spans`` say."""
        spans = tuple(span for span in spans if span != NOWHERE)
        held = self._held.get(spans)
        if held is None:
            held = self._held[spans] = self._gather(spans)
        return held

    def _gather(self, spans: tuple[Span, ...]) -> Names:
        sets: tuple[set[str], ...] = (set(), set(), set(), set())
        words: set[str] = set()
        calls: set[str] = set()
        for start, end in spans:
            words.update(
                word for word, _, _ in self.tokens[bisect_left(self.starts, start) : bisect_left(self.starts, end)]
            )
            for mark in self._marks[bisect_left(self._mark_starts, start) : bisect_left(self._mark_starts, end)]:
                sets[mark[2]].add(mark[3])
            calls.update(call for place, call in self._calls if start <= place < end)
        names, moments, found, meant = sets
        words.update(f"@{concept}" for concept in meant)
        names.update(meant)
        return Names(frozenset(words), frozenset(names), frozenset(moments), frozenset(found), frozenset(calls))

    def scope(self, figure: Figure) -> Scope:
        """The surroundings of a figure."""
        block = self.outline.block_at(figure.start)
        for cell in block.cells:
            if cell.span[0] <= figure.start < cell.span[1] and block.kind == "row":
                return self._cell_scope(block, cell.label, cell.header, cell.span)
        sentence = self._sentence(block.span, figure.start)
        near = self._with_brackets(clause(self.text, sentence, figure.start), sentence, figure)
        said = self.names_in(near)
        if figure.hedge in {"over", "under"} and said.hints & {"up", "down"}:
            # The word belongs to the figure: "more than 15" is no growth.
            said = self.names_in((near[0], max(near[0], _hedge_start(self.text, figure.start))), (figure.end, near[1]))
        lead = block.lead if block.kind == "item" else NOWHERE
        return Scope(
            said,
            self.names_in(sentence),
            self.names_in(block.span),
            self.names_in(lead, block.heading),
            (near, sentence, block.span),
            self._section(block),
        )

    def _cell_scope(self, block: Block, label: Span, header: Span, span: Span) -> Scope:
        row = self.names_in(label) if label != span else NOTHING
        return Scope(
            self.names_in(label, header) if label != span else self.names_in(header),
            self.names_in(label, header, span) if label != span else row,
            self.names_in(block.span),
            self.names_in(block.lead, block.heading),
            (span, block.span, block.span),
            self._section(block),
            cell=True,
        )

    def _with_brackets(self, near: Span, sentence: Span, figure: Figure) -> Span:
        """A clause together with the brackets right behind a figure, or with what the figure's brackets
        follow."""
        text = self.text
        start, end = near
        if text[start - 1 : start] in {"(", "（"}:
            start = clause(text, sentence, max(sentence[0], start - 2))[0]
        elif text[end : end + 1] in {"(", "（"} and end - figure.end <= BRACKETS:
            closing = min((place for place in (text.find(")", end), text.find("）", end)) if place >= 0), default=end)
            end = min(closing, sentence[1])
        return start, end

    def _section(self, block: Block) -> frozenset[str]:
        """The calls that are named under the heading of a block."""
        if not self._calls:
            return frozenset()
        heads = self._headings
        at = bisect_right(heads, block.span[0]) - 1
        start = heads[at] if at >= 0 else 0
        end = heads[at + 1] if at + 1 < len(heads) else len(self.text)
        return frozenset(call for place, call in self._calls if start <= place < end)

    def _sentence(self, span: Span, place: int) -> Span:
        held = self._sentences.get(span)
        if held is None:
            held = self._sentences[span] = sentences(self.text, span)
        return next((each for each in held if each[0] <= place < each[1]), span)


def _is_letter_name(text: str, start: int) -> bool:
    """Whether a single letter is a name: a capital one, and no article at the beginning of a sentence."""
    letter = text[start]
    if not letter.isascii():
        return True
    if not letter.isupper() or letter == "I" or text[start + 1 : start + 2] in {"'", "’"}:
        return False
    first = text[:start].rstrip(" *_(")[-1:] in {"", ".", "!", "?", "\n", ":"}
    return not (first and letter == "A" and text[start + 1 : start + 3].strip().islower())


def _hedge_start(text: str, place: int) -> int:
    """Where the two words before a figure begin; for ideographs, two of them."""
    head = text[max(0, place - 24) : place].rstrip(" $€£¥₹*_")
    if head[-1:] > "\u2fff":
        return max(0, place - 24) + len(head) - 2
    words = head.rsplit(None, 2)
    return max(0, place - 24) + (head.rindex(words[-2]) if len(words) > 1 else 0)


# Which rows and columns of a table the surroundings of a figure speak of, as probabilities.
#
# A name, a date or a word of the column's name multiplies the weight of what it names, the more the nearer it is;
# the weights of a table are then brought to a sum of 1. Nothing here depends on other tables, so that more evidence
# takes nothing away from what is there.

ROWS = (60.0, 20.0, 6.0, 3.0)
"""By how much a row counts more when it is named in the clause, the sentence, the block or above it."""
WORDS = (15.0, 8.0, 2.0, 1.0)
"""By how much a column counts more for each word of its name that is said there."""
KEY_COLUMN = 0.05
"""A date or an identifier is seldom what a figure is about."""


_COMMON = listed("on in of is at to a an by per the and no or for from with as it be was are not all one has had")
"""Words of column names that say nothing when an answer has them."""


@frozen
class Rows:
    """The probability of each row: ``even`` unless it is in ``named``. ``near`` and ``sentence`` are the rows
    that the clause and the sentence name."""

    even: float
    named: Mapping[int, float]
    near: tuple[int, ...] = ()
    sentence: tuple[int, ...] = ()

    def __getitem__(self, row: int) -> float:
        return self.named.get(row, self.even)


@frozen
class Focus:
    """Probabilities that a figure is about a table's rows and columns."""

    rows: Rows
    columns: tuple[float, ...]


class FocusFinder:
    """Works out focuses for the tables of a session; what figures of one clause share is worked out once."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._rows: dict[tuple[int, object], Rows] = {}
        self._words: dict[object, tuple[float, ...]] = {}
        self._found: dict[tuple[str, frozenset[str]], bool] = {}
        self._fits: dict[tuple[int, FigureUnit | None], tuple[float, ...]] = {}
        self._units: dict[int, tuple[FigureUnit | None, ...]] = {}

    def fits(self, number: int, table: Table, unit: FigureUnit | None) -> tuple[float, ...]:
        """By how much a unit speaks for each column."""
        held = self._fits.get((number, unit))
        if held is None:
            held = self._fits[number, unit] = tuple(fit_of(unit, column) for column in table.columns)
        return held

    def units(self, number: int, table: Table) -> tuple[FigureUnit | None, ...]:
        """The units that columns of a table name, each once."""
        held = self._units.get(number)
        if held is None:
            held = self._units[number] = tuple(dict.fromkeys(column.unit for column in table.columns))
        return held

    def rows(self, number: int, table: Table, scope: Scope) -> Rows:
        """The probability of each row."""
        key = (number, (scope.spans, scope.cell))
        held = self._rows.get(key)
        if held is None:
            held = self._rows[key] = self._weigh_rows(number, table, scope)
        return held

    def _weigh_rows(self, number: int, table: Table, scope: Scope) -> Rows:
        weights: dict[int, float] = {}
        found: list[tuple[int, ...]] = []
        done: set[str] = set()
        for names, weight in zip(scope.parts, ROWS, strict=True):
            rows: dict[int, None] = {}
            for key, named in self._named(number, names):
                rows.update(dict.fromkeys(named))
                if key not in done:
                    done.add(key)
                    for row in named:
                        weights[row] = weights.get(row, 1.0) * (1 + weight / len(named))
            found.append(tuple(rows))
        summed = "sum" in scope.near.hints or "sum" in scope.sentence.hints
        for row in table.totals:
            factor = ROWS[1] if summed else 1.0 if row in found[0] else 0.5
            weights[row] = weights.get(row, 1.0) * factor
        whole = sum(weights.values()) + table.rows - len(weights)
        return Rows(1 / whole, {row: weight / whole for row, weight in weights.items()}, found[0], found[1])

    def _named(self, number: int, names: Names) -> Iterable[tuple[str, tuple[int, ...]]]:
        if names.names:
            by_name = self.evidence.rows_named(number)
            for name in names.names:
                if rows := by_name.get(name):
                    yield name, rows
        if names.moments:
            dated = self.evidence.rows_dated(number)
            for moment in names.moments:
                if rows := dated.get(moment) or dated.get(moment[:4]):
                    yield moment, rows

    def words(self, table: Table, scope: Scope) -> tuple[float, ...]:
        """How much more each column counts for the words of its name that are said around a figure."""
        names = tuple(column.name for column in table.columns)
        key = (names, scope.spans, scope.cell)
        held = self._words.get(key)
        if held is None:
            held = self._words[key] = tuple(self._said(column, scope) for column in table.columns)
        return held

    def _said(self, column: Column, scope: Scope) -> float:
        weight = 1.0
        if moment := _moment(column.name):
            return next(
                (1 + step * 2 for names, step in zip(scope.parts, WORDS, strict=True) if moment in names.moments), 1.0
            )
        for word in column.words:
            if word not in _COMMON:
                for names, step in zip(scope.parts, WORDS, strict=True):
                    if self._is_said(word, names.words):
                        weight *= 1 + step
                        break
        return weight

    def _is_said(self, word: str, words: frozenset[str]) -> bool:
        key = (word, words)
        held = self._found.get(key)
        if held is None:
            held = self._found[key] = is_said(word, words)
        return held


@lru_cache(maxsize=4096)
def _moment(name: str) -> str:
    return moment_in(name)


def is_said(word: str, words: frozenset[str]) -> bool:
    """Return whether a word of a label, or a form of it, is among the words of a part of an answer."""
    return _is_said(word, _stems_of(words), words)


@lru_cache(maxsize=1024)
def _stems_of(words: frozenset[str]) -> frozenset[str]:
    """The words of a part of the answer, and their beginnings of three to five letters."""
    found = set(words)
    for word in words:
        if len(word) > 3 and word.isascii():
            found.update((word[:3], word[:4], word[:5]))
    return frozenset(found)


def _is_said(word: str, stems: frozenset[str], words: frozenset[str]) -> bool:
    if word in words or f"{word}s" in words or (word.endswith("s") and word[:-1] in words):
        return True
    for rest, concept in concepts().get(word, ()):
        if not rest and f"@{concept}" in words:
            return True
    if len(word) < 3 or not word.isascii():
        return False
    if word[:5] in stems:
        return True
    return len(word) > 4 and word[:4] in words


def fit_of(unit: FigureUnit | None, column: Column) -> float:
    """By how much a figure's unit speaks for a column."""
    if column.time or column.key:
        return KEY_COLUMN
    if unit is None:
        return 1.0
    held = column.unit
    if unit.family == "percent":
        if held is not None:
            return 5.0 if held.family == "percent" else 0.2
        values = [value for value in column.values[:50] if value == value]
        return 2.0 if values and all(-1 <= value <= 1 for value in values) else 0.5
    if held is None:
        return 1.0
    return 4.0 if held.family == unit.family else 0.1
