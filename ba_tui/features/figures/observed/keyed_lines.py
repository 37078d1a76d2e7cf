"""Grids of records that are printed as lines of a name and a value: psql's expanded rows, YAML, INI, ``Name: value``.

A record ends where a name comes again, at a line that only opens one (``[North]``, ``North:``, ``-[ RECORD 2 ]``), or
at an empty line. What opens a record is its label.
"""

from __future__ import annotations

from collections.abc import Sequence

from ba_tui.core.text.patterns import regex
from ba_tui.features.figures.observed.grids import BLANK, Grid, GridCell, Span, cell_at

_PAIR = regex(
    r"(?P<item>[ \t]*-[ \t]+)?[ \t]*(?P<key>[A-Za-z_\u00c0-\u9fff][\w .%/()-]{0,38}?)[ \t]*"
    r"(?P<mark>[:=|│])[ \t]+(?P<value>\S.*)$"
    r"|(?P<item2>[ \t]*-[ \t]+)?[ \t]*(?P<key2>[A-Za-z_][\w.%/-]{0,38})=(?P<value2>\S+)[ \t]*$"
)
_OPENING = regex(
    r"[ \t]*(?:-\[ RECORD \d+ \][-+]*|\[(?P<section>[^\]\n]{1,60})\]"
    r"|(?:-[ \t]+)?(?P<name>[\w\u00c0-\u9fff][\w .'/-]{0,58}):)[ \t]*$"
)
MOST = 20_000
"""Lines of one grid."""
LEAST = 2
"""Records that make a grid, and pairs that most of them have."""


def keyed_run(text: str, start: int) -> list[Span]:
    """Return the lines from ``start`` on that are pairs, open a record or are empty."""
    lines: list[Span] = []
    place = start
    while place < len(text) and len(lines) < MOST:
        stop = text.find("\n", place)
        end = stop if stop >= 0 else len(text)
        if text[place:end].strip() and not (_PAIR.match(text, place, end) or _OPENING.match(text, place, end)):
            break
        lines.append((place, end))
        place = end + 1
    while lines and not text[slice(*lines[-1])].strip():
        lines.pop()
    return lines


def records(text: str, lines: Sequence[Span]) -> Grid | None:
    """Return the grid of records; None when the lines are no such records, or only one."""
    expanded = any(text.startswith("-[ RECORD", start) for start, _ in lines[:3])
    found: list[dict[str, GridCell]] = []
    labels: list[GridCell] = []
    label: GridCell = BLANK
    fresh = True
    pairs = 0
    for start, end in lines:
        if not text[start:end].strip():
            fresh = True
            continue
        if opening := _OPENING.match(text, start, end):
            group = "section" if opening["section"] else "name"
            label = cell_at(text, *opening.span(group)) if opening[group] else BLANK
            fresh = True
            continue
        pair = _PAIR.match(text, start, end)
        if pair is None or (pair["mark"] in {"|", "│"} and not expanded):
            return None
        pairs += 1
        short = pair["key"] is None
        key = pair["key2" if short else "key"].strip()
        value = cell_at(text, *pair.span("value2" if short else "value"))
        if fresh or (pair["item2" if short else "item"] and found[-1]) or key in found[-1]:
            if not fresh and not pair["item2" if short else "item"]:
                label = BLANK
            found.append({})
            labels.append(label)
            fresh = False
        found[-1][key] = value
    if not found or pairs < 2 * LEAST:
        return None
    return _split_keys(found[0]) if len(found) == 1 else _grid(found, labels)


def _grid(found: Sequence[dict[str, GridCell]], labels: Sequence[GridCell]) -> Grid | None:
    keys = list(dict.fromkeys(key for record in found for key in record))
    shared = [key for key in keys if sum(key in record for record in found) * 2 > len(found)]
    if len(found) < LEAST or len(shared) < LEAST or len(shared) * 2 < len(keys):
        return None
    named = any(label[0] for label in labels)
    head = (*((BLANK,) if named else ()), *((key, 0, 0) for key in keys))
    rows = [
        (*((label,) if named else ()), *(record.get(key, BLANK) for key in keys))
        for label, record in zip(labels, found, strict=True)
    ]
    return Grid((head, *rows), 1)


def _split_keys(record: dict[str, GridCell]) -> Grid | None:
    """Return the grid of names with a dot, such as ``North.sales``: rows by the text before it, columns behind."""
    parts = [key.rpartition(".") for key in record]
    rows = list(dict.fromkeys(head for head, _, _ in parts))
    columns = list(dict.fromkeys(tail for _, _, tail in parts))
    if "" in rows or len(rows) < LEAST or len(columns) < LEAST or len(record) * 2 <= len(rows) * len(columns):
        return None
    cells = ([(row, 0, 0), *(record.get(f"{row}.{column}", BLANK) for column in columns)] for row in rows)
    return Grid(((BLANK, *((column, 0, 0) for column in columns)), *map(tuple, cells)), 1)
