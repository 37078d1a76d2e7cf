"""Runs the queries of the checks within a time that they share, and makes findings."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar

import duckdb

from ba_tui.core.ports.tables import Finding
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.processes.serving import RequestCancelled, WorkerRequest

SAMPLE_ROWS = 20_000


class OutOfTime(Exception):
    """The checks took as long as they may."""


class CheckFailed(Exception):
    """A query of a check is wrong."""


class Prober:
    """``seconds``: what all queries together may take."""

    strict: ClassVar[bool] = False
    """Whether a query that fails raises CheckFailed, as tests want it. People lose nothing by a check that fails."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, request: WorkerRequest, seconds: float) -> None:
        self.cursor = cursor
        self._request = request
        self._end = time.monotonic() + seconds

    @classmethod
    def forgiven(cls) -> tuple[type[Exception], ...]:
        """The errors of a check that must not cost its caller the result."""
        return () if cls.strict else (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query; none where it fails.

        Raises OutOfTime, RequestCancelled.
        """
        if self._request.cancelled.is_set():
            raise RequestCancelled
        left = self._end - time.monotonic()
        if left <= 0:
            raise OutOfTime
        timer = threading.Timer(left, self._stop)
        timer.daemon = True
        timer.start()
        try:
            return self.cursor.execute(sql).fetchall()
        except duckdb.InterruptException as error:
            if self._request.cancelled.is_set():
                raise RequestCancelled from error
            raise OutOfTime from error
        except duckdb.Error as error:
            if self.strict:
                raise CheckFailed(f"{error}\n{sql}") from error
            return []
        finally:
            timer.cancel()

    def one(self, sql: str) -> Sequence[Any]:
        """The first row; empty where there is none."""
        return next(iter(self.rows(sql)), ())

    def number(self, sql: str) -> float:
        """The first value; 0 where there is none."""
        row = self.one(sql)
        return float(row[0]) if row and row[0] is not None else 0.0

    def proved(self, finding: Finding) -> bool:
        """Whether the finding's proof returns something."""
        return bool(self.rows(f"SELECT * FROM ({finding.proof}) LIMIT 1"))

    def sample(self, table: str, rows: int) -> str:
        """Make a temporary table of some rows of a table, each with a number in ``~row``; return its name."""
        name = quoted(f"~sample of {table}")
        percent = max(0.001, 100 * SAMPLE_ROWS / max(rows, 1))
        source = (
            f'SELECT *, row_number() OVER () AS "~row" FROM {quoted(table)} USING SAMPLE {percent:.4f}% (system, 1)'
        )
        self.rows(f"CREATE OR REPLACE TEMP TABLE {name} AS {source}")
        return name

    def _stop(self) -> None:
        with suppress(duckdb.Error):
            self.cursor.interrupt()
