"""Failures of the helper as one line and a hint: DuckDB's words in ours, and the nearest names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import duckdb

from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import one_line
from ba_tui.features.data.analysis.nearest import nearest_names
from ba_tui.processes.serving import HandlerFailed

LONGEST = 300
_TABLE = regex(r"Table(?: Function)? with name \"?([^\"\s!]+)\"? does not exist")
_COLUMN = regex(r'(?:Referenced column|Referenced table|column named|Column) "([^"]+)"')
_FUNCTION = regex(r"Function with name (\S+) does not exist")
_FILE = regex(r' in file "[^"]*"')
_PREFIX = regex(r"^(?:(?:[A-Za-z]+ ){0,4}[A-Za-z]*Error: ){1,2}")


def unreadable(message: str, hint: str = "") -> HandlerFailed:
    """A file that can't be read as data."""
    return HandlerFailed("data_unreadable", f"{one_line(message, LONGEST)}\n{hint}")


def refused(message: str, hint: str = "") -> HandlerFailed:
    """A statement that is not run."""
    return HandlerFailed("query_refused", f"{one_line(message, LONGEST)}\n{hint}")


def failed(message: str, hint: str = "", kind: str = "validation_error") -> HandlerFailed:
    """A query that is wrong, or exceeds a limit."""
    return HandlerFailed(f"query_failed:{kind}", f"{one_line(message, LONGEST)}\n{hint}")


def unknown_table(name: str, known: Iterable[str]) -> HandlerFailed:
    """No table has this name."""
    return HandlerFailed(
        "unknown_table", f"There is no table {one_line(name, 80)}.\n{nearest_names(name, known, 'Tables')}"
    )


def said(error: Exception) -> str:
    """DuckDB's first sentence, without the class of the error and the position."""
    first = str(error).strip().split("\n", 1)[0]
    return _FILE.sub("", _PREFIX.sub("", first))


def of_query(error: duckdb.Error, tables: Sequence[str], columns: Sequence[str]) -> HandlerFailed:
    """What a failed query says, with the nearest of ``tables`` and ``columns``."""
    text = str(error)
    if isinstance(error, duckdb.OutOfMemoryException):
        what = "disk space for intermediate data" if "max_temp_directory_size" in text else "memory"
        hint = "Aggregate or filter earlier, or raise analysis.memory_gb or analysis.disk_gb."
        return failed(f"The query needs more {what} than it may use.", hint, "resource_error")
    if disk_full(error):
        return failed("The disk is full.", "Free some space, then run it again.", "resource_error")
    if isinstance(error, duckdb.PermissionException):
        return refused("The query reads a file that is not registered, or the network.", "Mention the file first.")
    if found := _TABLE.search(text):
        hint = f"{nearest_names(found[1], tables, 'Tables')} A file is named in quotes: FROM 'data/sales.csv'."
        return failed(f"There is no table {found[1]}.", hint)
    if found := _COLUMN.search(text):
        return failed(f"There is no column {found[1]} here.", nearest_names(found[1], columns, "Columns"))
    if found := _FUNCTION.search(text):
        return failed(f"DuckDB has no function {found[1]}.", _guess(text))
    return failed(said(error), _position(text))


def disk_full(error: duckdb.Error) -> bool:
    """Whether a file could not be written for lack of space."""
    return "No space left on device" in str(error)


def _guess(text: str) -> str:
    _, found, rest = text.partition("Did you mean ")
    return one_line(f"Did you mean {rest.splitlines()[0]}", 120) if found else ""


def _position(text: str) -> str:
    """The line of the query that DuckDB shows."""
    line = next((line for line in text.splitlines() if line.startswith("LINE ")), "")
    return one_line(line, 160) if line else ""
