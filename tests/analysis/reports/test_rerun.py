"""A report that was exported runs again without ba, and says what differs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import duckdb
import openpyxl
import pytest

from ba_tui.analysis.engine import Analysis
from ba_tui.analysis.reports.gathering import gathered, stored
from ba_tui.analysis.reports.programs import notebook, script
from ba_tui.analysis.reports.values import Report, ReportFigure, ReportSection, report_of
from ba_tui.core.errors import UsageError
from ba_tui.core.ports.tables import Provenance

SALES = "region;amount;day\nNorth;1.234,50;01.02.2026\nSouth;99,25;15.02.2026\nNorth;10,00;28.02.2026\n"
SAID = (ReportSection('How much did each region sell?\nAnd """ in all?', "North sold **1,244.50**, `R1`.", 0.0),)
NORTH = ReportFigure("1,244.50", "R1", "total", 0, "1244.50")


def exported(folder: Path, report: Report) -> Path:
    """The report as a script."""
    path = folder / "report.py"
    path.write_text(script(report, "report-data", path.name), "utf-8")
    return path


def run(path: Path, *more: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, str(path), *more], capture_output=True, text=True, check=False, timeout=50)
    return done.returncode, done.stdout + done.stderr


async def reported(engine: Analysis, folder: Path, figures: Sequence[ReportFigure] = (NORTH,)) -> Report:
    data = folder / "report-data"
    data.mkdir()
    report = await gathered(engine, "Sales of February", SAID, figures, folder)
    await stored(engine, report, data)
    assert report_of((data / "report.json").read_text("utf-8")) == report
    return report


@pytest.fixture
async def analysed(tmp_path: Path) -> object:
    """A session with data of several kinds and results of all."""
    from tests.analysis.engines import engine_in

    (tmp_path / "sales.csv").write_text(SALES, "utf-8")
    (tmp_path / "old.csv").write_bytes("stadt,n\nKöln,1\nDüsseldorf,2\n".encode("cp1252"))
    (tmp_path / "lines.jsonl").write_text('{"a": 1.5}\n{"a": 2.5}\n', "utf-8")
    duckdb.execute(f"COPY (FROM range(5) t(n)) TO '{tmp_path / 'five.parquet'}'")
    book = openpyxl.Workbook()
    book.active.append(["item", "price"])  # type: ignore[union-attr]
    book.active.append(["pen", 2])  # type: ignore[union-attr]
    book.save(tmp_path / "book.xlsx")
    engine = engine_in(tmp_path)
    await engine.register("sales.csv")
    await engine.query("SELECT region, sum(amount) AS total FROM sales GROUP BY region ORDER BY region")
    await engine.query("SELECT sum(total) AS whole, max(day) FROM R1, sales")
    await engine.query("SELECT * FROM 'old.csv' WHERE stadt LIKE '%ö%'")
    await engine.query("FROM 'book.xlsx'")
    await engine.query("SELECT avg(a) AS mean FROM 'lines.jsonl'")
    await engine.query("SELECT sum(n) FROM 'five.parquet'")
    await engine.query("EXPLAIN SELECT 1")
    yield engine
    await engine.close()


async def test_a_script_gives_the_same_numbers(analysed: Analysis, tmp_path: Path) -> None:
    inbox = analysed.inbox
    inbox.mkdir(parents=True, exist_ok=True)
    duckdb.execute(f"COPY (SELECT 42 AS answer) TO '{inbox / 'made.parquet'}'")
    await analysed.adopt(inbox / "made.parquet", Provenance("df.sum()", engine="Python 3"))
    await analysed.query("SELECT answer + 1 AS more FROM R8")
    report = await reported(analysed, tmp_path)
    path = exported(tmp_path, report)
    await analysed.close()

    code, said = run(path)
    assert "7 results worked out again, 2 taken from copies, 1 figures compared: no differences." in said, said
    assert code == 0
    assert "1244.50" in said
    assert "Köln" in said
    text = path.read_text("utf-8")
    assert "# Not worked out again: Python 3 made it.\nprint(report.stored('R8'))" in text
    assert {each.name for each in report.tables if each.stored} == {"old", "book_sheet"}


async def test_a_script_says_what_differs(analysed: Analysis, tmp_path: Path) -> None:
    path = exported(tmp_path, await reported(analysed, tmp_path))
    (tmp_path / "march.csv").write_text(SALES.replace("1.234,50", "2.000,00"), "utf-8")
    code, said = run(path, "--data", "sales=" + str(tmp_path / "march.csv"))
    assert code == 1
    assert "R1.total (region=North): 2010.00, not 1244.50" in said
    assert "“1,244.50” of an answer: R1.total no longer has 1244.50" in said
    assert "R2.whole" in said

    (tmp_path / "sales.csv").write_text(SALES + "East;1,00;01.03.2026\n", "utf-8")
    code, said = run(path)
    assert code == 1
    assert "sales.csv: the file changed since the report was made" in said
    assert "R1: 3 rows, not 2" in said

    (tmp_path / "sales.csv").unlink()
    code, said = run(path)
    assert code == 1
    assert "sales.csv is gone, which sales reads. Name another file: --data sales=FILE" in said
    assert "There is no table tales. The report has" in run(path, "--data", "tales=x.csv")[1]


async def test_what_changed_since_is_taken_from_its_copy(analysed: Analysis, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_text(SALES + "East;1,00;01.03.2026\n", "utf-8")
    await analysed.query("SELECT count(*) FROM sales")
    report = await reported(analysed, tmp_path)
    assert report.result("R1").kept == "sales has changed since"
    code, said = run(exported(tmp_path, report))
    assert (code, "no differences" in said) == (0, True), said


async def test_a_notebook_runs(analysed: Analysis, tmp_path: Path) -> None:
    import nbformat
    from nbclient import NotebookClient

    report = await reported(analysed, tmp_path)
    made = nbformat.reads(notebook(report, "report-data"), as_version=4)
    nbformat.validate(made)
    client = NotebookClient(made, timeout=50, resources={"metadata": {"path": str(tmp_path)}})
    await client.async_execute()
    said = json.dumps(made)
    assert "no differences" in said
    assert "<caption>R1</caption>" in said
    assert "How much did each region sell?" in said


async def test_words_of_a_report_are_never_code(tmp_path: Path, engine: Analysis) -> None:
    evil = 'x"""\u2028import os\r\x0bos._exit(3)\x00\n"""'
    report = await gathered(engine, evil, (ReportSection(evil, evil, 0.0),), (), tmp_path)
    text = script(report, "a'b", "r\n.py")
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
    from ba_tui.analysis.reports.values import manifest

    with pytest.raises(UsageError, match="later version"):
        report_of(manifest(replace(report)))
