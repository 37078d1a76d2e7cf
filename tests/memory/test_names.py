"""Names under which projects share memory: a project's files propose one, the user binds it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ba_tui.assembly import connect
from ba_tui.cli.main import run
from ba_tui.core.errors import UsageError
from ba_tui.core.events import Notice
from ba_tui.core.ports.permissions import AskedSetting
from ba_tui.features.memory.tools.names import SETTING, MemoryNames, SharedName, with_shared_name
from ba_tui.permissions.session import settings_of
from ba_tui.permissions.trust.grants import Trust, trust_folder
from ba_tui.providers.scripted import Step
from ba_tui.resources import folder_slug, places
from ba_tui.settings.layers import AllowedSettings
from tests.loopback import ModelServer
from tests.script import collect

URL = "http://127.0.0.1:9"


@pytest.fixture
def project(tmp_path: Path, ba_home: Path) -> Callable[[str, str], Path]:
    """Makes a trusted project whose settings propose a memory name."""
    (ba_home / "config.yaml").write_text(f"memory: {{url: '{URL}', embedder: off}}\n")

    def make(folder: str, name: str) -> Path:
        root = tmp_path / folder
        (root / ".ba").mkdir(parents=True)
        if name:
            (root / ".ba" / "config.yaml").write_text(f"memory: {{project: {name}}}\n")
        trust_folder(root)
        return root

    return make


def found(root: Path) -> SharedName:
    loaded, where = settings_of(root, places()), places()
    settings, shared = with_shared_name(loaded, where, root)
    assert settings.memory.project == shared.name
    return shared


def test_a_proposed_name_does_not_count_before_the_user_binds_it(project: Callable[[str, str], Path]) -> None:
    evil = project("evil", "finance")
    assert found(evil).name == ""
    MemoryNames(places()).bind(evil, "finance")
    assert found(evil) == SharedName("finance")


@pytest.mark.parametrize("file", ["config.yaml", "config.local.yaml"])
def test_both_files_of_a_project_only_propose(project: Callable[[str, str], Path], file: str) -> None:
    root = project("evil", "")
    (root / ".ba" / file).write_text("memory: {project: finance}\n")
    trust_folder(root)
    assert found(root).name == ""


def test_a_bound_name_outlasts_another_proposal(project: Callable[[str, str], Path]) -> None:
    root = project("sales", "sales")
    MemoryNames(places()).bind(root, "sales")
    (root / ".ba" / "config.yaml").write_text("memory: {project: finance}\n")
    trust_folder(root)
    assert found(root).name == "sales"


def test_the_user_sets_any_name(
    project: Callable[[str, str], Path], ba_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project("sales", "finance")
    monkeypatch.setenv("BA_MEMORY__PROJECT", "chosen")
    assert found(root) == SharedName("chosen")
    monkeypatch.delenv("BA_MEMORY__PROJECT")
    plain = project("plain", "")
    (ba_home / "config.yaml").write_text(f"memory: {{url: '{URL}', project: team}}\n")
    assert found(plain) == SharedName("team")


def test_another_root_with_the_name_is_named_also_one_that_has_it_by_default(
    project: Callable[[str, str], Path],
) -> None:
    finance, sales = project("finance", ""), project("sales", "")
    names = MemoryNames(places())
    names.bind(finance, "finance")
    names.bind(sales, "sales")
    assert names.others("finance", sales) == [str(finance)]
    assert names.others("finance", finance) == []
    assert names.others(folder_slug(finance), sales) == [str(finance)]


def test_a_link_to_a_project_has_the_projects_name_and_a_moved_project_none(
    project: Callable[[str, str], Path], tmp_path: Path
) -> None:
    root = project("sales", "sales")
    names = MemoryNames(places())
    names.bind(root, "sales")
    (tmp_path / "link").symlink_to(root)
    assert names.of(tmp_path / "link") == "sales"
    moved = tmp_path / "elsewhere"
    shutil.move(root, moved)
    trust_folder(moved)
    assert found(moved).name == ""


@pytest.mark.parametrize("name", ["a\nb", " x", "x" * 300, "\x1b[31m", "a/../b", "..", "./a", "/a", "a//b", "a\\..\\b"])
def test_unusable_names_are_refused(project: Callable[[str, str], Path], name: str) -> None:
    with pytest.raises(UsageError):
        MemoryNames(places()).bind(project("sales", ""), name)


@pytest.mark.parametrize("name", ["team/sales", "a..b", ".sales", "Verkäufe 2026"])
def test_usable_names_are_bound(project: Callable[[str, str], Path], name: str) -> None:
    root = project("sales", "")
    MemoryNames(places()).bind(root, name)
    assert MemoryNames(places()).of(root) == name


def test_a_damaged_file_of_names_binds_nothing(project: Callable[[str, str], Path]) -> None:
    root = project("sales", "finance")
    MemoryNames(places()).path.write_text("]: not yaml")
    assert found(root).name == ""


async def test_a_session_says_once_that_a_name_is_proposed(
    project: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = MemoryNames(places())
    names.bind(project("finance", ""), "finance")
    gone = project("gone", "")
    names.bind(gone, "finance")
    shutil.rmtree(gone)
    evil = project("evil", "finance")
    with ModelServer([], last=Step(say="Noted.")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.openai_url)
        talk = connect({"model": "openai/any"}, evil).library.create()
        events = [*await collect(talk.say("hello")), *await collect(talk.say("again"))]
        await talk.close()
    (notice,) = [event for event in events if isinstance(event, Notice) and "finance" in event.text]
    assert f"which {evil.parent / 'finance'} uses" in notice.text
    assert f"It was the name of {gone}, which is gone." in notice.text
    assert "ba memory bind finance" in notice.hint


def test_a_session_of_another_project_keeps_that_projects_name(project: Callable[[str, str], Path]) -> None:
    """The settings are those of the folder in which ba started."""
    here, there = project("here", "finance"), project("there", "")
    settings, shared = with_shared_name(settings_of(here, places()), places(), there)
    assert (settings.memory.project, shared.name) == ("", "")
    assert SETTING == "memory.project"


def test_ba_memory_bind(
    project: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    finance, evil = project("finance", ""), project("evil", "finance")
    MemoryNames(places()).bind(finance, "finance")
    monkeypatch.chdir(evil)
    assert run(["memory", "bind"]) == 0
    out, err = capfd.readouterr()
    assert out.strip() == folder_slug(evil)
    assert run(["memory", "bind", "finance"]) == 0
    out, err = capfd.readouterr()
    assert out.strip() == "finance"
    assert f"also that of {finance}" in err
    assert found(evil).name == "finance"
    assert run(["memory", "bind", "--default"]) == 0
    assert found(evil).name == ""
    assert run(["memory", "bind", "x", "--default"]) == 1


def test_a_name_counts_once_the_user_allowed_it_in_the_question_of_the_project(
    project: Callable[[str, str], Path],
) -> None:
    root, trust = project("evil", "finance"), Trust(places())
    (asked,) = trust.asked(root)
    trust.allow(root, asked)
    assert found(root) == SharedName("finance")
    trust.revoke(root)
    trust_folder(root)
    assert found(root).name == ""


def test_the_default_name_takes_back_a_name_that_the_user_allowed(
    project: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    root, trust = project("evil", "finance"), Trust(places())
    (asked,) = trust.asked(root)
    folder = AskedSetting("add_dirs", "/opt/a", "", "")
    trust.allow(root, asked)
    trust.allow(root, folder)
    monkeypatch.chdir(root)
    assert run(["memory", "bind", "--default"]) == 0
    assert capfd.readouterr().out.strip() == folder_slug(root)
    assert found(root).name == ""
    assert AllowedSettings(places()).of(root) == {("add_dirs", "/opt/a")}


def test_an_empty_name_is_refused(
    project: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project("sales", ""))
    assert run(["memory", "bind", ""]) == 1
    assert "--default" in capfd.readouterr().err
