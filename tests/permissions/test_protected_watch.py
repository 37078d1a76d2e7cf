"""What commands do to protected files is noticed, kept in mind, and taken back on request; nobody else's work is."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ba_tui.core.effects import WORKING, Profile
from ba_tui.permissions.sandbox.protected_watch import LARGEST, PendingChanges, ProtectedWatch, WatchedRun
from ba_tui.permissions.sandbox.workspace_scan import WorkspaceScan

HELD = WatchedRun("make", WORKING, guarded=True)
LOOSE = WatchedRun("make", WORKING)
GIT = WatchedRun("git checkout x", Profile("working", git=True), guarded=True)
INSTALLING = WatchedRun("npm ci", Profile("working", packages=True), guarded=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name in (
        ".git/config",
        ".git/hooks/x.sample",
        ".npmrc",
        ".vscode/tasks.json",
        ".venv/bin/python",
        ".venv/pyvenv.cfg",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("before")
    return root


@pytest.fixture
def watch(root: Path, tmp_path: Path) -> ProtectedWatch:
    return opened(root, tmp_path)


def opened(root: Path, tmp_path: Path) -> ProtectedWatch:
    return ProtectedWatch(WorkspaceScan([root]), PendingChanges(tmp_path / "aside"))


def during(watch: ProtectedWatch, run: WatchedRun, work: Callable[[], object]) -> dict[str, tuple[bool, bytes | None]]:
    watch.begin(run)
    work()
    return {change.path.name: (change.new, change.after) for change in watch.end(run)}


def write(root: Path, *names: str, text: str = "evil") -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_what_appears_is_noticed_at_any_depth(watch: ProtectedWatch, root: Path) -> None:
    names = (".git/commondir", ".ba/config.yaml", ".mcp.json", "sub/.npmrc", ".husky/pre-commit", ".vscode/new.json",
             ".git/hooks/pre-commit", ".git/hooks/y.sample", "a.py", "sub/.git/config")  # fmt: skip
    found = during(watch, HELD, lambda: write(root, *names))
    assert found == {
        **dict.fromkeys(("commondir", "config.yaml", ".mcp.json", ".npmrc", "pre-commit", "new.json"), (True, b"evil")),
        "config": (True, b"evil"),
    }
    assert len(watch.pending) == 8


def test_what_was_read_only_was_changed_by_somebody_else(watch: ProtectedWatch, root: Path) -> None:
    assert during(watch, HELD, lambda: write(root, ".npmrc", ".git/config")) == {}
    changed = during(watch, LOOSE, lambda: write(root, ".npmrc", ".git/config", text="again"))
    assert changed == {".npmrc": (False, b"again"), "config": (False, b"again")}


def test_another_folder_in_its_place_is_a_change(watch: ProtectedWatch, root: Path) -> None:
    def swap() -> None:
        (root / ".vscode").rename(root / "old")
        write(root, ".vscode/tasks.json")

    assert during(watch, HELD, swap) == {"tasks.json": (False, b"evil")}


def test_what_changes_between_commands_is_the_persons(watch: ProtectedWatch, root: Path) -> None:
    during(watch, LOOSE, lambda: None)
    write(root, ".npmrc", ".mcp.json")
    assert during(watch, LOOSE, lambda: None) == {}
    assert watch.pending == ()


def test_git_may_change_tracked_files_and_shows_them(watch: ProtectedWatch, root: Path) -> None:
    def checkout() -> None:
        write(root, ".npmrc", ".git/config")
        shutil.rmtree(root / ".vscode")

    assert during(watch, GIT, checkout) == {".npmrc": (False, b"evil"), "tasks.json": (False, None)}
    (changed, removed) = watch.pending
    assert changed.before == removed.before == b"before"
    watch.set_aside(watch.pending)
    assert (root / ".npmrc").read_text() == (root / ".vscode" / "tasks.json").read_text() == "before"


def test_package_managers_write_what_they_install_and_no_more(watch: ProtectedWatch, root: Path) -> None:
    names = (".venv/bin/new", "node_modules/.bin/x", ".venv/lib/python3.11/site-packages/a.pth")
    assert during(watch, INSTALLING, lambda: write(root, *names, "bunfig.toml")) == {"bunfig.toml": (True, b"evil")}
    watch.keep(watch.pending)
    assert set(during(watch, LOOSE, lambda: write(root, *names, text="other"))) == {"new", "x", "a.pth"}


def test_what_is_set_aside_goes_whole_and_nothing_is_lost(watch: ProtectedWatch, root: Path) -> None:
    (root / "sub").mkdir()
    during(watch, HELD, lambda: write(root, ".husky/a", ".husky/b", "sub/.npmrc", ".vscode/new.json"))
    folder = watch.set_aside(watch.pending)
    assert not (root / ".husky").exists()
    assert not (root / "sub" / ".npmrc").exists()
    assert [path.name for path in (root / ".vscode").iterdir()] == ["tasks.json"]
    kept = {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert kept == {"a": "evil", "b": "evil", ".npmrc": "evil", "new.json": "evil"}
    assert watch.pending == ()


def test_what_nobody_decided_about_is_known_to_later_sessions(
    watch: ProtectedWatch, root: Path, tmp_path: Path
) -> None:
    during(watch, HELD, lambda: write(root, ".mcp.json", "bunfig.toml"))
    later = opened(root, tmp_path)
    assert {change.path.name: change.by for change in later.pending} == {".mcp.json": "make", "bunfig.toml": "make"}
    (root / ".mcp.json").unlink()
    later.keep([change for change in later.pending if change.path.name == "bunfig.toml"])
    assert opened(root, tmp_path).pending == ()
    (tmp_path / "aside" / "pending.json").write_text(json.dumps({"broken": 1}))
    assert opened(root, tmp_path).pending == ()


def test_later_sessions_move_and_put_back_the_same(watch: ProtectedWatch, root: Path, tmp_path: Path) -> None:
    during(watch, LOOSE, lambda: write(root, ".husky/pre-commit", ".npmrc", text="evil"))
    later = opened(root, tmp_path)
    assert {change.path.name: change.new for change in later.pending} == {"pre-commit": True, ".npmrc": False}
    folder = later.set_aside(later.pending)
    assert not (root / ".husky").exists()
    assert not (root / ".npmrc").exists()
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {"pre-commit", ".npmrc"}
    assert opened(root, tmp_path).pending == ()


def test_a_command_in_the_background_is_watched_until_it_ends(watch: ProtectedWatch, root: Path) -> None:
    running = [True]
    run = WatchedRun("make watch", WORKING, guarded=True, running=lambda: running[0])
    watch.begin(run)
    assert watch.check() == ()
    write(root, ".mcp.json")
    assert [change.by for change in watch.check()] == ["make watch"]
    assert watch.active
    running[0] = False
    watch.keep(watch.check())
    assert not watch.active
    write(root, "bunfig.toml")
    assert watch.check() == ()


def test_a_link_is_shown_as_none_of_what_it_leads_to(watch: ProtectedWatch, root: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret")
    assert during(watch, HELD, lambda: (root / "mise.toml").symlink_to(tmp_path / "key")) == {"mise.toml": (True, None)}
    assert during(watch, HELD, lambda: os.mkfifo(root / ".envrc")) == {".envrc": (True, None)}
    watch.set_aside(watch.pending)
    assert (tmp_path / "key").read_text() == "secret"
    assert not (root / "mise.toml").is_symlink()


def test_what_the_user_keeps_is_as_it_was_when_they_said_so(watch: ProtectedWatch, root: Path) -> None:
    watch.begin(WatchedRun("make watch", WORKING, running=lambda: True))
    write(root, ".npmrc")
    assert len(watch.check()) == 1
    write(root, ".npmrc", text="the user's own")
    watch.keep(watch.pending)
    assert watch.check() == ()
    write(root, ".npmrc", text="evil again")
    watch.set_aside(watch.check())
    assert (root / ".npmrc").read_text() == "the user's own"


def test_what_stays_the_same_is_no_change_and_what_is_too_large_to_keep_is_one(
    watch: ProtectedWatch, root: Path
) -> None:
    large = "x" * (LARGEST + 1)
    write(root, "mise.toml", text="x" * LARGEST)
    write(root, ".envrc", "bunfig.toml", text=large)
    assert during(watch, LOOSE, lambda: write(root, ".npmrc", text="before")) == {}
    assert during(watch, LOOSE, lambda: write(root, ".envrc", text=f"{large}y")) == {".envrc": (False, None)}
    assert during(watch, LOOSE, lambda: write(root, "mise.toml", text="y" * LARGEST)) == {
        "mise.toml": (False, b"y" * LARGEST)
    }
    folder = watch.set_aside(watch.pending)
    assert (root / "mise.toml").read_text() == "x" * LARGEST
    assert not (root / ".envrc").exists(), "what it was is not known"
    assert {path.name for path in folder.rglob("*") if path.is_file()} == {"mise.toml", ".envrc"}


def test_what_a_command_left_counts_in_this_session_where_nothing_can_be_kept(
    watch: ProtectedWatch, root: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    watch.keep(watch.pending)
    assert not (tmp_path / "aside").exists()
    (tmp_path / "aside").write_text("a file where the folder would be")
    during(watch, HELD, lambda: write(root, ".mcp.json"))
    assert [change.path.name for change in watch.pending] == [".mcp.json"]
    assert "could not be kept" in caplog.text
    assert opened(root, tmp_path).pending == ()


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        ("no JSON", None),
        ("[" * 100_000, None),
        ("[5, {}]", None),
        ('[{"path": "PATH"}]', (".mcp.json", "", True)),
        ('[{"path": "PATH", "by": "make", "new": false, "outermost": "PATH"}]', (".mcp.json", "make", False)),
    ],
)
def test_what_was_kept_is_read_as_far_as_it_is_understood(
    root: Path, tmp_path: Path, kept: str, found: tuple[str, str, bool] | None
) -> None:
    write(root, ".mcp.json")
    (tmp_path / "aside").mkdir()
    (tmp_path / "aside" / "pending.json").write_text(kept.replace("PATH", str(root / ".mcp.json")))
    changes = [(each.path.name, each.by, each.new) for each in opened(root, tmp_path).pending]
    assert changes == ([found] if found else [])


def test_what_was_set_aside_or_went_is_not_pending_in_later_sessions(
    watch: ProtectedWatch, root: Path, tmp_path: Path
) -> None:
    during(watch, GIT, lambda: write(root, ".npmrc"))
    watch.set_aside(watch.pending)
    assert opened(root, tmp_path).pending == ()
    during(watch, HELD, lambda: write(root, ".mcp.json"))
    (root / ".mcp.json").unlink()
    assert watch.pending == ()
    write(root, ".mcp.json", text="the user's own")
    assert opened(root, tmp_path).pending == ()


def test_a_repository_that_appears_is_set_aside_whole(watch: ProtectedWatch, root: Path) -> None:
    during(watch, HELD, lambda: write(root, "sub/.git/config", "sub/.git/HEAD", ".git/hooks/pre-commit"))
    watch.set_aside(watch.pending)
    assert not (root / "sub" / ".git").exists()
    assert [path.name for path in (root / ".git" / "hooks").iterdir()] == ["x.sample"]
