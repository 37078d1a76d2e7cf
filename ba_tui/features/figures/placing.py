"""Whether a figure that is in a result belongs to another row or column than its sentence says.

Of a sentence only those words and dates count that labels of the figure's table have too. A figure is misplaced when
the labels of another cell have all of them that its own labels have, and more. When in doubt it is not. In the same way
a sentence names the values that a count is of, such as "two years above 500".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import takewhile

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.extract import Figure
from ba_tui.features.figures.moments import listed
from ba_tui.features.figures.observed.columns import moment_in
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.observed.tables import Table
from ba_tui.features.figures.units import PERCENT
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


class TableLabels:
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

    @cached_property
    def headings(self) -> dict[str, list[int]]:
        """The rows below each heading, without sums."""
        found: defaultdict[str, list[int]] = defaultdict(list)
        for row, texts in enumerate(self.table.labels):
            if row not in self.table.totals:
                for heading in texts[1:]:
                    found[heading].append(row)
        return found

    def rows_named(self, said: frozenset[str]) -> Iterable[int]:
        """Return the rows that have words of ``said``, without words that most of a long table have."""
        found = (self.rows_with[word] for word in said if word in self.rows_with)
        return dict.fromkeys(row for rows in found if len(rows) <= MOST_ROWS for row in rows)


class PlaceFinder:
    """Finds where a figure belongs by what is said around it."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._labels: dict[int, TableLabels] = {}
        self.compared = 0
        """Values that were compared with limits so far."""

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

    def labels(self, number: int) -> TableLabels:
        """Return the words of the rows and columns of a table."""
        if number not in self._labels:
            self._labels[number] = TableLabels(self.evidence.place(number).table)
        return self._labels[number]

    def _elsewhere(
        self, hit: Hit, said: frozenset[str], spent: frozenset[str], shown: Callable[[float], bool], rate: bool
    ) -> Place | None:
        number, column, row = hit
        labels = self.labels(number)
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


# How many values meet a condition that the sentence states: "in 3 of the years sales exceeded 200,000".

ABOVE = listed(
    "above over exceed exceeds exceeded exceeding greater larger higher least reach reached reaches passed pass über "
    "mehr größer höher erreicht erreichten übersteigt dessus más encima more 高 超 达 上 以上"
)
BELOW = listed(
    "below under less fewer lower smaller fail failed missed unter weniger kleiner niedriger dessous moins menos "
    "debajo 低 不 下 以下"
)
NOT = listed("not never neither nor nicht nie kein keine pas jamais no nunca")
_TIMES = listed("year quarter month week day period jahr jahre quartal monat monate année mois trimestre año mese")
CLOSE = 3
"""Words between a comparison and its limit."""
MOST_COMPARED = 1_000_000
"""Most values that are compared with limits for one answer, which takes about 0.2 s."""
FAR = 3.0
"""By how much a limit in the right scale is above or below all values at most."""


def side_of(text: str) -> int:
    """Return 1 when a text right before a number means "above", -1 for "below", 0 for neither."""
    words = {word for word, _, _ in tokens_of(text)[-CLOSE:]}
    return 0 if words & NOT else bool(words & ABOVE) - bool(words & BELOW)


@frozen
class ConditionCount:
    """How many of ``all`` values of a table meet a condition: ``counts``, with and without the limit itself."""

    table: int
    condition: str
    counts: frozenset[int]
    all: int


def condition_counts(places: PlaceFinder, said: Names, side: int, limit: Figure) -> Sequence[ConditionCount]:
    """Return the counts that a sentence may mean; none when it does not name the values clearly.

    ``side`` is 1 for values above the limit, -1 for those below."""
    limits = {float(limit.value), float(limit.value) / 10**limit.scale}
    words = _stems(said.words) | _periods(said.moments)
    times = not _TIMES.isdisjoint(map(_singular, said.words))
    best, found = (1, -MOST_ROWS), list[ConditionCount]()
    for number, place in enumerate(places.evidence.places):
        if place.table.loose or place.table.lines or places.compared > MOST_COMPARED:
            continue
        places.compared += place.table.rows * len(place.table.columns)
        scales = {value / scale for value in limits for scale in (1.0, place.table.scale)}
        for fit, values in _lines(places.labels(number), words, times=times, percent=limit.unit is PERCENT):
            known = [value for value in values if value == value]
            # What the values are in may be said outside of the table.
            near = _near(scales, known) or _near({value / 1e3 for value in scales}, known)
            if len(values) < 2 or not near or fit < best:
                continue
            best, found = fit, found if fit == best else []
            counts = {
                sum((value - edge) * side > 0 or (equal and value == edge) for value in known)
                for edge in near
                for equal in (False, True)
            }
            condition = f"{'above' if side > 0 else 'below'} {near[0]:g}"
            found.append(ConditionCount(number, condition, frozenset(counts), len(known)))
    return found


def _near(edges: Iterable[float], values: Sequence[float]) -> list[float]:
    return [edge for edge in edges if values and min(values) / FAR <= edge <= FAR * max(values)]


def _lines(
    labels: TableLabels, said: frozenset[str], *, times: bool, percent: bool
) -> Iterable[tuple[tuple[int, int], Sequence[float]]]:
    """Yield lines of values with how well a sentence names them: rows where it counts ``times``, and columns, also
    within a heading that it says, unless they have dates."""
    table = labels.table
    columns = [at for at, each in enumerate(table.columns) if not (each.time or each.key)]
    columns = [at for at in columns if (table.columns[at].unit is PERCENT) is percent] or columns
    heads = {at: frozenset(word for word in labels.columns[at] if not word[0].isdigit()) for at in columns}
    if times and columns:
        most = max(len(heads[at] & said) for at in columns)
        meant = [at for at in columns if len(heads[at] & said) == most]
        for row in labels.rows_named(said):
            yield _fit(labels.rows[row] | heads[meant[0]], said), [table.columns[at].values[row] for at in meant]
        if sum(heads[at] != labels.columns[at] for at in columns) > 1:
            return
    for heading, rows in {"": [row for row in range(table.rows) if row not in table.totals], **labels.headings}.items():
        words = _words(heading, "")
        if words <= said and len(rows) > 1:
            for at in columns:
                yield _fit(labels.columns[at] | words, said), [table.columns[at].values[row] for row in rows]


def heading_counts(labels: TableLabels, said: Names) -> Iterable[int]:
    """Yield how many names are below each heading that a sentence says: all of them, and those before the first sum."""
    words = _stems(said.words) | _periods(said.moments)
    table = labels.table
    for heading, rows in labels.headings.items():
        if (named := _words(heading, "")) and named <= words:
            yield len({table.labels[row][0] for row in rows})
            yield len(list(takewhile(lambda row: row + 1 not in table.totals, rows))) + 1


def _fit(words: frozenset[str], said: frozenset[str]) -> tuple[int, int]:
    more = len(words & said)
    return more, more - len(words)
