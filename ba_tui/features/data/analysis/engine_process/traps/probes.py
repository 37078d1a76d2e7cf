"""Runs the queries of checks within a shared time limit, and creates findings; reads names of columns; detects keys."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any, ClassVar

import duckdb

from ba_tui.core.ports.tables import Dataset, TrapFinding
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.processes.serving import RequestCancelled, WorkerRequest

SAMPLE_ROWS = 20_000


class OutOfTime(Exception):
    """The time for checks is over."""


class CheckFailed(Exception):
    """A query of a check is wrong."""


class Prober:
    """Runs queries for checks. ``seconds`` is the time for all of them together."""

    strict: ClassVar[bool] = False
    """Whether a failing query raises CheckFailed, as in tests. In use, a failing check is skipped."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, request: WorkerRequest, seconds: float) -> None:
        self.cursor = cursor
        self._request = request
        self._end = time.monotonic() + seconds

    @classmethod
    def forgiven(cls) -> tuple[type[Exception], ...]:
        """Return the exceptions of a check that must not reach its caller."""
        return () if cls.strict else (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Return the rows of a query; none when it fails. Raises OutOfTime, RequestCancelled."""
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
        """Return the first row; empty when there is none."""
        return next(iter(self.rows(sql)), ())

    def number(self, sql: str) -> float:
        """Return the first value; 0 when there is none."""
        row = self.one(sql)
        return float(row[0]) if row and row[0] is not None else 0.0

    def proved(self, finding: TrapFinding) -> bool:
        """Return whether the finding's proof returns rows."""
        return bool(self.rows(f"SELECT * FROM ({finding.proof}) LIMIT 1"))

    def sample(self, table: str, rows: int) -> str:
        """Create a temporary table with a sample of a table, its row numbers in ``~row``; return its name."""
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


# Meaning of names: column and output names are split into words without endings.

_LOWER, _UPPER = "a-zß-öø-ÿ", "A-ZÀ-ÖØ-Þ"
_WORD = regex(rf"[{_UPPER}]+(?![{_LOWER}])|[{_UPPER}]?[{_LOWER}]+|\d+|[^\W\d_]+")


def words(name: str) -> list[str]:
    """Return the words of a name such as ``mean_receipt`` or ``lifeExp``, in lower case."""
    return [word.lower() for word in _WORD.findall(name)]


def known(text: str) -> frozenset[str]:
    """Return the words in a text as a set."""
    return frozenset(text.split())


def stems(name: str) -> frozenset[str]:
    """Return the words of a name without plural and participle endings."""
    return frozenset(stem(word) for word in words(name))


def stem(word: str) -> str:
    """Return a word without its usual endings."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) > 2 and not word.endswith("ss"):
            return word[: -len(ending)] + instead
    return word


def says(name: str, parts: frozenset[str]) -> bool:
    """Return whether a name has one of ``parts`` as a word, or in a compound as in German and Chinese."""
    own = words(name)
    return bool(parts & set(own)) or any(
        part in word for word in own for part in parts if len(part) > 5 or not part.isascii()
    )


# Keys of a table, and repeated keys.

KEYS = known("id no nr number key code num uuid sku isbn ean email isin iban vin ssn barcode upc asin nummer numero "
             "numéro identifiant kennung codigo código 编号 号码 订单号 工号 学号 代码")  # fmt: skip
ENDINGS = ("nr", "nummer", "编号", "号码", "单号", "工号", "学号")
PARTS = stems("line pos position item seq part leg round attempt year month quarter date day version valid from wave "
              "period week sample time replicate")  # fmt: skip
TIMES = known("year jahr annee année anno año quarter month monat mois 年 年份 月 月份")
EVENTS = stems("orders sales payments visits transactions events log logs tickets bookings purchases deliveries "
               "shipments calls orderlines items lines history logins sessions")  # fmt: skip


def is_key(name: str) -> bool:
    """Return whether a column's name says that it has numbers or codes of things."""
    return bool(set(words(name)) & KEYS) or name.lower().endswith(ENDINGS)


def key_findings(dataset: Dataset, probe: Prober) -> Iterator[TrapFinding]:
    """Find columns that look like a key, alone or together, and repeat values."""
    table = quoted(dataset.name)
    plain = [column for column in dataset.columns if column.kind in {"integer", "text"}]
    if dataset.rows < 4 or not dataset.columns:
        return
    first = dataset.columns[0]
    named = words(first.name)
    own = stems(dataset.name)
    if first in plain and (is_key(first.name) or (named and stems(first.name) <= own)):
        name = quoted(first.name)
        row = probe.one(f"SELECT count({name}), count(DISTINCT {name}) FROM {table}")
        others = [stems(column.name) for column in dataset.columns[1:]]
        parts = sum(bool(other & PARTS) and "valid" not in other for other in others[:1])
        event = bool(own & EVENTS) and not stems(first.name) & own
        plain_name = stems(first.name) <= own | stems(" ".join(KEYS))
        few = row and row[0] - row[1] <= 2 and row[1] > 2 and plain_name
        if (
            row
            and not event
            and (0.5 if few else 0.7) * row[0] <= row[1] < row[0]
            and not parts
            and not _compound(dataset, probe)
        ):
            yield _repeated(dataset, first.name, name, row[0] - row[1])
            return
        if row and row[1] >= 0.5 * row[0]:
            return
    elif second := _second_key(dataset, probe):
        yield _repeated(dataset, *second)
        return
    yield from _grid(dataset, probe)


def _grid(dataset: Dataset, probe: Prober) -> Iterator[TrapFinding]:
    """Find two or three columns whose values occur in all combinations, a few of them repeatedly."""
    places = [each for each in dataset.columns if not each.numeric or set(words(each.name)) & TIMES]
    if not 2 <= len(places) <= 4 or places != list(dataset.columns[: len(places)]) or len(places) == len(
        dataset.columns
    ):  # fmt: skip
        return
    for number in range(2, min(3, len(places)) + 1):
        for each in combinations(places, number):
            if number < len(places) and not all(one.numeric or one.kind == "text" for one in each):
                continue
            names = [quoted(one.name) for one in each]
            counts = ", ".join(f"count(DISTINCT {name})" for name in names)
            row = probe.one(
                f"SELECT count(*), count(DISTINCT ({', '.join(names)})), {counts} FROM {quoted(dataset.name)}"
            )
            if not row or min(row[2:]) < 2:
                continue
            full = 1
            for own in row[2:]:
                full *= own
            if 0.8 * row[0] <= row[1] < row[0] and row[1] >= 0.9 * full:
                shown = ", ".join(one.name for one in each)
                yield _repeated(dataset, shown, ", ".join(names), row[0] - row[1])
                return


def _compound(dataset: Dataset, probe: Prober) -> bool:
    """Return whether the first column identifies a row only with another key, such as order and article."""
    first = quoted(dataset.columns[0].name)
    own = stems(dataset.columns[0].name) & stems(dataset.name)
    keys = [each for each in dataset.columns[1:] if is_key(each.name) or stems(each.name) & PARTS]
    return not own and any(
        probe.number(f"SELECT count(*) = count(DISTINCT ({first}, {quoted(each.name)})) FROM {quoted(dataset.name)}")
        for each in keys[:5]
    )


def _second_key(dataset: Dataset, probe: Prober) -> tuple[str, str, int] | None:
    """Find an id column with repeats for things whose unique names are in the first column."""
    keys = [each for each in dataset.columns[1:] if is_key(each.name) and each.kind in {"integer", "text"}]
    if dataset.columns[0].kind != "text" or len(keys) != 1:
        return None
    first, name = quoted(dataset.columns[0].name), quoted(keys[0].name)
    row = probe.one(
        f"SELECT count({name}), count(DISTINCT {name}), count(DISTINCT {first}) FROM {quoted(dataset.name)}"
    )
    if row and row[2] == dataset.rows and 0.8 * row[0] <= row[1] < row[0]:
        return keys[0].name, name, row[0] - row[1]
    return None


def _repeated(dataset: Dataset, columns: str, names: str, extra: int) -> TrapFinding:
    proof = f"SELECT {names}, count(*) AS n FROM {quoted(dataset.name)} GROUP BY ALL HAVING n > 1 ORDER BY n DESC"
    message = f"{dataset.name}.{columns} looks like a key, but repeats a value in {count(extra, 'row')}."
    return TrapFinding("duplicate_keys", dataset.name, message, proof, columns)
