"""What a call asked for, as far as it names what came back: names in quotation marks, the columns of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ba_tui.core.text.patterns import regex
from ba_tui.features.data.analysis.figures.observed.columns import words_of
from ba_tui.features.data.analysis.figures.observed.names import key_of
from ba_tui.features.data.analysis.figures.observed.tables import Table
from ba_tui.features.data.analysis.figures.words.units import unit_of_words

LONGEST = 4_000
"""Characters of an input that are read."""
_QUOTED = regex(r"'([^'\n%]{2,40})'|\"([^\"\n%]{2,40})\"")
_SELECT = regex(r"(?is)select\s+(?:distinct\s+)?(.*?)\sfrom\s")
_ALIAS = regex(r"(?i)(?:\bas\s+)?\"?([A-Za-z_]\w*)\"?\s*$")


def topic_of(asked: str) -> frozenset[str]:
    """The names that may tell a result from others: what stands in quotation marks."""
    found = (match[1] or match[2] for match in _QUOTED.finditer(asked[:LONGEST]))
    return frozenset(key for key in map(key_of, found) if key)


def selected(asked: str) -> Sequence[str]:
    """The column names of a query's select list; empty when there is none."""
    found = _SELECT.search(asked[:LONGEST])
    if not found:
        return ()
    names: list[str] = []
    depth, begin, text = 0, 0, found[1] + ","
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            alias = _ALIAS.search(text[begin:at].strip())
            names.append(alias[1] if alias else "")
            begin = at + 1
    return names


def named(table: Table, names: Sequence[str]) -> Table:
    """``table`` with the names of a query's columns where it has none of its own."""
    if len(names) < 2 or any(column.name for column in table.columns):
        return table
    labels = max((len(labels) for labels in table.labels), default=0)
    dated = any(table.moments) and not any(column.time for column in table.columns)
    own = names[labels + dated :]
    if len(own) != len(table.columns):
        return table
    columns = (
        replace(column, name=name, words=words_of(name), unit=column.unit or unit_of_words(words_of(name)))
        for name, column in zip(own, table.columns, strict=True)
    )
    return replace(table, columns=tuple(columns))
