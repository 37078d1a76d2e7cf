"""A key for each member, over a real Redis server: forged, repeated and late messages are refused, and ba says why."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.features.teams.engine.bus import MemoryBus
from ba_tui.features.teams.engine.messages import (
    TAKERS,
    WORKERS,
    BusLimits,
    Heartbeat,
    StatusUpdate,
    message,
    work_topic,
)
from ba_tui.features.teams.engine.over_redis.signing import (
    LOOK,
    REVOKED,
    MembershipRevoked,
    NotAllowed,
    OtherLead,
    Signer,
    Spent,
    identity_of_lead,
    invited,
    new_key,
)
from ba_tui.features.teams.engine.over_redis.state import RedisAccepted, RedisItems, dead_letters, publish_revoked
from ba_tui.features.teams.engine.shared_context import Item, SharedContext
from tests.team.redis_process import LEAD_KEY, RedisProcess, member
from tests.team.sites import ANN, BOB, SENT, TASK, Site, first, injected, stored


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    process = RedisProcess(tmp_path_factory.mktemp("redis"), keeps=True)
    process.start()
    yield process
    process.kill()


@pytest.fixture
async def site(server: RedisProcess, tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(server, tmp_path)
    yield made
    await made.close()


async def test_only_a_lead_gives_tasks(site: Site) -> None:
    worker, bob, lead = site.worker(), site.bus(member("bob")), site.bus()
    taker = worker.subscribe(work_topic("reader"), TAKERS, ANN)
    await bob.publish(work_topic("reader"), replace(TASK, id="forged-1", sender=BOB))
    await bob.publish(work_topic("reader"), replace(TASK, id="forged-2"))
    await site.bus(invited(new_key(), "eve", "lead")).publish(work_topic("reader"), replace(TASK, id="forged-3"))
    await injected(lead, work_topic("reader"), json.dumps({"sender": "lead:t", "type": "task_request"}))
    await lead.publish(work_topic("reader"), TASK)
    assert (await first(taker)).message.id == TASK.id
    assert worker.seals.refused == 4
    told = "\n".join(site.told)
    for words in (
        "The member bob gave a task; only a lead may. Revoke the member if that is no mistake: ba team revoke bob",
        "The member bob sent it in the name of lead:t.",
        "another lead",
        "not signed by a member of this team",
    ):
        assert words in told
    letters = await dead_letters(lead.server)
    assert {"forged-1", "forged-2"} <= {each.message.id for each in letters}, "ba team dead shows them"


async def test_a_deputy_may_lead(site: Site) -> None:
    worker, deputy = site.worker(), site.bus(invited(LEAD_KEY, "desk-2", "lead"))
    await deputy.publish(work_topic("reader"), TASK)
    assert (await first(worker.subscribe(work_topic("reader"), TAKERS, ANN))).message.sender == "lead:t"


async def test_a_member_cannot_answer_for_another(site: Site) -> None:
    lead, bob = site.bus(), site.bus(member("bob"))
    inbox = lead.subscribe("lead:t", "lead:t", "lead:t")
    await bob.publish("lead:t", replace(SENT, id="forged"))
    await site.worker().publish("lead:t", SENT)
    assert (await first(inbox)).message.sender == ANN
    assert "The member bob sent it in the name of writer@ann-1-aaaa." in site.told[0]


async def test_a_changed_or_copied_message_is_refused(site: Site) -> None:
    lead, worker = site.bus(), site.worker()
    taker = worker.subscribe(work_topic("reader"), TAKERS, ANN)
    await lead.publish(work_topic("writer"), TASK)
    body = await stored(lead, work_topic("writer"))
    await injected(lead, work_topic("reader"), body)
    await injected(lead, work_topic("reader"), body.replace("look", "loot"))
    await lead.publish(work_topic("reader"), replace(TASK, id="real"))
    assert (await first(taker)).message.id == "real"
    assert worker.seals.refused == 2
    assert "the signature is wrong: it was changed or copied" in site.told[0]


@pytest.mark.parametrize("restart", ["neither", "worker", "server"])
async def test_a_replayed_task_is_refused_also_after_a_restart(site: Site, restart: str) -> None:
    lead, worker = site.bus(), site.worker()
    taker = worker.subscribe(work_topic("reader"), TAKERS, ANN)
    await lead.publish(work_topic("reader"), TASK)
    body = await stored(lead, work_topic("reader"))
    await worker.ack(await first(taker), TAKERS)
    if restart == "worker":
        await worker.close()
        worker = site.worker()
        taker = worker.subscribe(work_topic("reader"), TAKERS, ANN)
    if restart == "server":
        site.server.kill()
        site.server.start()
        await asyncio.gather(worker.back(), lead.back())
    await injected(lead, work_topic("reader"), body)
    await lead.publish(work_topic("reader"), replace(TASK, id="new"))
    assert (await first(taker)).message.id == "new"


async def test_a_replay_is_refused_while_the_task_is_done_and_a_redelivery_is_not(site: Site) -> None:
    lead, worker = site.bus(), site.worker()
    taker = worker.subscribe(work_topic("reader"), TAKERS, ANN)
    await lead.publish(work_topic("reader"), TASK)
    body = await stored(lead, work_topic("reader"))
    held = await first(taker)
    await injected(lead, work_topic("reader"), body)
    await lead.publish(work_topic("reader"), replace(TASK, id="new"))
    assert (await first(taker)).message.id == "new"
    assert "it was repeated or replayed" in site.told[0]
    # A worker that leaves without an answer has not handled the task: another one gets it.
    await taker.aclose()
    again = site.worker().subscribe(work_topic("reader"), TAKERS, "writer@ann-3-cccc")
    assert {(await first(again)).message.id for _ in range(2)} == {held.message.id, "new"}


async def test_a_wrong_clock_is_named(site: Site) -> None:
    worker = site.worker()
    taker = worker.subscribe(work_topic("reader"), TAKERS, ANN)
    ahead = site.bus(clock=lambda: time.time() + 600)
    await ahead.publish(work_topic("reader"), TASK)
    await site.bus().publish(work_topic("reader"), replace(TASK, id="new"))
    assert (await first(taker)).message.id == "new"
    assert "The clock of lead:t is 600 s ahead of the clock of this machine. Set both clocks" in site.told[0]


async def test_a_revoked_member_is_refused_everywhere_and_stays_so(site: Site) -> None:
    lead, worker, bob = site.bus(), site.worker(), site.bus(member("bob"))
    lead.signing.learn({"bob": time.time()})
    await publish_revoked(lead)
    inbox = worker.subscribe(ANN, ANN, ANN)
    await bob.publish(ANN, replace(SENT, sender=BOB, id="from-bob"))
    await site.bus(member("carl")).publish(ANN, replace(SENT, sender="writer@carl-1-cccc"))
    assert (await first(inbox)).message.sender == "writer@carl-1-cccc"
    assert any(
        "The lead revoked the member bob. To let it in again: `ba team invite bob`" in line for line in site.told
    )
    # Whoever can write to the server takes the list away, or puts an own one there: nothing is forgotten.
    await lead.server.run("return redis.call('DEL', KEYS[1])", [REVOKED], [])
    await worker.close()
    assert "bob" in Spent(site.folder / "ann.db").revoked()
    forged = Signer(member("eve")).seal(REVOKED, json.dumps({"ann": time.time() + 9}))
    await lead.seals.learn(forged)
    assert "ann" not in lead.signing.revoked
    # A new invitation is a new certificate.
    new = Signer(invited(LEAD_KEY, "bob", at=time.time() + 1)).seal("x", "{}")
    assert lead.signing.open("x", new).signer.name == "bob"
    assert LOOK <= 10


async def test_a_revoked_worker_ends_and_takes_no_more_work(site: Site) -> None:
    lead, worker = site.bus(), site.worker()
    lead.signing.learn({"ann": time.time()})
    await publish_revoked(lead)
    await lead.publish(work_topic("reader"), TASK)
    with pytest.raises(MembershipRevoked, match="revoked the member ann, which this machine is"):
        await first(worker.subscribe(work_topic("reader"), TAKERS, ANN))
    other = site.worker("carl").subscribe(work_topic("reader"), TAKERS, "writer@carl-1-cccc")
    assert (await first(other)).message.id == TASK.id


async def test_work_of_another_lead_is_left_for_its_members(site: Site) -> None:
    key = new_key()
    limits = BusLimits(lease=0.4)
    worker, other = site.worker(limits=limits), site.bus(invited(key, "eve"), limits=limits)
    wrong = worker.subscribe(work_topic("reader"), TAKERS, ANN)
    refusing = asyncio.create_task(anext(wrong))
    await site.bus(identity_of_lead(key)).publish(work_topic("reader"), TASK)
    await site.heard.wait()
    refusing.cancel()
    await asyncio.gather(refusing, return_exceptions=True)
    right = other.subscribe(work_topic("reader"), TAKERS, "writer@eve-1-eeee")
    assert (await first(right)).message.id == TASK.id


async def test_after_the_lead_got_a_new_key_old_members_say_what_to_do(site: Site) -> None:
    worker = site.worker()
    new_lead = site.bus(identity_of_lead(new_key()))
    taker = worker.subscribe(work_topic("reader"), TAKERS, ANN)
    await new_lead.publish(work_topic("reader"), TASK)
    inbox = new_lead.subscribe("lead:t", "lead:t", "lead:t")
    await worker.publish("lead:t", message(StatusUpdate("1", "thinking"), ANN, "lead:t", team="t"))
    for waiting in (taker, inbox):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(waiting), 0.5)
    assert len(site.told) == 2
    assert all("under the key of another lead" in line and "`ba team join`" in line for line in site.told)


async def test_shared_items_and_results_are_signed_too(site: Site) -> None:
    lead, worker, bob = site.bus(), site.worker(), site.bus(member("bob"))
    items = RedisItems(worker, "signed")
    ann = SharedContext(items, MemoryBus(), "signed", ANN)
    await ann.write("rows", 1)
    assert (await ann.write("rows", 2, 1)).version == 2
    accepted = RedisAccepted(worker)
    assert (await accepted.first("k", SENT)).id == (await accepted.first("k", replace(SENT, id="late"))).id == SENT.id
    assert await RedisAccepted(lead).find("k")
    # A member that writes in the name of another, and a stranger.
    await RedisItems(bob, "signed").put(Item("forged", 3, 1, ANN, 0.0))
    with pytest.raises(NotAllowed, match="in the name of"):
        await items.get("forged")
    with pytest.raises(NotAllowed):
        await RedisAccepted(bob).first("k2", SENT)
    await RedisItems(site.bus(invited(new_key(), "eve")), "signed").put(Item("strange", 3, 1, ANN, 0.0))
    with pytest.raises(OtherLead):
        await items.get("strange")
    assert [item.key for item in await items.all()] == ["rows"]


async def test_signs_of_life_of_strangers_are_refused(site: Site) -> None:
    lead, stranger = site.bus(), site.bus(invited(new_key(), "eve"))
    beats = lead.subscribe(WORKERS, "lead:t", "lead:t")
    await lead.reach(waits=False)
    await stranger.publish(WORKERS, message(Heartbeat("writer"), "writer@eve-1-eeee"))
    await lead.publish(WORKERS, message(Heartbeat("writer"), "lead:t"))
    await site.worker().publish(WORKERS, message(Heartbeat("writer"), ANN))
    assert [(await first(beats)).message.sender for _ in range(2)] == ["lead:t", ANN]
    assert "another lead" in site.told[0]
