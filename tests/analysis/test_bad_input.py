"""Queries and files that nothing good comes of: each is one clear line, and the engine answers the next request."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import AnalysisError, DataRefused, DataUnreadable, QueryFailed, QueryRefused
from tests.analysis.engines import engine_in

pytestmark = pytest.mark.asyncio(loop_scope="module")

NOT_RUN = "This statement is not run: "


@pytest.mark.parametrize(
    ("sql", "error", "said"),
    [
        ("COPY (SELECT 1) TO 'made.csv'", QueryRefused, f"{NOT_RUN}COPY writes or reads files."),
        ("EXPORT DATABASE 'made'", QueryRefused, f"{NOT_RUN}EXPORT writes files."),
        ("IMPORT DATABASE 'made'", QueryRefused, f"{NOT_RUN}PRAGMA may change how the engine works."),
        ("ATTACH 'x.db' AS y", QueryRefused, f"{NOT_RUN}ATTACH opens a database file."),
        ("INSTALL httpfs", QueryRefused, f"{NOT_RUN}extensions are not loaded or installed."),
        ("RESET memory_limit", QueryRefused, f"{NOT_RUN}the engine's settings are fixed."),
        ("CREATE MACRO f() AS 1", QueryRefused, f"{NOT_RUN}CREATE changes data."),
        ("PREPARE x AS SELECT 1", QueryRefused, f"{NOT_RUN}PREPARE changes data."),
        ("BEGIN", QueryRefused, f"{NOT_RUN}the engine keeps its own transactions."),
        ("SELECT * FROM read_text('/etc/passwd')", QueryRefused, f"{NOT_RUN}read_text() reads files"),
        ("SELECT read_text('/etc/passwd')", QueryRefused, f"{NOT_RUN}read_text() does more than compute."),
        ("SELECT getenv('HOME')", QueryRefused, f"{NOT_RUN}getenv() does more than compute."),
        ("SELECT * FROM duckdb_settings()", QueryRefused, f"{NOT_RUN}duckdb_settings() is an unknown source"),
        ("SELECT * FROM parquet_metadata('/x')", QueryRefused, f"{NOT_RUN}parquet_metadata() is an unknown source"),
        ("FROM read_csv('http://example.com/x.csv')", QueryRefused, "http://example.com/x.csv: data is not read from"),
        (".read /etc/passwd", QueryRefused, ".read is a command of the DuckDB shell"),
        ("SELECT " + "(" * 3_000 + "1" + ")" * 3_000, QueryFailed, "This is not valid SQL: Max expression depth"),
        ("-- nothing but a remark", QueryFailed, "There is no SQL statement."),
        ("FROM range(1000000000)", QueryFailed, "The query returns more than 100,000 rows."),
        ("SELECT unnest(range(200000))", QueryFailed, "The query returns more than 100,000 rows."),
        ("FROM 'gone.csv'", DataUnreadable, "gone.csv: No such file or directory."),
    ],
)
async def test_a_query_that_may_not_run_says_why(
    engine: Analysis, sql: str, error: type[AnalysisError], said: str
) -> None:
    with pytest.raises(error) as caught:
        await engine.query(sql)
    assert str(caught.value).startswith(said)
    assert "\n" not in str(caught.value)
    assert (await engine.query("SELECT 1")).head == ((1,),)


@pytest.mark.parametrize(
    ("sql", "cells"),
    [
        ("SELECT TIMESTAMPTZ '2024-01-01 10:00:00+02', DATE 'infinity'", ("2024-01-01 08:00:00+00", "infinity")),
        ("SELECT 99999999999999999999999999999999999999999::BIGNUM", ("9" * 41,)),
        ("SELECT chr(0) || 'x', [TIMESTAMPTZ '2024-01-01 00:00:00Z']", ("\0x", "['2024-01-01 00:00:00+00']")),
        ("SELECT '\\xAA'::BLOB, '101'::BIT, INTERVAL 1 DAY", ("\\xAA", "101", "1 day")),
        ("SELECT count(*) FROM information_schema.tables WHERE table_name = 'none'", (0,)),
    ],
)
async def test_odd_values_come_whole(engine: Analysis, sql: str, cells: tuple[object, ...]) -> None:
    assert (await engine.query(sql)).head == (cells,)


async def test_an_address_in_the_network_is_no_file(engine: Analysis) -> None:
    with pytest.raises(DataRefused) as caught:
        await engine.register("https://example.com/a.csv")
    assert (
        caught.value.with_hint
        == "https://example.com/a.csv: data is not read from the network. Download the file first."
    )


async def test_a_file_that_becomes_another_while_it_is_read_is_read_again(engine: Analysis, files: Path) -> None:
    path = files / "moving.csv"
    path.write_text("a,b\n" + "".join(f"{n},{'x' * 40}\n" for n in range(100_000)))
    reading = asyncio.create_task(engine.register("moving.csv"))
    await asyncio.sleep(0)
    (files / "new.csv").write_text("a,b\n1,2\n")
    Path(files / "new.csv").replace(path)
    await reading
    assert (await engine.query("SELECT count(*) FROM moving")).head == ((1,),)


async def test_two_processes_with_one_session_and_a_kept_result(tmp_path: Path) -> None:
    first, second = engine_in(tmp_path), engine_in(tmp_path)
    await first.query("SELECT 7 AS n")
    left = [tmp_path / "session" / "analysis" / folder / "rows.parquet" for folder in ("work", "exports")]
    for path in left:
        path.write_bytes(b"rows")
    with pytest.raises(QueryFailed) as caught:
        await second.query("SELECT 1")
    assert str(caught.value) == "Another process has the data of this session open."
    assert caught.value.kind == "resource_error"
    assert all(path.exists() for path in left)
    await first.close()
    assert (await second.query("SELECT n + 1 FROM R1")).head == ((8,),)
    assert not [path for path in left if path.exists()]
    await second.close()
