"""Whether a figure that is in a result belongs to another row or column than its sentence says.

A label is named when its words are said. A figure is misplaced when the sentence names another row, or the date of
another column, and nothing of its own; when in doubt it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.moments import listed
from ba_tui.features.figures.observed.columns import moment_in
from ba_tui.features.figures.observed.evidence import Evidence
from ba_tui.features.figures.observed.tables import Table
from ba_tui.features.figures.weighed.scope import Names, is_said
from ba_tui.features.figures.wording import tokens_of

Hit = tuple[int, int, int]
"""A cell: the number of its table, its column and its row."""
MOST_OF = 0.6
"""The part of a long label's words that names it, when none of the other label's own words is said."""
_ASIDE = regex(r"\([^()]*\)")
LEAST = 4
"""Letters of a label of one word that can be named."""
_FREE = listed("the a an of in on at to for and or by with from as per total other others all net")
"""Words of a label that name nothing alone."""


@frozen
class Label:
    """What names a row or a column: its words, its date, and whether the words can name it alone."""

    words: frozenset[str]
    moment: str
    tells: bool


@frozen
class Place:
    """The place of a figure, and the cell that the words around it name."""

    found: Hit
    named: Hit


class PlaceFinder:
    """Finds where a figure belongs by what is said around it."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._labels: dict[int, tuple[Sequence[Label], Sequence[Label]]] = {}

    def misplaced(self, hits: Sequence[Hit], said: Names, shown: Callable[[float], bool]) -> Place | None:
        """Return the place of a figure that belongs elsewhere; None when one of its cells may be meant.

        ``said`` is what the sentence says, ``shown`` whether a value is another figure in it."""
        tabled = [hit for hit in hits if not self._is_prose(hit)]
        places = [self._elsewhere(hit, said, shown) for hit in tabled]
        return places[0] if places and all(places) else None

    def _is_prose(self, hit: Hit) -> bool:
        table = self.evidence.place(hit[0]).table
        return table.loose or table.lines

    def _elsewhere(self, hit: Hit, said: Names, shown: Callable[[float], bool]) -> Place | None:
        number, column, row = hit
        table = self.evidence.place(number).table
        rows, columns = self._axes(number, table)
        other_row = _other(rows, row, said)
        other_column = _other_date(columns, column, said)
        for at in other_column or ((column,) if other_row else ()):
            for line in other_row or (row,):
                value = table.columns[at].values[line]
                if value == value and not shown(value) and abs(value) != abs(table.columns[column].values[row]):
                    return Place(hit, (number, at, line))
        return None

    def _axes(self, number: int, table: Table) -> tuple[Sequence[Label], Sequence[Label]]:
        held = self._labels.get(number)
        if held is None:
            rows = [
                _label(labels[0] if labels else "", moment or moment_in(labels[0] if labels else ""))
                for labels, moment in zip(table.labels, table.moments, strict=True)
            ]
            columns = [_label(each.name, moment_in(each.name)) for each in table.columns]
            held = self._labels[number] = (rows, columns)
        return held


def _label(text: str, moment: str) -> Label:
    text = _ASIDE.sub("", text).strip()
    words = frozenset(word for word, _, _ in tokens_of(text) if not word.isdigit())
    telling = [word for word in words if word not in _FREE]
    tells = len(telling) > 1 or any(len(word) >= LEAST for word in telling) or (len(text) > 1 and text.isupper())
    return Label(words, moment, tells)


def _other(labels: Sequence[Label], at: int, said: Names) -> Sequence[int]:
    """Return the lines that the words name instead of line ``at``; none when they may mean that one."""
    mine = labels[at]
    if dated := _other_date(labels, at, said):
        return dated
    if not mine.words:
        # A row without a name is the sum of those above it.
        return ()
    unsummed = "total" in mine.words and not said.hints & {"sum", "share", "mean"}
    named: list[tuple[int, int]] = []
    for each, label in enumerate(labels):
        if each == at or not label.tells or (label.moment and not _dated(label.moment, said.moments)):
            continue
        own, others = mine.words - label.words, label.words - mine.words
        found = sum(_is_named(word, said.words) for word in label.words)
        new = sum(_is_named(word, said.words) for word in others)
        whole = found == len(label.words)
        if (
            new
            and (unsummed or not _part(own, said.words))
            and (whole or (found >= MOST_OF * len(label.words) and new > 1 and found > 2))
        ):
            named.append((found, each))
    most = max(named, default=(0, 0))[0]
    return [each for found, each in named if found == most]


def _other_date(labels: Sequence[Label], at: int, said: Names) -> Sequence[int]:
    """Return the lines whose date is said, when that of line ``at`` is not; those that differ in nothing else first."""
    mine = labels[at]
    if not mine.moment or _dated(mine.moment, said.moments):
        return ()
    dated = [each for each, label in enumerate(labels) if label.moment and _dated(label.moment, said.moments)]
    return [each for each in dated if labels[each].words == mine.words] or dated


def _is_named(word: str, said: frozenset[str]) -> bool:
    """Return whether a word is among others, in the singular or the plural: beginnings are not enough here."""
    return word in said or f"{word}s" in said or (word[-1:] == "s" and word[:-1] in said)


def _part(words: frozenset[str], said: frozenset[str]) -> float:
    return sum(is_said(word, said) for word in words) / len(words) if words else 0.0


def _dated(moment: str, said: frozenset[str]) -> bool:
    """Return whether a date is said: as it is, or as a day or part of the same year when one of both is only a year."""
    if moment in said:
        return True
    years = {each for each in said if len(each) == 4} if len(moment) != 4 else {each[:4] for each in said}
    return moment[:4] in years
