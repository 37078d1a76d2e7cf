"""Queries: only what reads runs, results are kept as R1, R2, …, and a failure is one line with the nearest names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pytest
import pytest_asyncio

from ba_tui.core.ports.tables import Arrangement, Progress, Provenance, RowFilter, RowOrder
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import AnalysisError, DataUnreadable, QueryFailed, QueryRefused, UnknownTable
from tests.analysis.engines import engine_in

pytestmark = pytest.mark.asyncio(loop_scope="module")

Put = Callable[[str, bytes | str], str]
SALES = "id,region,amount\n1,North,10.5\n2,South,20\n3,North,\n4,south,7\n"


@pytest_asyncio.fixture(loop_scope="module")
async def sales(engine: Analysis, files: Path) -> str:
    """A small table, the same for all tests."""
    (files / "sales.csv").write_text(SALES) if not (files / "sales.csv").exists() else None
    return (await engine.register("sales.csv"))[0].name


async def test_a_result_is_a_table_of_later_queries(engine: Analysis, sales: str) -> None:
    first = await engine.query(f"SELECT region, sum(amount) AS total FROM {sales} GROUP BY ALL ORDER BY total")
    assert first.head == (("south", 7.0), ("North", 10.5), ("South", 20.0))
    second = await engine.query(f"FROM {first.handle} WHERE total > 10")
    assert (second.rows, [column.name for column in second.columns]) == (2, ["region", "total"])
    assert int(second.handle[1:]) == int(first.handle[1:]) + 1
    told = second.provenance
    assert (told.results, told.datasets, told.rows) == ((first.handle,), (), 2)
    assert told.sql.startswith(f"FROM {first.handle}")
    assert told.engine.startswith("DuckDB ")
    (used,) = first.provenance.datasets
    assert (used.name, len(used.files[0].sha256)) == (sales, 64)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("FROM sales", 4),
        ("DESCRIBE sales", 3),
        ("SUMMARIZE sales", 3),
        ("VALUES (1), (2)", 2),
        ("WITH x AS (SELECT 1 AS a) FROM x -- a comment", 1),
        ("PIVOT sales ON region USING sum(amount) GROUP BY id", 4),
        ("SELECT 1 AS a, 2 AS a;", 1),
        ("EXPLAIN SELECT * FROM sales", 1),
        ("EXPLAIN ANALYZE SELECT * FROM sales", 1),
        ("SELECT * FROM 'sales.csv'", 4),
        ("SELECT sum(1::HUGEINT), {'a': [1, 2]}, INTERVAL 3 DAYS, 'x'::BLOB", 1),
        ("SELECT * FROM sales WHERE id = 99", 0),
    ],
)
async def test_what_reads_runs(engine: Analysis, sales: str, sql: str, rows: int) -> None:
    assert (await engine.query(sql)).rows == rows


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("COPY sales TO 'out.csv'", "COPY writes or reads files"),
        ("ATTACH 'x.db'", "ATTACH opens a database file"),
        ("INSTALL httpfs", "extensions are not loaded or installed"),
        ("LOAD httpfs", "extensions are not loaded or installed"),
        ("SET threads = 1", "the engine's settings are fixed"),
        ("PRAGMA database_list", "PRAGMA may change how the engine works"),
        ("CALL pragma_version()", "CALL runs a procedure"),
        ("DROP TABLE sales", "DROP changes data"),
        ("INSERT INTO sales VALUES (1, 'x', 2)", "INSERT changes data"),
        ("WITH x AS (DELETE FROM sales RETURNING *) FROM x", "DELETE changes data"),
        ("WITH x AS (DELETE FROM sales RETURNING *) PIVOT x ON region", "DELETE does more than read"),
        ("EXPLAIN ANALYZE DELETE FROM sales", "DELETE changes data"),
        ("SELECT * FROM read_text('/etc/passwd')", "read_text() reads files or does more than read"),
        ("SELECT * FROM glob('/etc/*')", "glob() reads files or does more than read"),
        ("FROM query('DROP TABLE sales')", "query() reads files or does more than read"),
        ("SELECT nextval('s')", "nextval() does more than compute"),
        ("FROM read_csv('sales.csv')", "read_csv() reads a file on its own"),
    ],
)
async def test_what_does_more_is_refused(engine: Analysis, sales: str, sql: str, why: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        await engine.query(sql)
    assert str(caught.value) == f"This statement is not run: {why}."
    assert [(each.kind, each.why) for each in await engine.statements(sql)] == [("other", why)]
    assert (await engine.query(f"FROM {sales}")).rows == 4


@pytest.mark.parametrize(
    ("sql", "said", "hint"),
    [
        ("SELECT regoin FROM sales", "There is no column regoin here.", "Did you mean region?"),
        (
            "FROM slaes",
            "There is no table slaes.",
            "Did you mean sales? A file is named in quotes: FROM 'data/sales.csv'.",
        ),
        ("SELCT 1", 'This is not valid SQL: syntax error at or near "SELCT".', "LINE 1: SELCT 1"),
        ("SELECT summ(1)", "DuckDB has no function summ.", 'Did you mean "sum"?'),
        ("SELECT 1; SELECT 2", "These are 2 statements.", "Send one statement at a time."),
        ("  ", "There is no SQL statement.", ""),
        ("SELECT 'x'::INT", "Could not convert string 'x' to INT32", "LINE 2: SELECT 'x'::INT"),
        (
            "SELECT * FROM range(1000000000)",
            "The query returns more than 100,000 rows.",
            "Aggregate, filter or add a LIMIT, or raise analysis.max_rows.",
        ),
    ],
)
async def test_what_is_wrong_is_one_line(engine: Analysis, sales: str, sql: str, said: str, hint: str) -> None:
    del sales
    with pytest.raises(QueryFailed) as caught:
        await engine.query(sql)
    assert (str(caught.value), caught.value.hint) == (said, hint)


async def test_a_command_of_the_shell_is_told_apart(engine: Analysis) -> None:
    with pytest.raises(QueryRefused, match=r"\.read is a command of the DuckDB shell"):
        await engine.query(".read script.sql")


async def test_a_query_without_end_is_stopped(engine: Analysis) -> None:
    endless = "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t) SELECT max(a) FROM t"
    with pytest.raises(QueryFailed) as caught:
        await engine.query(endless, timeout=0.5)
    assert (caught.value.kind, str(caught.value)) == ("timeout", "The query took longer than 0.5 s and was stopped.")
    assert (await engine.query("SELECT 1")).head == ((1,),)


async def test_too_much_memory_is_one_line(tmp_path: Path) -> None:
    small = engine_in(tmp_path, memory=60_000_000)
    with pytest.raises(QueryFailed) as caught:
        await small.query("SELECT list(i || 'x' ORDER BY hash(i)) FROM range(3000000) t(i)")
    await small.close()
    assert caught.value.kind == "resource_error"
    assert "memory than it may use" in str(caught.value)


async def test_files_in_a_query_are_registered_first(engine: Analysis, put: Put) -> None:
    source = put("fresh.csv", "price;n\n1,5;2\n2,5;3\n")
    result = await engine.query(f"SELECT sum(price) FROM '{source}'")
    assert result.head == (("4.0",),)
    assert [used.source for used in result.provenance.datasets] == [source]
    again = await engine.query(f"SELECT max(n) FROM './{source}'")
    assert again.head == ((3,),)
    (first,), (second,) = result.provenance.datasets, again.provenance.datasets
    assert (first.name, first.files, first.called) == (second.name, second.files, (source,))
    assert second.called == (f"./{source}",)
    with pytest.raises(DataUnreadable, match=r"gone\.csv"):
        await engine.query("FROM 'gone.csv'")


async def test_a_changed_file_is_read_again(engine: Analysis, files: Path) -> None:
    path = files / "live.csv"
    path.write_text("a\n1\n")
    (dataset,) = await engine.register("live.csv")
    assert (await engine.register("live.csv")) == (dataset,)
    path.write_text("a\n1\n2\n")
    result = await engine.query("SELECT count(*) FROM live")
    assert (result.head, result.notes) == (((2,),), ("live was read again because its file changed.",))
    assert (await engine.profile("live")).columns[0].maximum == 2
    path.unlink()
    result = await engine.query("SELECT count(*) FROM live")
    assert (result.head, result.notes) == (((2,),), ("live.csv is gone; live is the copy that ba read before.",))


async def test_pages_in_any_order_and_through_filters(engine: Analysis) -> None:
    name = (
        await engine.query("SELECT i AS n, (i * 7919) % 10007 AS k, 'w' || i % 3 AS w FROM range(10000) t(i)")
    ).handle
    page = await engine.page(name, offset=5_000, limit=2)
    assert (page.rows, page.total) == (((5000, 5000 * 7919 % 10007, "w2"), (5001, 5001 * 7919 % 10007, "w0")), 10_000)
    down = Arrangement(order=(RowOrder("k", descending=True),))
    page = await engine.page(name, down, limit=3)
    keys = sorted((n * 7919 % 10007 for n in range(10_000)), reverse=True)
    assert [row[1] for row in page.rows] == keys[:3]
    assert [row[0] for row in page.rows] == list(page.numbers)
    last = await engine.page(name, down, offset=9_998)
    assert [row[1] for row in last.rows] == keys[-2:]
    some = Arrangement(filters=(RowFilter("w", "=", "w1"), RowFilter("n", "<", 10.5)), search="w1")
    page = await engine.page(name, some)
    assert ([row[0] for row in page.rows], page.total) == ([1, 4, 7, 10], 4)
    assert (await engine.page(name, Arrangement(filters=(RowFilter("w", "contains", "W2"),)))).total == 3_333
    assert (await engine.page(name, Arrangement(filters=(RowFilter("w", "is null"),)))).total == 0
    statistics = await engine.column(name, "n", Arrangement(filters=(RowFilter("n", ">=", 9_990),)))
    assert (statistics.minimum, statistics.maximum, statistics.distinct, statistics.role) == (9990, 9999, 10, "key")
    with pytest.raises(QueryFailed, match="has no column m"):
        await engine.page(name, Arrangement(order=(RowOrder("m"),)))
    with pytest.raises(QueryFailed, match="does not fit its column"):
        await engine.page(name, Arrangement(filters=(RowFilter("n", ">", "many"),)))
    with pytest.raises(UnknownTable, match="There is no table R999"):
        await engine.page("R999")


async def test_filters_compare_numbers_with_all_their_digits(engine: Analysis) -> None:
    """As DOUBLE, neighbouring ids were equal; in the type of the column, 5.555 became 5.56 and 1000 did not fit."""
    ids = (await engine.query("SELECT 9007199254740992 + i AS id FROM range(4) t(i)")).handle
    one = await engine.page(ids, Arrangement(filters=(RowFilter("id", "=", "9007199254740993"),)))
    assert one.rows == ((9007199254740993,),)
    query = "SELECT CAST(p AS DECIMAL(4, 2)) AS price FROM (VALUES (5.53), (5.54), (5.55), (5.56)) t(p)"
    prices = (await engine.query(query)).handle
    above, below = RowFilter("price", ">", "5.555"), RowFilter("price", "<", 5.555)
    small, same = RowFilter("price", "<", "1000"), RowFilter("price", "=", "5.550")
    for each, rows in ((above, 1), (below, 3), (small, 4), (same, 1)):
        assert (await engine.page(prices, Arrangement(filters=(each,)))).total == rows, each


async def test_exports_hold_what_is_shown(engine: Analysis, sales: str) -> None:
    few = Arrangement(order=(RowOrder("id", descending=True),), filters=(RowFilter("id", ">", 2),))
    async with engine.exported(sales, "csv", few) as path:
        assert path.read_text() == "id,region,amount\n4,south,7.0\n3,North,\n"
    assert not path.exists()
    async with engine.exported(sales, "json", few) as path:
        assert json.loads(path.read_text())[0] == {"id": 4, "region": "south", "amount": 7.0}
    async with engine.exported(sales, "xlsx", few) as path:
        sheet = openpyxl.load_workbook(path).active
        assert sheet
        assert list(sheet.values) == [("id", "region", "amount"), (4, "south", 7), (3, "North", None)]
    async with engine.exported(sales, "parquet", few) as path:
        engine.inbox.mkdir(exist_ok=True)
        (engine.inbox / "in.parquet").write_bytes(path.read_bytes())
    adopted = await engine.adopt(engine.inbox / "in.parquet", Provenance("SELECT …", source="warehouse"))
    assert (adopted.rows, adopted.provenance.source) == (2, "warehouse")
    assert (await engine.query(f"SELECT sum(id) FROM {adopted.handle}")).head == ((7,),)
    wide = await engine.query(
        "SELECT sum(2::HUGEINT ** 70 + n)::HUGEINT AS total, 1::UHUGEINT AS one FROM range(3) t(n)"
    )
    async with engine.exported(wide.handle, "parquet") as path:
        (engine.inbox / "wide.parquet").write_bytes(path.read_bytes())
    again = await engine.adopt(engine.inbox / "wide.parquet", Provenance("SELECT …"))
    assert [str(value) for value in again.head[0]] == [str(value) for value in wide.head[0]]


async def test_requests_run_side_by_side_and_tell_how_far_they_are(engine: Analysis, sales: str) -> None:
    heard: list[Progress] = []
    waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def hear(progress: Progress) -> None:
        heard.append(progress)
        if not waiting.done():
            waiting.set_result(None)

    long = asyncio.create_task(
        engine.query("SELECT count(*) FROM range(100000000000) t(i) WHERE hash(i) = 7", on_progress=hear)
    )
    await waiting
    assert (await engine.page(sales)).total == 4
    assert not long.done()
    assert heard[0].doing == "running the query"
    long.cancel()
    with pytest.raises(asyncio.CancelledError):
        await long
    assert (await engine.query("SELECT 42")).head == ((42,),)


async def test_every_error_is_one_of_ours(engine: Analysis) -> None:
    for sql in (
        "SELECT 1/0 FROM",
        "((",
        "SELECT * FROM (((",
        "\0",
        "SELECT '",
        "'" * 9,
        "SELECT $1",
        "SELECT ?",
        "x" * 300_000,
    ):
        with pytest.raises(AnalysisError) as caught:
            await engine.query(sql)
        assert "\n" not in str(caught.value)


async def test_rows_with_much_text_fit_into_a_reply(engine: Analysis) -> None:
    name = (
        await engine.query("SELECT i, repeat('x', 12000) AS a, repeat('é', 9000) AS b FROM range(2000) t(i)")
    ).handle
    page = await engine.page(name, limit=700)
    assert [row[0] for row in page.rows] == list(range(700))
    lengths = {(len(str(row[1])), len(str(row[2]))) for row in page.rows}
    assert lengths == {(8_572, 8_572)}, "cut, and marked so"
    assert len(str((await engine.page(name, limit=1)).rows[0][1])) == 10_001


async def test_a_sorted_table_is_made_once_and_dropped_when_its_file_changed(engine: Analysis, files: Path) -> None:
    down = Arrangement(order=(RowOrder("a", descending=True),))
    (files / "sorted.csv").write_text("a\n1\n2\n")
    (dataset,) = await engine.register("sorted.csv")
    pages = await asyncio.gather(*(engine.page(dataset.name, down) for _ in range(4)))
    assert {page.rows for page in pages} == {((2,), (1,))}
    (files / "sorted.csv").write_text("a\n1\n2\n3\n")
    assert (await engine.page(dataset.name, down)).rows == ((3,), (2,), (1,))
    left = "SELECT count(*) FROM duckdb_tables() WHERE table_name LIKE 'arranged%' AND estimated_size = 2"
    assert (await engine.query(left)).head == ((0,),)


async def test_rows_of_a_parquet_file_have_their_numbers(engine: Analysis, files: Path) -> None:
    made = await engine.query("SELECT 10 * i AS n FROM range(90000) t(i)")
    async with engine.exported(made.handle, "parquet") as path:
        (files / "rows.parquet").write_bytes(path.read_bytes())
    (dataset,) = await engine.register("rows.parquet")
    page = await engine.page(dataset.name, offset=80_000, limit=2)
    assert (page.rows, page.numbers) == (((800_000,), (800_010,)), (80_000, 80_001))
