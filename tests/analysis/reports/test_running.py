"""``ReportRunner``: the same questions to next month's file."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Column, Provenance, Row
from ba_tui.features.data.analysis.report import Report, ReportFigure, gather_report, manifest, store_data
from ba_tui.features.data.analysis.report_runs import (
    ReportRows,
    ReportRun,
    ReportRunner,
    changes,
    found_report,
    given_files,
    summary,
)
from tests.analysis.engines import engine_in

JANUARY = "region,amount\nNorth,10\nSouth,20\nWest,5\n"
FEBRUARY = "region,amount\nNorth,15\nSouth,20\nEast,1\n"
LONG = "SELECT 'k' || range AS name, range + (SELECT sum(amount) FROM 'january.csv') AS n FROM range(12000)"
FIGURES = (
    ReportFigure("10", "R1", "total", 0, "10"),
    ReportFigure("5", "R1", "total", 2, "5"),
    ReportFigure("11,035", "R5", "n", 11_000, 11_035.0),
    ReportFigure("35", "R4", "whole", 0, 35.0),
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Report]:
    """A report over january.csv, with a gap in its handles and a result from elsewhere."""
    tmp_path = tmp_path_factory.mktemp("report")
    (tmp_path / "january.csv").write_text(JANUARY, "utf-8")
    (tmp_path / "february.csv").write_text(FEBRUARY, "utf-8")
    made = engine_in(tmp_path)
    await made.register("january.csv")
    await made.query("SELECT region, sum(amount) AS total FROM 'january.csv' GROUP BY 1 ORDER BY 1")
    await made.query("SELECT 1 AS gap")
    await made.query("SELECT sum(total) AS whole FROM R1")
    async with made.exported("R3", "parquet") as file:
        made.inbox.mkdir(exist_ok=True)
        (made.inbox / "x.parquet").write_bytes(file.read_bytes())
    await made.adopt(made.inbox / "x.parquet", Provenance("SELECT 1", engine="PostgreSQL 17", source="warehouse"))
    await made.query(LONG)
    whole = await gather_report(made, "Sales", (), FIGURES, tmp_path)
    kept = replace(whole, results=tuple(each for each in whole.results if each.handle != "R2"))
    folder = tmp_path / "report-data"
    folder.mkdir()
    await store_data(made, kept, folder)
    await made.close()
    return tmp_path, kept


@pytest.fixture
def report(made: tuple[Path, Report], tmp_path: Path) -> Report:
    """The report, in a copy of its folder."""
    shutil.copytree(made[0], tmp_path, ignore=shutil.ignore_patterns("session"), dirs_exist_ok=True)
    return made[1]


async def run(tmp_path: Path, **data: str) -> ReportRun:
    found, folder = found_report(tmp_path / "report.py")
    engine = engine_in(tmp_path, state=tmp_path / "again")
    try:
        return await ReportRunner(engine, found, folder).run(data)
    finally:
        await engine.close()


async def test_nothing_changed(report: Report, tmp_path: Path) -> None:
    found = await run(tmp_path)
    assert [each.handle for each in found.results] == ["R1", "R3", "R4", "R5"]
    assert not found.changed
    assert found.results[2].kept == "it came from the source warehouse"


async def test_another_file_under_the_same_questions(report: Report, tmp_path: Path) -> None:
    found = await run(tmp_path, january="february.csv")
    first, second, third, _ = found.results
    assert first.changes
    assert summary(first.changes) == [
        "region=North: total 10 → 15 (+50.0%)",
        "new: region=East",
        "gone: region=West",
    ]
    assert second.changes
    assert summary(second.changes) == ["row 1: whole 35 → 36 (+2.9%)"]
    assert not third.changed
    assert [(each.figure.text, each.now, each.gone) for each in found.figures] == [
        ("10", 15, ""),
        ("5", None, "its row or column is gone"),
        ("11,035", 11_036, ""),
        ("35", "35", ""),
    ]
    assert [each.changed for each in found.figures] == [True, True, True, False]


async def test_a_file_without_the_column(report: Report, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("region,value\nNorth,1\n", "utf-8")
    found = await run(tmp_path, january="other.csv")
    first, second, third, _ = found.results
    assert "amount" in first.failed
    assert second.failed == "it reads R1, which could not be worked out"
    assert (third.failed, third.after) == ("", 1)
    assert [each.gone for each in found.figures] == [
        *["R1 could not be worked out"] * 2,
        "R5 could not be worked out",
        "",
    ]


def test_which_table_a_file_is_for(report: Report) -> None:
    two = replace(report, tables=(*report.tables, replace(report.tables[0], name="customers")))
    assert given_files(report, {"": "x.csv"}) == {"january": "x.csv"}
    assert given_files(two, {"": "new/customers.csv"}) == {"customers": "new/customers.csv"}
    with pytest.raises(UsageError, match=r"Which table is x\.csv for"):
        given_files(two, {"": "x.csv"})
    with pytest.raises(UsageError, match="has no table sales"):
        given_files(report, {"sales": "x.csv"})


async def test_a_report_reads_no_file_outside_of_its_folder(report: Report, tmp_path: Path) -> None:
    result = replace(report.result("R4"), expected="../january.csv")
    (tmp_path / "report-data" / "report.json").write_text(
        manifest(replace(report, results=(result,), figures=())), "utf-8"
    )
    with pytest.raises(UsageError, match="outside of its folder"):
        await run(tmp_path)


def test_no_report(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"report-data/report\.json can't be read"):
        found_report(tmp_path / "report.py")
    (tmp_path / "report.json").write_text(json.dumps([]), "utf-8")
    with pytest.raises(UsageError, match="can't be read as a report"):
        found_report(tmp_path)


def table(*rows: Row, types: tuple[str, ...] = ("VARCHAR", "DOUBLE")) -> ReportRows:
    return ReportRows(tuple(Column(f"c{number}", kind) for number, kind in enumerate(types)), rows)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (table(("a", 0.1)), table(("a", 0.1 + 1e-14)), []),
        (table(("a", float("nan"))), table(("a", float("nan"))), []),
        (table(("a", 1.0), ("b", 2.0)), table(("b", 2.0), ("a", 1.0)), []),
        (table(("a", 1.0), ("a", 2.0)), table(("a", 1.0), ("a", 3.0)), ["row 2: c1 2.0 → 3.0 (+50.0%)"]),
        (table(("a", None)), table(("a", 1.5)), ["c0=a: c1 NULL → 1.5"]),
        (table(), table(("a", 1.0)), ["new: c0=a"]),
        (table((1,), types=("BIGINT",)), table((2,), types=("BIGINT",)), ["row 1: c0 1 → 2 (+100.0%)"]),
        (table((10**15,), types=("BIGINT",)), table((10**15 + 1,), types=("BIGINT",)),
         ["row 1: c0 1,000,000,000,000,000 → 1,000,000,000,000,001 (+0.0%)"]),
        (table((0,), types=("BIGINT",)), table((False,), types=("BIGINT",)), ["row 1: c0 0 → false"]),
        (table(("a", 1.0)), ReportRows((Column("c0", "VARCHAR"), Column("d", "DOUBLE")), ()),
         ["columns without c1 and with d"]),
    ],
)  # fmt: skip
def test_what_counts_as_a_change(before: ReportRows, after: ReportRows, said: list[str]) -> None:
    found = changes(before, after)
    assert summary(found) == said
    assert bool(found) == bool(said)


def test_many_changes_are_counted() -> None:
    before = table(*((str(number), float(number)) for number in range(50)))
    after = table(*((str(number), float(number) + 1) for number in range(50)))
    assert summary(changes(before, after))[-1] == "and 30 further values"
