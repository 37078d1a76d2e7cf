"""Registers files as tables: finds what they are, loads them, converts text columns, names, profiles and keeps them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import duckdb

from ba_tui.core.ports.tables import FILES, Conversion, Dataset, DatasetProfile
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.cells import columns_of
from ba_tui.features.data.analysis.engine_process.conversions import Converted, TextColumn, conversion_of
from ba_tui.features.data.analysis.engine_process.database import WORK, Database, quoted
from ba_tui.features.data.analysis.engine_process.failures import unreadable
from ba_tui.features.data.analysis.engine_process.fingerprints import Fingerprinting
from ba_tui.features.data.analysis.engine_process.formats import FoundFormat, found_format
from ba_tui.features.data.analysis.engine_process.profiling import approximate, profiles_of
from ba_tui.features.data.analysis.engine_process.store import Store, StoredDataset
from ba_tui.features.data.analysis.engine_process.text_files import (
    LOADING,
    Loaded,
    TextSource,
    load_csv,
    load_json,
    parquet_reader,
    view_parquet,
)
from ba_tui.features.data.analysis.engine_process.traps.datasets import findings_of_dataset
from ba_tui.processes.serving import RequestCancelled, WorkerRequest

CONVERTED = '"~converted"'
SAMPLE_ROWS, TAIL_ROWS = 5_000, 1_000
MOST_TEXT = 500
"""Text columns that are looked at for numbers and dates."""
LONGEST_NAME = 60
MOST_EMPTY = 5
"""Empty files of a pattern that are named."""
_NOT_NAME = regex(r"[^\w]+")
_MAGIC = regex(r"[*?\[]")
_RESULT = regex(r"r\d+")


@frozen
class AskedFiles:
    """``source`` as it was given, and its files. ``name``: what their table is called, if not by them."""

    source: str
    paths: Sequence[Path]
    name: str = ""


@frozen
class _Filled:
    """What filled LOADING: ``reading`` as in ``Dataset``."""

    loaded: Loaded
    conversions: tuple[Conversion, ...] = ()
    reading: str = ""


class Datasets:
    """``changed`` is called with the name of a table whose rows have changed."""

    def __init__(self, database: Database, store: Store, changed: Callable[[str], None]) -> None:
        self._database = database
        self._store = store
        self._changed = changed

    def register(self, request: WorkerRequest, asked: AskedFiles, part: str) -> list[Dataset]:
        """Return the datasets of the files. What is registered and did not change is not read again."""
        paths = asked.paths
        found = _one_format(paths)
        known = [each for each in self._store.datasets if _same(each, paths, part)]
        if known and all(_unchanged(each) for each in known):
            return [each.dataset for each in known]
        parts = _parts(found, paths, part)
        return [self._load(request, asked, (found, each)).dataset for each in parts]

    def refreshed(self, request: WorkerRequest, names: Sequence[str]) -> list[str]:
        """Read datasets again whose files changed. Return a sentence for each that was, or whose file is gone."""
        notes: list[str] = []
        for name in names:
            stored = self._store.dataset(name)
            if stored is None or _unchanged(stored):
                continue
            paths = [Path(path) for path in stored.paths]
            if gone := next((path for path in paths if not path.exists()), None):
                if stored.dataset.format == "parquet":
                    raise unreadable(f"{gone.name} is gone, which {name} reads.", "Restore the file.")
                notes.append(f"{gone.name} is gone; {name} is the copy that ba read before.")
                continue
            asked = AskedFiles(stored.dataset.source, paths)
            self._load(request, asked, (_one_format(paths), stored.dataset.part))
            notes.append(f"{name} was read again because its file changed.")
        return notes

    def profile(self, request: WorkerRequest, stored: StoredDataset) -> DatasetProfile:
        """Return the statistics, which are worked out at the first request."""
        if stored.profile:
            return stored.profile
        with self._database.loading(request, self._store.standing()) as cursor:
            return self._profiled(cursor, request, stored)

    def _load(self, request: WorkerRequest, asked: AskedFiles, what: tuple[FoundFormat, str]) -> StoredDataset:
        source, paths = asked.source, asked.paths
        found, part = what
        known = next(
            (each for each in self._store.datasets if _same(each, paths, part) and each.dataset.part == part), None
        )
        name = known.dataset.name if known else asked.name or self._name(source, paths, part)
        number = known.number if known else max((each.number for each in self._store.datasets), default=0) + 1
        reading = self._store.standing() | {str(path) for path in paths}
        scratch = self._database.folder / WORK
        doing = f"reading {paths[0].name if len(paths) == 1 else source}"
        with (
            self._database.loading(request, reading, doing) as cursor,
            Fingerprinting(request, paths) as prints,
        ):
            try:
                filled = self._filled(cursor, request, (found, part), paths)
                loaded = filled.loaded
                notes = (*loaded.notes, *_empty_note(paths))
                dataset = Dataset(
                    name, source, part, found.format, 0, (), prints.result(), loaded.encoding, loaded.delimiter,
                    loaded.rows_skipped, loaded.bad_rows, filled.conversions, notes, time.time(), filled.reading,
                    _day_first(cursor, loaded, filled.conversions),
                )  # fmt: skip
                stored = self._keep(cursor, StoredDataset(number, tuple(map(str, paths)), dataset))
            finally:
                _clear(cursor, scratch)
            self._database.report_no_more(cursor)
            self._profiled(cursor, request, stored)
        self._changed(name)
        return self._store.dataset(name) or stored

    def _filled(
        self,
        cursor: duckdb.DuckDBPyConnection,
        request: WorkerRequest,
        what: tuple[FoundFormat, str],
        paths: Sequence[Path],
    ) -> _Filled:
        """Fill LOADING; a Parquet file is not copied."""
        found, part = what
        if found.format == "parquet":
            return _Filled(Loaded("parquet"), (), f"FROM {parquet_reader(FILES, len(paths))}")

        def scratch(name: str) -> Path:
            return self._database.folder / WORK / name

        if found.format in {"csv", "json"}:
            text = TextSource(tuple(_with_content(paths)), found, scratch, lambda: self._database.widen(cursor))
            loaded = load_csv(cursor, text) if found.format == "csv" else load_json(cursor, text)
        else:
            from ba_tui.features.data.analysis.engine_process.row_files import (  # noqa: PLC0415 - most data is text
                RowSource,
                load_arrow,
                load_sheet,
                load_sqlite,
            )

            if found.format == "arrow":
                return _Filled(load_arrow(cursor, paths[0]))

            def tick(rows: int) -> None:
                _check(request)
                request.progress({"doing": f"reading {part or paths[0].name}, {count(rows, 'row')}", "share": None})

            rows = RowSource(paths[0], scratch, tick)
            loaded = load_sheet(cursor, rows, part) if found.format == "excel" else load_sqlite(cursor, rows, part)
        _check(request)
        selected, conversions = _converted(cursor, plain=loaded.plain)
        return _Filled(loaded, conversions, f"SELECT {selected} FROM {loaded.reader}" if loaded.reader else "")

    def _keep(self, cursor: duckdb.DuckDBPyConnection, stored: StoredDataset) -> StoredDataset:
        """Rename LOADING and store its description, in one transaction."""
        dataset = stored.dataset
        name = quoted(dataset.name)
        cursor.execute("BEGIN")
        try:
            if dataset.format == "parquet":
                view_parquet(cursor, dataset.name, _with_content([Path(path) for path in stored.paths]))
            else:
                _drop(cursor, dataset.name)
                cursor.execute(f"ALTER TABLE {LOADING} RENAME TO {name}")
            row = cursor.execute(f"SELECT count(*) FROM {name}").fetchone()
            rows = int(row[0]) if row else 0
            kept = replace(stored, dataset=replace(dataset, rows=rows, columns=columns_of(cursor, name)))
            self._store.write_dataset(cursor, kept)
            cursor.execute("COMMIT")
        except BaseException:
            cursor.execute("ROLLBACK")
            raise
        self._store.noted(kept)
        return kept

    def _profiled(
        self, cursor: duckdb.DuckDBPyConnection, request: WorkerRequest, stored: StoredDataset
    ) -> DatasetProfile:
        started = time.monotonic()
        dataset = stored.dataset

        def tick(share: float) -> None:
            _check(request)
            request.progress({"doing": f"profiling {dataset.name}", "share": round(share, 3)})

        try:
            columns = profiles_of(cursor, quoted(dataset.name), dataset.rows, tick)
        except duckdb.OutOfMemoryException:
            self._database.widen(cursor)
            columns = profiles_of(cursor, quoted(dataset.name), dataset.rows, tick)
        seconds = time.monotonic() - started
        findings, notes = findings_of_dataset(cursor, request, dataset, seconds)
        rough = approximate(dataset.rows, len(columns))
        profile = DatasetProfile(dataset, columns, rough, round(time.monotonic() - started, 3), findings, notes)
        kept = replace(stored, profile=profile)
        cursor.execute("BEGIN")
        self._store.write_dataset(cursor, kept)
        cursor.execute("COMMIT")
        self._store.noted(kept)
        return profile

    def _name(self, source: str, paths: Sequence[Path], part: str) -> str:
        """A name of the file's own that no table has: letters, digits and underscores."""
        path = paths[0]
        stem = path.name if len(paths) == 1 else _MAGIC.split(Path(source).name)[0] or path.parent.name
        while (short := Path(stem).stem) != stem:
            stem = short
        base = _as_name(stem) or _as_name(path.parent.name) or "data"
        several = part and _as_name(part).lower() != base.lower()
        base = f"{base}_{_as_name(part)}" if several else base
        taken = self._store.names()
        name, number = base, 2
        while name.lower() in taken:
            name, number = f"{base}_{number}", number + 1
        return name


def _day_first(cursor: duckdb.DuckDBPyConnection, loaded: Loaded, conversions: Sequence[Conversion]) -> tuple[str, ...]:
    """The date columns of LOADING that were text with the day or month first."""
    if not loaded.date_format or loaded.date_format.startswith("%Y"):
        return ()
    columns = columns_of(cursor, LOADING) if loaded.format != "parquet" else ()
    made = {each.column for each in conversions}
    return tuple(column.name for column in columns if column.kind == "date" and column.name not in made)


def _as_name(text: str) -> str:
    name = _NOT_NAME.sub("_", text).strip("_").lower()[:LONGEST_NAME]
    return f"t_{name}" if name[:1].isdigit() or _RESULT.fullmatch(name) else name


def _drop(cursor: duckdb.DuckDBPyConnection, name: str) -> None:
    row = cursor.execute(
        "SELECT count(*) FROM duckdb_views() WHERE schema_name = 'main' AND view_name = ?", [name]
    ).fetchone()
    cursor.execute(f"DROP {'VIEW' if row and row[0] else 'TABLE'} IF EXISTS {quoted(name)}")


def _clear(cursor: duckdb.DuckDBPyConnection, scratch: Path) -> None:
    for path in scratch.iterdir():
        path.unlink(missing_ok=True)
    for table in (LOADING, CONVERTED):
        cursor.execute(f"DROP TABLE IF EXISTS {table}")


def _check(request: WorkerRequest) -> None:
    if request.cancelled.is_set():
        raise RequestCancelled


def _one_format(paths: Sequence[Path]) -> FoundFormat:
    paths = _with_content(paths)
    found = [found_format(path) for path in paths]
    other = next((path for path, each in zip(paths, found, strict=True) if each.format != found[0].format), None)
    if other:
        raise unreadable(f"{paths[0].name} and {other.name} are of different formats.", "Name files of one format.")
    if len(paths) > 1 and found[0].format in {"excel", "sqlite", "arrow"}:
        raise unreadable(f"Several {found[0].format} files can't be one table.", "Mention them one by one.")
    return found[0]


def _with_content(paths: Sequence[Path]) -> Sequence[Path]:
    """The files of several that are not empty; all of them where none has content."""
    return [path for path in paths if path.exists() and path.stat().st_size] or paths


def _empty_note(paths: Sequence[Path]) -> tuple[str, ...]:
    empty = [path.name for path in paths if path not in _with_content(paths)]
    return (f"{count(len(empty), 'empty file')} left out: {', '.join(empty[:MOST_EMPTY])}",) if empty else ()


def _parts(found: FoundFormat, paths: Sequence[Path], part: str) -> list[str]:
    """The sheets or tables to read; one without a name for other files."""
    if found.format not in {"excel", "sqlite"}:
        if part:
            raise unreadable(f"{paths[0].name} has no sheets or tables to choose from.")
        return [""]
    from ba_tui.features.data.analysis.engine_process.row_files import parts_of_sqlite, parts_of_workbook  # noqa: PLC0415

    workbook = found.format == "excel"
    names = parts_of_workbook(paths[0]) if workbook else parts_of_sqlite(paths[0])
    what = "sheet" if workbook else "table"
    if not names:
        raise unreadable(f"{paths[0].name} has no {what} with rows.")
    if not part:
        return names
    found_part = next((name for name in names if name.lower() == part.lower()), None)
    if found_part is None:
        raise unreadable(f"{paths[0].name} has no {what} {part}.", f"It has {', '.join(names[:20])}.")
    return [found_part]


def _same(stored: StoredDataset, paths: Sequence[Path], part: str) -> bool:
    return stored.paths == tuple(map(str, paths)) and (not part or stored.dataset.part.lower() == part.lower())


def _unchanged(stored: StoredDataset) -> bool:
    for each in stored.dataset.files:
        try:
            now = Path(each.path).stat()
        except OSError:
            return False
        if (now.st_size, now.st_mtime_ns) != (each.size, each.mtime_ns):
            return False
    return True


def _converted(cursor: duckdb.DuckDBPyConnection, *, plain: bool) -> tuple[str, tuple[Conversion, ...]]:
    """Turn text columns of LOADING that are numbers or dates into such. Returns the list of columns in SQL, too."""
    columns = columns_of(cursor, LOADING)
    texts = [column for column in columns if column.type == "VARCHAR"][:MOST_TEXT]
    if not texts:
        return "*", ()
    names = ", ".join(quoted(column.name) for column in texts)
    rows = cursor.execute(f"SELECT {names} FROM {LOADING} LIMIT {SAMPLE_ROWS}").fetchall()
    rows += cursor.execute(
        f"SELECT {names} FROM {LOADING} WHERE rowid >= (SELECT count(*) FROM {LOADING}) - {TAIL_ROWS}"
    ).fetchall()
    made: dict[str, Converted] = {}
    for place, column in enumerate(texts):
        sample = [row[place] for row in rows if row[place] is not None]
        if found := conversion_of(TextColumn(cursor, LOADING, column.name, plain), sample):
            made[column.name] = found
    if not made:
        return "*", ()
    taken = {column.name.lower() for column in columns}
    parts: list[str] = []
    conversions: list[Conversion] = []
    for column in columns:
        name = quoted(column.name)
        if found := made.get(column.name):
            parts.append(f"{found.expression} AS {name}")
            conversion = found.conversion
            if conversion.failed or conversion.doubtful:
                raw = next(each for each in _raw_names(column.name) if each.lower() not in taken)
                taken.add(raw.lower())
                parts.append(f"{name} AS {quoted(raw)}")
                conversion = replace(conversion, raw=raw)
            conversions.append(conversion)
        else:
            parts.append(name)
    selected = ", ".join(parts)
    cursor.execute(f"CREATE OR REPLACE TABLE {CONVERTED} AS SELECT {selected} FROM {LOADING}")
    cursor.execute(f"DROP TABLE {LOADING}")
    cursor.execute(f"ALTER TABLE {CONVERTED} RENAME TO {LOADING}")
    return selected, tuple(conversions)


def _raw_names(name: str) -> Iterator[str]:
    yield f"{name}_raw"
    number = 2
    while True:
        yield f"{name}_raw_{number}"
        number += 1
