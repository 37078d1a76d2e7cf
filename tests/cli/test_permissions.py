"""``ba permissions``: what rules there are, what would happen, and rules of one's own."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ba_tui.cli.main import run


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def checked(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert run(["permissions", "check", *argv, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_list_shows_every_rule_and_its_source(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ba_home / "config.yaml").write_text("permissions:\n  allow: ['edit_file(src/**)']\n")
    assert run(["permissions", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["deny", "*(@secret)", "(bundled)"]
    assert lines[-1].split() == ["allow", "edit_file(src/**)", f"({ba_home / 'config.yaml'}:2)"]
    assert run(["permissions", "list", "--json"]) == 0
    assert {"rule": "*(@secret)", "verdict": "deny", "source": "bundled"} in json.loads(capsys.readouterr().out)


def test_list_tells_rules_that_cannot_be_read(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ba_home / "config.yaml").write_text("permissions:\n  allow: ['shell(git:*)']\n")
    assert run(["permissions", "list"]) == 1
    assert "config.yaml:2: permission rule 'shell(git:*)'" in capsys.readouterr().err


def test_check_answers_without_running(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = checked(capsys, "rm -rf src")
    assert answer == {
        "command": "rm -rf src",
        "verdict": "ask",
        "rule": None,
        "reason": "It runs a command, and default mode asks before that.",
        "commands": ["rm -rf src"],
        "risk": ["runs a command", "writes", "destructive"],
    }
    assert (project / "src").is_dir()


def test_check_takes_rules_mode_and_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, "git status", "--allow", "shell(git status)")["rule"] == "shell(git status)"
    assert checked(capsys, "git status", "--allow", "shell(git status)", "--deny", "shell")["verdict"] == "deny"
    assert checked(capsys, "git status", "--allow", "shell(git status)", "--ask", "shell")["verdict"] == "ask"
    assert checked(capsys, "git status", "--mode", "plan")["verdict"] == "deny"
    assert checked(capsys, "src/a.py", "--tool", "edit_file")["verdict"] == "ask"
    assert checked(capsys, "src/a.py", "--tool", "edit_file", "--mode", "accept-edits")["verdict"] == "allow"
    assert checked(capsys, ".env", "--tool", "read_file")["verdict"] == "deny"
    assert checked(capsys, "../x", "--tool", "read_file")["risk"] == ["outside the workspace"]


def test_check_says_it_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["permissions", "check", "cat .env"]) == 0
    assert capsys.readouterr().out.startswith("deny: Denied by the rule *(@secret) (bundled).")


def test_check_reads_json_lines_and_answers_in_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = ["git status", "cat .env", "line\nbreak", "ls"]
    text = "\n".join(json.dumps({"command": command, "id": 1}) for command in commands) + "\n\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run(["permissions", "check", "--allow", "shell(ls)", "-"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["command"] for answer in answers] == commands
    assert [answer["verdict"] for answer in answers] == ["ask", "deny", "ask", "allow"]


@pytest.mark.parametrize("line", ["not json", "[1]", '{"other": 1}', "\xff"])
def test_a_line_that_is_no_call_is_told_by_number(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    given = b'{"command": "ls"}\n' + line.encode("latin-1") + b"\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
    assert run(["permissions", "check", "-"]) == 1
    assert "stdin, line 2: expected" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["check", "ls", "--allow", "shell(ls:*)"], "flag --allow: permission rule"),
        (["check", "ls", "--tool", "shel"], "Did you mean shell"),
        (["check", "ls", "--mode", "yolo"], "yolo"),
        (["add", "shell(git *)", "--allow"], "patterns for commands"),
        (["add", "grep"], "Say what the rule does"),
        (["add", "grep", "--allow", "--deny"], "Say what the rule does"),
        (["remove", "grep"], "no rule 'grep'"),
    ],
)
def test_what_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str], argv: list[str], said: str) -> None:
    assert run(["permissions", *argv]) == 1
    assert said in capsys.readouterr().err


def test_rules_of_ones_own_come_and_go(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ba_home / "config.yaml").write_text("# mine\npermissions:\n  allow:\n    - now   # always\n")
    assert run(["permissions", "add", "edit_file(src/**)", "--allow"]) == 0
    assert run(["permissions", "add", "shell", "--deny"]) == 0
    text = (ba_home / "config.yaml").read_text()
    assert "    - now   # always\n    - edit_file(src/**)\n" in text
    capsys.readouterr()
    assert checked(capsys, "src/a.py", "--tool", "edit_file")["verdict"] == "allow"
    assert checked(capsys, "ls")["verdict"] == "deny"
    assert run(["permissions", "remove", "edit_file(src/**)"]) == 0
    capsys.readouterr()
    assert checked(capsys, "src/a.py", "--tool", "edit_file")["verdict"] == "ask"
    assert "# mine" in (ba_home / "config.yaml").read_text()


def test_a_kept_answer_is_listed_and_can_be_removed(
    ba_home: Path, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (ba_home / "approvals.yaml").write_text(f"{project}:\n- rule: shell(make test)\n")
    assert checked(capsys, "make test")["verdict"] == "allow"
    assert run(["permissions", "remove", "shell(make test)"]) == 0
    capsys.readouterr()
    assert checked(capsys, "make test")["verdict"] == "ask"
