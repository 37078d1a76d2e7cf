"""What a thorough look finds beside the traps: missing and far values, repeated rows, references that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import duckdb

from ba_tui.core.ports.tables import Column, Dataset, DatasetProfile, Finding
from ba_tui.core.text.wording import count
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.features.data.analysis.engine_process.traps.keys import KEYS
from ba_tui.features.data.analysis.engine_process.traps.probing import OutOfTime, Prober
from ba_tui.features.data.analysis.engine_process.traps.wording import stems, words
from ba_tui.processes.serving import WorkerRequest

SECONDS = 60.0
MANY_MISSING = 0.05
FAR = 3.0
"""Spans between the quartiles beyond which a value is far."""
MOST_COLUMNS = 200


def quality_findings(
    cursor: duckdb.DuckDBPyConnection, request: WorkerRequest, profile: DatasetProfile, others: Sequence[Dataset]
) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
    """Return what is wrong with a dataset beside its traps, and a sentence where the time did not suffice. ``others``:
    all datasets, to which its columns may refer."""
    probe = Prober(cursor, request, SECONDS)
    found = list(_missing(profile))
    try:
        for check in (
            _far(profile, probe),
            _repeated_rows(profile.dataset, probe),
            _lost(profile.dataset, others, probe),
        ):
            with suppress(LookupError, TypeError, ValueError, ArithmeticError):
                found += check
    except OutOfTime:
        return tuple(found), (f"The checks of {profile.dataset.name} ended after {SECONDS:g} s; some were left out.",)
    return tuple(found), ()


def _missing(profile: DatasetProfile) -> Iterator[Finding]:
    rows, table = profile.dataset.rows, profile.dataset.name
    for each in profile.columns[:MOST_COLUMNS]:
        if rows and each.nulls >= max(1, MANY_MISSING * rows):
            name = each.column.name
            message = f"{table}.{name} has {count(each.nulls, 'missing value')} ({each.nulls / rows:.0%})."
            proof = f"SELECT * FROM {quoted(table)} WHERE {quoted(name)} IS NULL"
            yield Finding("missing_values", table, message, proof, name)


def _far(profile: DatasetProfile, probe: Prober) -> Iterator[Finding]:
    table = profile.dataset.name
    for each in profile.columns[:MOST_COLUMNS]:
        if not each.column.numeric or len(each.quartiles) != 3 or set(words(each.column.name)) & KEYS:
            continue
        low, _, high = (float(value) for value in each.quartiles if value is not None)
        reach = FAR * (high - low)
        least, most = (float(str(value)) for value in (each.minimum, each.maximum))
        if not reach or (least >= low - reach and most <= high + reach):
            continue
        name = quoted(each.column.name)
        where = f"{name} < {low - reach:.12g} OR {name} > {high + reach:.12g}"
        n = int(probe.number(f"SELECT count(*) FROM {quoted(table)} WHERE {where}"))
        if 0 < n <= max(1, 0.02 * profile.dataset.rows):
            usual = f"half of all are between {low:g} and {high:g}"
            message = f"{table}.{each.column.name} has {count(n, 'value')} far from the others: {usual}."
            yield Finding("outliers", table, message, f"SELECT * FROM {quoted(table)} WHERE {where}", each.column.name)


def _repeated_rows(dataset: Dataset, probe: Prober) -> Iterator[Finding]:
    table = quoted(dataset.name)
    extra = int(probe.number(f"SELECT {dataset.rows} - count(*) FROM (SELECT DISTINCT * FROM {table})"))
    if extra:
        message = f"{dataset.name} repeats whole rows: {count(extra, 'row')} too many."
        proof = f"SELECT *, count(*) AS n FROM {table} GROUP BY ALL HAVING n > 1 ORDER BY n DESC"
        yield Finding("duplicate_rows", dataset.name, message, proof)


def _lost(dataset: Dataset, others: Sequence[Dataset], probe: Prober) -> Iterator[Finding]:
    """Keys of this dataset that stand for no row of another one."""
    table = quoted(dataset.name)
    for column in dataset.columns[:MOST_COLUMNS]:
        for other in others:
            key = _key_of(column, other) if other.name != dataset.name else None
            if key is None:
                continue
            own, its = f"t.{quoted(column.name)}", f"o.{quoted(key.name)}"
            unique = probe.one(
                f"SELECT count(*) = count(DISTINCT {quoted(key.name)}) FROM {quoted(other.name)} "
                f"WHERE {quoted(key.name)} IS NOT NULL"
            )
            if not unique or not unique[0]:
                continue
            rest = f"FROM {table} t ANTI JOIN {quoted(other.name)} o ON {own} = {its} WHERE {own} IS NOT NULL"
            lost = int(probe.number(f"SELECT count(*) {rest}"))
            given = probe.number(f"SELECT count({quoted(column.name)}) FROM {table}")
            if 0 < lost < 0.5 * given:
                message = (
                    f"{dataset.name}.{column.name}: {count(lost, 'row')} without a match in {other.name}.{key.name}."
                )
                yield Finding("broken_references", dataset.name, message, f"SELECT t.* {rest}", column.name)


def _key_of(column: Column, other: Dataset) -> Column | None:
    """The column of another dataset that this one seems to refer to."""
    if not set(words(column.name)) & KEYS:
        return None
    for each in other.columns:
        same = each.name.lower() == column.name.lower()
        plain = each.name.lower() in KEYS and (stems(column.name) - KEYS) <= stems(other.name) != frozenset()
        if each.kind == column.kind and ((same and each.name.lower() not in KEYS) or plain):
            return each
    return None
