"""Queries of models and of people in a session: what runs, what asks, what is refused, and what stays."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Asked, Event, Notice, ToolFinished, ToolProgress
from ba_tui.core.ports.context import Mentions, Suggestion
from ba_tui.core.questions import Reply
from ba_tui.core.results import Source, Table, ToolResult
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from tests.loopback import ModelServer
from tests.script import collect

SALES = "region,units\nNorth,12\nSouth,30\nNorth,5\n"
TOTALS = "SELECT region, sum(units) AS units FROM 'sales.csv' GROUP BY ALL ORDER BY region"
ENDLESS = "SELECT sum(a.range * b.range) FROM range(3000000) a, range(3000000) b"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "sales.csv").write_text(SALES)
    trust_folder(work)
    return work


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer([], last=Step(say="Noted.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        yield server


def opened(folder: Path, **flags: Any) -> Conversation:
    return connect({"model": "openai/any", **flags}, folder).library.create()


def planned(sql: str) -> ScriptedCall:
    return ScriptedCall("query_data", {"sql": sql})


def results(events: Sequence[Event]) -> list[ToolResult]:
    return [event.result for event in events if isinstance(event, ToolFinished)]


async def queried(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *queries: str, replies: Sequence[Reply] = (), **flags: Any
) -> tuple[list[ToolResult], list[Asked]]:
    """The results of a model's queries, one a request, and what was asked about them; ``replies`` in order."""
    left = iter(replies)
    steps = [*(Step(calls=(planned(sql),)) for sql in queries), Step(say="Done.")]
    with ModelServer(steps) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = opened(folder, **flags)
        turn = talk.say("look")
        events: list[Event] = []
        async for event in turn:
            events.append(event)
            if isinstance(event, Asked):
                turn.answer(event.ask_id, next(left, Reply("deny")))
        await talk.close()
    return results(events), [event for event in events if isinstance(event, Asked)]


async def test_a_model_queries_files_and_earlier_results_without_a_question(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (first, second, wrong), asked = await queried(
        folder,
        monkeypatch,
        TOTALS,
        "SELECT max(units) AS best, NULL AS none FROM R1",
        "SELECT unit FROM sales",
        permission_mode="plan",
    )
    assert not asked
    title, columns, *rows = first.text.splitlines()
    assert title.startswith("R1: 2 rows, 2 columns")
    assert columns == "Columns: region VARCHAR, units HUGEINT"
    assert rows == ["region,units", "North,17", "South,30"]
    assert first.summary == "R1 · 2 rows"
    assert first.display == Table(("region", "units"), (("North", 17), ("South", 30)), handle="R1", total=2)
    assert second.text.endswith("best,none\n30,NULL")
    assert wrong.error
    assert wrong.error.message == "There is no column unit here."
    assert "units" in wrong.error.hint


async def test_what_would_do_more_than_read_is_refused_and_nobody_is_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "away.csv").write_text("a\n1\n")
    queries = (
        "COPY (SELECT 1) TO 'made.csv' (DELIMITER '|')",
        "DROP TABLE sales",
        "INSTALL httpfs",
        "ATTACH 'other.duckdb'",
        "CREATE TABLE t AS SELECT 1",
        "SET threads = 1",
        ".read other.sql",
        "SELECT * FROM read_text('/etc/passwd')",
        f"SELECT * FROM '{tmp_path}/away.csv'",
    )
    found, asked = await queried(folder, monkeypatch, *queries)
    assert not asked
    assert [result.error.kind for result in found if result.error] == ["permission_denied"] * len(queries)
    hints = [result.error.hint for result in found if result.error]
    instead = ("FORMAT", "new.csv", "by their path", "'shop.sqlite'", "R1", "threads")
    assert all(words in hint for hint, words in zip(hints, instead, strict=False))
    assert "This statement is not run: COPY writes or reads files." in found[0].text
    assert "outside the folders of this session" in found[-1].text
    assert {path.name for path in folder.iterdir()} == {"sales.csv"}


async def test_copy_to_exports_a_result_after_the_question_and_replaces_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "private").mkdir()
    copies = (
        "COPY (SELECT region FROM 'sales.csv') TO 'made.csv' (FORMAT csv, HEADER);",
        "COPY sales TO 'made.csv'",
        "COPY sales TO 'made.unknown'",
        "COPY sales TO '.env'",
        "COPY (DROP TABLE sales) TO 'more.csv'",
        "COPY (SELECT 1) TO 'private/more.csv'",
    )
    rules: dict[str, Any] = {"permissions.deny": ["write_file(private/**)"]}
    found, asked = await queried(folder, monkeypatch, *copies, replies=[Reply("once")], **rules)
    assert [event.question.preview for event in asked] == [Source("query.sql", copies[0])]
    assert found[0].text.startswith("Written to made.csv (25 bytes).\nR1: 3 rows, 1 column")
    assert (folder / "made.csv").read_text() == "region\nNorth\nSouth\nNorth\n"
    assert "made.csv exists already" in found[1].text
    assert all(result.is_error for result in found[1:])
    assert {path.name for path in folder.iterdir()} == {"sales.csv", "made.csv", "private"}
    assert not list((folder / "private").iterdir())
    refused, _ = await queried(folder, monkeypatch, "COPY sales TO 'next.csv'")
    assert refused[0].is_error
    assert not (folder / "next.csv").exists()


@pytest.mark.parametrize(
    ("sql", "seconds", "message"),
    [
        ("SELECT * FROM range(1000000000)", 40, "The query returns more than "),
        (
            "WITH RECURSIVE t AS (SELECT 1 AS n UNION ALL SELECT n FROM t) SELECT count(*) FROM t",
            1,
            "took longer than 1 s",
        ),
    ],
)
async def test_what_never_ends_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, sql: str, seconds: int, message: str
) -> None:
    limits: dict[str, Any] = {"analysis.max_rows": 100_000, "analysis.query_seconds": seconds}
    (result,), _ = await queried(folder, monkeypatch, sql, **limits)
    assert result.error
    assert message in result.error.message


async def test_an_added_folder_can_be_queried_and_results_stay(folder: Path, server: ModelServer) -> None:
    added = folder.parent / "added"
    added.mkdir()
    (added / "more.csv").write_text(SALES)
    services = connect({"model": "openai/any"}, folder)
    talk = services.library.create()
    query = f"SELECT count(*) AS n FROM '{added}/more.csv' JOIN R1 USING (region)"
    await collect(talk.shell.query(TOTALS))
    (refused,) = results(await collect(talk.shell.query(query)))
    assert refused.is_error
    assert "--add-dir" in refused.text
    await talk.close()
    assert services.with_folders
    talk = services.with_folders([added]).library.open(talk.id)
    (found,) = results(await collect(talk.shell.query(query)))
    assert found.text.endswith("n\n3")
    await talk.close()


async def test_a_rule_asks_about_a_query_or_about_the_file_that_it_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "private").mkdir()
    (folder / "private" / "pay.csv").write_text("name,pay\nAda,1\n")
    rules: dict[str, Any] = {"permissions.ask": ["read_file(private/**)", "query_data(*FROM R1*)"]}
    queries = ("SELECT name FROM 'private/pay.csv'", "SELECT * FROM 'private/pay.csv'", TOTALS, "SELECT * FROM R1")
    replies = (Reply("deny"), Reply("once"), Reply("once"))
    (refused, *found), asked = await queried(folder, monkeypatch, *queries, replies=replies, **rules)
    assert refused.error
    assert refused.error.kind == "permission_denied"
    assert not [result for result in found if result.is_error]
    assert [event.question.preview for event in asked] == [
        Source("query.sql", queries[0]),
        Source("query.sql", queries[1]),
        Source("query.sql", queries[3]),
    ]
    assert "read_file(private/**)" in asked[0].question.reason


async def test_the_first_request_names_the_tool_only_where_there_is_data(folder: Path, server: ModelServer) -> None:
    def told(request: Any) -> bool:
        return any(tool["function"]["name"] == "query_data" for tool in json.loads(request.body)["tools"])

    (folder / "sales.csv").rename(folder / "sales.txt")
    for name, lists in (("sales.txt", False), ("data/sales.csv.gz", True)):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(SALES)
        talk = opened(folder)
        await collect(talk.say("hello"))
        await talk.close()
        assert told(server.requests[-1]) is lists


async def test_the_person_queries_and_the_model_reads_the_result(folder: Path, server: ModelServer) -> None:
    talk = opened(folder)
    failed = await collect(talk.shell.query("SELECT * FROM sale"))
    (wrong,) = results(failed)
    assert wrong.error
    assert wrong.error.with_hint.startswith("There is no table sale.")
    (first,) = results(await collect(talk.shell.query(TOTALS)))
    assert first.summary == "R1 · 2 rows"
    await collect(talk.say("and?"))
    body = server.requests[-1].body.decode()
    assert "The user ran a query on the data of this session" in body
    assert "North,17" in body
    assert "FROM sale\\n" not in body
    await talk.close()


async def begun(talk: Conversation, sql: str) -> tuple[asyncio.Task[list[Event]], Any]:
    """A query of the user's that the engine works on."""
    turn, running = talk.shell.query(sql), asyncio.Event()

    async def follow() -> list[Event]:
        events: list[Event] = []
        async for event in turn:
            events.append(event)
            if isinstance(event, ToolProgress):
                running.set()
        return events

    task = asyncio.create_task(follow())
    await running.wait()
    return task, turn


async def test_results_outlive_an_interrupt_a_crash_of_the_helper_and_a_restart(
    folder: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = opened(folder)
    await collect(talk.shell.query(TOTALS))
    task, turn = await begun(talk, ENDLESS)
    turn.cancel()
    (stopped,) = results(await task)
    assert stopped.error
    assert stopped.error.kind == "interrupted"
    assert stopped.error.message == "Interrupted by the user."

    task, _ = await begun(talk, ENDLESS)
    pids = helpers()
    assert pids
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    (crashed,) = results(await task)
    assert crashed.error
    assert "The data engine stopped in the middle of this request" in crashed.error.message
    (after,) = results(await collect(talk.shell.query("SELECT sum(units) AS units FROM R1")))
    assert after.text.endswith("units\n47")
    await talk.close()

    steps = [Step(calls=(planned("SELECT R1.region, sales.units FROM R1 JOIN sales USING (region)"),)), Step(say="!")]
    with ModelServer(steps) as again:
        monkeypatch.setenv("OPENAI_BASE_URL", again.openai_url)
        resumed = connect({"model": "openai/any"}, folder).library.open(talk.id)
        (found,) = results(await collect(resumed.say("again")))
        await resumed.close()
    assert found.summary.endswith(" · 3 rows")


def helpers() -> list[int]:
    """The processes of this test's data engine: those of its children that run its main."""
    found: list[int] = []
    waiting = [os.getpid()]
    while waiting:
        parent = waiting.pop()
        for task in Path(f"/proc/{parent}/task").glob("*/children"):
            children = [int(pid) for pid in task.read_text().split()]
            waiting += children
            found += [
                pid
                for pid in children
                if b"ba_tui.features.data.analysis." in Path(f"/proc/{pid}/cmdline").read_bytes()
            ]
    return found


async def test_a_mention_is_offered_and_gives_the_model_a_table_some_cells_or_a_column(
    folder: Path, server: ModelServer
) -> None:
    talk = opened(folder)
    await collect(talk.shell.query("SELECT region, units FROM 'sales.csv'"))
    offered: list[Suggestion] = []
    while not offered:
        # What there is was not asked for yet when the first letter was typed.
        offered = [each for each in await mentions(talk).search("R1") if each.kind == "table"]
    assert [(each.text, each.detail) for each in offered] == [("R1", "3 rows: region, units")]
    columns = [each.text for each in await mentions(talk).search("sales.reg") if each.kind == "column"]
    assert columns == ["sales.region"]
    await collect(talk.say("noted?"))
    said = "see @R1[B2:B3], @sales.region and @R1, but not @R9 or @ada"
    weights = await mentions(talk).weigh(said)
    assert [(weight.name, weight.tokens > 0) for weight in weights] == [
        ("R1[B2:B3]", True),
        ("sales.region", True),
        ("R1", True),
    ]
    events = await collect(talk.say(said))
    body = "\n".join(text for message in json.loads(server.requests[-1].body)["messages"] for text in texts(message))
    assert "3 rows, 2 columns; rows 2 to 3 follow\nColumns: units BIGINT\nunits\n30\n5" in body
    assert "- region VARCHAR" in body
    assert "2 distinct" in body
    assert "rows 1 to 3 follow\nColumns: region VARCHAR, units BIGINT\nregion,units\nNorth,12" in body
    notices = [event.text for event in events if isinstance(event, Notice)]
    assert "@R9, @ada: not found; sent as text." in notices
    await talk.close()


def texts(message: Any) -> list[str]:
    content = message["content"]
    return [content] if isinstance(content, str) else [part.get("text", "") for part in content or ()]


def mentions(talk: Conversation) -> Mentions:
    found = talk.inventory.mentions
    assert found
    return found
