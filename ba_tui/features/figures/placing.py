"""Whether a figure that is in a result belongs to another row or column than its sentence says.

Of a sentence only those words and dates count that labels of the figure's table have too. A figure is misplaced when
the labels of another cell have all of them that its own labels have, and more. When in doubt it is not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.moments import listed
from ba_tui.features.figures.observed.columns import moment_in
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.observed.tables import Table
from ba_tui.features.figures.verdicts import VerdictSource
from ba_tui.features.figures.weighed.scope import Names
from ba_tui.features.figures.wording import tokens_of

Hit = tuple[int, int, int]
"""A cell: the number of its table, its column and its row."""
LEAST = 4
"""Letters of a word that tells one label from another; digits and the letters of other scripts do too."""
YEAR = 4
"""Digits of a year."""
MOST_ROWS = 200
"""Most rows that are compared with that of a figure: a word that more of them have says little."""
_FREE = listed("the a an of in on at to for and or by with from as per is was are be it its year years amount number")
_FOOTNOTE = regex(r"(?<=[a-z])\d$|\(\d\)")


@frozen
class Place:
    """The place of a figure, and the cell that the words around it name."""

    found: Hit
    named: Hit


class _Labels:
    """The words of the rows and columns of a table, and which rows have a word."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.rows = [
            _words(" ".join(labels), moment or moment_in(labels[0] if labels else ""))
            for labels, moment in zip(table.labels, table.moments, strict=True)
        ]
        self.columns = [_words(column.name, moment_in(column.name)) for column in table.columns]
        self.rows_with: defaultdict[str, list[int]] = defaultdict(list)
        for row, words in enumerate(self.rows):
            for word in words:
                self.rows_with[word].append(row)

    def rows_named(self, said: frozenset[str]) -> Iterable[int]:
        """Return the rows that have words of ``said``, without words that most of a long table have."""
        found = (self.rows_with[word] for word in said if word in self.rows_with)
        return dict.fromkeys(row for rows in found if len(rows) <= MOST_ROWS for row in rows)


class PlaceFinder:
    """Finds where a figure belongs by what is said around it."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._labels: dict[int, _Labels] = {}

    def misplaced(
        self, hits: Sequence[Hit], said: Names, others: Iterable[VerdictSource], shown: Callable[[float], bool]
    ) -> Place | None:
        """Return the place of a figure that belongs elsewhere; None when one of its cells may be meant.

        ``said`` is what the sentence says, ``others`` where other figures in it come from, whose words say nothing
        of this one, ``shown`` whether a value is another figure in it."""
        tables = (self.evidence.place(number).table for number, _, _ in hits)
        tabled = [hit for hit, table in zip(hits, tables, strict=True) if not (table.loose or table.lines)]
        words = _stems(said.words) | _periods(said.moments)
        texts = [text for source in others for text in (source.row, source.column)]
        spent = frozenset[str]().union(*(_words(text, moment_in(text)) for text in texts))
        rate = "per" in said.hints
        places = [self._elsewhere(hit, words, spent, shown, rate) for hit in tabled]
        return places[0] if places and all(places) else None

    def _elsewhere(
        self, hit: Hit, said: frozenset[str], spent: frozenset[str], shown: Callable[[float], bool], rate: bool
    ) -> Place | None:
        number, column, row = hit
        if number not in self._labels:
            self._labels[number] = _Labels(self.evidence.place(number).table)
        labels = self._labels[number]
        own = labels.rows[row]
        if not own:
            # A row without a name is the sum of those above it.
            return None
        values = [each.values for each in labels.table.columns]
        said -= spent - own - labels.columns[column]
        mine = (own | labels.columns[column]) & said
        best: tuple[int, int] = (0, 0)
        place = None
        for line in (row, *labels.rows_named(said)):
            if line != row and own <= said and not labels.rows[line] <= said:
                # The sentence has the whole name of the figure's own row, and only parts of the other.
                continue
            for at, head in enumerate(labels.columns):
                words = labels.rows[line] | head
                more = words & said
                if not (mine < more and any(map(_tells, more - mine))):
                    continue
                if rate and line == row and len(more - mine) == 1:
                    # "14.5 per plot": the word is the unit of a rate, and no column.
                    continue
                value, fit = values[at][line], (len(more), len(more) - len(words))
                if (
                    (place is None or fit > best)
                    and value == value
                    and abs(value) != abs(values[column][row])
                    and not shown(value)
                ):
                    best, place = fit, Place(hit, (number, at, line))
        return place


def _words(text: str, moment: str) -> frozenset[str]:
    return _stems(word for word, _, _ in tokens_of(_FOOTNOTE.sub(" ", text))) | _periods((moment,) if moment else ())


def _stems(words: Iterable[str]) -> frozenset[str]:
    """Years and words, in the singular, without those that name nothing."""
    return frozenset(
        _singular(word) for word in words if word not in _FREE and (not word.isdigit() or len(word) == YEAR)
    )


def _singular(word: str) -> str:
    if len(word) >= LEAST and word[-1] == "s" and word[-2] != "s":
        return f"{word[:-3]}y" if word.endswith("ies") else word[:-1]
    return word


def _periods(moments: Iterable[str]) -> frozenset[str]:
    """Dates with the months and years that they are in."""
    return frozenset(part for moment in moments for part in (moment, moment[:7], moment[:4]))


def _tells(word: str) -> bool:
    return len(word) >= LEAST or word.isdigit() or not word.isascii()
