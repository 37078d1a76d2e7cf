"""A recipe spelled out: the cells that a figure comes from, and the arithmetic between them as text."""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.features.data.analysis.figures.answers.extract import Figure
from ba_tui.features.data.analysis.figures.observed.evidence import Evidence
from ba_tui.features.data.analysis.figures.observed.fields import SUMS
from ba_tui.features.data.analysis.figures.observed.series import Term
from ba_tui.features.data.analysis.figures.observed.tables import Table
from ba_tui.features.data.analysis.figures.verdicts import PERSON, Derivation, Source
from ba_tui.features.data.analysis.figures.weighed.weighing import Recipe

MOST_OPERANDS = 100
MOST_SHOWN = 12
"""Operands that a text names; longer lists say how many more there are."""
_NAMES = {"avg": "avg", "rows": "rows", "raised": "raised", "lowered": "lowered"}


class Explaining:
    """Spells out the recipes of one answer. ``figures`` and ``recipes`` are its figures and what was found for each."""

    def __init__(self, evidence: Evidence, figures: Sequence[Figure], recipes: Sequence[Recipe | None]) -> None:
        self.evidence = evidence
        self.figures = figures
        self.recipes = recipes

    def source(self, recipe: Recipe) -> Source:
        """The cell, or the number of the person's, that a figure repeats."""
        if recipe.kind == "said":
            return self._said(recipe.at[0])
        column, row = recipe.at
        return self._cell(recipe.table, column, row)

    def derivation(self, recipe: Recipe) -> Derivation:
        """The arithmetic behind a figure."""
        operands, parts = self._operands(recipe, 0)
        name = recipe.operation
        inner = ", ".join(parts[:MOST_SHOWN]) + (
            f", … {len(parts) - MOST_SHOWN} more" if len(parts) > MOST_SHOWN else ""
        )
        factor = "" if recipe.factor in {1.0, 100.0} else f" * {recipe.factor:.6g}"
        if recipe.kind == "count":
            call = self.evidence.place(recipe.table).table.call
            text = f"count({call}: {name})"
        elif len(parts) == 1 and name in {"sum", "mean", "avg"} and parts[0].startswith(("sum(", "avg(")):
            text = f"{parts[0]}{factor}"
        else:
            text = f"{name}({inner}){factor}"
        # Sums of money are not cut to six digits.
        value = f"{recipe.value:.6g}" if abs(recipe.value) < 1e5 else f"{round(recipe.value, 2):.15g}"
        return Derivation(name, tuple(operands), recipe.value, f"{text} = {value}")

    def _operands(self, recipe: Recipe, depth: int) -> tuple[list[Source], list[str]]:
        if recipe.kind == "column":
            return self._terms(recipe.table, recipe.at[0], recipe.at[1:])
        if recipe.kind == "record":
            return self._record(recipe)
        if recipe.kind == "given":
            column, term, *said = recipe.at
            sources, parts = self._terms(recipe.table, column, (term,))
            mine = [self._said(at) for at in said]
            return [*sources, *mine], [*parts, *map(_text, mine)]
        if recipe.kind == "shown":
            return self._shown(recipe, depth)
        return [], []

    def _terms(self, number: int, column: int, places: Sequence[int]) -> tuple[list[Source], list[str]]:
        series = self.evidence.series(number, column)
        sources: list[Source] = []
        parts: list[str] = []
        for place in places:
            term = series.terms[place]
            cells = [self._cell(number, column, row) for row in term.rows[:MOST_OPERANDS]]
            sources += cells
            parts.append(_text(cells[0]) if term.kind == "row" else _group(term, cells))
        return sources, parts

    def _record(self, recipe: Recipe) -> tuple[list[Source], list[str]]:
        row, x, y = recipe.at
        fields = self.evidence.fields(recipe.table)
        columns = [at for at in (x, y) if at >= 0] or fields.plain
        sources: list[Source] = []
        parts: list[str] = []
        for column in columns:
            if row == SUMS:
                cells = [self._cell(recipe.table, column, each) for each in fields.details[:MOST_OPERANDS]]
                parts.append(f"sum({self._call(recipe.table, column)} {fields.table.columns[column].name})")
            else:
                cells = [self._cell(recipe.table, column, row)]
                parts.append(_text(cells[0]))
            sources += cells
        if recipe.operation == "share" and y < 0:
            parts.append("the sum of the row" if row != SUMS else "the sum of all")
        return sources, parts

    def _shown(self, recipe: Recipe, depth: int) -> tuple[list[Source], list[str]]:
        sources: list[Source] = []
        parts: list[str] = []
        for number in recipe.at:
            inner = self.recipes[number]
            if inner is None or depth > 1:
                parts.append(self.figures[number].text)
            elif inner.kind == "earlier":
                before = self.evidence.verdicts[inner.at[0]]
                sources += before.derivation.operands if before.derivation else before.sources
                parts.append(self.figures[number].text)
            elif inner.kind in {"cell", "said"}:
                sources.append(self.source(inner))
                parts.append(_text(sources[-1]))
            else:
                found, texts = self._operands(inner, depth + 1)
                sources += found
                parts.append(f"{inner.operation}({', '.join(texts[:MOST_SHOWN])})")
        return sources, parts

    def _said(self, at: int) -> Source:
        given = self.evidence.said.figures[at]
        return Source(PERSON, given.start, given.end, float(given.value), turn=self.evidence.said.turns[at])

    def _call(self, number: int, column: int) -> str:
        table = self.evidence.place(number).table
        return table.call or table.columns[column].name

    def _cell(self, number: int, column: int, row: int) -> Source:
        place = self.evidence.place(number)
        table = place.table
        held = table.columns[column]
        start, end = held.span(row)
        # In the record of all single rows, the name of a column is the call that it comes from.
        name = held.name if table.call else ""
        call = self._call(number, column)
        turn = place.turn if call == PERSON else 0
        line = table.numbers[row] if table.numbers else -1
        return Source(call, start, end, held.values[row], name, _row_name(table, row), turn, line)


def _row_name(table: Table, row: int) -> str:
    return " / ".join((*([table.moments[row]] if table.moments[row] else []), *table.labels[row]))[:60]


def _text(source: Source) -> str:
    return f"{source.call}[{source.value:.15g}]"


def _group(term: Term, cells: Sequence[Source]) -> str:
    name = "avg" if term.kind == "mean" else "sum"
    listed = ", ".join(_text(cell) for cell in cells[:MOST_SHOWN])
    more = f", … {len(term.rows) - MOST_SHOWN} more" if len(term.rows) > MOST_SHOWN else ""
    return f"{name}({listed}{more})"
