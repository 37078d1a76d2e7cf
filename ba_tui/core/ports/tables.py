"""Values of the data engine: datasets, profiles, results and pages, and the kinds of traps."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ba_tui.core.values import frozen

Cell: TypeAlias = bool | int | float | str | None
"""A value of a table. Decimals, dates, times and nested values are text in DuckDB's notation, see ``Column.kind``. Text
longer than ``MAX_CELL_CHARS`` ends in "…"."""
Row: TypeAlias = tuple[Cell, ...]
MAX_CELL_CHARS = 10_000

ColumnKind: TypeAlias = Literal["integer", "decimal", "float", "text", "boolean", "date", "timestamp", "time", "other"]
DataFormat: TypeAlias = Literal["csv", "json", "parquet", "excel", "sqlite", "arrow", "source"]
Personal: TypeAlias = Literal["", "mail", "phone", "name", "iban"]
FILES = "$files"
"""Placeholder for the list of files in ``Dataset.reading``."""
PYTHON = "python"
"""``Provenance.source`` of tables made by Python code."""
Role: TypeAlias = Literal["", "key", "date"]

_KINDS: dict[str, ColumnKind] = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), "integer"),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), "integer"),
    **dict.fromkeys(("FLOAT", "DOUBLE"), "float"),
    **dict.fromkeys(("VARCHAR", "JSON", "UUID"), "text"),
    **dict.fromkeys(("TIME", "TIME WITH TIME ZONE", "INTERVAL"), "time"),
    "BOOLEAN": "boolean",
    "DATE": "date",
}


@frozen
class Column:
    """A column of a table; ``type`` is DuckDB's type name, such as ``BIGINT`` or ``DECIMAL(18,2)``."""

    name: str
    type: str

    @property
    def kind(self) -> ColumnKind:
        """Return the family of the type."""
        if self.type in _KINDS:
            return _KINDS[self.type]
        if self.type.startswith("TIMESTAMP"):
            return "timestamp"
        if self.type.startswith("ENUM"):
            return "text"
        return "decimal" if self.type.startswith("DECIMAL") and not self.type.endswith("]") else "other"

    @property
    def numeric(self) -> bool:
        return self.kind in {"integer", "decimal", "float"}


@frozen
class Fingerprint:
    """State of a file when it was read. ``path`` is absolute, ``size`` in bytes, ``sha256`` of its content in hex."""

    path: str
    size: int
    mtime_ns: int
    sha256: str


@frozen
class Conversion:
    """Conversion of a text column: ``what`` in words, such as "decimal comma" or "currency €, thousands separators".

    ``failed``: values that did not fit and are NULL in the column, with some ``examples``. ``raw`` names the column
    with the original text, empty if every value fitted without doubt. ``doubtful``: a value may mean something else,
    such as an amount in another currency.
    """

    column: str
    what: str
    failed: int = 0
    examples: tuple[str, ...] = ()
    raw: str = ""
    doubtful: bool = False


@frozen
class BadRow:
    """A line of a text file that is not in the table, and why. ``line`` is 1-based; 0 if unknown."""

    line: int
    reason: str
    text: str = ""


@frozen
class TrapFinding:
    """A trap: something that makes numbers wrong. ``trap`` is its kind, such as ``join_multiplies``, ``message`` one
    line for people, ``proof`` a query that shows it. ``column``: the column, or several joined with ", ". ``part``: the
    verbatim part of the query. ``muted``: the user muted this kind for this dataset."""

    trap: str
    dataset: str
    message: str
    proof: str
    column: str = ""
    part: str = ""
    muted: bool = False


@frozen
class Dataset:
    """One or more files, or a sheet or table of one (``part``), as the table ``name``.

    ``source`` is the path or glob as given. ``rows`` is -1 if unknown, as in a source. ``rows_skipped`` counts the bad
    rows, of which ``bad_rows`` has some. ``notes`` are sentences about how it was read. ``loaded``: seconds since the
    epoch.

    ``reading`` is the query with which DuckDB alone reads the files the same way, with ``FILES`` instead of their list;
    empty if ba had to prepare the files, such as an Excel sheet or text in an old encoding. ``day_first``: date columns
    converted from text with an ambiguous order of day and month.
    """

    name: str
    source: str
    part: str
    format: DataFormat
    rows: int
    columns: tuple[Column, ...]
    files: tuple[Fingerprint, ...]
    encoding: str = ""
    delimiter: str = ""
    rows_skipped: int = 0
    bad_rows: tuple[BadRow, ...] = ()
    conversions: tuple[Conversion, ...] = ()
    notes: tuple[str, ...] = ()
    loaded: float = 0.0
    reading: str = ""
    day_first: tuple[str, ...] = ()


@frozen
class TopValue:
    value: Cell
    count: int


@frozen
class ColumnProfile:
    """Statistics of a column. ``distinct`` is exact for small tables, otherwise within a few percent. ``quartiles``
    (25, 50, 75 %) come from a sample in large tables, and are empty for columns without a meaningful order.

    ``role``: ``key`` if values are unique and never NULL, ``date`` for dates suitable for grouping. ``personal``: the
    kind of personal data that the column seems to contain.
    """

    column: Column
    nulls: int
    distinct: int
    minimum: Cell = None
    maximum: Cell = None
    mean: Cell = None
    quartiles: tuple[Cell, ...] = ()
    top: tuple[TopValue, ...] = ()
    sample: tuple[Cell, ...] = ()
    role: Role = ""
    personal: Personal = ""


@frozen
class DatasetProfile:
    """Profile of a dataset. ``approximate``: distinct counts and quartiles are estimates. ``seconds``: duration.
    ``findings``: traps in the data; ``notes``: sentences about skipped checks."""

    dataset: Dataset
    columns: tuple[ColumnProfile, ...]
    approximate: bool = False
    seconds: float = 0.0
    findings: tuple[TrapFinding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def told(self) -> tuple[TrapFinding, ...]:
        """Return the findings that are not muted."""
        return tuple(each for each in self.findings if not each.muted)


@frozen
class UsedData:
    """A dataset that a query read: name, source, and the state of its files. ``called``: other names for it in the
    query, such as a path in quotes."""

    name: str
    source: str
    files: tuple[Fingerprint, ...]
    called: tuple[str, ...] = ()


@frozen
class Provenance:
    """Origin of a result. ``results`` are earlier results that it read; ``started`` is in seconds since the epoch;
    ``engine`` names the program and its version; ``source`` the external engine that ran the query, if any."""

    sql: str
    datasets: tuple[UsedData, ...] = ()
    results: tuple[str, ...] = ()
    started: float = 0.0
    seconds: float = 0.0
    rows: int = 0
    engine: str = ""
    source: str = ""


@frozen
class QueryResult:
    """The table ``handle`` (R1, R2, …) with its first rows. ``notes``: caveats for the reader, such as a changed file;
    ``findings``: traps in the query."""

    handle: str
    columns: tuple[Column, ...]
    rows: int
    head: tuple[Row, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    findings: tuple[TrapFinding, ...] = ()

    @property
    def told(self) -> tuple[TrapFinding, ...]:
        """Return the findings that are not muted."""
        return tuple(each for each in self.findings if not each.muted)


@frozen
class RowOrder:
    column: str
    descending: bool = False


@frozen
class RowFilter:
    """A condition on ``column``. ``contains`` ignores case; both NULL tests ignore ``value``."""

    column: str
    operator: Literal["=", "!=", "<", "<=", ">", ">=", "contains", "is null", "is not null"]
    value: Cell = None


@frozen
class Arrangement:
    """A selection and order of rows. ``search``: rows with this text in any column, ignoring case."""

    order: tuple[RowOrder, ...] = ()
    filters: tuple[RowFilter, ...] = ()
    search: str = ""


@frozen
class Page:
    """``rows`` from ``offset`` on, of ``total`` matches. ``numbers``: their 0-based positions in the table, independent
    of the order."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    numbers: tuple[int, ...]
    offset: int
    total: int


@frozen
class FoundRows:
    """The ``count`` rows with a value within ``range`` (its index in the request) in ``column``; ``around`` counts
    those within a quarter of it. ``numbers`` and ``rows`` are these rows, empty if there are many."""

    range: int
    column: str
    count: int
    around: int
    numbers: tuple[int, ...] = ()
    rows: tuple[Row, ...] = ()


@frozen
class Catalogue:
    """The datasets of a session, oldest first, and its results from R1 on. ``findings``: traps in the datasets."""

    datasets: tuple[Dataset, ...] = ()
    results: tuple[QueryResult, ...] = ()
    findings: tuple[TrapFinding, ...] = ()

    def findings_of(self, name: str) -> tuple[TrapFinding, ...]:
        """Return the traps of a dataset or result, including muted ones."""
        result = next((each for each in self.results if each.handle == name), None)
        return result.findings if result else tuple(each for each in self.findings if each.dataset == name)


StatementKind: TypeAlias = Literal["read", "explain", "other"]


@frozen
class Statement:
    """A statement of a text. ``other`` is never run: ``why`` says what it would do, such as "COPY writes files",
    ``instead`` what to do instead. ``tables`` are names that it reads; ``files`` are paths in it, which must be
    registered first."""

    sql: str
    kind: StatementKind
    why: str = ""
    tables: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    instead: str = ""


@frozen
class Progress:
    """How far a request is: ``doing`` in words; ``share`` from 0 to 1, None when unknown."""

    doing: str
    share: float | None = None
