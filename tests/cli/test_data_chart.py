"""``ba data chart``: what is drawn on a pipe, saved as a picture, and refused in one line."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from ba_tui.features.data.data_cli import painted_lines
from ba_tui.plotting.canvas import Run
from tests.program import Program


@pytest.fixture
def ba(tmp_path: Path) -> Program:
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    (folder / "sales.csv").write_text("region;units\nNorth;12\nSouth;30\nNorth;5\n")
    return Program(folder, home)


SQL = "SELECT region, count(*) AS n FROM sales GROUP BY region ORDER BY region"


def test_a_chart_is_drawn(ba: Program) -> None:
    done = ba.here("data", "chart", "sales.csv", "--x", "region", "--y", "units", "--width", "40", "--ascii")
    assert (done.returncode, done.stderr) == (0, "")
    first, *rest = done.stdout.splitlines()
    assert first == "sum of units by region"
    assert rest[-1].split() == ["South", "North"]
    assert max(map(len, rest)) <= 40
    assert done.stdout.isascii()


def test_a_chart_of_a_query_is_saved(ba: Program) -> None:
    assert ba.here("data", "chart", "sales.csv", "--sql", SQL, "-o", "n.svg").returncode == 0
    assert (ba.folder / "n.svg").read_text().startswith("<svg")


def test_the_rows_of_a_query_are_drawn(ba: Program) -> None:
    drawn = ba.here("data", "query", SQL, "sales.csv", "--chart", "bar").stdout
    assert drawn.splitlines()[0] == "n by region"
    assert "\x1b" not in drawn


def test_a_chart_of_a_source_asks_the_source(ba: Program) -> None:
    with closing(sqlite3.connect(ba.folder.parent / "shop.db")) as base:
        base.executescript("CREATE TABLE sales (region, n); INSERT INTO sales VALUES ('West', 7), ('East', 9)")
    (ba.home / "ba").mkdir()
    settings = {"sources": {"shop": {"url": f"sqlite://{ba.folder.parent}/shop.db"}}}
    (ba.home / "ba" / "config.yaml").write_text(yaml.safe_dump(settings))
    done = ba.here("data", "query", "SELECT region, n FROM sales", "--source", "shop", "--chart", "bar")
    assert (done.stderr, done.returncode) == ("", 0)
    assert "West" in done.stdout
    assert "North" not in done.stdout


def test_a_chart_of_a_query_tells_what_a_table_would_tell(ba: Program) -> None:
    (ba.folder / "orders.csv").write_text("id,amount\n1,10\n2,20\n3,30\n")
    (ba.folder / "lines.csv").write_text("id,item\n1,a\n1,b\n2,c\n3,d\n3,e\n")
    words = ("data", "query", "SELECT id, sum(amount) AS s FROM orders JOIN lines USING (id) GROUP BY id")
    table = ba.here(*words, "orders.csv", "lines.csv")
    drawn = ba.here(*words, "orders.csv", "lines.csv", "--chart", "bar")
    assert "careful: " in table.stderr
    assert drawn.stderr == table.stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("chart", "sales.csv", "--x", "regio"), 1, "sales has no column regio. Did you mean region?"),
        (("chart", "sales.csv", "-o", "x.pdf"), 1, "x.pdf is no picture. Its name must end in .svg or .png."),
        (("query", "SELECT 1", "--chart", "bra"), 1, "There is no chart 'bra'. Did you mean 'bar'?"),
        (("chart", "none.csv"), 2, "none.csv"),
    ],
)
def test_what_can_not_be_drawn_is_one_line(ba: Program, words: tuple[str, ...], code: int, said: str) -> None:
    done = ba.here("data", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_colours_stand_around_what_has_a_role() -> None:
    line = (Run("North ", "text"), Run("██", "1"), Run(" 3", "dim"))
    assert painted_lines([line], coloured=True) == ["North \x1b[36m██\x1b[0m\x1b[2m 3\x1b[0m"]
    assert painted_lines([line], coloured=False) == ["North ██ 3"]
