"""A report that was exported runs again without ba, and says what differs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import openpyxl
import pytest
import pytest_asyncio

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Provenance
from ba_tui.core.text.figures import AnswerNotes, Footnote
from ba_tui.core.values import frozen
from ba_tui.features.data.analysis.calendars import calendar_query
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.report import (
    Report,
    ReportFigure,
    ReportSection,
    gather_report,
    notebook,
    report_of,
    script,
    store_data,
)
from tests.analysis.engines import engine_in

SALES = "region;amount;day\nNorth;1.234,50;01.02.2026\nSouth;99,25;15.02.2026\nNorth;10,00;28.02.2026\n"
ANSWER = AnswerNotes(
    "North sold **1,244.50\ue0001\ue001**, `R1`.",
    (Footnote(1, "1,244.50", "sourced", "R1 · total", ("R1",)),),
    "1 figure",
)
SAID = (ReportSection('How much did each region sell?\nAnd """ in all?', ANSWER, 0.0),)
FIGURES = (
    ReportFigure("1,244.50", "R1", "total", 0, 1244.5),
    ReportFigure("99", "R1", "total", 1, 99.25),
    ReportFigure("42", "R8", "answer", 0, 42.0),
    ReportFigure("7", "R99", "gone", 0, 7.0),
)


@frozen
class Made:
    """Two reports, in the folders ``first`` and ``later`` of ``base``."""

    base: Path
    first: Report
    later: Report


def run(folder: Path, *more: str) -> tuple[int, str]:
    command = [sys.executable, str(folder / "report.py"), *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    return done.returncode, done.stdout + done.stderr


async def exported(engine: Analysis, folder: Path, kept: Path) -> Report:
    """Write the report as a script and a notebook, and keep a copy of its folder."""
    data = folder / "report-data"
    data.mkdir()
    report = await gather_report(engine, "Sales of February", SAID, FIGURES, folder)
    await store_data(engine, report, data)
    assert report_of((data / "report.json").read_text("utf-8")) == report
    (folder / "report.py").write_text(script(report, "report-data", "report.py"), "utf-8")
    (folder / "report.ipynb").write_text(notebook(report, "report-data"), "utf-8")
    shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("session"))
    shutil.rmtree(data)
    return report


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A session with data of several kinds and results of all, exported before and after a file changed."""
    base = tmp_path_factory.mktemp("reports")
    folder = base / "session"
    folder.mkdir()
    (folder / "sales.csv").write_text(SALES, "utf-8")
    (folder / "old.csv").write_bytes("stadt,n\nKöln,1\nDüsseldorf,2\n".encode("cp1252"))
    (folder / "lines.jsonl").write_text('{"a": 1.5}\n{"a": 2.5}\n', "utf-8")
    duckdb.execute(f"COPY (FROM range(5) t(n)) TO '{folder / 'five.parquet'}'")
    book = openpyxl.Workbook()
    book.active.append(["item", "price"])  # type: ignore[union-attr]
    book.active.append(["pen", 2])  # type: ignore[union-attr]
    book.save(folder / "book.xlsx")
    engine = engine_in(folder)
    await engine.register("sales.csv")
    await engine.query("SELECT region, sum(amount) AS total FROM sales GROUP BY region ORDER BY region")
    await engine.query("SELECT sum(total) AS whole, max(day) FROM R1, sales")
    await engine.query("SELECT * FROM 'old.csv' WHERE stadt LIKE '%ö%'")
    await engine.query("FROM 'book.xlsx'")
    await engine.query("SELECT avg(a) AS mean FROM 'lines.jsonl'")
    await engine.query("SELECT sum(n) FROM 'five.parquet'")
    await engine.query("EXPLAIN SELECT 1")
    engine.inbox.mkdir(parents=True, exist_ok=True)
    duckdb.execute(f"COPY (SELECT 42 AS answer) TO '{engine.inbox / 'made.parquet'}'")
    await engine.adopt(engine.inbox / "made.parquet", Provenance("df.sum()", engine="pandas 3", source="python"))
    await engine.query("SELECT answer + 1 AS more FROM R8")
    await engine.pivot("sales", ["region"], ["day"], "amount")
    await engine.query("SELECT * REPLACE (total + 1 AS total) FROM R1")
    compared = await engine.compare("R1", "R11", ["region"])
    assert compared.result
    await engine.query(calendar_query("2026-01-01", "2026-01-31", "DE"))
    first = await exported(engine, folder, base / "first")
    (folder / "sales.csv").write_text(SALES + "East;1,00;01.03.2026\n", "utf-8")
    await engine.query("SELECT count(*) FROM sales")
    later = await exported(engine, folder, base / "later")
    await engine.close()
    return Made(base, first, later)


@pytest.fixture
def folder(made: Made, tmp_path: Path) -> Path:
    """A copy of the first report with its files."""
    return shutil.copytree(made.base / "first", tmp_path / "first")


def test_a_script_gives_the_same_numbers(made: Made, folder: Path) -> None:
    code, said = run(folder)
    assert "11 results worked out again, 2 taken from copies, 3 figures compared: no differences." in said, said
    assert code == 0
    assert "1244.50" in said
    assert "Köln" in said
    assert "# Not worked out again: Python made it.\nprint(report.stored('R8'))" in (folder / "report.py").read_text()
    assert {each.name for each in made.first.tables if each.stored} == {"old", "book_sheet"}


def test_a_script_says_what_differs(folder: Path) -> None:
    (folder / "march.csv").write_text(SALES.replace("1.234,50", "2.000,00"), "utf-8")
    code, said = run(folder, "--data", "sales=" + str(folder / "march.csv"))
    assert code == 1
    assert "R1.total (region=North): 2010.00, not 1244.50" in said
    assert "“1,244.50” of an answer: R1.total (region=North) is 2010.00, not 1244.50" in said
    assert "R2.whole" in said

    (folder / "sales.csv").write_text(SALES + "East;1,00;01.03.2026\n", "utf-8")
    code, said = run(folder)
    assert code == 1
    assert "sales.csv: the file changed since the report was made" in said
    assert "R1: 3 rows, not 2" in said

    (folder / "sales.csv").unlink()
    code, said = run(folder)
    assert code == 1
    assert "sales.csv is gone, which sales reads. Name another file: --data sales=FILE" in said
    assert "There is no table tales. The report has" in run(folder, "--data", "tales=x.csv")[1]


def test_figures_whose_row_or_column_is_gone_are_named(folder: Path) -> None:
    (folder / "march.csv").write_text(SALES.replace("North", "East"), "utf-8")
    said = run(folder, "--data", "sales=" + str(folder / "march.csv"))[1]
    assert "“1,244.50” of an answer: R1 has no row region=North" in said
    assert "“99” of an answer" not in said

    path = folder / "report.py"
    path.write_text(path.read_text("utf-8").replace("AS total FROM sales", "AS sum FROM sales"), "utf-8")
    path.write_text(path.read_text("utf-8").replace("total", "sum"), "utf-8")
    assert "“1,244.50” of an answer: R1 no longer has the columns region, total" in run(folder)[1]


def test_what_changed_since_is_taken_from_its_copy(made: Made) -> None:
    assert made.later.result("R1").kept == "sales has changed since"
    code, said = run(made.base / "later")
    assert (code, "no differences" in said) == (0, True), said


async def test_a_notebook_runs(folder: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.reads((folder / "report.ipynb").read_text("utf-8"), as_version=4)
    nbformat.validate(notebook)
    client = NotebookClient(notebook, timeout=50, resources={"metadata": {"path": str(folder)}})
    await client.async_execute()
    said = json.dumps(notebook)
    assert "3 figures compared: no differences" in said
    assert "<caption>R1</caption>" in said
    assert "How much did each region sell?" in said
    assert "**1,244.50<sup>1</sup>**" in said
    assert "1. `1,244.50` sourced: R1 \\u00b7 total" in said


def test_words_of_a_report_are_never_code() -> None:
    evil = 'x"""\u2028import os\r\x0bos._exit(3)\x00\n"""'
    note = Footnote(1, evil, evil, evil)
    section = ReportSection(evil, AnswerNotes(f"{evil}\ue0001\ue001", (note,), evil), 0.0)
    text = script(Report(evil, 0.0, "1", "DuckDB", (section,)), "a'b", "r\n.py")
    compile(text, "report.py", "exec")
    lines = [line for line in text.splitlines() if "os._exit" in line]
    assert lines
    assert all(line.startswith("#") for line in lines)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"results": 1}', '{"results": [], "format": "x"}', "{" * 9_000])
def test_a_manifest_that_is_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"report\.json can't be read"):
        report_of(text)


def test_a_manifest_of_a_later_version() -> None:
    report = Report("t", 0.0, "9", "", format=99)
    from ba_tui.features.data.analysis.report import manifest

    with pytest.raises(UsageError, match=r"written by a newer ba \(schema 99"):
        report_of(manifest(replace(report)))
