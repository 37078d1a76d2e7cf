"""Signed messages over a real server: forged and unsigned ones are refused, and a member without the secret is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.events import TurnEnded
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.team.bus import MemoryBus
from ba_tui.team.messages import WORKERS, Heartbeat, TaskRequest, message, work_topic
from ba_tui.team.over_redis.bus import RedisBus
from ba_tui.team.over_redis.server import RedisServer
from ba_tui.team.over_redis.signing import NoSecret, Signing, Unsigned
from ba_tui.team.over_redis.state import RedisAccepted, RedisItems
from ba_tui.team.shared_context import Item, SharedContext
from tests.program import Program
from tests.script import says
from tests.team.house import TeamHouse
from tests.team.redis_process import RedisProcess

SECRET = "correct-horse-battery"
SENT = AgentMessage("ann", "bob", "information_share", {"key": "k", "value": 1}, team="t")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    process = RedisProcess(tmp_path_factory.mktemp("redis"))
    process.start()
    yield process
    process.kill()


def test_a_signature_holds_for_its_text_and_place_alone() -> None:
    mine = Signing(SECRET)
    sealed = mine.seal("bob", "{}")
    assert mine.open("bob", sealed) == "{}"
    for place, text in (
        ("ann", sealed),
        ("bob", sealed + " "),
        ("bob", "{}"),
        ("bob", "0" + sealed[1:] + "x"),
        ("bob", ""),
    ):
        with pytest.raises(Unsigned):
            mine.open(place, text)
    with pytest.raises(Unsigned):
        Signing(SECRET + "2").open("bob", sealed)
    with pytest.raises(NoSecret, match="no secret is set here"):
        Signing().open("bob", sealed)
    assert Signing().open("bob", Signing().seal("bob", "{}")) == "{}"
    with pytest.raises(UsageError, match="fewer than") as short:
        Signing("hunter2")
    assert "hunter2" not in f"{short.value} {short.value.hint} {vars(mine)!r}".replace("_secret", "")


async def test_only_signed_messages_arrive(server: RedisProcess) -> None:
    told: list[str] = []
    signed = RedisBus(RedisServer(server.url), tell=told.append, signing=Signing(SECRET))
    forger = RedisBus(RedisServer(server.url), tell=told.append)
    other = RedisBus(RedisServer(server.url), tell=told.append, signing=Signing("another-secret-of-mine"))
    inbox = signed.subscribe("bob", "bob", "bob")
    for number, bus in enumerate((forger, other)):
        await bus.publish("bob", replace(SENT, id=f"forged-{number}", sender="lead"))
    await signed.publish("bob", SENT)
    delivery = await asyncio.wait_for(anext(inbox), 10)
    assert (delivery.message.sender, delivery.message.sequence) == ("ann", 1)
    assert signed.seals.refused == 2
    (line,) = told
    assert "Refused a message in bob" in line
    await signed.publish("carl", replace(SENT, id="to-carl"))
    with pytest.raises(NoSecret, match="sign their messages"):
        await asyncio.wait_for(anext(forger.subscribe("carl", "carl", "carl")), 10)
    for bus in (signed, forger, other):
        await bus.close()
    assert SECRET not in "".join(told)


async def test_shared_items_and_results_are_signed_too(server: RedisProcess) -> None:
    signed = RedisBus(RedisServer(server.url), signing=Signing(SECRET))
    forger = RedisBus(RedisServer(server.url))
    items = RedisItems(signed, "signed")
    ann = SharedContext(items, MemoryBus(), "signed", "ann")
    await ann.write("rows", 1)
    assert (await ann.write("rows", 2, 1)).version == 2
    accepted = RedisAccepted(signed)
    assert (await accepted.first("k", SENT)).id == (await accepted.first("k", replace(SENT, id="late"))).id == SENT.id
    await RedisItems(forger, "signed").put(Item("forged", 3, 1, "ann", 0.0))
    await RedisAccepted(forger).begin("other", "x")
    with pytest.raises(Unsigned):
        await items.get("forged")
    with pytest.raises(NoSecret):
        await RedisAccepted(forger).find("k")
    for bus in (signed, forger):
        await bus.close()


async def test_a_lead_without_the_secret_says_so_at_once(server: RedisProcess, tmp_path: Path) -> None:
    house = TeamHouse(tmp_path, bus_url=server.url, heartbeat=60)
    signed = RedisBus(RedisServer(server.url), signing=Signing(SECRET))

    async def never(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        await asyncio.Event().wait()
        yield says("never")

    async def beats() -> None:
        while True:
            await signed.publish(WORKERS, message(Heartbeat("writer"), "writer@other"))
            await asyncio.sleep(0.05)

    house.plays(writer=[[never]])
    beating = asyncio.create_task(beats())
    ended = (await house.team("Write", "writer"))[-1]
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)
    await signed.close()
    assert isinstance(ended, TurnEnded)
    assert ended.error
    assert "sign their messages, and no secret is set here" in ended.error.message
    assert "ba guide workers" in ended.error.hint


def test_a_worker_without_the_secret_ends_with_a_line(server: RedisProcess, tmp_path: Path) -> None:
    async def order() -> None:
        bus = RedisBus(RedisServer(server.url), signing=Signing(SECRET))
        await bus.publish(work_topic("researcher"), message(TaskRequest("1", "look"), "lead:t", team="t"))
        await bus.close()

    asyncio.run(order())
    home = Program(tmp_path, tmp_path)
    (tmp_path / "quick.yaml").write_text("steps: []\nlast: {say: Done.}\n")
    done = home.here("worker", "--role", "researcher", "--bus-url", server.url, "-m", "scripted:quick.yaml")
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "sign their messages, and no secret is set here. Set the same secret on both machines." in done.stderr
