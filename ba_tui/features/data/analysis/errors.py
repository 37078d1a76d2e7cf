"""Errors of data and queries.

AnalysisError
├── DataRefused      the file may not be read, or is not data
├── DataUnreadable   the file is broken, locked, empty or of an unknown format
├── QueryRefused     the statement does more than read
├── QueryFailed      the query is wrong, or exceeds a limit of time, rows or memory
├── UnknownTable     no dataset or result has this name
├── SourceFailed     a source can't be reached, or its driver is missing
└── EngineFailed     the helper process could not start, or ended during a request
"""

from __future__ import annotations

from collections.abc import Iterable

from ba_tui.core.errors import BaError
from ba_tui.core.text.wording import similar


class AnalysisError(BaError):
    """Base class. ``str(error)`` is one line for users and models; ``hint`` is what to do."""

    kind = "execution_error"


class DataRefused(AnalysisError):
    kind = "permission_denied"


class DataUnreadable(AnalysisError):
    kind = "validation_error"


class QueryRefused(AnalysisError):
    kind = "permission_denied"


class QueryFailed(AnalysisError):
    """``kind`` is ``validation_error`` for wrong SQL, ``timeout`` or ``resource_error`` for a limit."""

    def __init__(self, message: str, hint: str = "", kind: str = "validation_error") -> None:
        super().__init__(message, hint)
        self.kind = kind


class UnknownTable(AnalysisError):
    kind = "not_found"


class SourceFailed(AnalysisError):
    kind = "dependency_error"


class EngineFailed(AnalysisError):
    kind = "execution_error"


MOST_NAMES = 12


def nearest_names(name: str, known: Iterable[str], label: str) -> str:
    """Return a hint with the names most similar to ``name``, else the first names. ``label``: "Tables", "Columns"."""
    names = list(dict.fromkeys(known))
    folded = {each.lower(): each for each in names}
    close = [folded[each] for each in similar(name.lower(), folded)]
    close += [each for each in names if name.lower() in each.lower() and each not in close]
    if close:
        return f"Did you mean {' or '.join(close[:3])}?"
    if not names:
        return f"No {label.lower()} are known yet."
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return f"{label}: {', '.join(names[:MOST_NAMES])}{more}."
