"""A column as something to reckon with: its values in order, its sum and mean, the sums of groups of rows.

Which of them a sentence speaks of is judged in derive.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.core.values import frozen
from ba_tui.features.figures.observed.tables import Table
from ba_tui.features.figures.wording import tokens_of

LEADING = (2, 3, 4, 5, 10)
"""How many first rows an answer may take together."""
MOST_GROUPS = 60


@frozen
class Term:
    """A row's value, or one worked out of several rows: ``kind`` is ``row``, ``sum``, ``mean``, ``group`` or ``first``.
    ``name`` is what the rows of a group share."""

    value: float
    rows: tuple[int, ...]
    kind: str = "row"
    name: str = ""


def _telling(labels: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    """Labels without those that all rows share."""
    width = min((len(row) for row in labels), default=0)
    kept = [at for at in range(width) if len({row[at] for row in labels}) > 1]
    return labels if len(kept) == width else tuple(tuple(row[at] for at in kept) for row in labels)


class Series:
    """The numbers of one column without totals and gaps. ``terms`` begins with its rows."""

    def __init__(self, table: Table, at: int, named: Mapping[str, tuple[int, ...]]) -> None:
        column = table.columns[at]
        self.column = column
        self.scale = table.scale
        values = column.values
        self.rows = [row for row, value in enumerate(values) if value == value and row not in table.totals]
        held = [values[row] for row in self.rows]
        self.count = len(held)
        self.total = sum(held)
        self.mean = self.total / self.count if held else 0.0
        self.terms = [Term(value, (row,)) for value, row in zip(held, self.rows, strict=True)]
        self.terms += [
            Term(values[row], (row,), "row", "total") for row in sorted(table.totals) if values[row] == values[row]
        ]
        self.plain = len(self.terms)
        everything = tuple(self.rows)
        if self.count > 1:
            self.terms += [Term(self.total, everything, "sum"), Term(self.mean, everything, "mean")]
            self._groups(values, named)
        self.low, self.high = min(held, default=0.0), max(held, default=0.0)
        ranked = sorted(held, reverse=True)
        self.ranked = set(ranked[:2])
        self.sorted = held == ranked or held == ranked[::-1]
        order = sorted((term.value, place) for place, term in enumerate(self.terms))
        self._values = [value for value, _ in order]
        self._places = [place for _, place in order]
        moments = [table.moments[row] for row in self.rows]
        self.timed = bool(moments) and all(moments) and len(set(moments)) == len(moments)
        self.position = {row: place for place, row in enumerate(self.rows)}
        self.marked = self._marked(held)
        self.moments = table.moments
        self.labels = _telling(table.labels)
        self.groups = sum(term.kind == "group" for term in self.terms)

    def _marked(self, held: list[float]) -> tuple[int, ...]:
        """The first and last two rows, the largest and the smallest: what comes to mind in a long column."""
        if not held:
            return ()
        ends = (0, 1, self.count - 2, self.count - 1)
        found = (*(at for at in ends if 0 <= at < self.count), held.index(self.high), held.index(self.low))
        return tuple(dict.fromkeys((*found, *range(self.count, self.plain))))

    def _groups(self, values: Sequence[float], named: Mapping[str, tuple[int, ...]]) -> None:
        inside = set(self.rows)
        seen: set[tuple[int, ...]] = set()
        for name, rows in named.items():
            if len(rows) < 2:
                continue
            kept = tuple(row for row in rows if row in inside)
            if 1 < len(kept) < self.count and kept not in seen:
                seen.add(kept)
                self.terms.append(Term(sum(values[row] for row in kept), kept, "group", name))
            if len(seen) >= MOST_GROUPS:
                break
        half, odd = divmod(self.count, 2)
        if half > 1 and not odd:
            for name, kept in (("first", self.rows[:half]), ("second", self.rows[half:])):
                self.terms.append(Term(sum(values[row] for row in kept), tuple(kept), "half", name))
        for count in LEADING:
            if count < self.count:
                kept = tuple(self.rows[:count])
                self.terms.append(Term(sum(values[row] for row in kept), kept, "first", str(count)))

    def between(self, low: float, high: float) -> list[int]:
        """The terms whose values lie in a range, by their place in ``terms``."""
        if low > high:
            low, high = high, low
        first = bisect_left(self._values, low)
        return self._places[first : bisect_right(self._values, high, first)]


# What an answer may call a row: by its labels and by its date, brought to one form for comparison.

LONGEST = 80
"""Characters of a label that is looked for in answers."""
MOST_WORDS = 8
_PARTS = regex(r"\s*[/|;]\s*|\s+-\s+")
_HALVES = {
    **dict.fromkeys(("Q1", "Q2", "01", "02", "03", "04", "05", "06"), "H1"),
    **dict.fromkeys(("Q3", "Q4", "07", "08", "09", "10", "11", "12"), "H2"),
}


def key_of(name: str) -> str:
    """A name without case and without marks."""
    return " ".join(word for word, _, _ in tokens_of(name))


def aliases(label: str) -> list[str]:
    """What an answer may call a row: its label, a file without its folder, the parts of a compound label."""
    if len(label) > LONGEST:
        return []
    found = [label]
    if "/" in label and " " not in label:
        found += [part for part in reversed(label.split("/")) if part]
    else:
        pieces = _PARTS.split(label)
        found += [piece for piece in pieces if len(piece) > 2] if len(pieces) > 1 else []
    stem, dot, ending = label.rpartition(".")
    if dot and stem and 2 <= len(ending) <= 8 and ending.isalpha():
        found.append(ending)
    words = label.split()
    if 1 < len(words) <= 4 and len(words[-1]) > 3 and words[-1].isalpha() and words[-1][0].isupper():
        found.append(words[-1])
    return found


def searched(label: str) -> Iterable[tuple[tuple[str, ...], str]]:
    """The names of a label that answers are searched for: their words and their keys. Small single letters are none."""
    for name in aliases(label):
        words = tuple(word for word, _, _ in tokens_of(name))
        letter = len(words) == 1 and len(words[0]) == 1 and words[0].isascii()
        if words and len(words) <= MOST_WORDS and not (letter and not label.isupper()):
            yield words, key_of(name)


def by_label(labels: Sequence[Sequence[str]]) -> Mapping[str, tuple[int, ...]]:
    """The rows of a table by the keys of their names."""
    found: dict[str, list[int]] = {}
    for row, held in enumerate(labels):
        for key in dict.fromkeys(key_of(name) for label in held for name in aliases(label)):
            found.setdefault(key, []).append(row)
    return {key: tuple(rows) for key, rows in found.items()}


def by_date(moments: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
    """The rows of a table by what an answer may say for their dates: a day also by its month, its half, its year."""
    found: dict[str, list[int]] = {}
    for row, moment in enumerate(moments):
        for form in _forms(moment):
            found.setdefault(form, []).append(row)
    return {key: tuple(rows) for key, rows in found.items()}


def _forms(moment: str) -> Iterable[str]:
    year, _, rest = ("", "", moment[2:]) if moment.startswith("--") else moment.partition("-")
    forms = [moment]
    if rest:
        forms += [year, f"--{rest}"]
        month, _, day = rest.partition("-")
        if half := _HALVES.get(month):
            forms += [f"{year}-{half}", f"--{half}"]
        if day:
            forms += [f"{year}-{month}", f"--{month}"]
    return (form for form in dict.fromkeys(forms) if form)


# A table by rows: what two of its columns give in each row, and the sums of columns.
#
# Which of them a sentence speaks of is judged in records.

MOST_ROWS = 200
SUMS = -1
"""The row of the sums of all rows."""


class Fields:
    """A table by rows: what two columns give in each of them, worked out when it is first asked for."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.plain = [at for at, column in enumerate(table.columns) if not column.time and not column.key]
        self.alike = self._are_alike()
        self.details = [row for row in range(min(table.rows, MOST_ROWS)) if row not in table.totals]
        self._made: dict[tuple[str, int, int], tuple[list[float], list[tuple[float, int]]]] = {}
        self._sums: dict[int, float] = {}

    def _are_alike(self) -> bool:
        """Whether all columns may measure the same, so that a row can be added up: by unit and size."""
        columns = [self.table.columns[at] for at in self.plain]
        if len(columns) < 2 or len({column.unit for column in columns}) > 1:
            return False
        largest = [max((abs(value) for value in column.values if value == value), default=0.0) for column in columns]
        return max(largest) < 1000 * (min(largest) or 1.0)

    def value(self, at: int, row: int) -> float:
        """The value of a column in a row, or the sum of its rows that are no totals."""
        values = self.table.columns[at].values
        if row != SUMS:
            return values[row]
        if at not in self._sums:
            self._sums[at] = sum(values[row] for row in self.details if values[row] == values[row])
        return self._sums[at]

    def comparable(self, x: int, y: int) -> bool:
        """Whether two columns may measure the same, such as plan and actual: by unit and size."""
        if self.table.columns[x].unit != self.table.columns[y].unit:
            return False
        a, b = abs(self.value(x, SUMS)), abs(self.value(y, SUMS))
        return 0.3 < a / b < 3.3 if b else False

    def between(self, form: str, x: int, y: int, low: float, high: float) -> list[tuple[float, int]]:
        """What the columns ``x`` and ``y`` give within a range, with the rows: ``ratio``, ``diff``, ``sum`` or
        ``product``."""
        key = (form, x, y)
        held = self._made.get(key)
        if held is None:
            found = sorted(self._work_out(form, x, y))
            held = self._made[key] = [value for value, _ in found], found
        values, found = held
        first = bisect_left(values, low)
        return found[first : bisect_right(values, high, first)]

    def _work_out(self, form: str, x: int, y: int) -> list[tuple[float, int]]:
        found: list[tuple[float, int]] = []
        products = 0.0
        rows = range(min(self.table.rows, MOST_ROWS))
        for row in rows if self.table.rows == 1 else (*rows, SUMS):
            a, b = self.value(x, row), self.value(y, row)
            if a != a or b != b or (form == "ratio" and not b):
                continue
            if form == "product":
                products += a * b if row != SUMS and row not in self.table.totals else 0.0
                found.append((products if row == SUMS else a * b, row))
            else:
                found.append((a / b if form == "ratio" else a - b if form == "diff" else a + b, row))
        return found

    def weighted(self, x: int, y: int) -> float:
        """The mean of column ``x`` weighted by column ``y``; NaN when there is none."""
        whole = self.value(y, SUMS)
        a, b = self.table.columns[x].values, self.table.columns[y].values
        return sum(a[row] * b[row] for row in self.details) / whole if whole else whole
