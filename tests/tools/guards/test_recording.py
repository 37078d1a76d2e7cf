"""The guard that lists what a call writes of the files that run or instruct models."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.effects import READING, WORKING, ProfileStep
from ba_tui.core.events import Asked, Event
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.questions import Reply
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Effect, Tool, ToolFacts
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.sandbox.workspace_scan import WorkspaceScan
from ba_tui.permissions.trust.session_writes import SessionWrites, WatchedPlace
from ba_tui.permissions.trust.write_records import WriteRecords
from ba_tui.resources import bundled
from ba_tui.tools.builtin.files import write_file_tool
from ba_tui.tools.definitions import load_definitions
from ba_tui.tools.editing.seen_files import SeenFiles
from ba_tui.tools.guards.checkpoint import RecordingGuard
from ba_tui.tools.guards.permission import PermissionGate

DEFINITIONS = load_definitions(bundled("config") / "prompts" / "tools")


class Room:
    """The real write_file behind consent and the record, in a project at ``root``; the user gives ``reply``."""

    def __init__(self, folder: Path, *rules: RuleLine, imported: str = "none.md") -> None:
        self.root = folder / "work"
        self.root.mkdir()
        self.reply: Reply | None = None
        self.records = WriteRecords(folder / "written")
        place = WatchedPlace(self.root, folder / "own", WorkspaceScan([self.root]), self.instructions)
        self.imported = imported
        self.writes = SessionWrites(self.records, place, recent=0)
        workspace = Workspace(self.root)
        policy = Policy(workspace, rules)
        recording = RecordingGuard(self.writes, workspace, lambda: True)
        tool = write_file_tool(DEFINITIONS["write_file"], workspace, SeenFiles())
        gate = PermissionGate(policy.judge, policy.remember, lambda _: self.root)
        self.write: Tool = gate.guard(recording.guard(tool))
        self.turn = Turn(self.hear)

    def instructions(self, found: Sequence[Path]) -> Sequence[Path]:
        return [*found, self.root / self.imported]

    def hear(self, event: Event) -> None:
        if isinstance(event, Asked) and self.reply:
            asyncio.get_running_loop().call_soon(self.turn.answer, event.ask_id, self.reply)

    async def call(self, **args: Any) -> None:
        await self.write.run(args, Call("c1", Branch(self.turn, Transcript())))

    def listed(self) -> list[str]:
        return [Path(key.path).name for key in self.records.of(self.root).written]


@pytest.mark.parametrize(
    ("reply", "listed"),
    [
        (Reply("once"), []),
        (Reply("session", rule="write_file(AGENTS.md)"), []),
        (Reply("once", by="nobody"), ["AGENTS.md"]),
        (Reply("once", by="hook"), ["AGENTS.md"]),
    ],
)
async def test_instructions_that_the_user_approved_with_the_difference_are_accepted(
    tmp_path: Path, reply: Reply, listed: list[str]
) -> None:
    room = Room(tmp_path)
    room.reply = reply
    await room.call(path="AGENTS.md", content="Be brief.\n")
    assert (room.root / "AGENTS.md").read_text() == "Be brief.\n"
    assert room.listed() == listed
    held = room.writes.held(room.root / "AGENTS.md", b"Be brief.\n")
    assert bool(held) == bool(listed)


async def test_what_a_rule_allows_nobody_has_seen(tmp_path: Path) -> None:
    room = Room(tmp_path, RuleLine("write_file", "allow", "test"))
    await room.call(path="sub/CLAUDE.md", content="Be brief.\n")
    assert room.listed() == ["CLAUDE.md"]


async def test_what_runs_is_listed_even_when_the_user_approved_the_edit(tmp_path: Path) -> None:
    room = Room(tmp_path)
    room.reply = Reply("once")
    await room.call(path=".ba/hooks.yaml", content="Stop: [{command: evil}]\n")
    assert room.listed() == ["hooks.yaml"]


async def test_readers_keep_no_record(tmp_path: Path) -> None:
    room = Room(tmp_path)
    recording = RecordingGuard(room.writes, Workspace(room.root), lambda: True)
    reader = Tool("read_file", "", {}, room.write.run, Effect.READ)
    assert recording.guard(reader) is reader
    assert room.records.none(room.root)


async def test_where_no_record_can_be_kept_only_ordinary_files_are_written(tmp_path: Path) -> None:
    room = Room(tmp_path, RuleLine("write_file", "allow", "test"), imported="docs/rules.md")
    room.records.folder.write_text("a file in its place")
    for name in ("AGENTS.md", ".ba/config.yaml", "a/.mcp.json", "docs/rules.md"):
        await room.call(path=name, content="planted")
        assert not (room.root / name).exists()
    await room.call(path="a.txt", content="plain")
    assert (room.root / "a.txt").read_text() == "plain"


STEP = ProfileStep("true", WORKING)


@pytest.mark.parametrize(
    ("effect", "facts", "call", "holds", "listed"),
    [
        (Effect.EXECUTE, {}, {"profile": READING}, True, False),
        (Effect.EXECUTE, {}, {"profile": READING}, False, True),
        (Effect.EXECUTE, {}, {"profile": READING, "steps": (STEP,)}, True, True),
        (Effect.EXECUTE, {}, {"profile": WORKING}, True, True),
        (Effect.WRITE, {}, {"profile": READING}, True, True),
        (Effect.READ, {"writes": "save"}, {}, True, False),
        (Effect.EXECUTE, {"reads": True}, {}, True, False),
        (Effect.EXECUTE, {"below": lambda args: Effect.READ}, {}, True, False),
        (Effect.NETWORK, {"category": "web"}, {}, True, False),
        (Effect.NETWORK, {}, {}, True, True),
    ],
)
async def test_what_can_write_is_listed(
    tmp_path: Path, effect: Effect, facts: dict[str, Any], call: dict[str, Any], holds: bool, listed: bool
) -> None:
    room = Room(tmp_path)

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        (room.root / "AGENTS.md").write_text("planted")
        return ToolResult("done")

    tool = Tool("probe", "", {}, run, effect, facts=ToolFacts(**facts))
    guarded = RecordingGuard(room.writes, Workspace(room.root), lambda: holds).guard(tool)
    await guarded.run({}, Call("c1", Branch(room.turn, Transcript()), **call))
    assert room.listed() == (["AGENTS.md"] if listed else [])


@pytest.mark.parametrize(
    ("effect", "args", "said"),
    [
        (Effect.EXECUTE, {"path": "a.txt"}, "so probe was not run:"),
        (Effect.WRITE, {}, "so probe was not run:"),
        (Effect.WRITE, {"path": "AGENTS.md"}, "work/AGENTS.md was not written:"),
    ],
)
async def test_a_call_that_cannot_be_recorded_is_not_made_and_says_why(
    tmp_path: Path, effect: Effect, args: dict[str, str], said: str
) -> None:
    room = Room(tmp_path)
    room.records.folder.write_text("a file in its place")
    ran: list[Mapping[str, Any]] = []

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        ran.append(args)
        return ToolResult("done")

    tool = Tool("probe", "", {}, run, effect, facts=ToolFacts(paths=("path",)))
    guarded = RecordingGuard(room.writes, Workspace(room.root), lambda: True).guard(tool)
    result = await guarded.run(args, Call("c1", Branch(room.turn, Transcript())))
    assert said in result.text
    assert ran == []


async def test_a_call_that_fails_or_is_cancelled_is_listed_too(tmp_path: Path) -> None:
    room = Room(tmp_path)
    begun = asyncio.Event()

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        (room.root / args["path"]).write_text("planted")
        if args["path"] == "AGENTS.md":
            raise ZeroDivisionError
        begun.set()
        await asyncio.Event().wait()
        return ToolResult("never")

    tool = Tool("probe", "", {}, run, Effect.WRITE, facts=ToolFacts(paths=("path",)))
    guarded = RecordingGuard(room.writes, Workspace(room.root), lambda: True).guard(tool)
    call = Call("c1", Branch(room.turn, Transcript()))
    with pytest.raises(ZeroDivisionError):
        await guarded.run({"path": "AGENTS.md"}, call)
    running = asyncio.ensure_future(guarded.run({"path": "CLAUDE.md"}, call))
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert room.listed() == ["AGENTS.md", "CLAUDE.md"]


async def test_a_record_that_breaks_meanwhile_leaves_the_result(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    room = Room(tmp_path)

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        shutil.rmtree(room.records.folder)
        room.records.folder.write_text("a file in its place")
        return ToolResult("done")

    tool = Tool("probe", "", {}, run, Effect.EXECUTE)
    guarded = RecordingGuard(room.writes, Workspace(room.root), lambda: True).guard(tool)
    assert (await guarded.run({}, Call("c1", Branch(room.turn, Transcript())))).text == "done"
    assert "could not be listed" in caplog.text
    room.records.folder.unlink()


@pytest.mark.parametrize(
    ("effect", "target", "by"),
    [
        (Effect.EXECUTE, "make all", "`make all`"),
        (Effect.WRITE, "AGENTS.md", "probe AGENTS.md"),
        (Effect.WRITE, "no\0path", "probe no\0path"),
    ],
)
async def test_who_wrote_a_file_is_listed(tmp_path: Path, effect: Effect, target: str, by: str) -> None:
    room = Room(tmp_path)

    async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
        (room.root / "AGENTS.md").write_text("planted")
        return ToolResult("done")

    tool = Tool("probe", "", {}, run, effect, facts=ToolFacts(target="path", paths=("path",)))
    guarded = RecordingGuard(room.writes, Workspace(room.root), lambda: True).guard(tool)
    await guarded.run({"path": target}, Call("c1", Branch(room.turn, Transcript())))
    assert [each.by for each in room.records.of(room.root).written.values()] == [by]
