"""The guard that lists what a call writes of the files that run or instruct models."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.events import Asked, Event
from ba_tui.core.ports.permissions import RuleLine
from ba_tui.core.questions import Reply
from ba_tui.core.tool import Call, Effect, Tool
from ba_tui.core.transcript import Transcript
from ba_tui.core.turn import Branch, Turn
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.sandbox.workspace_scan import WorkspaceScan
from ba_tui.permissions.trust.session_writes import SessionWrites, WatchedPlace
from ba_tui.permissions.trust.written import WriteRecords
from ba_tui.resources import bundled
from ba_tui.tools.builtin.files import write_file_tool
from ba_tui.tools.definitions import load_definitions
from ba_tui.tools.editing.seen import SeenFiles
from ba_tui.tools.guards.permission import Gate, permission
from ba_tui.tools.guards.recording import Recording

DEFINITIONS = load_definitions(bundled("config") / "prompts" / "tools")


class Room:
    """The real write_file behind consent and the record, in a project at ``root``; the user gives ``reply``."""

    def __init__(self, folder: Path, *rules: RuleLine) -> None:
        self.root = folder / "work"
        self.root.mkdir()
        self.reply: Reply | None = None
        self.records = WriteRecords(folder / "written")
        place = WatchedPlace(self.root, folder / "own", WorkspaceScan([self.root]))
        self.writes = SessionWrites(self.records, place, recent=0)
        workspace = Workspace(self.root)
        policy = Policy(workspace, rules)
        recording = Recording(self.writes, workspace, lambda: True)
        tool = write_file_tool(DEFINITIONS["write_file"], workspace, SeenFiles())
        gate = Gate(policy.judge, policy.remember, lambda _: self.root)
        self.write: Tool = permission(gate)(recording.guard(tool))
        self.turn = Turn(self.hear)

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
    recording = Recording(room.writes, Workspace(room.root), lambda: True)
    reader = Tool("read_file", "", {}, room.write.run, Effect.READ)
    assert recording.guard(reader) is reader
    assert room.records.none(room.root)


async def test_where_no_record_can_be_kept_only_ordinary_files_are_written(tmp_path: Path) -> None:
    room = Room(tmp_path, RuleLine("write_file", "allow", "test"))
    room.records.folder.write_text("a file in its place")
    for name in ("AGENTS.md", ".ba/config.yaml", "a/.mcp.json"):
        await room.call(path=name, content="planted")
        assert not (room.root / name).exists()
    await room.call(path="a.txt", content="plain")
    assert (room.root / "a.txt").read_text() == "plain"
