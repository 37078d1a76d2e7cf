"""Sources: queries on real servers through the helper, what lands, what is refused, and what never shows."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast
from urllib.parse import quote

import psutil
import pytest
import pytest_asyncio

from ba_tui.core.ports.tables import Progress
from ba_tui.features.data.analysis.card import card
from ba_tui.features.data.analysis.engine import Analysis
from ba_tui.features.data.analysis.errors import AnalysisError, QueryFailed, QueryRefused, SourceFailed, UnknownTable
from ba_tui.features.data.analysis.source_process.engine import IbisEngine
from ba_tui.features.data.tools.sources import Address, SourcePlace, Sources
from ba_tui.processes.scratch import clear_scratch, scratch_path
from ba_tui.processes.serving import WorkerChannel, WorkerRequest
from ba_tui.processes.values import WorkerSettings
from tests.analysis.engines import place_in
from tests.analysis.servers import PASSWORD, postgres_server

# A helper loads its drivers first: seconds, on a busy machine many.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]

ORDERS = """
CREATE TABLE orders (id int PRIMARY KEY, customer text, mail text, amount numeric(12,2), placed timestamptz);
INSERT INTO orders SELECT i, 'c' || i % 3, 'm' || i || '@x.org', i * 1.37, '2026-01-01 00:00:00+02'
FROM generate_series(1, 1000) i;
"""


@pytest.fixture(scope="module")
def postgres() -> Generator[str]:
    with postgres_server() as address:
        yield address.replace("${PGPASSWORD}", quote(PASSWORD, safe=""))


def place(name: str, url: str, folder: Path, **more: object) -> SourcePlace:
    secrets = (PASSWORD, quote(PASSWORD, safe=""))
    worker = WorkerSettings(folder, {"PATH": os.defpath})
    return SourcePlace(name, url.partition(":")[0], lambda: Address(url, secrets), worker, **more)  # pyright: ignore[reportArgumentType]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sources(engine: Analysis, files: Path, postgres: str) -> AsyncGenerator[Sources]:
    (files / "home").mkdir()
    with sqlite3.connect(files / "shop.db") as shop:
        shop.executescript(
            "CREATE TABLE items (id INTEGER, price REAL, name TEXT, mixed, raw BLOB);"
            "INSERT INTO items VALUES (1, 1.5, 'tea', 1, x'00FF'), (9007199254740993, NULL, NULL, 'x', NULL);"
        )
    shop.close()
    made = Sources(
        (
            place("warehouse", postgres, files / "home", writable=True, share="sample"),
            place("shop", f"sqlite://{files}/shop.db", files / "home", share="sample"),
            place("wrong", postgres.replace("postgres:", "nobody:"), files / "home"),
            place("away", "postgresql://me@127.0.0.1:9/x", files / "home"),
            place("odd", "mysql://me@127.0.0.1:9/x", files / "home"),
        ),
        engine,
    )
    await made.query("warehouse", f"DO $$ BEGIN {ORDERS} END $$", write=True)
    yield made
    await made.close()


async def test_values_of_postgresql_survive(sources: Sources) -> None:
    result = await sources.query(
        "warehouse",
        """SELECT 1.50::numeric AS exact, 2.25::numeric(10,2) AS fixed, '2026-01-02 03:04:05+02'::timestamptz AS at,
        timestamp '2026-01-02 03:04:05' AS plain, array[1, 2] AS list, array[[1, 2], [3, 4]] AS grid,
        '{"a": 1}'::jsonb AS doc, NULL::int AS nothing, true AS yes, 'é' AS word, 9223372036854775807 AS large,
        '\\x00ff'::bytea AS raw, date '2026-01-02' AS day, interval '1 mon 2 days' AS span, 'NaN'::numeric AS odd,
        1 AS word""",
    )
    shown = {column.name: (column.type, value) for column, value in zip(result.columns, result.head[0], strict=True)}
    assert shown == {
        "exact": ("DECIMAL(3,2)", "1.50"),
        "fixed": ("DECIMAL(10,2)", "2.25"),
        "at": ("TIMESTAMP WITH TIME ZONE", "2026-01-02 01:04:05+00"),
        "plain": ("TIMESTAMP", "2026-01-02 03:04:05"),
        "list": ("INTEGER[]", "[1, 2]"),
        "grid": ("INTEGER[][]", "[[1, 2], [3, 4]]"),
        "doc": ("JSON", '{"a": 1}'),
        "nothing": ("INTEGER", None),
        "yes": ("BOOLEAN", True),
        "word": ("VARCHAR", "é"),
        "large": ("BIGINT", 9223372036854775807),
        "raw": ("BLOB", "\\x00\\xFF"),
        "day": ("DATE", "2026-01-02"),
        "span": ("INTERVAL", "1 month 2 days"),
        "odd": ("VARCHAR", "NaN"),
        "word_1": ("INTEGER", 1),
    }
    made = result.provenance
    assert (made.source, made.rows, made.engine.split()[0]) == ("warehouse", 1, "PostgreSQL")


async def test_results_of_two_sources_join_locally(sources: Sources, engine: Analysis) -> None:
    theirs = await sources.query(
        "warehouse", "SELECT customer, sum(amount) AS total FROM orders GROUP BY 1 ORDER BY 1;"
    )
    ours = await sources.query("shop", "SELECT id, name, mixed, raw, price FROM items ORDER BY id")
    assert theirs.rows == 3
    assert [column.type for column in ours.columns] == ["BIGINT", "VARCHAR", "VARCHAR", "BLOB", "DOUBLE"]
    assert ours.head[1][0] == 9007199254740993
    joined = await engine.query(f"SELECT o.name, t.total FROM {theirs.handle} t, {ours.handle} o WHERE name = 'tea'")
    assert joined.rows == 3
    assert joined.provenance.results == (theirs.handle, ours.handle)


@pytest.mark.parametrize(
    ("source", "sql", "message", "hint"),
    [
        ("warehouse", "SELECT * FROM order_s", "There is no table order_s.", "orders"),
        ("warehouse", "SELECT custmer FROM orders", "There is no column custmer here.", "customer"),
        ("warehouse", "SELECT 1 / 0", "Division by zero", ""),
        ("warehouse", "SELEC 1", "Syntax error", ""),
        ("warehouse", "SELECT", "The statement returns no columns.", ""),
        ("shop", "SELECT * FROM item", "There is no table item.", "items"),
        ("shop", "SELECT nam FROM items", "There is no column nam here.", "name"),
        ("warehouse", "SELECT * FROM generate_series(1, 200000)", "The query returns more than 100,000 rows.", "LIMIT"),
    ],
)
async def test_a_wrong_query_is_one_line_with_the_nearest_names(
    sources: Sources, source: str, sql: str, message: str, hint: str
) -> None:
    with pytest.raises(QueryFailed) as error:
        await sources.query(source, sql)
    assert message in str(error.value)
    assert hint in error.value.hint
    assert "\n" not in str(error.value)


async def test_a_session_reads_unless_a_statement_was_allowed_to_write(sources: Sources) -> None:
    for source, sql in (
        ("warehouse", "WITH x AS (INSERT INTO orders (id) VALUES (0) RETURNING id) SELECT * FROM x"),
        ("warehouse", "SELECT set_config('transaction_read_only', 'off', false), nextval('nowhere')"),
        ("shop", "INSERT INTO items (id) VALUES (3)"),
        ("shop", "ATTACH 'other.db' AS other"),
    ):
        with pytest.raises((QueryFailed, QueryRefused)):
            await sources.query(source, sql)
    done = await sources.query("warehouse", "INSERT INTO orders (id) VALUES (0)", write=True)
    assert done.head == (("INSERT 0 1", 1),)
    assert (await sources.query("warehouse", "DELETE FROM orders WHERE id = 0", write=True)).head[0][1] == 1


async def test_a_cancel_ends_the_query_on_the_server(sources: Sources) -> None:
    began = asyncio.Event()

    def heard(progress: Progress) -> None:
        if "running" in progress.doing:
            began.set()

    endless = "SELECT count(*) FROM orders a, orders b, orders c, orders d"
    task = asyncio.create_task(sources.query("warehouse", endless, on_progress=heard))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    active = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%orders d%' AND pid <> "
    assert (await sources.query("warehouse", f"{active} pg_backend_pid()")).head == ((0,),)


class SlowToStop(IbisEngine):
    """Its server takes a while to get an interrupt."""

    def __init__(self) -> None:
        super().__init__(None)
        self.begun, self.go_on, self.arrived = threading.Event(), threading.Event(), False

    def interrupt(self) -> None:
        self.begun.set()
        self.go_on.wait()
        self.arrived = True


@pytest.mark.parametrize("seconds", [60, 0], ids=["cancelled", "out of time"])
async def test_the_end_of_a_statement_waits_for_an_interrupt_that_is_on_its_way(seconds: int) -> None:
    engine = SlowToStop()
    request = WorkerRequest(cast("WorkerChannel", None), 1, "query", None)

    def statement() -> bool:
        with engine.limited(request, seconds):
            if seconds:
                request.cancel()
            engine.begun.wait()
            threading.Timer(0.05, engine.go_on.set).start()
        return engine.arrived

    assert await asyncio.to_thread(statement)


async def test_cost_tables_and_cards(sources: Sources) -> None:
    cost = await sources.cost("warehouse", "SELECT * FROM orders a, orders b")
    assert cost
    assert cost.cost > 1_000
    assert cost.rows > 100_000
    assert await sources.cost("shop", "SELECT 1") is None
    assert await sources.tables("warehouse") == ("orders",)
    assert sources.known_tables("warehouse") == ("orders",)
    assert (await sources.query("shop", "SHOW TABLES")).head == (("items",),)
    assert (await sources.query("warehouse", "DESCRIBE orders")).head[0] == ("id", "int32")
    shown = card(await sources.profile("warehouse", "orders"), "sample")
    assert shown.startswith("Table warehouse.orders: source warehouse (PostgreSQL ")
    assert "1,000 rows, 5 columns" in shown
    assert "m1@x.org" not in shown
    assert "mixed" in card(await sources.profile("shop", "items"), "sample")
    with pytest.raises(UnknownTable) as error:
        await sources.profile("warehouse", "order")
    assert error.value.hint == "Did you mean orders?"


@pytest.mark.parametrize(
    ("source", "message", "hint"),
    [
        ("wrong", "wrong: It can't be reached: ", "sources"),
        ("away", "refused", "sources"),
        ("odd", "The driver for this source is missing", "python -m pip install 'ba-tui[mysql]'"),
    ],
)
async def test_a_source_that_cannot_be_used_says_why_and_no_secret(
    sources: Sources, source: str, message: str, hint: str
) -> None:
    with pytest.raises(SourceFailed) as error:
        await sources.check(source)
    shown = f"{error.value} {error.value.hint} {error.value!r} {error.value.__cause__!r}"
    assert message in shown
    assert hint in error.value.hint
    assert PASSWORD not in shown
    assert quote(PASSWORD, safe="") not in shown
    assert PASSWORD not in repr(sources.places)


async def test_a_killed_helper_is_one_failed_query(sources: Sources) -> None:
    (identity,) = (await sources.query("warehouse", "SELECT 1 AS one")).head
    assert identity == (1,)
    began = asyncio.Event()
    task = asyncio.create_task(sources.query("warehouse", "SELECT pg_sleep(20)", on_progress=lambda _: began.set()))
    await began.wait()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if any("source_process" in word for word in child.cmdline()):
                child.kill()
    with pytest.raises(AnalysisError) as error:
        await task
    assert "warehouse" in str(error.value)
    assert (await sources.query("warehouse", "SELECT 1 AS one")).head == ((1,),)


async def test_a_temporary_folder_is_in_use_from_the_first_request_to_a_source(tmp_path: Path) -> None:
    folder = scratch_path("data")
    engine = Analysis(replace(place_in(tmp_path, state=folder), temporary=True))
    shop = Sources((place("shop", f"sqlite://{tmp_path}/shop.db", folder / "inbox" / "shop"),), engine)
    sqlite3.connect(tmp_path / "shop.db").close()
    with suppress(AnalysisError):
        await shop.check("shop")
    assert folder not in clear_scratch()
    assert folder.is_dir()
    await shop.close()
    await engine.close()
    assert not folder.exists()


async def test_an_unknown_source_names_the_nearest(sources: Sources) -> None:
    with pytest.raises(UnknownTable) as error:
        await sources.query("warehous", "SELECT 1")
    assert (str(error.value), error.value.hint) == ("There is no source warehous.", "Did you mean warehouse?")
