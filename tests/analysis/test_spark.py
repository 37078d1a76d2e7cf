"""A distributed engine: a real Spark Connect server with a partitioned data set, through the same helper."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import duckdb
import pytest

from ba_tui.features.data.analysis.errors import QueryFailed
from ba_tui.features.data.tools.sources import Address, SourcePlace, Sources
from ba_tui.processes.values import WorkerSettings
from tests.analysis.engines import engine_in
from tests.analysis.servers import await_port, free_port, missing

pytestmark = pytest.mark.timeout(180)

SERVER = """
import sys
from pysail.spark import SparkConnectServer
SparkConnectServer(port=int(sys.argv[1]), ip="127.0.0.1").start(background=False)
"""


@pytest.fixture
def spark() -> Generator[str]:
    """The address of a server of its own."""
    if not (importlib.util.find_spec("pysail") and importlib.util.find_spec("pyspark")):
        missing("The Spark Connect server is not installed: bash .ci/servers .venv")
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        await_port(port, server)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


async def test_a_partitioned_data_set_aggregates_there_and_joins_here(spark: str, tmp_path: Path) -> None:
    with duckdb.connect() as database:
        database.execute(
            "COPY (SELECT range AS id, range % 7 + 0.25 AS amount, if(range % 2 = 0, 'north', 'south') AS region "
            f"FROM range(200000)) TO '{tmp_path}/orders' (FORMAT parquet, PARTITION_BY (region))"
        )
    engine = engine_in(tmp_path)
    worker = WorkerSettings(tmp_path, {"PATH": os.defpath})
    sources = Sources([SourcePlace("lake", "sc", lambda: Address(spark), worker, writable=True)], engine)
    try:
        table = f"CREATE TABLE orders USING parquet LOCATION '{tmp_path}/orders'"
        assert (await sources.query("lake", table, write=True)).rows == 1
        assert "orders" in await sources.tables("lake")
        profile = await sources.profile("lake", "orders")
        assert {each.column.name for each in profile.columns} == {"id", "amount", "region"}
        totals = await sources.query(
            "lake", "SELECT region, count(*) AS n, sum(amount) AS total FROM orders GROUP BY region ORDER BY region"
        )
        assert [row[:2] for row in totals.head] == [("north", 100000), ("south", 100000)]
        assert totals.provenance.engine.startswith("Spark ")
        odd = await sources.query(
            "lake",
            "SELECT 9007199254740993 AS large, CAST(NULL AS BIGINT) AS nothing, CAST(1.5 AS DECIMAL(20,4)) AS exact, "
            "array(1, 2) AS list, map('a', 1) AS pairs, timestamp'2026-01-02 03:04:05' AS at",
        )
        assert odd.head[0][:5] == (9007199254740993, None, "1.5000", "[1, 2]", "{a=1}")
        joined = await engine.query(f"SELECT count(*) AS n FROM {totals.handle} JOIN {odd.handle} ON true")
        assert joined.head == ((2,),)
        with pytest.raises(QueryFailed) as error:
            await sources.query("lake", "SELECT * FROM ordres")
        assert error.value.hint == "Did you mean orders?"
    finally:
        await sources.close()
        await engine.close()
