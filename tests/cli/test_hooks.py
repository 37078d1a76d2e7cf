"""``ba hooks``: what runs on which event, and what is off."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ba_tui.cli.main import run
from ba_tui.permissions.trust.grants import trust_folder

CLAUDE = {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./theirs.sh"}]}]}}


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".claude").mkdir(parents=True)
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_folder_nobody_trusts_brings_no_hooks(
    ba_home: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (ba_home / "config.yaml").write_text("hooks:\n  stop:\n    - command: ./mine.sh\n")
    (project / ".claude" / "settings.json").write_text(json.dumps(CLAUDE))
    assert run(["hooks", "list"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"stop  *  ./mine.sh  ({ba_home / 'config.yaml'}:3; 60 s)\n"
    assert "not trusted, so hooks in .claude/settings.json are off" in shown.err
    trust_folder(project)
    assert run(["hooks", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["event"], row["matcher"], row["command"], row["project"]) for row in rows] == [
        ("stop", "", "./mine.sh", False),
        ("pre_tool", "Bash", "./theirs.sh", True),
    ]


def test_what_is_wrong_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["hooks", "list"]) == 0
    assert "No hooks." in capsys.readouterr().err
    (project / ".claude" / "settings.json").write_text('{"hooks": {"Elsewhere": [{"hooks": []}]}}')
    trust_folder(project)
    assert run(["hooks", "list"]) == 1
    assert "Elsewhere: ba has no such event; its hooks are ignored." in capsys.readouterr().err


@pytest.mark.usefixtures("empty_stdin")
def test_a_projects_own_hooks_run_once_it_is_trusted(
    ba_home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".ba").mkdir()
    (project / ".ba" / "config.yaml").write_text(
        "hooks:\n  user_prompt: [{command: 'env > told; echo no >&2; exit 2'}]\n"
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-not-for-hooks")
    (project / "script.yaml").write_text("steps: [{say: Done.}]\n")
    ask = ["-p", "-m", f"scripted:{project / 'script.yaml'}", "go"]
    assert run(ask) == 0
    assert capsys.readouterr().out == "Done.\n"
    trust_folder(project)
    assert run(ask) == 4
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("", "ba: A hook blocked the prompt: no. Change it and send it again.\n")
    told = (project / "told").read_text()
    assert f"CLAUDE_PROJECT_DIR={project}\n" in told
    assert "sk-not-for-hooks" not in told


@pytest.mark.usefixtures("empty_stdin")
def test_what_a_hook_denied_stands_in_the_audit(
    ba_home: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (ba_home / "config.yaml").write_text(
        "hooks: {PreToolUse: [{matcher: Read, command: 'echo not that >&2; exit 2'}]}\n"
    )
    steps = "steps: [{calls: [{tool: read_file, args: {path: script.yaml}}]}, {say: Done.}]\n"
    (project / "script.yaml").write_text(steps)
    assert run(["-p", "-m", f"scripted:{project / 'script.yaml'}", "go"]) == 4
    capsys.readouterr()
    assert run(["audit", "--denied", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert (row["tool"], row["target"], row["by"], row["reason"]) == ("read_file", "script.yaml", "hook", "not that")
