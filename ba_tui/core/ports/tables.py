"""What the data engine returns: datasets, profiles, results and pages, as frozen values. Nothing here does any work."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ba_tui.core.values import frozen

Cell: TypeAlias = bool | int | float | str | None
"""One value. Decimals, dates, times and nested values are text in DuckDB's notation; ``Column.kind`` tells which.
Text longer than ``MAX_CELL_CHARS`` ends in "…"."""
Row: TypeAlias = tuple[Cell, ...]
MAX_CELL_CHARS = 10_000

ColumnKind: TypeAlias = Literal["integer", "decimal", "float", "text", "boolean", "date", "timestamp", "time", "other"]
DataFormat: TypeAlias = Literal["csv", "json", "parquet", "excel", "sqlite", "arrow", "source"]
Personal: TypeAlias = Literal["", "mail", "phone", "name", "iban"]
FILES = "$files"
"""Stands for a list of files in ``Dataset.reading``."""
PYTHON = "python"
"""``Provenance.source`` of tables that Python code made."""
Role: TypeAlias = Literal["", "key", "date"]
Share: TypeAlias = Literal["schema", "aggregates", "sample"]

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
    """A column of a table; ``type`` is DuckDB's name for it, such as ``BIGINT`` or ``DECIMAL(18,2)``."""

    name: str
    type: str

    @property
    def kind(self) -> ColumnKind:
        """The family of the type."""
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
    """A file as it was when it was read. ``path`` is absolute, ``size`` in bytes, ``sha256`` of its content in hex."""

    path: str
    size: int
    mtime_ns: int
    sha256: str


@frozen
class Conversion:
    """What was done to a text column: ``what`` in words, such as "decimal comma" or "currency €, thousands separators".

    ``failed``: values that did not fit, with some ``examples``. They are NULL in the column; ``raw`` names the column
    that keeps the text as it was, empty when every value fitted without doubt. ``doubtful``: one of them may mean
    something else, as an amount in another currency.
    """

    column: str
    what: str
    failed: int = 0
    examples: tuple[str, ...] = ()
    raw: str = ""
    doubtful: bool = False


@frozen
class BadRow:
    """A line of a text file that is not in the table, and why. ``line`` counts from 1; 0 when unknown."""

    line: int
    reason: str
    text: str = ""


@frozen
class Finding:
    """A trap that makes numbers wrong. ``trap``: its kind, as ``join_multiplies``; ``message``: one line for people;
    ``proof``: a query that shows it. ``column``: the column, or several joined with ", "; ``part``: the piece of the
    query, word for word. ``muted``: the person does not want to be told of this kind in this dataset."""

    trap: str
    dataset: str
    message: str
    proof: str
    column: str = ""
    part: str = ""
    muted: bool = False


@frozen
class Dataset:
    """A file, some files, or a sheet or table of one (``part``) as the table ``name``.

    ``source`` is the path or glob as it was given. ``rows`` is -1 where nobody counted them, as in a source.
    ``rows_skipped`` counts the bad rows, of which ``bad_rows`` shows some. ``notes`` are sentences about how it was
    read. ``loaded``: seconds since the epoch. ``reading`` is the query with which DuckDB alone reads the files the same
    way, with ``FILES`` in place of their list; empty where ba had to prepare them first, as an Excel sheet or a text in
    an old encoding. ``day_first``: its date columns whose text had day or month
    first.
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
    """Statistics of one column. ``distinct`` is exact for small tables, else within a few percent. ``quartiles``
    (25, 50, 75 %) come from a sample in large tables, and are empty for columns without an order that matters.

    ``role``: ``key`` when each value appears once and none is NULL, ``date`` for dates that rows can be grouped by.
    ``personal``: what kind of personal data the column seems to hold.
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
    """``approximate``: distinct counts and quartiles are estimates. ``seconds``: how long it took. ``findings``: traps
    in the data; ``notes``: sentences about checks that were left out."""

    dataset: Dataset
    columns: tuple[ColumnProfile, ...]
    approximate: bool = False
    seconds: float = 0.0
    findings: tuple[Finding, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def told(self) -> tuple[Finding, ...]:
        """The findings that are not muted."""
        return tuple(each for each in self.findings if not each.muted)


@frozen
class UsedData:
    """A dataset that a query read: its name, source, and the files as they were. ``called``: other names that the
    query has for it, as a path in quotes."""

    name: str
    source: str
    files: tuple[Fingerprint, ...]
    called: tuple[str, ...] = ()


@frozen
class Provenance:
    """Where a result comes from. ``results`` are earlier results that it read; ``started`` is in seconds since the
    epoch; ``engine`` names the program and its version; ``source`` another engine that ran the query, if one did."""

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
    """The table ``handle`` (R1, R2, …) with its first rows. ``notes``: what a reader must know, as a changed file;
    ``findings``: traps that the query met."""

    handle: str
    columns: tuple[Column, ...]
    rows: int
    head: tuple[Row, ...]
    provenance: Provenance
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def told(self) -> tuple[Finding, ...]:
        """The findings that are not muted."""
        return tuple(each for each in self.findings if not each.muted)


@frozen
class RowOrder:
    column: str
    descending: bool = False


@frozen
class RowFilter:
    """Rows whose ``column`` compares so with ``value``. ``contains`` ignores case; both NULL tests ignore ``value``."""

    column: str
    operator: Literal["=", "!=", "<", "<=", ">", ">=", "contains", "is null", "is not null"]
    value: Cell = None


@frozen
class Arrangement:
    """Which rows of a table, in which order. ``search``: rows with this text in any column, ignoring case."""

    order: tuple[RowOrder, ...] = ()
    filters: tuple[RowFilter, ...] = ()
    search: str = ""


@frozen
class Page:
    """``rows`` from ``offset`` on, out of the ``total`` that match. ``numbers``: their places in the table itself,
    counted from 0, which name a row whatever the order."""

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    numbers: tuple[int, ...]
    offset: int
    total: int


@frozen
class FoundRows:
    """``count`` rows of a table have a value of the range ``range`` (its place in the request) in ``column``, and
    ``around`` have one within a quarter of it. ``numbers`` and ``rows`` are these rows, empty when they are many."""

    range: int
    column: str
    count: int
    around: int
    numbers: tuple[int, ...] = ()
    rows: tuple[Row, ...] = ()


@frozen
class Catalogue:
    """What a session has: its datasets, the oldest first, and its results, R1 first. ``findings``: traps in the data of
    the datasets."""

    datasets: tuple[Dataset, ...] = ()
    results: tuple[QueryResult, ...] = ()
    findings: tuple[Finding, ...] = ()

    def findings_of(self, name: str) -> tuple[Finding, ...]:
        """The traps of a dataset or result, also those that are muted."""
        result = next((each for each in self.results if each.handle == name), None)
        return result.findings if result else tuple(each for each in self.findings if each.dataset == name)


StatementKind: TypeAlias = Literal["read", "explain", "other"]


@frozen
class Statement:
    """One statement of a text. ``kind``: ``other`` is never run; ``why`` says what it would do, such as "COPY writes
    files", and ``instead`` what to do in its place. ``tables`` are names it reads; ``files`` are paths it names, which
    must be registered first."""

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
