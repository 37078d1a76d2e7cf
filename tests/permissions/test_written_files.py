"""The record of what tools wrote: kept before they run, and asked before anything is trusted unseen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.permissions.sandbox.workspace_scan import WorkspaceScan
from ba_tui.permissions.trust.grants import Trust, trust_folder
from ba_tui.permissions.trust.session_writes import SessionWrites, WatchedPlace
from ba_tui.permissions.trust.write_records import WriteRecords
from ba_tui.resources import UserFolders, places

HOOKS = 'hooks:\n  Stop:\n  - hooks:\n    - {type: command, command: "./run.sh"}\n'
KILLED = """
import os, sys
from pathlib import Path
from ba_tui.permissions.sandbox.workspace_scan import is_protected
from ba_tui.permissions.sandbox.workspace_scan import WorkspaceScan
from ba_tui.permissions.trust.session_writes import CountedFiles, SessionWrites, WatchedPlace
from ba_tui.permissions.trust.write_records import WriteRecords
root, records, own = map(Path, sys.argv[1:])
SessionWrites(WriteRecords(records), WatchedPlace(root, own, WorkspaceScan([root]))).begin("`make`")
(root / ".ba").mkdir(exist_ok=True)
(root / ".ba/config.yaml").write_text("hooks: {Stop: [{command: evil}]}")
(root / "CLAUDE.md").write_text("planted")
os.kill(os.getpid(), 9)
"""


class World:
    """A project, the user's folders and sessions in it."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir(exist_ok=True)
        self.where = UserFolders(folder / "config", folder / "data", folder / "cache", folder / "state")
        self.busy = False

    def session(self, root: Path | None = None) -> SessionWrites:
        place = WatchedPlace(root or self.root, self.where.config, WorkspaceScan([root or self.root]))
        return SessionWrites(WriteRecords(self.where.written), place, lambda: ("sleep",) if self.busy else (), recent=0)

    def write(self, name: str, text: str = "planted\n") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def call(self, session: SessionWrites, work: Callable[[], object], by: str = "`make`") -> None:
        session.begin(by)
        work()
        session.end(by)

    @property
    def trust(self) -> Trust:
        return Trust(self.where)

    def listed(self, root: Path | None = None) -> dict[str, str]:
        return {one.name: one.by for one in self.trust.look(root or self.root).written}

    def vouch(self, root: Path | None = None) -> None:
        self.trust.vouch(self.trust.look(root or self.root))

    def refused(self, root: Path | None = None) -> str:
        with pytest.raises(UsageError) as caught:
            self.vouch(root)
        assert not self.trust.trusted(root or self.root)
        return caught.value.with_hint

    def accept(self) -> None:
        self.trust.grant(self.trust.look(self.root))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        ".ba/config.yaml",
        ".ba/hooks.yaml",
        ".claude/settings.json",
        ".mcp.json",
        ".ba/tools/x.py",
        ".agents/skills/x/SKILL.md",
        ".codex/agents/x.toml",
        "plugins/p/agents/x.md",
    ],
)
def test_what_a_tool_wrote_is_not_trusted_unseen(world: World, name: str) -> None:
    session = world.session()
    text = HOOKS if name.endswith("yaml") else '{"hooks": {"Stop": [{"command": "evil"}]}}'
    world.call(session, lambda: world.write(name, text))
    session.close()
    said = world.refused()
    assert name in said
    assert "`make`" in said
    assert "ba trust --show" in said
    world.accept()
    assert world.trust.trusted(world.root)
    assert world.listed() == {}


def test_what_the_user_wrote_is_trusted(world: World) -> None:
    world.write(".ba/config.yaml", HOOKS)
    world.vouch()
    session = world.session()
    world.call(session, lambda: world.write("src/a.py"))
    world.write(".ba/config.yaml", f"{HOOKS}# mine\nmodel: x\nenv: {{A: b}}\n")
    world.call(session, lambda: world.write("src/b.py"))
    session.close()
    world.write(".ba/hooks/after.sh", "true\n")
    assert world.listed() == {}
    world.vouch()


def test_a_kill_between_the_write_and_the_end_of_the_call_changes_nothing(world: World) -> None:
    world.write("AGENTS.md", "mine\n")
    done = subprocess.run(
        [sys.executable, "-c", KILLED, world.root, world.where.written, world.where.config], check=False, timeout=60
    )
    assert done.returncode == -9
    assert ".ba/config.yaml" in world.refused()
    assert world.listed() == {".ba/config.yaml": "`make`", "CLAUDE.md": "`make`"}
    # A look has closed the session that was killed: what the user writes from now on is the user's.
    world.write(".ba/tools/mine.py", "A = 1\n")
    assert set(world.listed()) == {".ba/config.yaml", "CLAUDE.md"}
    world.accept()
    world.write(".ba/tools/other.py", "A = 1\n")
    world.vouch()


def test_the_next_session_lists_what_a_killed_one_wrote(world: World) -> None:
    subprocess.run(
        [sys.executable, "-c", KILLED, world.root, world.where.written, world.where.config], check=False, timeout=60
    )
    session = world.session()
    world.call(session, lambda: None, "`true`")
    session.close()
    assert world.listed() == {".ba/config.yaml": "`make`", "CLAUDE.md": "`make`"}
    assert not list(world.where.written.glob("*.now"))


@pytest.mark.parametrize("server", ["a background command", "a server", "a server in the sandbox"])
def test_what_a_background_command_or_a_server_writes_later_is_listed(world: World, server: str) -> None:
    session = world.session()
    if server == "a background command":
        world.call(session, lambda: setattr(world, "busy", True))
    else:
        session.start("the MCP server files", held=server == "a server in the sandbox")
        world.call(session, lambda: None)
    world.write(".mcp.json", '{"mcpServers": {"x": {"command": "evil"}}}')
    assert ".mcp.json" in world.listed(), "while it runs"
    world.busy = False
    session.close()
    assert ".mcp.json" in world.refused()


def test_what_the_user_edits_beside_a_server_in_the_sandbox_is_the_users(world: World) -> None:
    world.write("AGENTS.md", "mine\n")
    world.write(".ba/commands/a.md", "a\n")
    world.write("linked.md", "a\n")
    (world.root / ".ba/commands/b.md").symlink_to(world.root / "linked.md")
    session = world.session()
    session.start("the MCP server files", held=True)
    world.write("AGENTS.md", "mine, and more\n")
    world.write(".ba/commands/a.md", "a, and more\n")
    world.write("linked.md", "a server can write this file\n")
    assert not session.held(world.root / "AGENTS.md", b"mine, and more\n")
    world.call(session, lambda: None)
    session.close()
    assert list(world.listed()) == [".ba/commands/b.md"]


def test_hooks_that_run_between_calls_are_the_users(world: World) -> None:
    session = world.session()
    world.call(session, lambda: None)
    world.write(".ba/config.yaml", HOOKS)
    session.close()
    assert world.listed() == {}


def test_a_second_session_can_not_make_it_the_users(world: World) -> None:
    first, second = world.session(), world.session()
    world.call(first, lambda: None)
    second.begin("`make`")
    world.write(".ba/config.yaml", HOOKS)
    world.call(first, lambda: None, "`true`")
    second.end("`make`")
    first.close()
    second.close()
    assert ".ba/config.yaml" in world.refused()


@pytest.mark.parametrize("then", ["changed by the user", "removed and restored", "accepted in part"])
def test_a_write_stays_listed_until_the_user_has_seen_it(world: World, then: str) -> None:
    session = world.session()
    world.call(session, lambda: world.write(".ba/config.yaml", HOOKS))
    session.close()
    if then == "changed by the user":
        world.write(".ba/config.yaml", f"{HOOKS}env: {{A: mine}}\n")
    elif then == "removed and restored":
        (world.root / ".ba/config.yaml").unlink()
        world.vouch()
        world.write(".ba/config.yaml", HOOKS)
    else:
        seen = world.trust.look(world.root)
        world.write(".ba/tools/x.py", "A = 1\n")
        later = world.session()
        world.call(later, lambda: world.write(".ba/tools/y.py"))
        later.close()
        world.trust.grant(seen)
        assert list(world.listed()) == [".ba/tools/y.py"]
        world.write(".ba/tools/y.py", "B = 1\n")
    assert ".ba/" in world.refused()


def test_what_was_put_back_as_it_was_counts_no_more(world: World) -> None:
    world.write(".ba/config.yaml", HOOKS)
    session = world.session()
    world.call(session, lambda: world.write(".ba/config.yaml", f"{HOOKS}env: {{A: b}}\n"))
    world.call(session, lambda: world.write(".ba/config.yaml", HOOKS))
    session.close()
    assert world.listed() == {}
    world.vouch()


def test_a_rule_that_a_tool_removed_is_listed(world: World) -> None:
    world.write(".ba/config.yaml", "permissions: {deny: [shell]}\n")
    session = world.session()
    world.call(session, (world.root / ".ba/config.yaml").unlink)
    session.close()
    assert ".ba/config.yaml" in world.refused()


def test_a_folder_that_a_tool_renamed_a_link_and_a_script_of_a_hook_are_listed(world: World, tmp_path: Path) -> None:
    world.write("x/config.yaml", HOOKS)
    session = world.session()
    world.call(session, lambda: (world.root / "x").rename(world.root / ".ba"))
    session.close()
    assert ".ba/config.yaml" in world.refused()
    world.accept()

    world.call(session := world.session(), lambda: world.write("run.sh", "evil\n"))
    session.close()
    assert "run.sh" in world.refused(), "the hook of the user names it"
    world.accept()

    outside = tmp_path / "elsewhere.md"
    outside.write_text("one\n")
    world.write(".ba/commands/a.md", "a\n")
    (world.root / ".ba/commands/b.md").symlink_to(outside)
    world.vouch()
    world.call(session := world.session(), lambda: outside.write_text("evil\n"))
    session.close()
    assert "b.md" in world.refused()
    world.accept()

    def retarget() -> None:
        other = tmp_path / "other.md"
        other.write_text("evil\n")
        (world.root / ".ba/commands/b.md").unlink()
        (world.root / ".ba/commands/b.md").symlink_to(other)

    world.call(session := world.session(), retarget)
    session.close()
    (tmp_path / "other.md").write_text("worse\n")
    assert "b.md" in world.refused(), "the user never saw that it leads there"


def test_a_project_within_the_workspace_and_a_copy_of_it_count_too(world: World, tmp_path: Path) -> None:
    session = world.session()
    world.call(session, lambda: world.write("sub/.ba/config.yaml", HOOKS))
    session.close()
    assert ".ba/config.yaml" in world.refused(world.root / "sub")
    moved = tmp_path / "moved"
    (world.root / "sub").rename(moved)
    assert ".ba/config.yaml" in world.refused(moved)
    world.trust.grant(world.trust.look(moved))
    assert world.trust.trusted(moved)


def test_where_no_record_can_be_kept_no_call_begins(world: World) -> None:
    world.where.state.mkdir()
    world.where.written.write_text("a file in its place")
    with pytest.raises(StorageError):
        world.session().begin("`make`")


def test_a_record_that_can_not_be_read_trusts_nothing_unseen(world: World) -> None:
    world.write(".ba/config.yaml", HOOKS)
    world.call(world.session(), lambda: None)
    record = WriteRecords(world.where.written).file(world.root)
    record.write_text("{")
    assert "can't be read" in world.refused()
    world.accept()
    assert world.trust.trusted(world.root)
    assert world.listed() == {}


def test_a_record_that_can_not_be_read_is_made_anew_when_an_empty_folder_is_trusted(world: World) -> None:
    world.call(world.session(), lambda: None)
    (record,) = world.where.written.glob("*.json")
    record.write_text("{")
    world.accept()
    world.write(".ba/tools/x.py")
    assert world.listed() == {}


def test_the_record_holds_no_file_that_runs(world: World) -> None:
    world.write(".ba/config.yaml", "env: {TOKEN: abc123}\n")
    session = world.session()
    world.call(session, lambda: world.write(".ba/config.yaml", "env: {TOKEN: def456}\n"))
    record = WriteRecords(world.where.written).file(world.root)
    assert not {"abc123", "def456"} & set(record.read_text().replace('"', " ").split())
    assert "abc123" not in record.read_text()
    assert record.stat().st_mode & 0o077 == 0


def test_instruction_files_are_listed_with_the_text_before(world: World) -> None:
    world.write("AGENTS.md", "mine\n")
    world.vouch()
    session = world.session()
    world.call(session, lambda: (world.write("AGENTS.md"), world.write("docs/CLAUDE.md"), world.write("README.md")))
    assert session.held(world.root / "AGENTS.md", b"planted\n")
    session.close()
    seen = world.trust.look(world.root)
    assert seen.state == "trusted"
    assert {one.name for one in seen.written} == {"AGENTS.md", "docs/CLAUDE.md"}
    texts = {each.path: (each.before, each.after) for each in seen.files}
    assert texts == {"AGENTS.md": ("mine\n", "planted\n"), "docs/CLAUDE.md": (None, "planted\n")}
    world.vouch()
    assert set(world.listed()) == {"AGENTS.md", "docs/CLAUDE.md"}, "unseen is not accepted"
    world.accept()
    assert world.listed() == {}
    assert not world.session().held(world.root / "AGENTS.md", b"planted\n")


def test_a_file_that_the_user_approved_is_not_listed(world: World) -> None:
    session = world.session()
    session.begin("write_file AGENTS.md")
    world.write("AGENTS.md", "as shown\n")
    world.write("CLAUDE.md")
    approved = {str(world.root / "AGENTS.md"): "as shown\n", str(world.root / "CLAUDE.md"): "as shown\n"}
    session.end("write_file AGENTS.md", approved)
    session.close()
    assert list(world.listed()) == ["CLAUDE.md"], "another text than the user saw is there"


def test_what_is_read_is_what_was_judged(world: World) -> None:
    """The bytes that were read decide, not the file as it is by then."""
    session = world.session()
    world.call(session, lambda: world.write("AGENTS.md", "planted\n"))
    world.write("AGENTS.md", "mine\n")
    session.close()
    assert world.session().held(world.root / "AGENTS.md", b"planted\n")
    Path(world.root / "AGENTS.md").unlink()
    assert world.session().held(world.root / "AGENTS.md", b"planted\n")


def test_where_nothing_can_be_kept_the_flag_trusts_for_this_run(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BA_HOME", str(tmp_path / "file" / "ba"))
    world.where = places()
    world.write(".ba/config.yaml", HOOKS)
    with pytest.raises(StorageError):
        world.session().begin("`make`")
    with pytest.raises(StorageError):
        world.vouch()
    trust_folder(world.root)
    assert world.trust.trusted(world.root)
    world.write(".ba/config.yaml", f"{HOOKS}env: {{A: b}}\n")
    assert not world.trust.trusted(world.root), "for what was there only"
