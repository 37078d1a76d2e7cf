"""Rows of another engine as a Parquet file of the session: text with the type it is cast to, or Arrow as it came."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.source_process.failures import failed

pa: Any = import_module("pyarrow")
pq: Any = import_module("pyarrow.parquet")
"""Loaded by name: it has no types."""
CHUNK = 10_000
WIDEST = 38
TextRow: TypeAlias = Sequence[str | None]


@frozen
class Landed:
    """``rows`` were written. ``types``: DuckDB types, by column, that the text of a column is cast to."""

    rows: int
    types: Mapping[str, str]


class NumericWidth:
    """How wide a DECIMAL must be for all numbers seen; a number without digits, such as NaN, fits none."""

    def __init__(self) -> None:
        self._whole, self._scale, self._odd = 1, 0, False

    def see(self, text: str) -> None:
        whole, _, fraction = text.lstrip("-").partition(".")
        self._odd = self._odd or not whole.isdecimal()
        self._whole, self._scale = max(self._whole, len(whole)), max(self._scale, len(fraction))

    @property
    def type(self) -> str:
        """The DuckDB type; VARCHAR where no DECIMAL holds the numbers."""
        width = self._whole + self._scale
        return f"DECIMAL({width},{self._scale})" if width <= WIDEST and not self._odd else "VARCHAR"


def distinct_names(names: Iterable[str]) -> list[str]:
    """Return ``names`` with a number behind those that came before."""
    found: list[str] = []
    for name in names:
        wanted = name or "column"
        numbers = itertools.count(1)
        chosen = wanted
        while chosen.lower() in {each.lower() for each in found}:
            chosen = f"{wanted}_{next(numbers)}"
        found.append(chosen)
    return found


def land_text(file: Path, names: Sequence[str], rows: Iterable[TextRow], most: int) -> int:
    """Write ``rows`` of text to ``file`` and return their number. Raises HandlerFailed beyond ``most`` rows."""
    if not names:
        raise failed("The statement returns no columns.")
    schema = pa.schema([(name, pa.string()) for name in names])
    return _written(file, schema, (_batch(schema, chunk) for chunk in _chunks(rows)), most)


def land_arrow(file: Path, reader: Any, most: int) -> int:
    """Write the record batches of ``reader`` to ``file``; else as ``land_text``."""
    schema: Any = reader.schema.remove_metadata()
    schema = pa.schema(
        [schema.field(number).with_name(name) for number, name in enumerate(distinct_names(schema.names))]
    )
    return _written(file, schema, (pa.RecordBatch.from_arrays(each.columns, schema=schema) for each in reader), most)


def _chunks(rows: Iterable[TextRow]) -> Iterator[list[TextRow]]:
    left = iter(rows)
    while chunk := list(itertools.islice(left, CHUNK)):
        yield chunk


def _batch(schema: Any, rows: Sequence[TextRow]) -> Any:
    columns = [pa.array(values, pa.string()) for values in zip(*rows, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _written(file: Path, schema: Any, batches: Iterable[Any], most: int) -> int:
    rows = 0
    with pq.ParquetWriter(str(file), schema, compression="zstd") as writer:
        for batch in batches:
            rows += batch.num_rows
            if rows > most:
                hint = "Aggregate, filter or add a LIMIT, or raise analysis.max_rows."
                raise failed(f"The query returns more than {most:,} rows.", hint, "resource_error")
            writer.write_batch(batch)
    return rows
