"""Keys of a table, and those that come more than once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from ba_tui.core.ports.tables import Dataset, Finding
from ba_tui.core.text.wording import count
from ba_tui.features.data.analysis.engine_process.database import quoted
from ba_tui.features.data.analysis.engine_process.traps.probing import Prober
from ba_tui.features.data.analysis.engine_process.traps.wording import known, stems, words

KEYS = known("id no nr number key code num uuid sku isbn ean email isin iban vin ssn barcode upc asin nummer numero "
             "numéro identifiant kennung codigo código 编号 号码 订单号 工号 学号 代码")  # fmt: skip
ENDINGS = ("nr", "nummer", "编号", "号码", "单号", "工号", "学号")
PARTS = stems("line pos position item seq part leg round attempt year month quarter date day version valid from wave "
              "period week sample time replicate")  # fmt: skip
TIMES = known("year jahr annee année anno año quarter month monat mois 年 年份 月 月份")
EVENTS = stems("orders sales payments visits transactions events log logs tickets bookings purchases deliveries "
               "shipments calls orderlines items lines history logins sessions")  # fmt: skip


def is_key(name: str) -> bool:
    """Whether the name of a column says that it holds numbers or codes of things."""
    return bool(set(words(name)) & KEYS) or name.lower().endswith(ENDINGS)


def key_findings(dataset: Dataset, probe: Prober) -> Iterator[Finding]:
    """The columns that look like a key of the rows, alone or together, and repeat values."""
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


def _grid(dataset: Dataset, probe: Prober) -> Iterator[Finding]:
    """Two or three columns whose values come in all combinations, a few of them more than once."""
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
    """Whether the first column names a row only with another key, as the order and the article of its lines do."""
    first = quoted(dataset.columns[0].name)
    own = stems(dataset.columns[0].name) & stems(dataset.name)
    keys = [each for each in dataset.columns[1:] if is_key(each.name) or stems(each.name) & PARTS]
    return not own and any(
        probe.number(f"SELECT count(*) = count(DISTINCT ({first}, {quoted(each.name)})) FROM {quoted(dataset.name)}")
        for each in keys[:5]
    )


def _second_key(dataset: Dataset, probe: Prober) -> tuple[str, str, int] | None:
    """A number of their own, with repeats, of things whose names stand in the first column and come once each."""
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


def _repeated(dataset: Dataset, columns: str, names: str, extra: int) -> Finding:
    proof = f"SELECT {names}, count(*) AS n FROM {quoted(dataset.name)} GROUP BY ALL HAVING n > 1 ORDER BY n DESC"
    message = f"{dataset.name}.{columns} looks like a key, but repeats a value in {count(extra, 'row')}."
    return Finding("duplicate_keys", dataset.name, message, proof, columns)
