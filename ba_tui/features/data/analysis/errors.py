"""What can go wrong with data and queries.

AnalysisError
├── DataRefused      the file may not be read, or is not data
├── DataUnreadable   the file is broken, locked, empty or of an unknown format
├── QueryRefused     the statement does more than read; ``statement`` says what it is
├── QueryFailed      the query is wrong, or needs more time, rows or memory than it may use
├── UnknownTable     no dataset or result has this name
├── SourceFailed     a source can't be reached, or its driver is missing
└── EngineFailed     the helper process could not start, or ended in the middle of a request
"""

from __future__ import annotations

from ba_tui.core.errors import BaError
from ba_tui.core.ports.tables import Statement


class AnalysisError(BaError):
    """Root of these errors. ``str(error)`` is one line for people and models; ``hint`` says what to do."""

    kind = "execution_error"


class DataRefused(AnalysisError):
    kind = "permission_denied"


class DataUnreadable(AnalysisError):
    kind = "validation_error"


class QueryRefused(AnalysisError):
    kind = "permission_denied"

    def __init__(self, message: str, hint: str = "", statement: Statement | None = None) -> None:
        super().__init__(message, hint)
        self.statement = statement


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
