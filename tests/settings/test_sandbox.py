"""The settings of the sandbox: how they are written, and that a project never loosens them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.resources import places
from ba_tui.settings import LoadedSettings, load_settings


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".ba").mkdir(parents=True)
    return folder


def loaded(project: Path, *, trusted: bool = True, env: dict[str, str] | None = None) -> LoadedSettings:
    return load_settings({}, places(), project, env or {}, trusted=trusted)


def test_they_read_as_people_write_them(ba_home: Path, project: Path) -> None:
    assert loaded(project).settings.sandbox == "auto"
    (ba_home / "config.yaml").write_text(
        "sandbox: off\ncommands: {network: true, write: [out], read: [~/data], memory_gb: 0}\n"
        "environment: {keep: [GITHUB_TOKEN]}\n"
    )
    settings = loaded(project).settings
    assert (settings.sandbox, settings.commands.network, settings.commands.memory_gb) == ("off", True, 0)
    assert settings.commands.write == (ba_home / "out",)
    assert settings.commands.read == (Path("~/data").expanduser(),)
    assert settings.environment.keep == ("GITHUB_TOKEN",)
    assert loaded(project, env={"BA_SANDBOX": "required"}).settings.sandbox == "required"
    (ba_home / "config.yaml").write_text("sandbox: maybe\n")
    assert "expected required, auto or off" in str(loaded(project).warnings[0])


@pytest.mark.parametrize("trusted", [True, False])
def test_a_project_may_only_ask_for_more(project: Path, trusted: bool) -> None:
    text = "sandbox: off\ncommands: {network: true, write: [/]}\nenvironment: {keep: ['*']}\n"
    (project / ".ba" / "config.yaml").write_text(text)
    found = loaded(project, trusted=trusted)
    assert (found.settings.sandbox, found.settings.commands.network) == ("auto", False)
    assert (found.settings.commands.write, found.settings.environment.keep) == ((), ())
    assert found.warnings
    (project / ".ba" / "config.yaml").write_text("sandbox: required\n")
    assert loaded(project).settings.sandbox == "required"
