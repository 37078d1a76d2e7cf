"""The bus of a team, in memory and over a real Redis server: the same rules for both."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.teamwork import AgentMessage
from ba_tui.features.teams.engine.bus import Deliveries, Delivery, MemoryBus, MessageBus
from ba_tui.features.teams.engine.messages import (
    TAKERS,
    WORKERS,
    BusLimits,
    Heartbeat,
    TaskRequest,
    content,
    decoded,
    message,
)
from ba_tui.features.teams.engine.over_redis.bus import RedisBus, stream
from ba_tui.features.teams.engine.over_redis.server import PREFIX, RedisServer
from ba_tui.features.teams.engine.over_redis.state import RedisItems, dead_letters
from tests.team.redis_process import PASSWORD, RedisProcess, lead_signing

SENT = '{"sender": "a", "id": "b", "type": "bid", "protocol": 1, "content": %s}'
ODD = ("NaN", "Infinity", "-Infinity", "1e999", "9" * 400)
QUICK = BusLimits(message_mb=0.01, waiting=100, lease=0.3, deliveries=3)


def note(number: int, sender: str = "lead") -> AgentMessage:
    return AgentMessage(sender, "x", "information_share", {"number": number})


async def numbers(deliveries: Deliveries, bus: MessageBus, group: str, most: int) -> list[int]:
    found: list[int] = []
    while len(found) < most:
        delivery = await anext(deliveries)
        found.append(delivery.message.content["number"])
        await bus.ack(delivery, group)
    return found


async def silent(deliveries: Deliveries, seconds: float = 0.1) -> bool:
    """Whether nothing comes."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(anext(deliveries), seconds)
        return False
    return True


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    process = RedisProcess(tmp_path_factory.mktemp("redis"))
    process.start()
    yield process
    process.kill()


@pytest.fixture(params=["memory", "redis"])
async def bus(request: pytest.FixtureRequest) -> AsyncIterator[MessageBus]:
    if request.param == "memory":
        made: MessageBus = MemoryBus(QUICK)
    else:
        process: RedisProcess = request.getfixturevalue("server")
        made = RedisBus(RedisServer(process.url), lead_signing(), QUICK)
        await made.server.run("return redis.call('FLUSHALL')", [], []) if isinstance(made, RedisBus) else None
    yield made
    await made.close()


async def test_each_group_gets_all_and_a_group_shares_its_messages(bus: MessageBus) -> None:
    early = await bus.publish("work", note(0))
    first, second = bus.subscribe("work", TAKERS, "a"), bus.subscribe("work", TAKERS, "b")
    assert await numbers(first, bus, TAKERS, 1) == [0]
    audit = bus.subscribe("work", "audit", "c")
    sent = [await bus.publish("work", note(number)) for number in range(1, 5)]
    assert [each.sequence for each in [early, *sent]] == [1, 2, 3, 4, 5]
    taken = [await anext(first), await anext(second), await anext(first), await anext(second)]
    assert sorted(each.message.content["number"] for each in taken) == [1, 2, 3, 4]
    assert [each.message.sequence for each in taken[::2]] == sorted(each.message.sequence for each in taken[::2])
    # What waited before the second group is not for it.
    assert await numbers(audit, bus, "audit", 4) == [1, 2, 3, 4]


async def test_what_is_not_acknowledged_comes_again_and_first_in_its_order(bus: MessageBus) -> None:
    gone, other = bus.subscribe("in", "g", "gone"), bus.subscribe("in", "g", "other")
    for number in range(4):
        await bus.publish("in", note(number))
    held = [await anext(gone), await anext(gone)]
    assert [each.message.content["number"] for each in held] == [0, 1]
    await bus.ack(held[0], "g")
    await gone.aclose()
    again = [await anext(other) for _ in range(3)]
    assert {(each.message.content["number"], each.times) for each in again} >= {(1, 2)}
    for each in again:
        await bus.ack(each, "g")
    assert await silent(other)


async def test_a_lease_ends_unless_it_is_renewed_and_then_the_message_is_set_aside(bus: MessageBus) -> None:
    taker, sender = bus.subscribe("work", TAKERS, "a"), bus.subscribe("lead", "lead", "lead")
    await bus.publish("work", message(TaskRequest("1", "count"), "lead", "role:x"))
    first = await anext(taker)
    clock = asyncio.get_running_loop().time
    await asyncio.sleep(QUICK.lease / 2)
    renewed = clock()
    await bus.renew(first, TAKERS)
    second = await anext(taker)
    assert clock() - renewed >= QUICK.lease * 0.9
    times = [first.times, second.times, (await anext(taker)).times]
    assert times == [1, 2, 3]
    waits = asyncio.create_task(anext(taker))
    told = await anext(sender)
    waits.cancel()
    assert told.message.type == "error"
    assert told.message.correlation_id == first.message.id
    assert "delivered 3 times" in told.message.content["message"]


async def test_who_cannot_handle_a_message_sets_it_aside_with_the_reason(bus: MessageBus) -> None:
    taker, sender = bus.subscribe("work", TAKERS, "a"), bus.subscribe("lead", "lead", "lead")
    await bus.publish("work", message(TaskRequest("7", "count"), "lead", "role:x"))
    await bus.dead(await anext(taker), TAKERS, "no such role")
    told = await anext(sender)
    assert (told.message.content["task"], "no such role" in told.message.content["message"]) == ("7", True)
    assert await silent(taker, 0.4)
    letters = await dead_letters(bus.server) if isinstance(bus, RedisBus) else bus.dead_letters()  # type: ignore[attr-defined]
    (letter,) = [each for each in letters if each.topic == "work" and each.reason == "no such role"]
    assert (letter.group, letter.message.sender) == (TAKERS, "lead")


async def test_limits_are_said_and_nothing_is_sent(bus: MessageBus) -> None:
    with pytest.raises(UsageError, match=r"at most 0\.01 MB") as told:
        await bus.publish("a", AgentMessage("lead", "a", "information_share", {"text": "x" * 14_000}))
    assert "artifact" in told.value.hint
    for value in (object(), float("nan")):
        with pytest.raises(UsageError, match="not valid JSON"):
            await bus.publish("a", AgentMessage("lead", "a", "information_share", {"value": value}))
    for number in range(QUICK.waiting):
        assert (await bus.publish("a", note(number))).sequence == number + 1
    with pytest.raises(UsageError, match="100 messages wait in the topic a"):
        await bus.publish("a", note(100))
    reader = bus.subscribe("a", "g", "g")
    assert await numbers(reader, bus, "g", 100) == list(range(100))
    assert (await bus.publish("a", note(100))).sequence == 101


async def test_a_message_is_taken_once_and_signs_of_life_are_not_kept(bus: MessageBus) -> None:
    reader, once = bus.subscribe("a", "g", "g"), note(1)
    assert (await bus.publish("a", once)).sequence == (await bus.publish("a", once)).sequence == 1
    assert await numbers(reader, bus, "g", 1) == [1]
    assert await silent(reader)
    await bus.publish(WORKERS, message(Heartbeat("x"), "w"))
    late = bus.subscribe(WORKERS, "lead", "lead")
    await bus.publish(WORKERS, message(Heartbeat("y"), "w"))
    assert content(Heartbeat, (await anext(late)).message).role == "y"


async def test_secrets_do_not_leave_the_process(server: RedisProcess) -> None:
    def redact(text: str) -> str:
        return text.replace("hunter2", "[secret]")

    bus = RedisBus(RedisServer(server.url), lead_signing(), QUICK, redact)
    reader = bus.subscribe("s", "g", "g")
    await bus.publish(
        "s", AgentMessage("lead", "s", "information_share", {"a": ["hunter2"], "hunter2": {"b": "hunter2"}})
    )
    assert (await anext(reader)).message.content == {"a": ["[secret]"], "[secret]": {"b": "[secret]"}}
    await bus.close()


async def test_what_others_write_to_the_server_stops_nobody(server: RedisProcess) -> None:
    bus = RedisBus(RedisServer(server.url), lead_signing(), QUICK)
    reader = bus.subscribe("hostile", "g", "g")
    await bus.publish("hostile", note(1))
    write = "return redis.call('XADD', KEYS[1], '*', unpack(ARGV, 2))"
    odd = SENT % '{}, "sequence": NaN'
    odd, plain = (lead_signing().seal("hostile", text) for text in (odd, SENT % "{}"))
    for entry in (("x", "y"), ("m", odd, "s", "1"), ("m", plain, "s", "many"), ("m", "\x80", "s", "2")):
        await bus.run(write, [stream("hostile")], entry)
    await bus.run("return redis.call('XADD', KEYS[1], '*', 'm', '\\255\\254', 's', '\\255')", [stream("hostile")], [])
    await bus.publish("hostile", note(2))
    async with asyncio.timeout(20):
        found = [(await anext(reader)).message for _ in range(3)]
    assert [each.content.get("number") for each in found] == [1, None, 2]
    items = RedisItems(bus, "t")
    await bus.run("return redis.call('HSET', KEYS[1], 'a', '[[')", [f"{PREFIX}items:t"], [])
    assert await items.all() == []
    with pytest.raises(UsageError):
        await items.get("a")
    await bus.close()


@pytest.mark.parametrize("keeps", [True, False])
async def test_a_server_that_is_away_loses_nothing(tmp_path: Path, keeps: bool) -> None:
    """Killed in the middle: what was sent and not handled, and what was sent meanwhile, comes in its order."""
    process, told = RedisProcess(tmp_path, keeps=keeps), list[str]()
    process.start()
    sender, reader = (
        RedisBus(RedisServer(process.url), lead_signing(), QUICK, tell=told.append),
        RedisBus(RedisServer(process.url), lead_signing(), QUICK),
    )
    inbox = reader.subscribe("in", "g", "g")
    for number in range(3):
        await sender.publish("in", note(number))
    handled = await anext(inbox)
    await reader.ack(handled, "g")
    process.kill()
    assert (await sender.publish("in", note(3))).sequence == 0
    assert (await sender.publish("in", note(4))).sequence == 0
    process.start()
    found: list[Delivery] = []
    while {each.message.content["number"] for each in found} < {1, 2, 3, 4}:
        found.append(await anext(inbox))
        await reader.ack(found[-1], "g")
    by_number = {each.message.content["number"]: each.message.sequence for each in found}
    assert by_number == {1: 2, 2: 3, 3: 4, 4: 5}
    assert (await sender.publish("in", note(5))).sequence == 6
    assert await numbers(inbox, reader, "g", 1) == [5]
    assert await silent(inbox)
    assert sum("Messages are kept" in line for line in told) == 1
    assert sum("2 messages that waited were sent" in line for line in told) == 1
    assert any("lost its data" in line for line in told) is not keeps
    assert PASSWORD not in "".join(told)
    await sender.close()
    await reader.close()
    process.kill()


async def test_who_leaves_without_a_word_leaves_nothing_behind(server: RedisProcess) -> None:
    """An orchestrator that ended: what it had taken goes to the next at once, its group of signs of life is gone."""
    gone, other = (RedisBus(RedisServer(server.url), lead_signing(), BusLimits(lease=600)) for _ in range(2))
    taken = gone.subscribe("left", TAKERS, "gone")
    beats = gone.subscribe(WORKERS, "gone", "gone")
    await other.publish("left", note(1))
    await other.publish(WORKERS, message(Heartbeat("x"), "w"))
    assert (await anext(taken)).times == 1
    assert (await anext(beats)).message.type == "heartbeat"
    await gone.close()
    assert (await anext(other.subscribe("left", TAKERS, "other"))).times == 2
    known = await other.run("return redis.call('SMEMBERS', KEYS[1])", [f"{PREFIX}groups:workers"], [])
    assert "gone" not in known
    await other.close()


async def test_a_wrong_password_is_said_without_it(server: RedisProcess) -> None:
    bus = RedisBus(RedisServer(server.url.replace(PASSWORD, "not-it")), lead_signing(), QUICK)
    with pytest.raises(StorageError, match="refuses the user or the password") as told:
        await bus.publish("a", note(1))
    assert "not-it" not in told.value.with_hint
    await bus.close()


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "{}", "9" * 5000, '{"sender": "a", "id": "b", "type": "nothing", "content": {}}', "[" * 100_000),
        *(SENT % f'{{}}, "{name}": {value}' for name in ("sequence", "protocol", "at") for value in ODD),
        SENT % ('{"a": ' * 200 + "1" + "}" * 200),
        SENT % '{"a": "half of a character \\ud800"}',
        SENT % f'{{"a": "{"x" * 1_000_000}"}}',
    ],
    ids=range(24),
)
def test_what_is_no_message_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        decoded(text)


@pytest.mark.parametrize(
    "held",
    [
        *({}, {"task": 1}, {"task": "1", "deadline": True}, {"task": "1", "chain": [1]}),
        {"task": "1", "deadline": 10**400},
    ],
)
def test_contents_of_other_processes_are_checked(held: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="task_request from lead"):
        content(TaskRequest, AgentMessage("lead", "x", "task_request", {"prompt": "x"} | held))


def test_a_content_comes_back_and_what_is_new_in_it_is_left_out() -> None:
    request = TaskRequest("1", "count", chain=("lead",), context={"a": 1})
    sent = message(request, "lead", "role:x")
    assert content(TaskRequest, AgentMessage("lead", "x", "task_request", {**sent.content, "newer": 1})) == request
