"""What stands around a figure: the names, dates, words and hints of its clause, its sentence, its block and its
heading.

What follows from them for rows and columns of a table is worked out in focus.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.figures.answers.extract import Extraction, Figure
from ba_tui.features.data.analysis.figures.answers.outline import NOWHERE, Block, Span, clause, sentences
from ba_tui.features.data.analysis.figures.observed.evidence import Evidence
from ba_tui.features.data.analysis.figures.words.lexicon import MONTHS
from ba_tui.features.data.analysis.figures.words.wording import concepts, hints, tokens_of

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
        """Clause, sentence, block and what stands above."""
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
        """A clause together with the brackets that stand right behind a figure, or with what the figure's brackets
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
