"""schema.py and query.py: databases and CSV files answer, and nothing can be changed through them."""

from __future__ import annotations

import sqlite3

import duckdb
import pytest

from tests.bundled_skills.bench import Bench

SCHEMA, QUERY = "sql/schema.py", "sql/query.py"


@pytest.fixture
def shop(bench: Bench) -> Bench:
    with sqlite3.connect(bench.folder / "shop.db") as made:
        made.executescript("""
            CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT NOT NULL);
            CREATE TABLE "order lines"(
              id INTEGER PRIMARY KEY, customer_id INT, item INT REFERENCES items(id), amount REAL);
            CREATE TABLE items(id INTEGER PRIMARY KEY);
            CREATE UNIQUE INDEX by_name ON customers(name);
            CREATE VIEW large AS SELECT * FROM "order lines" WHERE amount > 2.6;
            INSERT INTO customers VALUES(1, 'Ann'), (2, 'Bo');
            INSERT INTO items VALUES(1);
            INSERT INTO "order lines" VALUES(1, 1, 1, 2.5), (2, 1, 1, 3), (3, 2, NULL, NULL);
        """)
    made.close()
    return bench


def test_the_schema_is_told(shop: Bench) -> None:
    said = shop.run(SCHEMA, {"path": "shop.db"})
    tables = {table["name"]: table for table in said["tables"]}
    assert {name: (table["kind"], table["rows"]) for name, table in tables.items()} == {
        "customers": ("table", 2),
        "items": ("table", 1),
        "large": ("view", 1),
        "order lines": ("table", 3),
    }
    assert tables["order lines"]["references"] == ["item -> items.id"]
    assert tables["customers"]["indexes"] == ["by_name (unique)"]
    assert "order lines.customer_id -> customers" in said["maybe_references"]


def test_queries_answer(shop: Bench) -> None:
    sql = 'SELECT customer_id, SUM(amount) AS amount, COUNT(*) AS n FROM "order lines" GROUP BY 1 ORDER BY 1;'
    said = shop.run(QUERY, {"path": "shop.db", "sql": f"-- by customer\n{sql}"})
    assert (said["columns"], said["rows"], said["more"]) == (
        ["customer_id", "amount", "n"],
        [[1, 5.5, 2], [2, None, 1]],
        False,
    )
    said = shop.run(QUERY, {"path": "shop.db", "sql": 'SELECT id FROM "order lines"', "rows": 1, "output": "o/all.csv"})
    assert (said["given"], said["more"], said["written"]) == (
        1,
        True,
        {"path": "o/all.csv", "rows": 3, "all_of_them": True},
    )
    assert (shop.folder / "o/all.csv").read_text("utf-8").split() == ["id", "1", "2", "3"]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM customers", "only SELECT"),
        ("WITH x AS (SELECT 1) DELETE FROM customers", "only reading is allowed"),
        ("SELECT 1; DROP TABLE customers", "one statement at a time"),
        ("SELECT load_extension('x')", "not authorized"),
        ("SELECT * FROM custmers", "there are customers, items, large, order lines"),
    ],
)
def test_only_reading_is_done(shop: Bench, sql: str, said: str) -> None:
    before = (shop.folder / "shop.db").read_bytes()
    assert said in shop.refused(QUERY, {"path": "shop.db", "sql": sql})
    assert (shop.folder / "shop.db").read_bytes() == before


def test_a_query_without_end_is_ended(shop: Bench) -> None:
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT COUNT(*) FROM r"
    assert "not done after 0 seconds" in shop.refused(QUERY, {"path": "shop.db", "sql": endless, "seconds": 0})


def test_csv_files_are_tables(bench: Bench) -> None:
    bench.write("s.csv", "\ufeffregion,amount,zip\nN,10,01\nN,2.5,02\nS,,03\nbad\n")
    (bench.folder / "r.csv").write_bytes("region;name\nN;Nörd\nS;South\n".encode("cp1252"))
    sql = "SELECT name, SUM(amount), COUNT(*), MIN(zip) FROM s JOIN r USING (region) GROUP BY name ORDER BY name"
    said = bench.run(QUERY, {"tables": {"s": "s.csv", "r": "r.csv"}, "sql": sql})
    assert said["rows"] == [["Nörd", 12.5, 2, "01"], ["South", None, 1, "03"]]
    assert said["notes"] == ["s: 3 rows of s.csv; 1 rows with another number of cells LEFT OUT", "r: 2 rows of r.csv"]


def test_what_is_no_database_is_refused(bench: Bench) -> None:
    bench.write("x.db", "no database at all")
    assert "neither a SQLite nor a DuckDB file" in bench.refused(SCHEMA, {"path": "x.db"})
    bench.write("y.db", "SQLite format 3\0 but broken")
    assert "y.db" in bench.refused(SCHEMA, {"path": "y.db"})
    assert 'either "path"' in bench.refused(QUERY, {"sql": "SELECT 1"})


def test_duckdb_files_answer_and_stay_shut(bench: Bench) -> None:
    with duckdb.connect(str(bench.folder / "d.duckdb")) as made:
        made.execute("CREATE TABLE t(a INT PRIMARY KEY); INSERT INTO t VALUES (1)")
    assert bench.run(SCHEMA, {"path": "d.duckdb"})["tables"][0]["rows"] == 1
    assert bench.run(QUERY, {"path": "d.duckdb", "sql": "SELECT a FROM t"})["rows"] == [[1]]
    bench.write("s.csv", "a\n1\n")
    for sql in ("SELECT * FROM 's.csv'", "SELECT 1; COPY t TO 'x.csv'", "WITH x AS (SELECT 2) INSERT INTO t FROM x"):
        bench.refused(QUERY, {"path": "d.duckdb", "sql": sql})
