"""The guard that asks: every decision goes out, and a question that nobody answers is settled as its rule says."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from ba_tui.core.effects import READING
from ba_tui.core.events import PERSON, Answered, Asked, Event, Judged, Notice
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.questions import Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.text.json_text import args_hash
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.answers import ProjectApprovals
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.verdicts import Allow, Ask, Deny
from ba_tui.tools.editing.disk import write_bytes
from ba_tui.tools.guards.permission import GuardVerdict, PermissionGate

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


class Room:
    """A real turn with one tool behind the guard; the user gives ``reply`` as soon as they are asked, if any."""

    def __init__(self, root: Path, *rules: RuleLine, approvals: ProjectApprovals | None = None) -> None:
        self.events: list[Event] = []
        self.reply: Reply | None = None
        self.asked = asyncio.Event()
        self.ran: list[Mapping[str, Any]] = []
        self.policy = Policy(Workspace(root), rules, approvals=approvals)
        self.turn = Turn(self.hear)
        gate = PermissionGate(self.policy.judge, self.policy.remember, lambda _: root)
        facts = ToolFacts(target="path", paths=("path",))
        self.write = gate.guard(Tool("write_file", "", SCHEMA, self.run, Effect.WRITE, facts=facts))
        self.read = gate.guard(replace(Tool("read_file", "", SCHEMA, self.run), facts=facts))

    def hear(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, Asked):
            self.asked.set()
        if isinstance(event, Asked) and self.reply:
            asyncio.get_running_loop().call_soon(self.turn.answer, event.ask_id, self.reply)

    async def run(self, args: Mapping[str, Any], call: Call) -> ToolResult:
        self.ran.append(args)
        return ToolResult("ran")

    async def call(self, tool: Tool, path: str = "a") -> ToolResult:
        return await tool.run({"path": path}, Call("c1", Branch(self.turn, Transcript())))

    def judged(self) -> list[tuple[str, str, str]]:
        return [(event.verdict, event.by, event.rule) for event in self.events if isinstance(event, Judged)]


def asking(**terms: Any) -> RuleLine:
    return RuleLine("write_file", "ask", "test", terms=json.dumps(terms))


async def test_every_decision_goes_out(tmp_path: Path) -> None:
    room = Room(tmp_path, RuleLine("*(secret)", "deny", "test"), RuleLine("write_file(b)", "allow", "test"))
    await room.call(room.read)
    await room.call(room.write, "b")
    await room.call(room.read, "secret")
    assert room.judged() == [("allow", "mode", ""), ("allow", "rule", "write_file(b)"), ("deny", "rule", "*(secret)")]
    first, _, last = (event for event in room.events if isinstance(event, Judged))
    assert (first.tool, first.call_id, first.hash) == ("read_file", "c1", args_hash({"path": "a"}))
    assert "Denied by the rule" in last.reason


async def test_what_users_run_themselves_they_decided_about_unless_a_rule_did(tmp_path: Path) -> None:
    room = Room(tmp_path, RuleLine("*(secret)", "deny", "test"))
    for path in ("a", "secret"):
        await room.write.run({"path": path}, Call("c1", Branch(room.turn, Transcript(PERSON))))
    assert room.judged() == [("allow", "person", ""), ("deny", "rule", "*(secret)")]


@pytest.mark.parametrize("choice", ["once", "deny"])
async def test_a_call_whose_question_was_left_open_is_asked_about_whatever_the_rules_say(
    tmp_path: Path, choice: Literal["once", "deny"]
) -> None:
    room = Room(tmp_path, RuleLine("write_file", "allow", "test"))
    room.reply = Reply(choice)
    await room.write.run({"path": "a"}, Call("c1", Branch(room.turn, Transcript()), again=True))
    (asked,) = (event.question for event in room.events if isinstance(event, Asked))
    assert asked.reason == "ba ended before you answered"
    assert bool(room.ran) == (choice == "once")


async def test_what_is_no_path_is_wrong_and_not_denied(tmp_path: Path) -> None:
    room = Room(tmp_path)
    for path in ("", "a\0b", "x" * 5_000):
        result = await room.call(room.read, path)
        assert result.error
        assert result.error.kind == "invalid_parameters"
        assert result.error.hint
    assert not room.ran


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply("once"), ("allow", "person", "")),
        (Reply("session", rule="write_file(a)"), ("allow", "person", "write_file(a)")),
        (Reply("deny", "not now"), ("deny", "person", "")),
        (Reply("once", edited={"path": "b"}), ("allow", "person", "")),
    ],
)
async def test_what_the_person_says_goes_out_too(tmp_path: Path, reply: Reply, said: tuple[str, str, str]) -> None:
    room = Room(tmp_path)
    room.reply = reply
    await room.call(room.write)
    assert room.judged() == [("ask", "mode", ""), said]
    judged = next(event for event in reversed(room.events) if isinstance(event, Judged))
    assert judged.reason == reply.text
    assert judged.hash == args_hash(reply.edited or {"path": "a"})


async def test_nobody_answers_and_so_it_is_denied(tmp_path: Path) -> None:
    room = Room(tmp_path, asking(timeout=0.01))
    result = await room.call(room.write)
    assert result.is_error
    assert "Nobody answered in 0.01 s" in result.text
    assert not room.ran
    assert room.judged() == [("ask", "rule", "write_file"), ("deny", "rule", "write_file")]
    asked = next(event for event in room.events if isinstance(event, Asked))
    (answered,) = (event for event in room.events if isinstance(event, Answered))
    assert (answered.ask_id, answered.reply.by) == (asked.ask_id, "nobody")
    assert not room.turn.answer(asked.ask_id, Reply("once")), "a late answer changes nothing"


async def test_nobody_answers_and_the_rule_lets_it_run(tmp_path: Path) -> None:
    room = Room(tmp_path, asking(timeout=0.01, on_timeout="allow"))
    result = await room.call(room.write)
    assert room.ran == [{"path": "a"}]
    assert result.text.startswith("Nobody answered in 0.01 s. The rule write_file allows it then.\nran")
    assert room.judged()[-1] == ("allow", "rule", "write_file")


async def test_escalating_tells_once_more_and_then_denies(tmp_path: Path) -> None:
    room = Room(tmp_path, asking(timeout=0.01, on_timeout="escalate"))
    result = await room.call(room.write)
    assert "Nobody answered in 0.02 s" in result.text
    (notice,) = (event for event in room.events if isinstance(event, Notice))
    assert notice.level == "warning"
    assert not room.ran


async def test_an_answer_in_time_counts(tmp_path: Path) -> None:
    room = Room(tmp_path, asking(timeout=60, on_timeout="escalate"))
    room.reply = Reply("once")
    assert (await room.call(room.write)).text == "ran"
    assert not any(isinstance(event, Notice) for event in room.events)


async def test_a_cancelled_question_is_withdrawn(tmp_path: Path) -> None:
    room = Room(tmp_path, asking(timeout=60))
    work = asyncio.create_task(room.call(room.write))
    await room.asked.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not room.ran


async def test_a_link_that_comes_after_the_judgement_is_not_followed(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    for folder in (root / "real", other):
        folder.mkdir(parents=True)
        (folder / "a").write_text("before")
    (root / "link").symlink_to("real")
    room = Room(root, RuleLine("write_file", "allow", "test"))
    workspace = Workspace(root)

    async def swap_then_write(args: Mapping[str, Any], call: Call) -> ToolResult:
        (root / "link").unlink()
        (root / "link").symlink_to(other)
        path = workspace.resolve(args["path"])
        write_bytes(path, b"after", before=b"before", shown="a")
        return ToolResult(workspace.shown(path))

    gate = PermissionGate(room.policy.judge, room.policy.remember, lambda _: root)
    tool = replace(room.write, run=swap_then_write)
    result = await room.call(gate.guard(tool), "link/a")
    assert result.text == "real/a"
    assert [(folder / "a").read_text() for folder in (root / "real", other)] == ["after", "before"]


async def test_no_file_is_written_on_the_loop_while_a_rule_is_given(tmp_path: Path) -> None:
    approvals = ProjectApprovals(tmp_path / "home" / "approvals.yaml", tmp_path)
    room = Room(tmp_path, RuleLine("write_file", "ask", "test"), approvals=approvals)
    room.reply = Reply("always", rule="write_file(a)")
    loop, opened, watching = threading.get_ident(), list[int](), True

    def watch(event: str, args: tuple[Any, ...]) -> None:
        # An audit hook stays until the process ends, so it is made idle at the end of the test.
        if watching and event in {"open", "os.rename", "os.mkdir"} and str(approvals.path.parent) in str(args[0]):
            opened.append(threading.get_ident())

    sys.addaudithook(watch)
    result = await room.call(room.write)
    watching = False
    assert result.text == "ran"
    assert "write_file(a)" in approvals.path.read_text()
    assert opened
    assert loop not in opened
    assert (await room.call(room.write)).text == "ran"
    assert room.judged()[-1] == ("allow", "rule", "write_file(a)")


ASKED = Ask("Why.", "write_file(a)", ("writes",), profile=READING)


@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.EXECUTE])
@pytest.mark.parametrize(
    ("second", "edited", "said"),
    [
        (ASKED, None, "allow"),
        (Allow(), None, "allow"),
        (Deny("Plan mode."), None, "deny"),
        (replace(ASKED, rule="other"), None, "deny"),
        (replace(ASKED, risks=("outside the workspace",)), None, "deny"),
        (Deny("Plan mode."), {"path": "b"}, "deny"),
        (Allow(profile=READING), {"path": "b"}, "allow"),
    ],
)
async def test_what_is_judged_again_after_the_answer_goes_out(
    effect: Effect, second: GuardVerdict, edited: Mapping[str, Any] | None, said: str
) -> None:
    profiles: list[str] = []

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        profiles.append(call.profile.name)
        return ToolResult("ran")

    events: list[Event] = []
    turn = Turn(events.append)
    verdicts = iter([ASKED, second])
    tool = Tool("write_file", "", SCHEMA, run, effect, facts=ToolFacts(target="path"))
    guarded = PermissionGate(lambda request: next(verdicts), lambda rule, scope: None, lambda call: Path("/srv")).guard(
        tool
    )
    running = asyncio.ensure_future(guarded.run({"path": "a"}, Call("c1", Branch(turn, Transcript()))))
    async for event in turn:
        if isinstance(event, Asked):
            turn.answer(event.ask_id, Reply("once", edited=dict(edited) if edited else None))
            break
    result = await running
    judged = [(event.verdict, event.profile) for event in events if isinstance(event, Judged)]
    assert judged == [("ask", ""), (said, "reading" if (said, effect) == ("allow", Effect.EXECUTE) else "")]
    assert result.is_error == (said == "deny")
    assert profiles == (["reading"] if said == "allow" else [])
