"""Sources and personal values in a session: what a model and a person query, what asks, and what a model reads."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from ba_tui.assembly import connect
from ba_tui.core.conversation import Conversation
from ba_tui.core.events import Asked, Event, ToolFinished
from ba_tui.core.ports.datasets import Datasets
from ba_tui.core.questions import Reply
from ba_tui.core.results import Table, ToolResult
from ba_tui.permissions.trust.grants import trust_folder
from ba_tui.providers.scripted import ScriptedCall, Step
from ba_tui.resources import places
from tests.analysis.servers import PASSWORD, postgres_server
from tests.loopback import ModelServer
from tests.script import collect

# A helper loads its drivers first: seconds, on a busy machine many.
pytestmark = pytest.mark.timeout(180)

CLIENTS = "id,mail,city\n1,ada@x.org,Rome\n2,bob@y.org,Oslo\n"


@pytest.fixture(scope="module")
def postgres() -> Generator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    work.mkdir()
    (work / "clients.csv").write_text(CLIENTS)
    with sqlite3.connect(tmp_path / "shop.db") as shop:
        shop.executescript(
            "CREATE TABLE orders (client INTEGER, mail TEXT); INSERT INTO orders VALUES (1, 'ada@x.org')"
        )
    shop.close()
    trust_folder(work)
    return work


def settings(**sources: dict[str, Any]) -> None:
    file = places().config / "config.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump({"sources": sources}))


def opened(folder: Path, **flags: Any) -> Conversation:
    return connect({"model": "openai/any", **flags}, folder).library.create()


async def queried(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *calls: dict[str, str], reply: str = "deny", **flags: Any
) -> tuple[list[ToolResult], list[Asked], ModelServer]:
    steps = [*(Step(calls=(ScriptedCall("query_data", call),)) for call in calls), Step(say="Done.")]
    with ModelServer(steps) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = opened(folder, **flags)
        turn = talk.say("look")
        events: list[Event] = []
        async for event in turn:
            events.append(event)
            if isinstance(event, Asked):
                turn.answer(event.ask_id, Reply(reply))  # pyright: ignore[reportArgumentType]
        await talk.close()
    asked = [event for event in events if isinstance(event, Asked)]
    return [event.result for event in events if isinstance(event, ToolFinished)], asked, server


async def test_a_model_joins_a_source_with_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(shop={"url": "sqlite:///../shop.db".replace("///..", f"//{folder.parent}")})
    (theirs, joined, refused), asked, server = await queried(
        folder,
        monkeypatch,
        {"sql": "SELECT * FROM orders", "source": "shop"},
        {"sql": "SELECT c.city FROM R1 JOIN 'clients.csv' c ON c.id = R1.client"},
        {"sql": "DELETE FROM orders", "source": "shop"},
        permission_mode="auto",
    )
    assert not asked
    assert theirs.text.startswith("R1: 1 row, 2 columns")
    assert " on shop (SQLite " in theirs.text
    assert joined.text.endswith("city\nRome")
    assert refused.error
    assert refused.error.message == "shop is read-only: this statement changes data."
    assert "sources.shop.writable" in refused.error.hint
    (tool,) = [
        each for each in json.loads(server.requests[0].body)["tools"] if each["function"]["name"] == "query_data"
    ]
    assert tool["function"]["parameters"]["properties"]["source"]["enum"] == ["shop"]
    assert "shop (SQLite)" in tool["function"]["description"]


async def test_a_change_of_a_source_always_asks(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings(shop={"url": f"sqlite://{folder.parent}/shop.db", "writable": True})
    change = {"sql": "DELETE FROM orders", "source": "shop"}
    for mode in ("auto", "bypass"):
        (refused,), (asked,), _ = await queried(folder, monkeypatch, change, permission_mode=mode)
        assert "it changes data on shop (SQLite)" in asked.question.reason
        assert refused.error
    (done, left), _, _ = await queried(
        folder, monkeypatch, change, {"sql": "SELECT count(*) AS n FROM orders", "source": "shop"}, reply="once"
    )
    assert done.text.endswith("status,rows_changed\ndone,1")
    assert left.text.endswith("n\n0")


async def test_a_heavy_query_asks_with_its_cost_and_no_file_holds_the_password(
    folder: Path, monkeypatch: pytest.MonkeyPatch, postgres: str
) -> None:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    settings(warehouse={"url": postgres, "ask_cost": 1000}, wrong={"url": postgres.replace("postgres:", "nobody:")})
    heavy = {"sql": "SELECT count(*) FROM generate_series(1, 1000000)", "source": "warehouse"}
    light = {"sql": "SELECT 1 AS one", "source": "warehouse"}
    wrong = {"sql": "SELECT 1", "source": "wrong"}
    (denied, read, unknown), (asked,), server = await queried(folder, monkeypatch, heavy, light, wrong)
    assert "PostgreSQL expects cost " in asked.question.reason
    assert "1,000,000 rows" not in denied.text
    assert read.text.endswith("one\n1")
    assert unknown.error
    assert "wrong: It can't be reached" in unknown.error.message
    sent = b"".join(bytes(request.body) for request in server.requests)
    assert PASSWORD.encode() not in sent
    kept = [path for path in folder.parent.rglob("*") if path.is_file()]
    kept += [path for path in places().state.rglob("*") if path.is_file()]
    kept += [path for path in places().data.rglob("*") if path.is_file()]
    assert kept
    assert not [path for path in kept if PASSWORD.encode() in path.read_bytes()]


async def test_the_person_queries_a_source_and_mentions_its_tables(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(shop={"url": f"sqlite://{folder.parent}/shop.db"})
    with ModelServer([], last=Step(say="Noted.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = opened(folder)
        events = await collect(talk.shell.query("@shop SELECT mail FROM orders"))
        (result,) = [event.result for event in events if isinstance(event, ToolFinished)]
        assert isinstance(result.display, Table)
        assert result.display.rows == (("ada@x.org",),)
        assert "ada@x.org" not in result.text
        assert result.text.startswith("sql> @shop SELECT mail FROM orders")
        await collect(talk.say("what is in @shop.orders and @shop"))
        told = server.requests[-1].body.decode()
        assert "Table shop.orders: source shop (SQLite" in told
        assert "looks personal" in told
        assert "tables: orders" in told
        assert "ada@x.org" not in told
        found = talk.inventory.feature(Datasets)
        assert found
        assert found.sources.listed()[0].tables == ("orders",)
        await talk.close()


async def test_personal_values_are_masked_for_the_model_until_the_person_allows_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer([], last=Step(say="Noted.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        # The window of an unknown model is too small for both mentions.
        talk = opened(folder, model="openai/gpt-6-luna")
        data = talk.inventory.feature(Datasets)
        assert data

        async def asked(sql: str) -> ToolResult:
            events: Sequence[Event] = await collect(talk.shell.query(sql))
            return next(event.result for event in events if isinstance(event, ToolFinished))

        first = await asked("SELECT mail AS m, city FROM 'clients.csv'")
        assert first.text.endswith("m,city\n‹mail›,Rome\n‹mail›,Oslo")
        assert "Note: values of m look personal" in first.text
        assert "/unmask clients.m" in first.text
        assert isinstance(first.display, Table)
        assert first.display.rows[0][0] == "ada@x.org"
        assert "‹mail›" in (await asked("SELECT m FROM R1")).text
        await collect(talk.say("see @R1 and @clients.csv"))
        told = server.requests[-1].body.decode()
        assert "ada@x.org" not in told
        assert "Shared of clients: names, types, statistics and some values." in told
        assert "Masked, as they look personal: mail; /unmask clients.mail shows one." in told
        (share,) = [part for part in await asyncio.to_thread(talk.context) if part.label == "Data"]
        assert share.detail == "profiles give names, types, statistics and some values (analysis.share)"
        assert [item.label for item in share.items] == ["clients"]
        await data.unmask("clients.m")
        assert "ada@x.org" in (await asked("SELECT m FROM R1")).text
        assert "‹mail›" in (await asked("SELECT mail FROM clients")).text
        await talk.close()
        again = opened(folder)
        assert "clients.m" in (places().config / "config.yaml").read_text()
        await again.close()


def test_settings_hold_no_password(folder: Path) -> None:
    settings(warehouse={"url": "postgresql://me:hunter2@host/shop"})
    services = connect({"model": "openai/any"}, folder)
    said = " ".join(f"{notice.text} {notice.hint}" for notice in services.notices)
    assert "expected no password in the settings" in said
    assert "hunter2" not in said
