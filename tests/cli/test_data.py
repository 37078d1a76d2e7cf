"""``ba data``: profiles and queries on the command line, what they print, and how they end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ba_tui.core.ports.tables import Column
from ba_tui.features.data.analysis.errors import (
    AnalysisError,
    DataRefused,
    DataUnreadable,
    EngineFailed,
    QueryFailed,
    QueryRefused,
    UnknownTable,
)
from ba_tui.features.data.cli_engine import markdown_lines, print_error
from tests.program import Program

SALES = "region;units;price\nNorth;12;1,50\nSouth;30;2,00\nNorth;5;\n"
ENDLESS = "SELECT sum(a.range * b.range) FROM range(3000000) a, range(3000000) b"


@pytest.fixture
def ba(tmp_path: Path) -> Program:
    folder, home, scratch = tmp_path / "work", tmp_path / "home", tmp_path / "scratch"
    for made in (folder, home, scratch):
        made.mkdir()
    (folder / "sales.csv").write_text(SALES)
    return Program(folder, home, {"TMPDIR": str(scratch)})


def test_a_query_prints_a_table_and_the_person_learns_what_is_left_out(ba: Program) -> None:
    done = ba.here("data", "query", "SELECT region, price FROM sales ORDER BY price", "sales.csv", "--rows", "2")
    assert done.returncode == 0
    assert done.stdout == "region  price\n──────  ─────\nNorth    1.50\nSouth    2.00\n"
    assert done.stderr == "ba: 3 rows; the first 2 are shown. --rows 0 prints all of them.\n"


def test_markdown_holds_whole_cells() -> None:
    columns = (Column("region", "VARCHAR"), Column("units", "BIGINT"))
    lines = list(markdown_lines(columns, [("North | 1", 17), (None, True)]))
    assert lines == ["| region | units |", "| --- | ---: |", "| North \\| 1 | 17 |", "| NULL | true |"]


def test_results_go_to_files_and_come_from_a_pipe(ba: Program) -> None:
    piped = ba.here("data", "query", "FROM stdin WHERE units > 5", "-", "--output", "big.parquet", stdin=SALES)
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, "", "")
    assert ba.json("data", "query", "SELECT count(*) AS n FROM big", "*.parquet", "--json") == [{"n": 2}]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("SELECT unit FROM sales", "sales.csv"), 1, "There is no column unit here. Did you mean units?"),
        (("SELECT 1", "--output", "x.pages"), 1, "x.pages does not say which format it is to have. Add --format."),
        (("SELECT 1", "nothing.csv"), 2, "nothing.csv: No such file or directory."),
        (("SELECT 1", "ftp://host/sales.csv"), 4, "data is not read from the network. Download the file first."),
    ],
)
def test_a_failure_is_one_line_and_an_exit_code(ba: Program, words: tuple[str, ...], code: int, said: str) -> None:
    done = ba.here("data", "query", *words)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (QueryFailed("Wrong."), 1),
        (UnknownTable("There is none."), 1),
        (DataUnreadable("Broken."), 2),
        (EngineFailed("Gone."), 2),
        (QueryFailed("More than 1,000 rows.", kind="resource_error"), 3),
        (QueryFailed("Too slow.", kind="timeout"), 3),
        (QueryRefused("Not run."), 4),
        (DataRefused("Outside."), 4),
    ],
)
def test_every_error_has_its_exit_code(capsys: pytest.CaptureFixture[str], error: AnalysisError, code: int) -> None:
    assert print_error(error) == code
    assert capsys.readouterr().err == f"ba: {error}\n"


def test_a_profile_is_told_of_each_file_that_can_be_read(ba: Program) -> None:
    (ba.folder / "page.csv").write_text("<!doctype html><html></html>")
    done = ba.here("data", "profile", "page.csv", "sales.csv", "--json")
    assert done.returncode == 2
    assert done.stderr == "ba: page.csv is a web page (HTML), not a table. Download the data itself.\n"
    (told,) = json.loads(done.stdout)
    assert [column["column"]["name"] for column in told["columns"]] == ["region", "units", "price"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_query_and_leaves_nothing(ba: Program, number: int) -> None:
    process = ba.start("data", "query", ENDLESS)
    scratch = Path(ba.env["TMPDIR"])
    while not list(scratch.glob("ba-data-*/engine.duckdb")):
        assert process.poll() is None
        os.sched_yield()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + number, "", "")
    assert not list(scratch.iterdir())


def test_a_reader_that_has_seen_enough_is_no_failure(ba: Program) -> None:
    command = 'python -m ba_tui data query "FROM range(900000)" -f csv | head -1; echo ${PIPESTATUS[0]}'
    python = Path(sys.executable).parent
    env = {**ba.environment, "PATH": f"{python}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], cwd=ba.folder, env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("range\n0\n", "")


def test_a_comparison_says_what_differs_and_ends_with_six(ba: Program) -> None:
    (ba.folder / "new.csv").write_text(SALES.replace("30", "31"))
    done = ba.here("data", "compare", "sales.csv", "new.csv", "--key", "region", "--key", "units")
    assert done.returncode == 6
    assert "Rows: 2 equal, 0 changed, 1 only in sales, 1 only in new." in done.stdout
    told = ba.here("data", "compare", "sales.csv", "new.csv", "-k", "region", "-f", "csv")
    assert told.returncode == 6
    assert told.stdout.splitlines()[1:] == ["changed,South,30,31"]
    assert "ba: sales: 1 row with a repeated key" in told.stderr


def test_a_comparison_of_equal_files_and_of_files_with_one_name(ba: Program) -> None:
    same = ba.here("data", "compare", "sales.csv", "sales.csv", "-k", "units", "--json")
    assert (same.returncode, '"equal": true' in same.stdout) == (0, True)
    (ba.folder / "old").mkdir()
    (ba.folder / "old" / "sales.csv").write_text(SALES)
    named = ba.here("data", "compare", "old/sales.csv", "sales.csv", "-k", "units")
    assert named.stdout.startswith("sales is old/sales.csv; sales_2 is sales.csv.\n")


def test_a_comparison_by_an_unknown_column_is_refused(ba: Program) -> None:
    (ba.folder / "new.csv").write_text(SALES)
    wrong = ba.here("data", "compare", "sales.csv", "new.csv", "-k", "regoin")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr == "ba: sales has no column regoin. Did you mean region?\n"


def test_definitions_count_once_the_folder_is_trusted(ba: Program) -> None:
    metrics = ba.folder / ".ba" / "metrics"
    metrics.mkdir(parents=True)
    (metrics / "sold.yaml").write_text("sql: sum(units) FILTER (WHERE price > 0)\nfrom: sales\n")
    untold = ba.here("data", "metrics")
    assert (untold.returncode, untold.stdout) == (0, "")
    assert ".ba/metrics is ignored: this folder is not trusted." in untold.stderr
    assert ba.here("trust", "--yes").returncode == 0
    told = ba.here(
        "data", "query", "SELECT metric('sold') AS a, sum(units) AS sold FROM sales", "sales.csv", "-f", "csv"
    )
    assert told.stdout == "a,sold\n42,47\n"
    assert told.stderr.startswith("ba: sold is not computed as agreed. The query computes it as SUM(units); agreed is ")


def test_a_definition_that_can_not_be_computed_is_named(ba: Program) -> None:
    metrics = ba.folder / ".ba" / "metrics"
    metrics.mkdir(parents=True)
    (metrics / "sold.yaml").write_text("sql: sum(units) FILTER (WHERE price > 0)\nfrom: sales\n")
    (metrics / "bad.yaml").write_text("sql: sum(unit)\nfrom: sales\n")
    assert ba.here("trust", "--yes").returncode == 0
    checked = ba.here("data", "metrics", "sales.csv")
    assert checked.returncode == 6
    assert checked.stderr == "ba: .ba/metrics/bad.yaml: bad: There is no column unit here. Did you mean units?\n"


def test_figures_are_printed_as_people_of_a_locale_write_them(ba: Program) -> None:
    sql = "SELECT 1234567.50::DECIMAL(10,2) AS amount, 2026 AS n, 1234567 AS order_id, 1234567 AS units, -0.25 AS d"
    done = ba.here("data", "query", sql, "--locale", "de-DE", "-f", "markdown")
    assert done.stdout.splitlines()[2] == "| 1.234.567,50 | 2026 | 1234567 | 1.234.567 | -0,25 |"
    wrong = ba.here("data", "query", sql, "--locale", "xx_YY")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert wrong.stderr == "ba: There is no locale 'xx_YY'. Write it as de_DE, en_GB or fr.\n"
