"""Where things lie: the user's folders, the bundled files, the project's root, the first look at the theme."""

from __future__ import annotations

import os
import stat
from io import BufferedReader
from pathlib import Path

import pytest

from ba_tui.cli.launch import first_theme
from ba_tui.core.errors import StorageError
from ba_tui.resources import (
    WholeFile,
    bundled,
    exclusive,
    folder_slug,
    open_places,
    places,
    project_root,
    read_regular,
    save_whole,
    writable,
)


def test_ba_home_holds_everything(tmp_path: Path) -> None:
    where = places({"BA_HOME": str(tmp_path)})
    assert {where.settings, where.keys, where.approvals} == {
        tmp_path / "config.yaml", tmp_path / "keys.yaml", tmp_path / "approvals.yaml"
    }  # fmt: skip
    assert where.sessions == tmp_path / "sessions"
    assert where.logs == tmp_path / "logs"
    assert list(tmp_path.iterdir()) == []


def test_without_ba_home_the_platform_decides(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    where = places({})
    assert where.home is None
    assert where.settings.is_relative_to(tmp_path)
    assert where.sessions.is_relative_to(tmp_path)


def test_ba_home_may_start_with_a_tilde(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert places({"BA_HOME": "~/mine"}).config == tmp_path / "mine"


def test_bundled_settings_are_found() -> None:
    assert (bundled("config") / "default.yaml").is_file()
    assert (bundled("config") / "hitl_rules.yaml").is_file()


@pytest.mark.parametrize("mark", [".git", ".ba", "pyproject.toml"])
def test_the_project_root_is_the_nearest_marked_folder(tmp_path: Path, mark: str) -> None:
    deep = tmp_path / "outer" / "inner" / "src"
    deep.mkdir(parents=True)
    (tmp_path / "outer" / ".git").mkdir()
    (tmp_path / "outer" / "inner" / mark).mkdir()
    assert project_root(deep) == tmp_path / "outer" / "inner"


def test_the_project_root_is_never_above_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home" / "ann"
    work = home / "notes"
    work.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("HOME", str(home))
    assert project_root(work) == work
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    assert project_root(outside) == outside


def test_folders_of_one_name_have_slugs_of_their_own() -> None:
    one, other = folder_slug(Path("/a/Sales Report")), folder_slug(Path("/b/Sales Report"))
    assert one.startswith("sales-report-")
    assert one != other
    assert "/" not in folder_slug(Path("/"))


@pytest.mark.parametrize(
    ("text", "theme"),
    [
        ("theme: nord\n", "nord"),
        ("model: x\ntheme:   'solarized dark'  # mine\n", "solarized dark"),
        ('theme: "light"', "light"),
        ("themes: x\n", ""),
        ("view:\n  theme: inner\n", ""),
        ("theme:\nmodel: x\n", ""),
        ("{broken", ""),
    ],
)
def test_the_first_theme_is_read_without_a_parser(ba_home: Path, text: str, theme: str) -> None:
    (ba_home / "config.yaml").write_text(text)
    assert first_theme(places(), {}) == theme


def test_the_environment_names_the_first_theme(ba_home: Path) -> None:
    (ba_home / "config.yaml").write_text("theme: nord\n")
    assert first_theme(places(), {"BA_THEME": "light"}) == "light"


def test_a_first_look_never_waits_for_a_pipe(ba_home: Path) -> None:
    os.mkfifo(ba_home / "config.yaml")
    assert first_theme(places(), {}) == ""
    with pytest.raises(OSError, match="regular file"):
        read_regular(ba_home / "config.yaml", 10)


def test_a_file_without_an_end_is_refused_where_nothing_comes(tmp_path: Path) -> None:
    # Such as /proc/kmsg, which only root may read; a pipe says the same to who does not wait.
    end, other = os.pipe()
    os.set_blocking(end, False)
    with BufferedReader(WholeFile(end)) as file:
        os.write(other, b"some")
        with pytest.raises(BlockingIOError, match="bit by bit"):
            file.read(100)
    os.close(other)


def test_a_saved_file_is_private_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "keys.yaml"
    save_whole(path, "a: b\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["keys.yaml"]


def test_saving_keeps_rights_and_links(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text("old")
    real.chmod(0o640)
    link = tmp_path / "config.yaml"
    link.symlink_to(real)
    save_whole(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("I am no folder")
    with pytest.raises(StorageError, match="could not be written"):
        save_whole(file / "config.yaml", "x")
    with pytest.raises(StorageError, match="can't be used"), exclusive(file / "sub"):
        raise AssertionError("never inside")
    assert writable(file / "sub") != ""
    assert writable(tmp_path / "not" / "yet") == ""
    assert file.read_text() == "I am no folder"


def test_text_that_is_no_text_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("old")
    with pytest.raises(StorageError):
        save_whole(path, "\ud800")
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_home_that_is_closed_is_said_with_what_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of links is closed to root as well."""
    closed = tmp_path / "closed"
    closed.symlink_to(closed)
    monkeypatch.setenv("BA_HOME", str(closed))
    with pytest.raises(StorageError, match="cannot be read") as refused:
        open_places()
    assert "BA_HOME" in refused.value.hint
    monkeypatch.setenv("BA_HOME", str(tmp_path / "new"))
    assert open_places().config == tmp_path / "new"
