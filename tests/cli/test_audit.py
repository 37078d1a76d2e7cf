"""``ba audit``: every decision about a call, out of the session files."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ba_tui.cli.main import run
from ba_tui.core.events import Event, Judged, ToolStarted, TurnEnded, TurnStarted, event_to_json
from ba_tui.core.messages import ToolUse, user
from ba_tui.resources import folder_slug, places
from ba_tui.sessions.records import Header

FIRST, SECOND = "20261120-100000-aaaa", "20261121-100000-bbbb"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def session(id: str, cwd: Path, *events: Event | bytes) -> Path:
    folder = places().sessions / folder_slug(cwd) / id
    folder.mkdir(parents=True)
    lines = [event if isinstance(event, bytes) else event_to_json(event) + b"\n" for event in events]
    (folder / "events.jsonl").write_bytes(Header(id, str(cwd), 0.0).line() + b"".join(lines))
    return folder / "events.jsonl"


def decided(
    id: str, tool: str, target: str, verdict: Any = "allow", at: float | None = None, **more: Any
) -> list[Event]:
    at = time.time() if at is None else at
    more = {"by": "rule", **more}
    use = ToolUse(id, tool, {"command": target})
    return [ToolStarted(use, target, at=at), Judged(id, tool, verdict, at=at, **more)]


def listed(capsys: pytest.CaptureFixture[str], *argv: str) -> list[dict[str, Any]]:
    assert run(["audit", *argv, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_each_decision_names_its_call(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session(
        FIRST,
        project,
        TurnStarted(user("go")),
        *decided("c1", "shell", "git status", rule="shell(git status)", hash="abcd", at=1_000.0),
        TurnEnded("done"),
    )
    assert listed(capsys) == [
        {
            "at": "1970-01-01T00:16:40.000+00:00",
            "session": FIRST,
            "agent": "main",
            "tool": "shell",
            "target": "git status",
            "verdict": "allow",
            "by": "rule",
            "rule": "shell(git status)",
            "reason": "",
            "hash": "abcd",
            "call_id": "c1",
        }
    ]
    assert run(["audit"]) == 0
    heads, row = capsys.readouterr().out.splitlines()
    assert heads.split() == ["When", "Tool", "Verdict", "By", "Arguments", "About"]
    assert row.endswith("shell  allow    rule  abcd       git status  (shell(git status))")


def test_filters(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = time.time() - 86_400 * 3
    session(FIRST, project, *decided("c1", "shell", "ls", at=old), *decided("c2", "grep", "x", "deny", at=old))
    session(SECOND, tmp_path / "elsewhere", *decided("c3", "shell", "rm -r x", "deny", by="person"))
    assert [each["call_id"] for each in listed(capsys)] == ["c1", "c2"]
    assert [each["call_id"] for each in listed(capsys, "--all")] == ["c1", "c2", "c3"]
    assert [each["call_id"] for each in listed(capsys, "--all", "--denied")] == ["c2", "c3"]
    assert [each["call_id"] for each in listed(capsys, "--all", "--tool", "shell")] == ["c1", "c3"]
    assert [each["call_id"] for each in listed(capsys, "--all", "--since", "1d")] == ["c3"]
    assert [each["call_id"] for each in listed(capsys, "--all", "--since", "2020-01-01")] == ["c1", "c2", "c3"]
    assert [each["call_id"] for each in listed(capsys, "bbbb")] == ["c3"]
    assert run(["audit", "--since", "soon"]) == 1
    assert run(["audit", "20991231"]) == 1
    assert "There is no session" in capsys.readouterr().err


def test_damage_is_counted_and_a_line_being_written_is_not(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = b'{"type":"judged","verd\n', b"\x00\x00\n", b'{"judged": [1]}\n', b'{"type":"judged","at":"soon"}\n'
    writing = event_to_json(Judged("c9", "shell", "allow", "rule"))[:40]
    session(FIRST, project, *broken, *decided("c1", "shell", "ls"), writing)
    assert run(["audit", "--json"]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["call_id"] for line in shown.out.splitlines()] == ["", "c1"]
    assert shown.err == "ba: 2 damaged lines were left out; the files were not changed.\n"


def test_secrets_and_escapes_stay_out(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key = "sk-ant-api03-" + "a1b2c3d4" * 5
    session(FIRST, project, *decided("c1", "shell", f"curl -H 'x: {key}' \x1b]0;x\x07", reason=f"it sends {key}"))
    for argv in (["audit"], ["audit", "--json"]):
        assert run(argv) == 0
        shown = capsys.readouterr().out
        assert "[redacted]" in shown
        assert key not in shown
        assert "\x1b" not in shown


def test_nothing_to_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit"]) == 0
    assert capsys.readouterr().err == "No decisions. Use --all for all folders.\n"
