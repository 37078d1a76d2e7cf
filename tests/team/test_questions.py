"""A worker's calls that need approval: asked of the user at its lead, denied when nobody answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.events import Asked, Event
from ba_tui.core.questions import Question, Reply
from ba_tui.core.teamwork import AgentMessage, Role, Team
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.features.teams.engine.approvals import LARGEST, Approvals, CallQuestion, Requests
from ba_tui.features.teams.engine.bus import MemoryBus
from ba_tui.features.teams.engine.desk import DeskMeans, LeadDesk
from ba_tui.features.teams.engine.jobs import HandingOut, TeamJob
from ba_tui.features.teams.engine.messages import ContextRequest, Share, TaskRequest, content, inbox, message
from ba_tui.features.teams.engine.over_redis.bus import RedisBus
from ba_tui.features.teams.engine.over_redis.server import RedisServer
from ba_tui.features.teams.engine.over_redis.state import RedisItems
from ba_tui.features.teams.engine.watching import TeamWatch
from tests.program import Program
from tests.team.house import TeamHouse
from tests.team.redis_process import RedisProcess, lead_signing, token

WORKER, LEAD = "editor@host-1", "lead:t"
EDITS = Question("permission", "Allow write_file?", tool="write_file", args={"path": "a.txt"}, reason="edits ask")


class Asking:
    """A worker with a task, and a lead that answers what ``answers`` says."""

    def __init__(self, sender: str = LEAD, patience: float = 5.0, role: Role | None = None) -> None:
        self.bus = MemoryBus()
        self.told: list[str] = []
        self.requests = Requests(WORKER, self.bus, patience)
        self.task = message(TaskRequest("1", "write"), sender, "role:editor", team="t")
        self.approvals = Approvals(self.requests, role or Role("editor"), self.task, self.told.append)
        self.asked: list[AgentMessage] = []

    async def lead(self, value: Any, sender: str = LEAD) -> None:
        delivery = await anext(self.bus.subscribe(inbox(LEAD), LEAD, LEAD))
        self.asked.append(delivery.message)
        said = message(Share("q", value, kind="answer"), sender, WORKER, about=delivery.message)
        self.requests.take(replace(said, correlation_id=delivery.message.id))

    async def answered(self, value: Any, sender: str = LEAD) -> Reply:
        work = asyncio.create_task(self.lead(value, sender))
        reply = await self.approvals.ask(EDITS, "editor-1")
        await work
        return reply


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    made = Asking()
    yield made
    await made.bus.close()


async def test_the_lead_says_yes_for_this_call(asking: Asking) -> None:
    assert await asking.answered({"choice": "once", "text": "", "person": True}) == Reply("once")
    asked = content(ContextRequest, asking.asked[0])
    assert (asked.query, asked.task, asked.facts["agent"], asked.facts["args"]) == (
        "write_file", "1", "editor-1", {"path": "a.txt"},
    )  # fmt: skip
    assert asking.told[-1] == "Allowed write_file (the user at lead:t)."


@pytest.mark.parametrize(
    ("value", "sender"),
    [
        ({"choice": "always", "text": "", "person": True}, LEAD),
        ({"choice": "once", "text": "", "person": False}, LEAD),
        ({"choice": "once", "text": "", "person": True}, "lead:other"),
        ("yes", LEAD),
    ],
)
async def test_what_is_no_clear_yes_of_the_lead_is_a_no(value: Any, sender: str) -> None:
    # Only the lead's own answer ends the wait.
    asking = Asking(patience=5.0 if sender == LEAD else 0.1)
    reply = await asking.answered(value, sender)
    await asking.bus.close()
    assert (reply.choice, reply.by, reply.rule) == ("deny", "nobody", None)
    assert asking.told[-1].startswith("Denied write_file")


async def test_what_the_lead_cannot_judge_is_denied_here(asking: Asking) -> None:
    long = {"command": "x" * LARGEST}
    for question in (
        replace(EDITS, kind="choice"),
        replace(EDITS, fixed=True, risks=("shares a secret",)),
        replace(EDITS, args=long),
    ):
        assert (await asking.approvals.ask(question, "editor-1")).choice == "deny"
    assert asking.bus.waiting(inbox(LEAD)) == 0
    for other in (Asking(sender="mallory"), Asking(role=Role("editor", messages=("bid",)))):
        assert (await other.approvals.ask(EDITS, "editor-1")).choice == "deny"


async def test_a_lead_that_is_gone_is_a_no() -> None:
    gone = Asking(patience=0.05)
    reply = await gone.approvals.ask(EDITS, "editor-1")
    assert (reply.choice, reply.by) == ("deny", "nobody")
    assert "lead:t gives no sign of life for 0.05 s" in gone.told[-1]


async def ask_lead(house: TeamHouse, asked: CallQuestion, react: Any) -> tuple[Reply, list[Event]]:
    from ba_tui.features.teams.engine.approvals import approved
    from tests.script import collect

    said: list[Reply] = []

    async def work(branch: Any) -> None:
        said.append(await approved(asked, branch))

    turn = house.talk.say("go", work)
    events = await collect(turn, lambda event: react(turn, event))
    return said[0], events


async def test_the_dialog_names_who_asks_and_offers_no_rule(tmp_path: Path) -> None:
    asked = CallQuestion(WORKER, "editor-1\x1b[2J", "1", "shell", "", "It runs code", {"command": "ls\u200b"})

    def yes(turn: Any, event: Event) -> None:
        if isinstance(event, Asked):
            turn.answer(event.ask_id, Reply("once"))

    reply, events = await ask_lead(TeamHouse(tmp_path), asked, yes)
    assert reply.choice == "once"
    (event,) = [each for each in events if isinstance(each, Asked)]
    question = event.question
    assert event.agent == f"main/{WORKER}"
    assert (question.rule, question.session_rule, question.fixed, question.on_timeout) == (None, None, True, "deny")
    assert WORKER in question.reason
    assert "editor-1" in question.reason
    assert "\x1b" not in question.reason
    assert "hidden characters" in question.warnings[0]


EDITOR = "---\nname: editor\ndescription: Edits.\nagent: general\ntools: [write_file]\n---\nEdit.\n"
WORKS = """
steps:
  - calls: [{tool: share, args: {key: orders, value: 412}}]
  - calls: [{tool: write_file, args: {path: b.txt, content: hello}}]
last: {say: Done.}
"""


@pytest.fixture
async def redis(tmp_path: Path) -> AsyncIterator[RedisProcess]:
    server = RedisProcess(tmp_path)
    server.start()
    yield server
    server.kill()


async def test_a_worker_process_shares_and_asks_the_person_at_its_lead(tmp_path: Path, redis: RedisProcess) -> None:
    home = Program(tmp_path / "work", tmp_path, {"BA_TEAM_TOKEN": token()})
    home.folder.mkdir()
    (tmp_path / "ba" / "roles").mkdir(parents=True)
    (tmp_path / "ba" / "roles" / "editor.md").write_text(EDITOR)
    (tmp_path / "ba" / "config.yaml").write_text("team: {heartbeat: 0.3, worker_questions: ask}\n")
    (home.folder / "works.yaml").write_text(WORKS)
    worker = home.start("worker", "--role", "editor", "--bus-url", redis.url, "-m", "scripted:works.yaml")
    bus = RedisBus(RedisServer(redis.url), lead_signing(), tell=lambda text: None)
    asked: list[CallQuestion] = []

    async def attending(question: CallQuestion) -> Reply:
        asked.append(question)
        return Reply("once") if len(asked) == 1 else Reply("deny", "Leave it.")

    watch = TeamWatch(Team("t", "goal", "hierarchical"), Branch(Turn(lambda event: None), Transcript()))
    desk = LeadDesk(LEAD, DeskMeans(bus, lambda member, facts: None, attending=attending), watch, HandingOut(30, 1, 40))
    desk.start()
    try:
        done = await desk.do(TeamJob("1", "editor", "Write b.txt.", "t/1"))
        assert (done.ok, (home.folder / "b.txt").read_text()) == (True, "hello")
        (home.folder / "b.txt").unlink()
        again = await desk.do(TeamJob("2", "editor", "Write b.txt.", "t/2"))
        assert (again.ok, (home.folder / "b.txt").exists()) == (True, False)
        item = await RedisItems(bus, "t").get("orders")
        assert item
        assert (item.value, item.by) == (412, done.member)
    finally:
        await desk.close()
        await bus.close()
        worker.kill()
        said = worker.communicate()[0]
    assert [(each.tool, dict(each.args), each.task) for each in asked] == [
        ("write_file", {"path": "b.txt", "content": "hello"}, task) for task in ("1", "2")
    ]
    assert "Allowed write_file (the user at lead:t)" in said
    assert "Denied write_file (the user at lead:t): Leave it." in said
