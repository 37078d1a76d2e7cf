"""``ba permissions``: what rules there are, what would happen, and rules of one's own."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ba_tui.cli.main import run
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.workspace_scan import FileReach


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
    rows = {row["rule"]: row for row in json.loads(capsys.readouterr().out)}
    secret = {"verdict": "deny", "source": "bundled", "layer": "bundled", "hits": 0, "waiting": False}
    assert rows["*(@secret)"] == {"rule": "*(@secret)", **secret}
    assert rows["edit_file(src/**)"]["layer"] == "user"


def test_list_tells_rules_that_cannot_be_read(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ba_home / "config.yaml").write_text("permissions:\n  allow: ['web_fetch(domain:)']\n")
    assert run(["permissions", "list"]) == 1
    assert "config.yaml:2: permission rule 'web_fetch(domain:)'" in capsys.readouterr().err


def test_check_answers_without_running(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = checked(capsys, "rm -rf src")
    assert answer.pop("reason").endswith(".")
    assert answer == {
        "command": "rm -rf src",
        "verdict": "ask",
        "rule": None,
        "commands": ["rm -rf src"],
        "risk": ["runs a command", "writes", "destructive"],
    }
    assert (project / "src").is_dir()


def test_check_takes_rules_mode_and_tool(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, "git status", "--allow", "shell(git status)")["rule"] == "shell(git status)"
    assert checked(capsys, "git status", "--allow", "shell(git status)", "--deny", "shell")["verdict"] == "deny"
    assert checked(capsys, "git status", "--allow", "shell(git status)", "--ask", "shell")["verdict"] == "ask"
    assert checked(capsys, "make", "--mode", "plan")["verdict"] == "deny"
    assert checked(capsys, "src/a.py", "--tool", "edit_file")["verdict"] == "ask"
    assert checked(capsys, "src/a.py", "--tool", "edit_file", "--mode", "accept-edits")["verdict"] == "allow"
    assert checked(capsys, ".env", "--tool", "read_file")["verdict"] == "deny"
    assert checked(capsys, "../x", "--tool", "read_file")["risk"] == ["outside the workspace"]


def test_check_counts_on_the_sandbox_as_the_app_does(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ba_home / "config.yaml").write_text("sandbox: off\n")
    answer = checked(capsys, "make", "--mode", "auto")
    assert answer["verdict"] == "ask"
    assert "there is no sandbox" in answer["reason"]
    assert checked(capsys, "wc -l src/*.py && git status")["verdict"] == "ask"
    (ba_home / "config.yaml").write_text("sandbox: auto\n")
    if Sandbox(FileReach(())).holds():
        assert checked(capsys, "make", "--mode", "auto")["verdict"] == "allow"
        assert checked(capsys, "wc -l src/*.py && git status")["verdict"] == "allow"
        answer = checked(capsys, "curl https://example.org", "--mode", "auto")
        assert answer["verdict"] == "ask"
        assert answer["reason"].endswith("it may reach outside this folder.")
    assert checked(capsys, "rm -rf src")["verdict"] == "ask"


def test_check_tells_every_command_that_would_run(capsys: pytest.CaptureFixture[str]) -> None:
    answer = checked(capsys, "cd src && sudo rm -rf $(ls) | tee a; bash -c 'make x'")
    assert answer["commands"] == ["cd src", "ls", "rm -rf $(ls)", "tee a", "make x"]
    assert checked(capsys, "if (")["commands"] == ["if ("]
    assert checked(capsys, "src/a.py", "--tool", "edit_file")["commands"] == []


def test_check_says_it_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["permissions", "check", "cat .env"]) == 0
    assert capsys.readouterr().out.startswith("deny: Denied by the rule *(@secret) (bundled).")


def test_check_reads_json_lines_and_answers_in_order(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = ["make", "cat .env", "line\nbreak", "ls"]
    text = "\n".join(json.dumps({"command": command, "id": 1}) for command in commands) + "\n\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert run(["permissions", "check", "--allow", "shell(ls)", "-"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["command"] for answer in answers] == commands
    assert [answer["verdict"] for answer in answers] == ["ask", "deny", "ask", "allow"]


@pytest.mark.parametrize("line", ["not json", "[1]", "[" * 100_000, '{"other": 1}', "\xff"])
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
        (["check", "ls", "--allow", "shell("], "flag --allow: permission rule"),
        (["check", "ls", "--tool", "shel"], "Did you mean shell"),
        (["check", "ls", "--mode", "yolo"], "yolo"),
        (["add", "web_fetch(domain:)", "--allow"], "the name of a host"),
        (["add", "grep", "--allow", "--project", "--user"], "Choose where the rule applies"),
        (["add", "grep"], "Choose what the rule does"),
        (["add", "grep", "--allow", "--deny"], "Choose what the rule does"),
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


def test_a_rule_can_be_for_this_project_only(
    ba_home: Path, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["permissions", "add", "edit_file(src/**)", "--deny", "--project"]) == 0
    assert str(ba_home / "approvals.yaml") in capsys.readouterr().out
    assert not (project / ".ba").exists()
    assert checked(capsys, "src/a.py", "--tool", "edit_file")["verdict"] == "deny"
    (project.parent / "other").mkdir()
    monkeypatch.chdir(project.parent / "other")
    assert checked(capsys, "src/a.py", "--tool", "edit_file")["verdict"] == "ask"
    monkeypatch.chdir(project)
    assert run(["permissions", "remove", "edit_file(src/**)"]) == 0
    capsys.readouterr()
    assert checked(capsys, "src/a.py", "--tool", "edit_file")["verdict"] == "ask"


def test_what_a_trusted_project_allows_waits_for_a_word(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".ba").mkdir()
    (project / ".ba" / "config.yaml").write_text("permissions: {allow: ['edit_file(src/**)'], ask: [now]}\n")
    assert run(["trust", "--yes"]) == 0
    capsys.readouterr()
    answer = checked(capsys, "src/a.py", "--tool", "edit_file")
    assert (answer["verdict"], answer["rule"]) == ("ask", "edit_file(src/**)")
    assert "once you confirm it" in answer["reason"]
    assert run(["permissions", "list"]) == 0
    assert "not confirmed yet" in capsys.readouterr().out
    assert run(["permissions", "add", "edit_file(src/**)", "--allow", "--project"]) == 0
    capsys.readouterr()
    assert checked(capsys, "src/a.py", "--tool", "edit_file")["verdict"] == "allow"
    assert run(["permissions", "list"]) == 0
    assert "not confirmed yet" not in capsys.readouterr().out
    assert run(["permissions", "remove", "edit_file(src/**)"]) == 0
    capsys.readouterr()
    assert checked(capsys, "src/a.py", "--tool", "edit_file")["verdict"] == "ask"


def test_conditions_count_and_can_be_removed(
    ba_home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (ba_home / "config.yaml").write_text(
        "permissions:\n  ask:\n    # long ones\n    - {rule: shell, when: {timeout: {min: 60}}}\n    - now  # odd\n"
    )
    rows = [{"command": "ls", "timeout": seconds} for seconds in (5, 600)]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(map(json.dumps, rows)).encode())))
    assert run(["permissions", "check", "--allow", "shell(ls)", "-"]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["verdict"], each["rule"]) for each in answers] == [("allow", "shell(ls)"), ("ask", "shell")]
    assert run(["permissions", "list", "--json"]) == 0
    assert [row["when"] for row in json.loads(capsys.readouterr().out) if "when" in row] == [{"timeout": {"min": 60}}]
    assert run(["permissions", "remove", "shell"]) == 0
    assert "- now  # odd" in (ba_home / "config.yaml").read_text()
    assert "shell" not in (ba_home / "config.yaml").read_text()


def test_bypass_is_no_setting(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ba_home / "config.yaml").write_text("permission_mode: bypass\n")
    assert run(["config", "validate"]) == 1
    assert "bypass works only as a flag" in capsys.readouterr().out
    (ba_home / "config.yaml").write_text("theme: dark\n")
    assert run(["config", "set", "permission_mode", "bypass"]) == 1
    capsys.readouterr()
    assert checked(capsys, "git push", "--mode", "auto")["verdict"] == "ask"
    assert checked(capsys, "rm -rf src", "--mode", "bypass")["verdict"] == "allow"
    assert checked(capsys, "cat .env", "--mode", "bypass")["verdict"] == "deny"
