"""The labelled cases: files, perhaps a query over them, and the traps that a good analyst would name.

``load(path)`` reads a YAML file, a JSON-lines file or a folder of both. README.md describes the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import field
from datetime import date
from functools import cache
from pathlib import Path
from typing import Annotated, Any, cast

import yaml
from pydantic import AfterValidator, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

FOLDER = Path(__file__).with_name("cases")
HOLDOUT = FOLDER / "holdout.jsonl"
SUFFIXES = (".csv", ".tsv", ".json", ".jsonl")

IN_DATA = {
    "total_rows": "Total or subtotal rows stand among the detail rows they sum up.",
    "header_footer_inside": "Titles, repeated headings, notes or page footers are read as rows.",
    "shifted_columns": "Values stand in a neighbouring column, in some rows or in all.",
    "sentinels": "A placeholder such as -1, 999, 9999-12-31, n/a or - stands for a missing value.",
    "mixed_units": "One column holds quantities in several units.",
    "mixed_currency": "One column holds amounts in several currencies.",
    "mixed_decimals": "One column holds numbers with decimal comma and with decimal point.",
    "ambiguous_dates": "The order of day, month and year cannot be decided or changes inside a column.",
    "mixed_timezones": "Times of several zones stand in one column.",
    "text_numbers": "Numbers are stored in a form that keeps the column text.",
    "leading_zeros": "Codes begin with zeros that are lost when they are read as numbers.",
    "duplicate_keys": "A column, or a group of columns, that identifies rows has repeated values.",
    "time_gaps": "A regular series lacks some of its periods.",
    "time_doublings": "A regular series has a period twice.",
    "partial_period": "The last (or first) period of a series is incomplete but stands beside complete ones.",
}
IN_QUERIES = {
    "join_multiplies": "A join repeats rows of a table whose values are then summed, averaged or counted.",
    "join_loses_rows": "An inner join drops rows without a match from the measured table.",
    "null_not_in": "NOT IN meets a NULL in its list or on its left side.",
    "average_of_averages": "Means or ratios of groups of different size are averaged without weights.",
    "count_column": "COUNT(column) leaves out NULLs but is used as the number of rows.",
    "integer_division": "A ratio is computed with a division that cuts off the fraction.",
    "top_without_order": "LIMIT without ORDER BY is presented as the largest, best or first.",
    "left_join_filter": "A filter on the right table turns a left join into an inner join.",
    "partial_comparison": "A complete period is compared with an incomplete one.",
    "null_base": "A percentage or mean per head leaves rows with NULL out of its base.",
    "float_sums": "Amounts of money are summed as floats, and the rounding error decides the result.",
    "key_variants": "One key is written in several ways (case, blanks) and is treated as several.",
}
KINDS = IN_DATA | IN_QUERIES


class CaseError(ValueError):
    """A case does not follow the format. The message names the file, the case and the field."""


def _known(kind: str) -> str:
    if kind not in KINDS:
        raise ValueError(f"unknown trap {kind!r}")
    return kind


Kind = Annotated[str, AfterValidator(_known)]


@dataclass(frozen=True)
class Expected:
    """One trap and its place. An empty ``dataset``, ``column`` or ``part`` means: any.

    ``dataset`` is a file name without its suffix, ``column`` a column or several joined with ", ", ``part`` a piece
    of the query, word for word.
    """

    trap: Kind
    dataset: str = ""
    column: str = ""
    part: str = ""


@dataclass(frozen=True)
class Case:
    """One labelled case. ``files`` maps file names to their text; a table is called like its file without suffix."""

    id: str
    files: dict[str, str]
    expected: tuple[Expected, ...]
    why: str = ""
    source: str = ""
    sql: str = ""
    statement: str = ""
    mended: str = ""
    today: date | None = None
    types: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    tolerated: tuple[Kind, ...] = ()
    holdout: bool = False

    @property
    def clean(self) -> bool:
        """Whether every finding in this case is a false warning."""
        return not self.expected

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of trap that must be found."""
        return frozenset(each.trap for each in self.expected)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, in the order of the files."""
        return tuple(Path(name).stem for name in self.files)

    def write(self, folder: Path) -> list[Path]:
        """Write the files of the case into ``folder`` and return their paths."""
        paths = [folder / name for name in self.files]
        for path, text in zip(paths, self.files.values(), strict=True):
            path.write_text(text, "utf-8", newline="")
        return paths


_ADAPTER = TypeAdapter(Case)


@cache
def load(path: Path = FOLDER) -> tuple[Case, ...]:
    """Return the cases of a YAML or JSON-lines file, or of all such files in a folder, in order. A file is read once.

    Raises CaseError for a case that breaks the format and for an id that occurs twice.
    """
    paths = sorted([*path.glob("*.yaml"), *path.glob("*.jsonl")]) if path.is_dir() else [path]
    cases: list[Case] = []
    seen: dict[str, Path] = {}
    for each in paths:
        for raw in _raw(each):
            case = _case(raw, each)
            if case.id in seen:
                raise CaseError(f"{each.name}: case {case.id}: the id is already used in {seen[case.id].name}")
            seen[case.id] = each
            cases.append(case)
    return tuple(cases)


def _raw(path: Path) -> Iterator[Any]:
    text = path.read_text("utf-8")
    if path.suffix == ".yaml":
        try:
            yield from yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        except (yaml.YAMLError, TypeError) as error:
            raise CaseError(f"{path.name}: is not a YAML list of cases: {error}") from error
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield json.loads(line)
            except ValueError as error:
                raise CaseError(f"{path.name}: line {number} is not JSON: {error}") from error


def _case(raw: Any, path: Path) -> Case:
    if not isinstance(raw, dict):
        raise CaseError(f"{path.name}: a case must be an object with id, files and expected, not {raw!r:.60}")
    raw = cast("dict[str, Any]", raw)
    name = f"{path.name}: case {raw.get('id', '?')}"
    try:
        case = _ADAPTER.validate_python(raw | {"files": _texts(raw, path.parent), "expected": _expected(raw)})
    except (ValidationError, OSError, LookupError, TypeError, AttributeError) as error:
        raise CaseError(f"{name}: {error}") from error
    if problem := _problem(case):
        raise CaseError(f"{name}: {problem}")
    return case


def _texts(raw: dict[str, Any], folder: Path) -> dict[str, str]:
    """The files' texts; ``{"path": "data/x.csv"}`` is read relative to the folder of the case file."""
    return {
        name: text if isinstance(text, str) else (folder / text["path"]).read_text("utf-8")
        for name, text in raw["files"].items()
    }


def _expected(raw: dict[str, Any]) -> list[dict[str, str]]:
    """The expected traps; a kind alone stands for a trap at any place."""
    return [{"trap": each} if isinstance(each, str) else each for each in raw["expected"]]


def _problem(case: Case) -> str:
    """What is wrong with a case whose fields have the right types; empty when nothing is."""
    if not case.files:
        return "has no files"
    if odd := [name for name in case.files if Path(name).name != name or Path(name).suffix not in SUFFIXES]:
        return f"file {odd[0]!r} must be a bare name that ends in {', '.join(SUFFIXES)}"
    if len(set(case.tables)) < len(case.tables):
        return "two files give the same table name"
    for each in case.expected:
        if each.dataset and each.dataset not in case.tables:
            return f"expected dataset {each.dataset!r} is not one of its files"
        if each.part and each.part not in case.sql:
            return f"expected part {each.part!r} is not in its query"
        if each.trap in case.tolerated:
            return f"{each.trap} is both expected and tolerated"
    if strange := set(case.types) - set(case.tables):
        return f"types name the unknown tables {sorted(strange)}"
    if case.mended and not case.sql:
        return "has a mended query but no query"
    return "tolerates traps although it is clean" if case.clean and case.tolerated else ""
