"""``ba trust``: shows what a folder brings and what changed, asks, and takes it back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.cli.main import run


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".ba" / "tools").mkdir(parents=True)
    (folder / ".ba" / "tools" / "mine.py").write_text("A = 1\nB = 1\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    return folder


def test_it_is_shown_granted_and_taken_back(project: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["trust", "--show"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{project} is not trusted.", "tools          1  mine.py", ".ba/tools/mine.py  (2 lines)",
    ]  # fmt: skip
    assert run(["trust", "--yes", str(project)]) == 0
    assert "is trusted (current contents)" in capsys.readouterr().out
    assert run(["trust"]) == 0, "nothing to ask"
    assert run(["trust", "--revoke"]) == 0
    assert "is no longer trusted" in capsys.readouterr().out
    assert run(["trust", "--revoke"]) == 0
    assert "was not trusted" in capsys.readouterr().out


def test_nobody_to_ask_is_no_yes(capsys: pytest.CaptureFixture[str]):
    assert run(["trust"]) == 1
    assert "No terminal to ask on. Review the folder with --show, then run: ba trust --yes" in capsys.readouterr().err
    assert run(["trust", "--show"]) == 1


def test_a_change_is_shown_as_a_difference(project: Path, capsys: pytest.CaptureFixture[str]):
    run(["trust", "--yes"])
    (project / ".ba" / "tools" / "mine.py").write_text("A = 1\nB = '\x1b[2J'\n")
    capsys.readouterr()
    assert run(["trust", "--show"]) == 1
    shown = capsys.readouterr().out
    assert "its contents have changed" in shown
    assert "\n-B = 1\n+B = '\\x1b[2J'\n" in shown


def test_a_plain_folder_can_be_trusted(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    plain = tmp_path / "plain"
    plain.mkdir()
    assert run(["trust", "--yes", str(plain)]) == 0
    assert "This folder has no tools, hooks or settings." in capsys.readouterr().out
    assert run(["trust", "--show", str(plain)]) == 0
    assert run(["trust", str(tmp_path / "nowhere")]) == 1


def test_context_files_and_links_are_shown(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "diary.txt").write_text("mine")
    (project / "AGENTS.md").write_text("Use tabs.\n@rules.md\n@../diary.txt\n")
    (project / "rules.md").write_text("More.")
    (project / "deep").mkdir()
    (project / "deep" / "CLAUDE.md").symlink_to(tmp_path / "diary.txt")
    (project / ".ba" / "tools" / "linked.py").symlink_to(tmp_path / "diary.txt")
    assert run(["trust", "--show", "deep"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:5] == [
        "context        2  AGENTS.md (imports rules.md; @../diary.txt was not read: it lies outside this project), "
        f"deep/CLAUDE.md (was not read: it leads to {tmp_path.resolve()}/diary.txt, which lies outside this project)",
        "tools          2  linked.py, mine.py",
        f"link              .ba/tools/linked.py → {tmp_path.resolve()}/diary.txt, outside this project",
        ".ba/tools/linked.py  (1 line)",
    ]
    run(["trust", "--yes"])
    (project / "AGENTS.md").write_text("Use spaces.")
    assert run(["trust", "--show"]) == 0, "instructions run nothing, so a change of them asks nothing"


def test_a_value_that_the_settings_ask_for_is_shown_and_allowed_by_name(
    project: Path, ba_home: Path, capsys: pytest.CaptureFixture[str]
):
    (project / ".ba" / "config.yaml").write_text("add_dirs: [/opt/a, /opt/b]\n")
    run(["trust", "--show"])
    assert "asks              add_dirs=/opt/a (not allowed)" in capsys.readouterr().out.splitlines()
    assert run(["trust", "--yes"]) == 0
    said = capsys.readouterr()
    assert "Allow it with /trust, or run: ba trust --allow-setting add_dirs=/opt/a" in said.err
    assert not (ba_home / "allowed-settings.yaml").exists(), "--yes allows no value"
    assert run(["trust", "--yes", "--allow-setting", "add_dirs=/opt/b"]) == 0
    assert "Allowed: add_dirs=/opt/b" in capsys.readouterr().out
    run(["trust", "--show"])
    shown = capsys.readouterr().out.splitlines()
    assert "asks              add_dirs=/opt/a (not allowed)" in shown
    assert "asks              add_dirs=/opt/b (allowed)" in shown
    assert run(["trust", "--allow-setting", "add_dirs=/etc"]) == 1
    assert "This project does not ask for add_dirs=/etc" in capsys.readouterr().err
    run(["trust", "--revoke"])
    run(["trust", "--show"])
    assert "add_dirs=/opt/b (not allowed)" in capsys.readouterr().out, "taking trust back takes back what was allowed"


def test_an_unknown_value_changes_nothing(project: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["trust", "--yes", "--allow-setting", "model=local:x.gguf"]) == 1
    assert run(["trust", "--show"]) == 1, "the folder was not trusted along the way"


def test_an_allowed_setting_needs_its_value(project: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["trust", "--yes", "--allow-setting", "add_dirs"]) == 1
    assert "add_dirs has no value" in capsys.readouterr().err
