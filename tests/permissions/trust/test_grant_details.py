"""What a look at a folder reports, and what a grant keeps, in the less usual cases."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.errors import StorageError, UsageError
from ba_tui.core.ports.permissions import AskedSetting, ToolWrite, TrustedItems, TrustState
from ba_tui.permissions.trust import grants
from ba_tui.permissions.trust.files import TrustFile
from ba_tui.permissions.trust.grants import Trust, asked_once, trust_folder
from ba_tui.permissions.trust.write_records import WriteRecords
from ba_tui.resources import UserFolders, places
from tests.permissions.test_written_files import World

TOOL = ".ba/tools/a.py"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.write(TOOL, "A = 1\n")
    return made


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the times of files count as settled at once, so that fingerprints and grants are remembered."""
    monkeypatch.setattr(grants, "_SETTLED", -(10**18))


def unreadable(monkeypatch: pytest.MonkeyPatch, error: OSError) -> None:
    def fail(file: TrustFile) -> bytes:
        raise error

    monkeypatch.setattr(TrustFile, "content", fail)


@pytest.mark.parametrize(
    ("name", "said"), [("/srv/a.py", "/srv/a.py can't be read: Input"), (None, "{root} can't be read: Input")]
)
@pytest.mark.parametrize("before", ["unknown", "changed"])
def test_a_file_that_cannot_be_read_is_named_and_never_trusted(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str | None, said: str, before: str
) -> None:
    if before == "changed":
        world.accept()
        assert world.trust.trusted(world.root)
    unreadable(monkeypatch, OSError(errno.EIO, "Input/output error", name))
    monkeypatch.setenv("HOME", str(world.root))
    seen = world.trust.look(world.root)
    assert (seen.state, seen.fingerprint) == (before, "")
    assert seen.trouble.startswith(said.format(root=world.root))
    assert "home folder" in seen.warning
    assert world.trust.trusted(world.root) is False
    for trust in (world.trust.grant, world.trust.vouch):
        with pytest.raises(UsageError, match="can't be read"):
            trust(seen)


def test_too_many_files_are_reported_with_the_warning_about_the_folder(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_much(root: Path, own: Path) -> list[TrustFile]:
        raise UsageError("Too much.")

    monkeypatch.setattr(grants, "found_in", too_much)
    monkeypatch.setenv("HOME", str(world.root))
    seen = world.trust.look(world.root)
    assert (seen.trouble, seen.state) == ("Too much.", "unknown")
    assert "home folder" in seen.warning


def test_instruction_files_are_listed_only_where_there_are_some(world: World) -> None:
    named = Trust(world.where, lambda root: [f"{root.name}/AGENTS.md"])
    assert named.look(world.root).holds[0] == TrustedItems("context", ("project/AGENTS.md",))
    assert [part.kind for part in world.trust.look(world.root).holds] == ["tools"]
    named.grant(named.look(world.root))
    assert named.look(world.root).state == "trusted"
    assert named.look(world.root).holds[0].kind == "context"


def test_written_files_that_run_come_first_and_a_trusted_folder_lists_the_others_alone(world: World) -> None:
    world.write("CLAUDE.md", "mine\n")
    session = world.session()
    world.call(session, lambda: (world.write("CLAUDE.md"), world.write(".ba/tools/b.py")))
    session.close()
    seen = world.trust.look(world.root)
    assert [(one.name, one.runs) for one in seen.written] == [(".ba/tools/b.py", True), ("CLAUDE.md", False)]
    assert [one.path for one in seen.files] == [TOOL, ".ba/tools/b.py", "CLAUDE.md"]
    world.trust.vouch(seen, own=[world.root / ".ba/tools/b.py"])
    again = world.trust.look(world.root)
    assert again.state == "trusted"
    assert [one.name for one in again.written] == ["CLAUDE.md"]
    assert [(one.path, one.before, one.after) for one in again.files] == [("CLAUDE.md", "mine\n", "planted\n")]
    world.write(TOOL, "A = 2\n")
    changed = world.trust.look(world.root)
    assert (changed.state, [one.name for one in changed.written]) == ("changed", [".ba/tools/b.py", "CLAUDE.md"])


def test_files_that_tools_wrote_above_a_project_are_not_listed_for_it(world: World, tmp_path: Path) -> None:
    session = world.session(tmp_path)
    world.call(session, lambda: (tmp_path / "AGENTS.md").write_text("planted\n"))
    session.close()
    assert world.listed(tmp_path) == {"AGENTS.md": "`make`"}
    assert world.listed() == {}


def test_only_an_open_record_is_closed_by_a_look(world: World) -> None:
    session = world.session()
    world.call(session, lambda: world.write(".ba/tools/b.py"))
    assert world.listed() == {".ba/tools/b.py": "`make`"}
    session.close()
    record = WriteRecords(world.where.written).file(world.root)
    before = record.read_bytes()
    assert world.listed() == {".ba/tools/b.py": "`make`"}
    assert record.read_bytes() == before


def test_accepting_is_for_what_was_seen_alone(world: World) -> None:
    session = world.session()
    world.call(session, lambda: (world.write("CLAUDE.md"), world.write(".ba/tools/b.py")))
    session.close()
    seen = world.trust.look(world.root)
    told = replace(seen, written=tuple(one for one in seen.written if not one.runs))
    world.trust.grant(told)
    world.write(TOOL, "A = 2\n")
    assert world.listed() == {".ba/tools/b.py": "`make`"}
    world.trust.grant(replace(seen, written=tuple(one for one in seen.written if one.runs)))
    assert world.listed() == {}


def test_problems_of_settings_are_those_of_the_project_that_nobody_is_asked_about(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.write(".ba/config.yaml", "nonsense: 1\nmemory: {project: shop}\n")
    (world.root / TOOL).unlink()
    world.where.config.mkdir()
    world.where.settings.write_text("rubbish: 1\n")
    (line,) = world.trust.look(world.root).refused
    assert line.startswith(".ba/config.yaml:1: nonsense")
    assert [asked.setting for asked in world.trust.asked(world.root)] == ["memory.project"]

    def broken(*where: object, **options: object) -> None:
        raise StorageError("No room.")

    monkeypatch.setattr(grants, "load_settings", broken)
    seen = world.trust.look(world.root)
    assert (seen.refused, seen.trouble) == ((), "")
    assert world.trust.asked(world.root) == ()


def test_a_grant_stays_though_no_copy_can_be_kept(world: World) -> None:
    world.where.vouched.parent.mkdir(parents=True)
    world.where.vouched.write_text("a file in its place")
    world.accept()
    assert world.trust.trusted(world.root)
    world.write(TOOL, "A = 2\n")
    (shown,) = world.trust.look(world.root).files
    assert (shown.path, shown.before, shown.after) == (TOOL, None, "A = 2\n")


@pytest.mark.parametrize("how", ["changed", "removed", "unreadable"])
def test_no_copy_is_kept_of_what_the_user_did_not_see(world: World, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    seen = world.trust.look(world.root)
    with monkeypatch.context() as patch:
        if how == "unreadable":
            unreadable(patch, OSError(errno.EIO, "Input/output error"))
        elif how == "changed":
            world.write(TOOL, "EVIL = 1\n")
        else:
            (world.root / TOOL).unlink()
        world.trust.grant(seen)
    assert not list(world.where.vouched.glob("*.json"))
    assert world.trust.trusted(world.root) == (how == "unreadable")


def test_empty_files_do_not_count_and_have_no_copy(world: World) -> None:
    world.write(".ba/tools/empty.py", "")
    world.accept()
    (copy,) = world.where.vouched.glob("*.json")
    assert TOOL in copy.read_text()
    assert "empty.py" not in copy.read_text()
    (world.root / ".ba/tools/empty.py").unlink()
    assert world.trust.trusted(world.root)
    world.write(".ba/tools/other.py", "")
    world.write(TOOL, "A = 2\n")
    assert [one.path for one in world.trust.look(world.root).files] == [TOOL]


def test_names_are_written_as_they_are_and_revoking_leaves_the_others(world: World, tmp_path: Path) -> None:
    other = tmp_path / "größe"
    other.mkdir()
    for root in (other, world.root):
        world.trust.grant(world.trust.look(root))
    text = world.where.trusted.read_text()
    assert text.startswith(grants.HEADER)
    assert f"{other}:\n  fingerprint: " in text
    assert text.index(str(other)) < text.index(str(world.root)), "in the order of the grants"
    world.trust.revoke(world.root)
    text = world.where.trusted.read_text()
    assert text.startswith(f"{grants.HEADER}{other}:\n  fingerprint: ")
    assert str(world.root) not in text
    assert world.where.trusted.stat().st_mode & 0o777 == 0o600
    assert world.trust.trusted(other)


def test_revoking_what_was_not_granted_writes_nothing(world: World) -> None:
    assert world.trust.revoke(world.root) is False
    assert not world.where.trusted.exists()
    world.trust.for_this_run(world.trust.look(world.root))
    assert world.trust.trusted(world.root)
    assert world.trust.revoke(world.root) is False
    assert not world.trust.trusted(world.root)


@pytest.mark.parametrize("text", ["{entry}{entry}", "{entry}x: [\n", "{entry}other: 1\nother: 2\n"])
def test_a_file_of_grants_with_a_problem_trusts_nothing_and_is_not_overwritten(world: World, text: str) -> None:
    world.accept()
    entry = f"'{world.root}': {{fingerprint: {world.trust.look(world.root).fingerprint}}}\n"
    world.where.trusted.write_text(entry)
    assert world.trust.trusted(world.root), "the entry itself is a good one"
    world.where.trusted.write_text(text.format(entry=entry))
    assert not world.trust.trusted(world.root)
    assert world.trust.look(world.root).state == "unknown"
    with pytest.raises(StorageError):
        world.accept()
    assert world.where.trusted.read_text() == text.format(entry=entry)


def test_entries_that_are_no_grants_do_not_harm_those_that_are(world: World) -> None:
    world.accept()
    with world.where.trusted.open("a") as file:
        file.write("/elsewhere: [1]\n/nowhere: {at: yesterday}\n")
    assert world.trust.trusted(world.root)
    assert world.trust.look(Path("/nowhere")).state == "unknown"


def test_each_file_of_grants_and_each_folder_is_remembered_for_itself(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle(monkeypatch)
    world.accept()
    places_of_another = UserFolders(*(tmp_path / f"other-{name}" for name in ("config", "data", "cache", "state")))
    other = Trust(places_of_another)
    (tmp_path / "second").mkdir()
    with asked_once():
        for _ in range(2):
            assert world.trust.trusted(world.root)
            assert not other.trusted(world.root)
            assert not world.trust.trusted(tmp_path / "second")
    other.grant(other.look(tmp_path / "second"))
    assert other.trusted(tmp_path / "second")
    assert not world.trust.trusted(tmp_path / "second")


def test_a_fingerprint_is_taken_again_while_the_times_of_a_file_may_not_show_a_change(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    content = TrustFile.content

    def noted(file: TrustFile) -> bytes:
        reads.append(file.name)
        return content(file)

    monkeypatch.setattr(TrustFile, "content", noted)
    world.accept()
    reads.clear()
    for _ in range(2):
        assert world.trust.trusted(world.root)
    assert reads == [TOOL, TOOL], "each time, as the file is new"
    settle(monkeypatch)
    for _ in range(3):
        assert world.trust.trusted(world.root)
    assert reads == [TOOL, TOOL, TOOL], "once more, then from memory"
    world.write(".ba/tools/b.py", "B = 1\n")
    assert not world.trust.trusted(world.root)
    assert reads[3:] == [TOOL, ".ba/tools/b.py"]
    world.trust.look(world.root)
    reads.clear()
    assert not world.trust.trusted(world.root)
    world.write(TOOL, "A = 2\n")
    world.trust.look(world.root)
    reads.clear()
    assert not world.trust.trusted(world.root)
    assert reads == [], "a look remembers it too"


def test_the_newest_file_decides_whether_the_times_are_settled(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that changed just now keeps the fingerprint from being remembered, wherever it is in the list."""
    world.write(".ba/tools/b.py", "B = 1\n")
    world.accept()
    statted = os.fstat

    def aged(handle: int) -> os.stat_result:
        status = statted(handle)
        old = TOOL in os.readlink(f"/proc/self/fd/{handle}")  # noqa: PTH115 - a number, not a path
        return os.stat_result(tuple(status), {"st_mtime_ns": 1, "st_ctime_ns": 1}) if old else status

    monkeypatch.setattr(os, "fstat", aged)
    assert world.trust.trusted(world.root)
    with (world.root / ".ba/tools/b.py").open("r+") as file:
        file.write("C")
    assert not world.trust.trusted(world.root)


@pytest.mark.usefixtures("ba_home")
def test_the_flag_trusts_and_keeps_the_grant(world: World) -> None:
    world.where = places()
    assert trust_folder(world.root) == ""
    assert world.trust.trusted(world.root)
    assert str(world.root) in world.where.trusted.read_text()


def test_the_flag_reports_that_nothing_can_be_kept(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BA_HOME", str(tmp_path / "file" / "ba"))
    said = trust_folder(world.root)
    folder = tmp_path / "file" / "ba"
    assert said == f"{world.root} is trusted for this run only: {folder} can't be written (Not a directory)."
    world.where = places()
    assert world.trust.trusted(world.root)
    assert world.trust.look(world.root).state == "trusted"


def test_the_flag_does_not_go_on_over_a_file_of_grants_that_is_damaged(world: World, ba_home: Path) -> None:
    world.where = places()
    ba_home.mkdir(exist_ok=True)
    world.where.trusted.write_text("- no mapping\n")
    with pytest.raises(StorageError, match="expected lines of"):
        trust_folder(world.root)
    assert world.where.trusted.read_text() == "- no mapping\n"
    assert not world.trust.trusted(world.root)


def test_home_and_the_folders_above_it_are_too_wide(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = tmp_path / "users" / "ann"
    (home / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    assert "This is your home folder" in world.trust.look(home).warning
    for above in (tmp_path / "users", tmp_path, Path("/")):
        assert world.trust.look(above).warning.startswith(f"{above} contains far more than one project")
    for below in (home / "work", world.root):
        assert world.trust.look(below).warning == ""


def test_without_a_home_only_the_root_is_too_wide(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        return None

    monkeypatch.setattr(grants, "user_home", none)
    assert "contains far more than one project" in world.trust.look(Path("/")).warning
    assert world.trust.look(world.root).warning == ""


def test_a_value_that_is_allowed_counts_for_its_folder(world: World) -> None:
    world.write(".ba/config.yaml", "memory: {project: shop}\n")
    (asked,) = world.trust.asked(world.root)
    assert not asked.allowed
    world.trust.allow(world.root, asked)
    assert [each.allowed for each in world.trust.asked(world.root)] == [True]
    assert isinstance(asked, AskedSetting)
    world.trust.revoke(world.root)
    assert [each.allowed for each in world.trust.asked(world.root)] == [False]


def test_what_a_tool_wrote_of_instructions_alone_lets_a_flag_trust(world: World) -> None:
    wrote = ToolWrite(world.root / "AGENTS.md", "AGENTS.md", "`make`", runs=False)
    seen: TrustState = replace(world.trust.look(world.root), written=(wrote,))
    world.trust.vouch(seen)
    assert world.trust.trusted(world.root)
