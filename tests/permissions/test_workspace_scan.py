"""Secret files, protected files and git folders of a workspace: found once, and again wherever something changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ba_tui.permissions.sandbox.workspace_scan import ScanResult, WorkspaceScan


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    for name in (".env", "sub/.env.local", "sub/deep/id_rsa", ".npmrc", ".vscode/tasks.json", "web/mise.toml", "a.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / ".env.example").write_text("open")
    (root / ".ssh").mkdir()
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".github" / "workflows").mkdir(parents=True)
    return root


def names(root: Path, paths: tuple[Path, ...]) -> set[str]:
    return {path.relative_to(root).as_posix() for path in paths}


def test_everything_that_counts_is_found(root: Path) -> None:
    found = WorkspaceScan([root]).look()
    assert names(root, found.secrets) == {".env", "sub/.env.local", "sub/deep/id_rsa"}
    assert names(root, found.hidden) == {".ssh"}
    assert names(root, found.protected) == {".npmrc", ".vscode", "web/mise.toml", ".github/workflows"}
    assert names(root, found.git) == {".git"}
    assert found.complete


def test_what_changes_is_found_by_the_next_look(root: Path) -> None:
    scan = WorkspaceScan([root])
    scan.look()
    (root / "sub" / "new").mkdir()
    (root / "sub" / "new" / ".env").write_text("x")
    (root / ".env").unlink()
    (root / "sub" / "deep").rename(root / "moved")
    (root / "bunfig.toml").write_text("x")
    found = scan.look()
    assert names(root, found.secrets) == {"sub/.env.local", "sub/new/.env", "moved/id_rsa"}
    assert "bunfig.toml" in names(root, found.protected)
    (root / "bunfig.toml").unlink()
    assert "bunfig.toml" not in names(root, scan.look().protected)


def test_files_with_a_hard_link_outside_are_found(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text("x")
    (root / "linked.txt").hardlink_to(tmp_path / "outside.txt")
    (root / "sub" / "again.txt").hardlink_to(root / "linked.txt")
    (root / "sub" / "twin.py").hardlink_to(root / "a.py")
    (root / "node_modules").mkdir()
    (root / "node_modules" / "store.js").hardlink_to(tmp_path / "outside.txt")
    scan = WorkspaceScan([root])
    assert names(root, scan.with_links().linked) == {"linked.txt", "sub/again.txt"}
    for name in ("linked.txt", "sub/again.txt"):
        (root / name).unlink()
    assert scan.with_links().linked == ()


def test_other_names_of_a_secret_count_as_well(root: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text("key")
    (root / "keytwin").hardlink_to(home / ".ssh" / "id_ed25519")
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "plain").hardlink_to(root / ".env")
    (root / "conf.ini").write_text("x")
    (root / ".env.link").symlink_to("conf.ini")
    scan = WorkspaceScan([root], home=home)
    assert {"keytwin", "a/b/plain", "conf.ini"} <= names(root, scan.look().secrets)
    (root / "a" / "later").hardlink_to(root / "sub" / ".env.local")
    assert "a/later" in names(root, scan.look().secrets)


def test_dependencies_bring_no_protected_files_but_their_programs(root: Path) -> None:
    for name in ("node_modules/p/.travis.yml", "node_modules/.bin/x", "node_modules/p/.env", "env/pyvenv.cfg"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (root / ".venv" / "lib" / "site-packages").mkdir(parents=True)
    found = WorkspaceScan([root]).look()
    assert {"node_modules/.bin", ".venv", "env"} <= names(root, found.protected)
    assert "node_modules/p/.travis.yml" not in names(root, found.protected)
    assert "node_modules/p/.env" in names(root, found.secrets)


def test_a_folder_that_git_takes_for_a_repository_is_found(root: Path) -> None:
    for folder, marks in {"bare": ("objects", "refs"), "linked": ("commondir",)}.items():
        for mark in ("HEAD", *marks):
            (root / folder / mark).mkdir(parents=True)
    assert {"bare", "linked"} <= names(root, WorkspaceScan([root]).look().git)


def test_what_the_person_allows_is_no_secret(root: Path) -> None:
    found = WorkspaceScan([root, root / "sub"], allowed=[root / ".env"]).look()
    assert names(root, found.secrets) == {"sub/.env.local", "sub/deep/id_rsa"}


def test_odd_names_closed_folders_and_circles_stop_nothing(root: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(root) + b"/\xff"))
    odd.mkdir()
    (odd / ".env").touch()
    os.mkfifo(root / ".env.pipe")
    (root / "circle").symlink_to(root)
    (root / "closed").mkdir(mode=0)
    found = WorkspaceScan([root]).look()
    assert odd / ".env" in found.secrets
    assert ".env.pipe" not in names(root, found.secrets)
    (root / "closed").chmod(0o700)


def test_a_look_that_is_recent_enough_is_not_repeated(root: Path) -> None:
    scan = WorkspaceScan([root])
    assert scan.look(60) != ScanResult()
    (root / "b").mkdir()
    (root / "b" / ".env").touch()
    assert root / "b" / ".env" not in scan.look(60).secrets
    assert root / "b" / ".env" in scan.look().secrets
