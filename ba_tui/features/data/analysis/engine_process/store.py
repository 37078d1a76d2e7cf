"""The catalogue in the database: datasets with profiles in a table, results with provenance as comments on their
tables, both as JSON. Also fingerprints of files."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import duckdb

from ba_tui.core.ports.tables import (
    Column,
    Dataset,
    DatasetProfile,
    Fingerprint,
    Provenance,
    QueryResult,
    Row,
    TrapFinding,
)
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import listed, quoted, rows_of, text, unreadable
from ba_tui.features.data.analysis.errors import decoded, encoded
from ba_tui.processes.serving import RequestCancelled, WorkerRequest

SCHEMA = "ba"
_TABLES = (
    f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}",
    f"CREATE TABLE IF NOT EXISTS {SCHEMA}.datasets "
    "(number INTEGER, name VARCHAR, paths JSON, value JSON, profile JSON)",
)


@frozen
class StoredDataset:
    """A stored dataset. ``paths`` are its files as the caller wrote them; ``number`` is its position in the order."""

    number: int
    paths: tuple[str, ...]
    dataset: Dataset
    profile: DatasetProfile | None = None


@frozen
class StoredResult:
    """A stored result. ``columns`` and ``rows`` do not change; the first rows are read at each request."""

    number: int
    columns: tuple[Column, ...]
    rows: int
    provenance: Provenance
    notes: tuple[str, ...] = ()
    findings: tuple[TrapFinding, ...] = ()

    @property
    def handle(self) -> str:
        return f"R{self.number}"


class DataStore:
    """The catalogue in memory, written through to the database. Thread-safe."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection) -> None:
        for statement in _TABLES:
            cursor.execute(statement)
        self._lock = threading.Lock()
        self._reserved: set[int] = set()
        self._heads: dict[tuple[str, int], tuple[Row, ...]] = {}
        rows = cursor.execute(f"SELECT number, paths, value, profile FROM {SCHEMA}.datasets ORDER BY number").fetchall()
        kept = [
            StoredDataset(
                number,
                tuple(json.loads(paths)),
                decoded(Dataset, json.loads(value)),
                decoded(DatasetProfile, json.loads(profile)) if profile else None,
            )
            for number, paths, value, profile in rows
        ]
        self._datasets = {each.dataset.name: each for each in kept}
        found = cursor.execute("SELECT comment FROM duckdb_tables() WHERE comment IS NOT NULL").fetchall()
        results: list[StoredResult] = [decoded(StoredResult, json.loads(comment)) for (comment,) in found]
        self._results = {each.handle: each for each in sorted(results, key=lambda each: each.number)}

    @property
    def datasets(self) -> tuple[StoredDataset, ...]:
        return tuple(self._datasets.values())

    @property
    def results(self) -> tuple[StoredResult, ...]:
        return tuple(self._results.values())

    def names(self) -> Mapping[str, str]:
        """All tables by lower-case name."""
        return {name.lower(): name for name in (*self._datasets, *self._results)}

    def dataset(self, name: str) -> StoredDataset | None:
        return self._datasets.get(self.names().get(name.lower(), ""))

    def result(self, name: str) -> StoredResult | None:
        return self._results.get(self.names().get(name.lower(), ""))

    def columns(self, name: str) -> tuple[Column, ...]:
        stored = self.dataset(name)
        if stored:
            return stored.dataset.columns
        result = self.result(name)
        return result.columns if result else ()

    def column_names(self, name: str) -> list[str]:
        return [column.name for column in self.columns(name)]

    def rows(self, name: str) -> int:
        """Return the number of rows of a table; 0 for an unknown one."""
        stored, result = self.dataset(name), self.result(name)
        return stored.dataset.rows if stored else result.rows if result else 0

    def findings(self, name: str) -> tuple[TrapFinding, ...]:
        """Return the findings in the rows of a dataset with a profile."""
        stored = self.dataset(name)
        return stored.profile.findings if stored and stored.profile else ()

    def standing(self) -> frozenset[str]:
        """Return the files that queries read in place."""
        return frozenset(path for each in self.datasets if each.dataset.format == "parquet" for path in each.paths)

    @contextmanager
    def handle(self) -> Generator[int]:
        """Reserve the number of the next result."""
        with self._lock:
            taken = {*self._reserved, *(each.number for each in self._results.values())}
            number = max(taken, default=0) + 1
            self._reserved.add(number)
        try:
            yield number
        finally:
            with self._lock:
                self._reserved.discard(number)

    def write_dataset(self, cursor: duckdb.DuckDBPyConnection, stored: StoredDataset) -> None:
        """Write within the transaction of ``cursor``; call ``noted`` after the commit."""
        cursor.execute(f"DELETE FROM {SCHEMA}.datasets WHERE name = ?", [stored.dataset.name])
        profile = json.dumps(encoded(stored.profile)) if stored.profile else None
        cursor.execute(
            f"INSERT INTO {SCHEMA}.datasets VALUES (?, ?, ?, ?, ?)",
            [
                stored.number,
                stored.dataset.name,
                json.dumps(stored.paths),
                json.dumps(encoded(stored.dataset)),
                profile,
            ],
        )

    def noted(self, stored: StoredDataset) -> None:
        self._datasets[stored.dataset.name] = stored

    def write_result(self, cursor: duckdb.DuckDBPyConnection, stored: StoredResult) -> None:
        """Write within the transaction of ``cursor``; call ``kept`` after the commit. A comment costs less than a row
        in another table."""
        cursor.execute(f"COMMENT ON TABLE {quoted(stored.handle)} IS {text(json.dumps(encoded(stored)))}")

    def kept(self, stored: StoredResult) -> None:
        self._results[stored.handle] = stored

    def shown(self, cursor: duckdb.DuckDBPyConnection, stored: StoredResult, head: int) -> QueryResult:
        """Return the result with its first rows, which are read once."""
        key = (stored.handle, head)
        if key not in self._heads:
            query = f"SELECT {listed(stored.columns)} FROM {quoted(stored.handle)} LIMIT {head}"
            self._heads[key] = rows_of(cursor.execute(query).fetchall())
        rows = self._heads[key]
        return QueryResult(
            stored.handle, stored.columns, stored.rows, rows, stored.provenance, stored.notes, stored.findings
        )


# Fingerprints of files: size, time and hash. Large files are hashed while they are loaded.

PIECE = 4_000_000


class FingerprintThread:
    """Hashes ``paths`` in a thread that ends with the ``with`` block."""

    def __init__(self, request: WorkerRequest, paths: Sequence[Path]) -> None:
        self._request = request
        self._paths = paths
        self._stopped = threading.Event()
        self._made: list[Fingerprint] = []
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True, name="fingerprints")

    def __enter__(self) -> FingerprintThread:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._stopped.set()
        self._thread.join()

    def result(self) -> tuple[Fingerprint, ...]:
        """Wait, and return one fingerprint for each path. Raises HandlerFailed for an unreadable file."""
        self._thread.join()
        if self._failure:
            raise self._failure
        return tuple(self._made)

    def _run(self) -> None:
        try:
            for path in self._paths:
                self._made.append(self._fingerprint(path))
        except OSError as error:
            self._failure = unreadable(f"{Path(error.filename or '').name} can't be read: {error.strerror}.")
        except RequestCancelled as error:
            self._failure = error

    def _fingerprint(self, path: Path) -> Fingerprint:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            # Before the content, so that a concurrent write is detected later.
            state = path.stat()
            while data := file.read(PIECE):
                if self._stopped.is_set() or self._request.cancelled.is_set():
                    raise RequestCancelled
                digest.update(data)
        return Fingerprint(str(path), state.st_size, state.st_mtime_ns, digest.hexdigest())
