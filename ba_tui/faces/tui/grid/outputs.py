"""Whether what a tool printed is a table: CSV or JSON lines."""

from __future__ import annotations

import csv
import json
from itertools import islice

from ba_tui.core.ports.datasets import OutputFormat

LOOK = 8_000
"""Characters in which a text shows what it is."""
LINES = 10
SEPARATORS = ",\t;|"


def output_format(text: str) -> OutputFormat | None:
    """The format of a text whose first lines have the same columns; None for any other text."""
    whole = len(text) <= LOOK
    lines = [line for line in text[:LOOK].splitlines()[: None if whole else -1] if line.strip()][:LINES]
    if len(lines) < 2:
        return None
    if lines[0].lstrip().startswith("{"):
        return "jsonl" if all(map(_is_object, lines)) else None
    return "csv" if any(_is_csv(lines, separator) for separator in SEPARATORS) else None


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _is_csv(lines: list[str], separator: str) -> bool:
    """Whether each line has the same fields, at least two, and the first names all of them, each once."""
    try:
        rows = list(islice(csv.reader(lines, delimiter=separator, strict=True), LINES))
    except csv.Error:
        return False
    head = [name.strip() for name in rows[0]]
    return len(head) > 1 and all(head) and len(set(head)) == len(head) and {len(row) for row in rows} == {len(head)}
