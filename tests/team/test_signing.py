"""A key for each member, over a real Redis server: forged, repeated and late messages are refused, and ba says why."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
import subprocess
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.events import TurnEnded
from ba_tui.core.ports.bus import Deliveries, Delivery
from ba_tui.core.provider import ModelRequest, ReplyChunk
from ba_tui.core.teamwork.teams import AgentMessage
from ba_tui.team.bus import MemoryBus
from ba_tui.team.messages import TAKERS, WORKERS, Heartbeat, StatusUpdate, TaskRequest, message, work_topic
from ba_tui.team.over_redis.bus import RedisBus
from ba_tui.team.over_redis.names import stream
from ba_tui.team.over_redis.scripts import PUBLISH
from ba_tui.team.over_redis.seals import LOOK, REVOKED
from ba_tui.team.over_redis.server import PREFIX, RedisServer
from ba_tui.team.over_redis.signing import (
    SKEW,
    WINDOW,
    Identity,
    NotAllowed,
    OtherLead,
    Signing,
    Unsigned,
    WrongTime,
    identity_in,
    identity_of_lead,
    invited,
    new_key,
    token_of,
)
from ba_tui.team.over_redis.spent import Spent
from ba_tui.team.over_redis.state import RedisAccepted, RedisItems, dead_letters, publish_revoked
from ba_tui.team.shared_context import Item, SharedContext
from tests.program import Program
from tests.script import says
from tests.team.house import TeamHouse
from tests.team.redis_process import LEAD_KEY, RedisProcess, lead_signing, member, token

ANN, BOB = "writer@ann-1-aaaa", "writer@bob-2-bbbb"
SENT = AgentMessage(ANN, BOB, "information_share", {"key": "k", "value": 1}, team="t")
TASK = message(TaskRequest("1", "look", deadline=0.0), "lead:t", "role:reader", team="t")


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisProcess]:
    process = RedisProcess(tmp_path_factory.mktemp("redis"), keeps=True)
    process.start()
    yield process
    process.kill()


class Site:
    """Buses of members on one server, and what they say."""

    def __init__(self, server: RedisProcess, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.told: list[str] = []
        self.buses: list[RedisBus] = []

    def bus(self, identity: Identity | None = None, clock: Callable[[], float] = time.time, **more: Any) -> RedisBus:
        signing = Signing(identity or identity_of_lead(LEAD_KEY), clock=clock)
        made = RedisBus(RedisServer(self.server.url), signing, tell=self.told.append, **more)
        self.buses.append(made)
        return made

    def worker(self, name: str = "ann", **more: Any) -> RedisBus:
        """A worker whose machine remembers what was handled."""
        return self.bus(member(name), spent=Spent(self.folder / f"{name}.db"), **more)

    async def close(self) -> None:
        for each in self.buses:
            await each.close()


@pytest.fixture
async def site(server: RedisProcess, tmp_path: Path) -> AsyncIterator[Site]:
    made = Site(server, tmp_path)
    yield made
    await made.close()


async def first(deliveries: Deliveries) -> Delivery:
    return await asyncio.wait_for(anext(deliveries), 10)


async def stored(bus: RedisBus, topic: str) -> str:
    """The body of the newest message in a topic, as anybody on the server can read it."""
    script = "return redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1][2][2]"
    return str(await bus.server.run(script, [stream(topic)], []))


async def injected(bus: RedisBus, topic: str, body: str) -> None:
    """Write a body to a topic as anybody who can write to the server could."""
    keys = [stream(topic), f"{PREFIX}sequences", f"{PREFIX}sent:{new_key()}", f"{PREFIX}groups:{topic}"]
    await bus.server.run(PUBLISH, [*keys, f"{PREFIX}open:{topic}"], ["x", body, 0, 0, 1000, 0])


# Signatures.


def test_a_signature_is_valid_for_its_text_place_and_time_alone() -> None:
    mine = Signing(member("ann"))
    sealed = mine.seal("bob", "{}")
    opened = lead_signing().open("bob", sealed)
    assert (opened.text, opened.signer.name, opened.signer.leads) == ("{}", "ann", False)
    certificate, at, signature = sealed.split()[1:4]
    other = Signing(member("ann")).identity.certificate
    for place, text in (
        ("ann", sealed),
        ("bob", sealed + " "),
        ("bob", "{}"),
        ("bob", ""),
        ("bob", f"ba2 {certificate} {int(at) + 1} {signature} {{}}"),
        ("bob", f"ba2 {other} {at} {signature} {{}}"),
        ("bob", f"ba2 {certificate}x {at} {signature} {{}}"),
        ("bob", f"ba2 {certificate} {at} {'A' * 86} {{}}"),
        ("bob", "ba2 . 0 . {}"),
        ("bob", "ba2 ü 0 ü {}"),
    ):
        with pytest.raises(Unsigned):
            mine.open(place, text)
    with pytest.raises(Unsigned, match="secret that all members share") as old:
        mine.open("bob", f"{'0' * 64} {{}}")
    assert "ba team join" in old.value.hint
    stranger = Signing(invited(new_key(), "ann"))
    with pytest.raises(OtherLead, match="another lead"):
        mine.open("bob", stranger.seal("bob", "{}"))


def test_a_member_cannot_make_itself_a_lead_or_another_member() -> None:
    ann = member("ann")
    held = ann.certificate.partition(".")[0]
    made = json.loads(base64.urlsafe_b64decode(held + "=="))
    forged = base64.urlsafe_b64encode(json.dumps({**made, "role": "lead"}).encode()).decode().rstrip("=")
    for certificate in (f"{forged}.{ann.certificate.partition('.')[2]}", identity_of_lead(ann.private).certificate):
        liar = Signing(replace(ann, certificate=certificate))
        with pytest.raises(OtherLead):
            lead_signing().open("x", liar.seal("x", "{}"))


def test_a_token_carries_one_members_key_and_shows_nothing_else() -> None:
    ann = member("ann")
    assert identity_in(f" {token_of(ann)}\n") == ann
    assert LEAD_KEY not in token_of(ann)
    assert ann.private not in repr(ann)
    for wrong in ("", "ba-team-x", token_of(ann)[:-9], token_of(replace(ann, private=new_key())), "x" * 5_000):
        with pytest.raises(UsageError, match="no token of a team") as error:
            identity_in(wrong)
        assert ann.private not in str(error.value)
    for name in ("", "a b", "a@b", "lead", "x" * 65, "ä"):
        with pytest.raises(UsageError, match="can't be called"):
            invited(LEAD_KEY, name)


@pytest.mark.parametrize("name", ["writer@bob-1-aaaa", "lead:t", "ann", "writer@ann", "writer@ann-1-aaaa-1-aaaa", "@"])
def test_a_worker_speaks_for_no_other_name(name: str) -> None:
    signing = lead_signing()
    opened = signing.open("x", Signing(member("ann")).seal("x", "{}"))
    assert opened.signer.speaks_for(ANN)
    with pytest.raises(NotAllowed, match="in the name of"):
        signing.admit("x", replace(SENT, sender=name), opened)


def test_a_lead_does_not_speak_for_a_worker() -> None:
    lead = identity_of_lead(LEAD_KEY).member
    assert lead.speaks_for("lead:t")
    assert lead.speaks_for("writer-1@0a1b2c3d")
    assert not lead.speaks_for(ANN)


@pytest.mark.parametrize(
    ("topic", "age", "deadline", "words"),
    [
        (BOB, 0.0, 0.0, ""),
        (BOB, -SKEW - 60, 0.0, "The clock of lead:t is 180 s ahead"),
        (BOB, WINDOW - 1, 0.0, ""),
        (BOB, WINDOW + 60, 0.0, "3,660 s ago"),
        (BOB, WINDOW + 60, 900.0, ""),
        (BOB, WINDOW + 960, 900.0, "4,560 s ago"),
        (BOB, 100_000, 1e12, "100,000 s ago"),
        (WORKERS, SKEW + 10, 0.0, "a clock is wrong"),
    ],
)
def test_messages_are_fresh(topic: str, age: float, deadline: float, words: str) -> None:
    now = time.time()
    opened = lead_signing().open(topic, Signing(identity_of_lead(LEAD_KEY), clock=lambda: now - age).seal(topic, "{}"))
    task = message(TaskRequest("1", "x", deadline=now - age + deadline if deadline else 0.0), "lead:t", "x", team="t")
    reader = Signing(member("ann"), clock=lambda: now)
    if not words:
        reader.admit(topic, task, opened)
        return
    with pytest.raises(WrongTime, match=words) as error:
        reader.admit(topic, task, opened)
    assert "clock" in error.value.hint.lower()


# What workers refuse, on a real server.


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
    assert {"forged-1", "forged-2", "forged-3"} <= {each.message.id for each in letters}, "ba team dead shows them"


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


def test_what_was_handled_is_kept_within_bounds(tmp_path: Path) -> None:
    spent = Spent(tmp_path / "team" / "x.db", most=20)
    for number in range(30):
        spent.add(f"m{number}", 1_000.0 + number)
    spent.close()
    later = Spent(tmp_path / "team" / "x.db", most=20)
    assert all(later.has(f"m{number}", 1_000.0 + number) for number in range(30)), "forgotten ones are too old"
    assert not later.has("m31", 1_031.0)
    assert later.has("unknown", 1_001.0)
    later.keep_revoked({"bob": 5.0})
    assert later.revoked() == {"bob": 5.0}
    assert stat.S_IMODE((tmp_path / "team" / "x.db").stat().st_mode) == 0o600
    later.close()
    (tmp_path / "team" / "x.db").write_bytes(b"no database at all" * 100)
    for rest in (tmp_path / "team").glob("x.db-*"):
        rest.unlink()
    with pytest.raises(StorageError, match="can't be used"):
        Spent(tmp_path / "team" / "x.db").has("m1", 1.0)


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
    await publish_revoked(lead, lead.signing.revoked)
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
    forged = Signing(member("eve")).seal(REVOKED, json.dumps({"ann": time.time() + 9}))
    await lead.seals.learn(forged)
    assert "ann" not in lead.signing.revoked
    # A new invitation is a new certificate.
    new = Signing(invited(LEAD_KEY, "bob", at=time.time() + 1)).seal("x", "{}")
    assert lead.signing.open("x", new).signer.name == "bob"
    assert LOOK <= 10


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


# The programs.


def ba(home: Program, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    return home.run("team", *args, stdin=stdin)


def test_invite_and_join(tmp_path: Path) -> None:
    lead, far = Program(tmp_path, tmp_path / "lead"), Program(tmp_path, tmp_path / "far")
    made = ba(lead, "invite", "box")
    assert made.returncode == 0, made.stderr
    (line,) = made.stdout.splitlines()
    assert line.startswith("ba-team-")
    joined = ba(far, "join", stdin=f"{line}\n")
    assert "This machine is the worker box of the team now." in joined.stdout
    assert line not in joined.stdout + joined.stderr
    keys = tmp_path / "far" / "ba" / "keys.yaml"
    assert stat.S_IMODE(keys.stat().st_mode) == 0o600
    assert "box  worker  invited" in ba(lead, "members").stdout
    assert "joined a team as the worker box" in ba(far, "members").stdout
    wrong = ba(far, "join", stdin="ba-team-nonsense\n")
    assert (wrong.returncode, "no token of a team" in wrong.stderr) == (1, True)
    assert "is the member box of another lead's team" in ba(far, "invite", "x").stderr
    assert ba(lead, "revoke", "nobody").returncode == 1
    assert "Revoked box." in ba(lead, "revoke", "box").stdout
    assert "box  worker  revoked" in ba(lead, "members").stdout
    again = ba(lead, "invite", "box").stdout.strip()
    facts = json.loads(ba(lead, "members", "--json").stdout)
    assert [(each["name"], each["revoked"]) for each in facts["members"]] == [("box", None)]
    rotated = ba(lead, "rotate").stdout
    assert "Invite again: ba team invite box" in rotated
    assert again not in rotated


def test_a_worker_that_joined_no_team_ends_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "quick.yaml").write_text("steps: []\nlast: {say: Done.}\n")
    run = ("worker", "--role", "researcher", "--bus-url", "redis://127.0.0.1:1/0", "-m", "scripted:quick.yaml")
    done = Program(tmp_path, tmp_path).here(*run)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "This machine has not joined a team. On the lead run `ba team invite NAME`" in done.stderr
    secret = "correct-horse-battery"
    old = Program(tmp_path, tmp_path, {"BA_TEAM_SECRET": secret}).here(*run)
    assert old.returncode == 1
    assert "The team secret in BA_TEAM_SECRET is no longer used: each member has a key of its own" in old.stderr
    assert "ba team join" in old.stderr
    assert secret not in old.stderr


async def test_a_worker_process_refuses_what_its_lead_did_not_send(site: Site, tmp_path: Path) -> None:
    home = Program(tmp_path, tmp_path, {"BA_TEAM_TOKEN": token("box")})
    (tmp_path / "quick.yaml").write_text("steps: []\nlast: {say: Done.}\n")
    run = ("worker", "--role", "researcher", "--once", "--bus-url", site.server.url, "-m", "scripted:quick.yaml")
    lead, bob = site.bus(), site.bus(member("bob"))
    topic = work_topic("researcher")
    await bob.publish(topic, replace(TASK, id="forged", sender=BOB))
    await lead.publish(topic, TASK)
    body = await stored(lead, topic)
    done = await asyncio.to_thread(home.run, *run)
    assert done.returncode == 0, done.stderr
    assert "The member bob gave a task; only a lead may." in done.stdout
    assert "Ended task 1 of lead:t" in done.stdout
    # Another process of the same machine, after its restart: the old task is replayed with its marks removed.
    await lead.server.run(
        "for _, key in ipairs(redis.call('KEYS', '*accepted*')) do redis.call('DEL', key) end", [], []
    )
    await injected(lead, topic, body)
    await lead.publish(topic, replace(TASK, id="new", content={**TASK.content, "task": "2"}))
    done = await asyncio.to_thread(home.run, *run)
    assert "Ended task 2 of lead:t" in done.stdout
    assert "Took task 1" not in done.stdout
    assert "it was repeated or replayed" in done.stdout
    assert token("box")[:60] not in done.stdout + done.stderr


async def test_a_worker_of_the_leads_machine_needs_no_invitation(site: Site, tmp_path: Path) -> None:
    home = Program(tmp_path, tmp_path)
    (tmp_path / "ba").mkdir()
    (tmp_path / "ba" / "keys.yaml").write_text(f"team-lead: {LEAD_KEY}\n")
    (tmp_path / "ba" / "keys.yaml").chmod(0o600)
    (tmp_path / "quick.yaml").write_text("steps: []\nlast: {say: Done.}\n")
    await site.bus().publish(work_topic("researcher"), TASK)
    run = ("worker", "--role", "researcher", "--once", "--bus-url", site.server.url, "-m", "scripted:quick.yaml")
    done = await asyncio.to_thread(home.run, *run)
    assert "Ended task 1 of lead:t" in done.stdout, done.stdout + done.stderr


async def test_a_worker_cannot_lead(server: RedisProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BA_TEAM_TOKEN", token("box"))
    house = TeamHouse(tmp_path, bus_url=server.url, heartbeat=60)

    async def never(request: ModelRequest) -> AsyncIterator[ReplyChunk]:
        await asyncio.Event().wait()
        yield says("never")

    house.plays(writer=[[never]])
    ended = (await house.team("Write", "writer"))[-1]
    assert isinstance(ended, TurnEnded)
    assert ended.error
    assert "This machine is the worker box of a team, and only a lead gives tasks." in ended.error.message
    assert "ba team invite box --lead" in ended.error.hint


async def test_signs_of_life_of_strangers_are_refused(site: Site) -> None:
    lead, stranger = site.bus(), site.bus(invited(new_key(), "eve"))
    beats = lead.subscribe(WORKERS, "lead:t", "lead:t")
    await lead.reach(waits=False)
    await asyncio.sleep(0)
    await stranger.publish(WORKERS, message(Heartbeat("writer"), "writer@eve-1-eeee"))
    await site.worker().publish(WORKERS, message(Heartbeat("writer"), ANN))
    assert (await first(beats)).message.sender == ANN
