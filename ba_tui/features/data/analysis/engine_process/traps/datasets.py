"""All checks of a dataset, run with its profile within limited time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import duckdb

from ba_tui.core.ports.settings import KINDS
from ba_tui.core.ports.tables import Column, Dataset, DatasetProfile, TrapFinding
from ba_tui.core.text.patterns import regex
from ba_tui.core.text.wording import count
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.engine_process.database import quoted, text
from ba_tui.features.data.analysis.engine_process.text_files import ABOVE
from ba_tui.features.data.analysis.engine_process.traps.columns import SAMPLED_ABOVE, column_findings
from ba_tui.features.data.analysis.engine_process.traps.probes import (
    KEYS,
    SAMPLE_ROWS,
    TIMES,
    OutOfTime,
    Prober,
    is_key,
    key_findings,
    stems,
    words,
)
from ba_tui.features.data.analysis.engine_process.traps.series import series_findings
from ba_tui.processes.serving import WorkerRequest

# Rows that are not data: totals, headings and notes; shifted values; repeated keys.

MOST_ROWS, MOST_COLUMNS = 5_000, 40
TOTAL = regex(
    r"(?i)\W*(?:(?:grand|sub|over|report|page|year|month|quarter)?[- ]?totals?(?:[ :].*)?|.*[ -]totals?|all [a-z ]+|"
    r"all|both [a-z]+|overall|aggregate|sum(?: of .*)?|zwischensumme|(?:gesamt|end)?summe(?:[ :].*)?|"
    r".* (?:gesamt|summe)|gesamt(?:[ :].*)?|insgesamt|saldo|balance|world|national(?: .*)?|nationwide|whole [a-z]+|"
    r"alle(?: .*)?|beide geschlechter|zusammen|gesamt\w*|.*insgesamt|annual|full year|ytd|whole year|"
    r"tou(?:s|tes) .*|total(?:e|es)? g[eé]n[eé]ral(?:e|es)?|全部|全国|汇总|共计|总和|总数|合 计|总 计|小 计|Σ|_?t|"
    r"tot\.?|wld|"
    r"(?:sous-|sub)?tot(?:ale?|aux|ali|ales|aal|alt|als)(?:[ :].*)?|ensemble|toutes?|tous|"
    r"somme|suma|subtotal|razem|ogółem|łącznie|celkem|spolu|összesen|ukupno|toplam|genel toplam|summa|sammanlagt|i alt|"
    r"yhteensä|jumlah|tổng(?: cộng)?|итого.*|всего.*|разом|усього|σύνολο|합계|총계|소계|"
    r"(?:合计|总计|小计|合計|総計|小計|總計).*|.+(?:合计|小计|合計|小計)|"
    r"total general|total général|totale generale|eu[- ]?\d\d|combined)\W*"
)
GROUPS = stems("world members income area states union oecd brics caribbean dividend situations")
NOTE = regex(
    r"(?i)\W*(?:sources?|notes?|quellen?|anmerkung(?:en)?|hinweise?|stand|remarques?|fuentes?|notas?|fonte|bron|"
    r"page|seite|page \d+|exported|generated|erstellt|created|downloaded|last updated|updated|as of|copyright|©|"
    r"数据来源|来源|资料来源|注|备注|说明)\s*(?:[:：,.]|on |am |by |at |\d|©|$)|[*†©].{3,}"
)
_NUMBER = regex(r"[-+(]?[$€£]?\s*[\d.,'\s]*\d[)%-]?")
CERTAIN = 1000
"""A sum this large is no coincidence."""
_UNNAMED = regex(r"column\d+|unnamed.*|_\d+")


@frozen
class DatasetRows:
    """The rows of a dataset, or a sample of them. ``texts`` and ``numbers`` are positions of columns."""

    dataset: Dataset
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]

    @property
    def table(self) -> str:
        return quoted(self.dataset.name)

    @property
    def texts(self) -> list[int]:
        return [place for place, column in enumerate(self.columns) if column.kind == "text"]

    @property
    def measures(self) -> list[int]:
        """Return the columns of numbers that can be summed: neither keys nor years."""
        names = [set(words(column.name)) for column in self.columns]
        return [
            place
            for place, column in enumerate(self.columns)
            if column.numeric and not (names[place] & TIMES or is_key(column.name))
        ]

    def like(self, row: Sequence[Any], places: Sequence[int]) -> str:
        """Return SQL that is true for rows with the same texts as ``row``."""
        parts = [
            f"{quoted(self.columns[place].name)} IS NOT DISTINCT FROM {text(str(row[place]))}"
            if row[place] is not None
            else f"{quoted(self.columns[place].name)} IS NULL"
            for place in places
        ]
        return " AND ".join(parts) or "true"


def row_findings(dataset: Dataset, probe: Prober) -> Iterator[TrapFinding]:
    """Yield the traps in the rows of a dataset."""
    yield from _titles(dataset)
    yield from _rejected(dataset)
    columns = tuple(column for column in dataset.columns if column.kind != "other")[:MOST_COLUMNS]
    if dataset.rows and columns:
        listed = ", ".join(
            f"{quoted(each.name)}::DOUBLE" if each.numeric else f"{quoted(each.name)}::VARCHAR" for each in columns
        )
        found = probe.rows(f"SELECT {listed} FROM {quoted(dataset.name)} LIMIT {MOST_ROWS + 1}")
        if len(found) <= MOST_ROWS:
            rows = DatasetRows(dataset, columns, tuple(found))
            yield from _headings(rows)
            yield from _totals(rows)
            yield from _shifted(rows)


def _titles(dataset: Dataset) -> Iterator[TrapFinding]:
    """Report lines above the header, which were skipped on reading."""
    for note in dataset.notes:
        if ABOVE in note:
            proof = f"SELECT * FROM (VALUES ({text(note)})) AS notes(text)"
            yield TrapFinding("header_footer_inside", dataset.name, f"{dataset.name} began with titles: {note}", proof)


def _rejected(dataset: Dataset) -> Iterator[TrapFinding]:
    """Report lines with too many or too few fields, caused by an unquoted delimiter or line break."""
    bad = [each for each in dataset.bad_rows if "columns" in each.reason]
    notes = [each for each in bad if (dataset.delimiter or ",") not in each.text and each.line > dataset.rows]
    if notes and len(notes) == len(bad) == dataset.rows_skipped:
        shown = notes[0].text.strip()[:60]
        listed = ", ".join(f"({each.line}, {text(each.text)})" for each in notes)
        message = f'{dataset.name} ends with notes, which were left out: "{shown}".'
        proof = f"SELECT * FROM (VALUES {listed}) AS notes(line, text)"
        yield TrapFinding("header_footer_inside", dataset.name, message, proof)
    elif bad:
        listed = ", ".join(f"({each.line}, {text(each.reason)}, {text(each.text)})" for each in bad[:20])
        lines = count(dataset.rows_skipped, "line")
        message = f"{lines} with too many or too few fields left out of {dataset.name}."
        proof = f"SELECT * FROM (VALUES {listed}) AS bad(line, reason, text)"
        yield TrapFinding("shifted_columns", dataset.name, message, proof)


def _headings(rows: DatasetRows) -> Iterator[TrapFinding]:
    names = [column.name.strip().lower() for column in rows.columns]
    needed = max(2, round(0.6 * len(names)))
    for row in rows.rows:
        same = sum(str(value).strip().lower() == name for value, name in zip(row, names, strict=True))
        if same >= needed:
            yield _inside(rows, row, "repeats the heading as a row")
            return
    if len(rows.rows) < 4:
        return
    unnamed = sum(bool(_UNNAMED.fullmatch(name)) for name in names)
    if unnamed * 3 >= len(names) and (row := _title(rows)):
        yield _inside(rows, row, "has title or heading lines among its rows")
        return
    filled = sorted(sum(value is not None for value in row) for row in rows.rows)
    usual = filled[len(filled) // 2]
    for number in range(max(1, len(rows.rows) - 4), len(rows.rows)):
        row = rows.rows[number]
        places = [place for place, value in enumerate(row) if value is not None]
        if places == [0] and isinstance(row[0], str) and _is_note(rows, row[0], usual):
            yield _inside(rows, row, "ends with notes that are read as rows")
            return


def _is_note(rows: DatasetRows, shown: str, usual: int) -> bool:
    """Return whether the only text of a row is a note. ``usual`` is the usual number of values."""
    if NOTE.match(shown):
        return usual >= 2
    longest = max((len(str(row[0]).split()) for row in rows.rows if row[0] not in {None, shown}), default=0)
    return len(shown.split()) > (1 if usual >= 3 else max(3, 2 * longest))


def _title(rows: DatasetRows) -> tuple[Any, ...] | None:
    """Find a row near the top with text where the rest has numbers."""
    for row in rows.rows[:6]:
        others = [each for each in rows.rows[6:] if any(value is not None for value in each)] or rows.rows[1:]
        odd = 0
        for place in rows.texts:
            values = [str(each[place]) for each in others if each[place] is not None]
            numeric = sum(bool(_NUMBER.fullmatch(value)) for value in values)
            if values and numeric >= 0.7 * len(values) and row[place] and not _NUMBER.fullmatch(str(row[place])):
                odd += 1
        if odd:
            return row
    first = rows.rows[0]
    return first if sum(value is None for value in first) * 2 >= len(first) else None


def _inside(rows: DatasetRows, row: Sequence[Any], what: str) -> TrapFinding:
    shown = ", ".join(str(value) for value in row if value is not None)[:60]
    proof = f"SELECT * FROM {rows.table} WHERE {rows.like(row, rows.texts)}"
    return TrapFinding("header_footer_inside", rows.dataset.name, f'{rows.dataset.name} {what}: "{shown}".', proof)


def _totals(rows: DatasetRows) -> Iterator[TrapFinding]:
    if len(rows.rows) < 3:
        return
    labelled = any(row[place] and TOTAL.fullmatch(str(row[place])) for place in rows.texts for row in rows.rows)
    for place in rows.texts:
        column = rows.columns[place]
        labels = {str(row[place]) for row in rows.rows if row[place] and TOTAL.fullmatch(str(row[place]))}
        marked = [number for number, row in enumerate(rows.rows) if row[place] in labels]
        groups = {str(row[place]) for row in rows.rows if row[place] and stems(str(row[place])) & GROUPS}
        if marked and len(marked) * 2 <= len(rows.rows) and rows.measures and _adds_up(rows, marked, place):
            yield _total(rows, column, f"{quoted(column.name)} IN ({', '.join(map(text, sorted(labels)))})", labels)
        elif len(groups) > 3 and {"country", "region", "area", "nation", "land", "entity"} & set(words(column.name)):
            yield _total(rows, column, f"{quoted(column.name)} IN ({', '.join(map(text, sorted(groups)))})", groups)
        elif not marked and rows.measures and (label := _summed(rows, place) or _sums_all(rows, place, named=True)):
            yield _total(rows, column, f"{quoted(column.name)} = {text(label)}", {label})
        empty = [number for number, row in enumerate(rows.rows) if row[place] is None]
        several = 1 < len(empty) <= len(rows.rows) // 2 and _adds_up(rows, empty, place, strict=True)
        if not labelled and (several or (empty == [len(rows.rows) - 1] and _sums_all(rows, place, named=False))):
            yield _total(rows, column, f"{quoted(column.name)} IS NULL", {"empty"})


def _summed(rows: DatasetRows, place: int) -> str:
    """Find a label whose rows are, group by group, the sum of the other rows: a total under any name."""
    keys = [each for each in range(len(rows.columns)) if each != place and each not in rows.measures]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, row in enumerate(rows.rows):
        groups.setdefault(tuple(row[key] for key in keys), []).append(number)
    large = [group for group in groups.values() if 3 < len(group) < 500]
    if len(large) < 2:
        return ""
    labels = dict.fromkeys(str(value) for number in large[0] if (value := rows.rows[number][place]) is not None)
    for label in labels:
        right = 0
        for group in large:
            own = [number for number in group if str(rows.rows[number][place]) == label]
            others = [number for number in group if number not in own]
            sums = (_is_sum(rows, rows.rows[own[0]], others, each) for each in rows.measures) if len(own) == 1 else ()
            right += any(sums)
        if right >= max(2, 0.9 * len(large)):
            return label
    return ""


def _sums_all(rows: DatasetRows, place: int, *, named: bool) -> str:
    """Return the label of the last or first row if it is the sum of all others beyond coincidence. ``named`` excludes
    rows without label."""
    last = len(rows.rows) - 1
    for number in (last, 0):
        label = str(rows.rows[number][place] or "empty")
        others = [each for each in range(last + 1) if each != number]
        sums = [each for each in rows.measures if _is_sum(rows, rows.rows[number], others, each)]
        certain = any(abs(rows.rows[number][each]) >= CERTAIN or rows.rows[number][place] is None for each in sums)
        plain = all(str(rows.rows[each][place]) != label for each in others)
        if last > 2 and plain and (rows.rows[number][place] is not None or not named) and (len(sums) > 1 or certain):
            return label
    return ""


def _total(rows: DatasetRows, column: Column, where: str, labels: set[str]) -> TrapFinding:
    shown = ", ".join(f'"{label}"' for label in sorted(labels)[:3])
    message = f"{rows.dataset.name}.{column.name} has totals among the rows they sum up: {shown}. Sums count twice."
    proof = f"SELECT * FROM {rows.table} WHERE {where}"
    return TrapFinding("total_rows", rows.dataset.name, message, proof, column.name)


def _adds_up(rows: DatasetRows, marked: Sequence[int], place: int, *, strict: bool = False) -> bool:
    """Return whether most marked rows are sums: of the rows before them, of all others, or of rows that differ only in
    the label."""
    total = set(marked)
    any_total = {
        number
        for number, row in enumerate(rows.rows)
        if any(row[each] and TOTAL.fullmatch(str(row[each])) for each in rows.texts)
    } | total
    others = [number for number in range(len(rows.rows)) if number not in any_total]
    dimensions = [each for each in range(len(rows.columns)) if each != place and each not in rows.measures]
    right = 0
    for number in marked[:50]:
        row = rows.rows[number]
        before = max((each for each in any_total if each < number), default=-1)
        alike = [
            each for each in others
            if all(row[key] is None or rows.rows[each][key] == row[key] for key in dimensions)
        ]  # fmt: skip
        block = list(range(before + 1, number))
        following = min((each for each in any_total if each > number), default=len(rows.rows))
        after = list(range(number + 1, following))
        wanted = 2 if strict and len(rows.measures) > 1 else 1
        hits = max(
            sum(_is_sum(rows, row, group, measure, 0.0005 if strict else 0.01) for measure in rows.measures)
            for group in (alike, block, others, after)
        )
        right += hits >= wanted
    return right * 2 >= min(len(marked), 50) and (not strict or right > 1)


def _is_sum(rows: DatasetRows, row: Sequence[Any], group: Sequence[int], measure: int, off: float = 0.0005) -> bool:
    """Return whether a value is the sum of a group; ``off`` is the tolerance for rounding."""
    value = row[measure]
    values = [rows.rows[each][measure] for each in group if rows.rows[each][measure] is not None]
    return bool(value) and len(values) > 1 and abs(sum(values) - value) <= max(0.006, off * abs(value))


def _shifted(rows: DatasetRows) -> Iterator[TrapFinding]:
    """Find values that look like those of the neighbouring column."""
    for left, right in zip(range(len(rows.columns)), range(1, len(rows.columns)), strict=False):
        if rows.columns[left].kind != "text":
            continue
        filled = [row for row in rows.rows if row[left] is not None]
        if len(filled) < 4:
            continue
        odd: list[tuple[Any, ...]] = []
        if rows.columns[right].numeric:
            odd = [row for row in filled if row[right] is None and _NUMBER.fullmatch(str(row[left]))]
            known = sum(bool(_NUMBER.fullmatch(str(row[left]))) for row in filled)
            odd = odd if len(odd) == known and len(odd) * 5 <= 2 * len(filled) else []
        elif rows.columns[right].kind == "text":
            both = [row for row in filled if row[right] is not None]
            odd = _exchanged(list(both), left, right) or _pushed(both, left, right)
        if odd:
            name, next_name = rows.columns[left].name, rows.columns[right].name
            message = f"{count(len(odd), 'row')} of {rows.dataset.name} have a value of {next_name} in {name}."
            proof = f"SELECT * FROM {rows.table} WHERE " + " OR ".join(
                f"{quoted(name)} = {text(str(row[left]))}" for row in odd[:50]
            )
            yield TrapFinding("shifted_columns", rows.dataset.name, message, proof, name)
            return


def _exchanged(rows: Sequence[tuple[Any, ...]], left: int, right: int) -> list[tuple[Any, ...]]:
    """Return the rows with two values in the form that is usual for each other's column."""
    forms = [(_form(row[left]), _form(row[right])) for row in rows]
    usual = max(set(forms), key=forms.count, default=("", ""))
    odd = [row for row, form in zip(rows, forms, strict=True) if form == (usual[1], usual[0])]
    least = 1 if set(usual) & {"mail", "link"} else 2
    clear = forms.count(usual) >= 0.6 * len(rows) and forms.count(usual) + len(odd) == len(rows)
    return odd if usual[0] != usual[1] and len(odd) >= least and clear else []


def _pushed(rows: Sequence[tuple[Any, ...]], left: int, right: int) -> list[tuple[Any, ...]]:
    """Return the rows with a name among the numbers of the next column, moved there by a delimiter in a name."""
    odd = [row for row in rows if not _NUMBER.fullmatch(str(row[right]))]
    rest = [row for row in rows if row not in odd]
    names = sum(_form(row[left]) == "words" for row in rest)
    own = {str(row[left]) for row in rest}
    moved = all(_form(row[right]) == "words" and str(row[right])[:1].isupper() for row in odd)
    single = len({str(row[right]) for row in odd}) == len(odd)
    known = any(str(row[right]) in own for row in odd) or all(str(row[left]) not in own for row in odd)
    return odd if odd and moved and single and known and len(odd) * 4 <= len(rows) and names == len(rest) else []


def _form(value: Any) -> str:
    """Return what a text looks like: an address, text with digits, or words."""
    shown = str(value)
    if "@" in shown and " " not in shown:
        return "mail"
    if "://" in shown or shown.startswith("www."):
        return "link"
    return "digits" if any(char.isdigit() for char in shown) else "words"


SMALL_ROWS = 50_000
SMALL_SECONDS, LEAST_SECONDS = 4.0, 0.5
CAUSED = frozenset({"text_numbers", "duplicate_keys"})


def findings_of_dataset(
    cursor: duckdb.DuckDBPyConnection, request: WorkerRequest, dataset: Dataset, seconds: float
) -> tuple[tuple[TrapFinding, ...], tuple[str, ...]]:
    """Return the traps in a dataset, and a note when time ran out. ``seconds`` is the duration of the profile; the
    checks may take as long."""
    allowed = max(SMALL_SECONDS if dataset.rows <= SMALL_ROWS else LEAST_SECONDS, seconds)
    probe = Prober(cursor, request, allowed)
    large = dataset.rows > SAMPLED_ABOVE
    notes = (f"Values of {dataset.name} were checked for traps in a sample of {SAMPLE_ROWS:,} rows.",) if large else ()
    found: dict[tuple[str, str], TrapFinding] = {}
    try:
        for check in (column_findings, row_findings, key_findings, series_findings):
            # Unexpected data must not make the profile fail.
            with suppress(*Prober.forgiven()):
                for each in check(dataset, probe):
                    found.setdefault((each.trap, each.column), each)
    except OutOfTime:
        note = f"The checks of {dataset.name} for traps ended after {allowed:.1g} s; some were left out."
        return _causes(found), (*notes, note)
    return _causes(found), notes


def _causes(found: dict[tuple[str, str], TrapFinding]) -> tuple[TrapFinding, ...]:
    """Return the findings, most severe first, without those caused by a heading among the rows."""
    headed = any(trap == "header_footer_inside" for trap, _ in found)
    kept = [each for each in found.values() if not headed or each.trap not in CAUSED]
    return tuple(sorted(kept, key=lambda each: list(KINDS).index(each.trap)))


# Thorough checks in addition to the traps: missing values, outliers, repeated rows, broken references.

SECONDS = 60.0
MANY_MISSING = 0.05
FAR = 3.0
"""Multiples of the interquartile range beyond which a value is an outlier."""
MOST_CHECKED = 200


def quality_findings(
    cursor: duckdb.DuckDBPyConnection, request: WorkerRequest, profile: DatasetProfile, others: Sequence[Dataset]
) -> tuple[tuple[TrapFinding, ...], tuple[str, ...]]:
    """Return further defects of a dataset, and a note when time ran out. ``others`` has all datasets, which its columns
    may reference."""
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


def _missing(profile: DatasetProfile) -> Iterator[TrapFinding]:
    rows, table = profile.dataset.rows, profile.dataset.name
    for each in profile.columns[:MOST_CHECKED]:
        if rows and each.nulls >= max(1, MANY_MISSING * rows):
            name = each.column.name
            message = f"{table}.{name} has {count(each.nulls, 'missing value')} ({each.nulls / rows:.0%})."
            proof = f"SELECT * FROM {quoted(table)} WHERE {quoted(name)} IS NULL"
            yield TrapFinding("missing_values", table, message, proof, name)


def _far(profile: DatasetProfile, probe: Prober) -> Iterator[TrapFinding]:
    table = profile.dataset.name
    for each in profile.columns[:MOST_CHECKED]:
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
            yield TrapFinding(
                "outliers", table, message, f"SELECT * FROM {quoted(table)} WHERE {where}", each.column.name
            )


def _repeated_rows(dataset: Dataset, probe: Prober) -> Iterator[TrapFinding]:
    table = quoted(dataset.name)
    extra = int(probe.number(f"SELECT {dataset.rows} - count(*) FROM (SELECT DISTINCT * FROM {table})"))
    if extra:
        message = f"{dataset.name} repeats whole rows: {count(extra, 'row')} too many."
        proof = f"SELECT *, count(*) AS n FROM {table} GROUP BY ALL HAVING n > 1 ORDER BY n DESC"
        yield TrapFinding("duplicate_rows", dataset.name, message, proof)


def _lost(dataset: Dataset, others: Sequence[Dataset], probe: Prober) -> Iterator[TrapFinding]:
    """Find keys of this dataset without a row in the referenced one."""
    table = quoted(dataset.name)
    for column in dataset.columns[:MOST_CHECKED]:
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
            filled = probe.number(f"SELECT count({quoted(column.name)}) FROM {table}")
            if 0 < lost < 0.5 * filled:
                message = (
                    f"{dataset.name}.{column.name}: {count(lost, 'row')} without a match in {other.name}.{key.name}."
                )
                yield TrapFinding("broken_references", dataset.name, message, f"SELECT t.* {rest}", column.name)


def _key_of(column: Column, other: Dataset) -> Column | None:
    """Return the column of another dataset that this one seems to reference."""
    if not set(words(column.name)) & KEYS:
        return None
    for each in other.columns:
        same = each.name.lower() == column.name.lower()
        plain = each.name.lower() in KEYS and (stems(column.name) - KEYS) <= stems(other.name) != frozenset()
        if each.kind == column.kind and ((same and each.name.lower() not in KEYS) or plain):
            return each
    return None
