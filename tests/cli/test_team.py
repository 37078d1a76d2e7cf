"""``ba team``: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ba_tui.cli.main import run
from ba_tui.resources import bundled

SCRIPT = bundled("config") / "demo" / "scripts" / "team.yaml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "sales.csv").write_text("date,order,region\n" + "2026-01-03,1,South,x\n" * 31)
    return tmp_path


def test_a_team_answers_on_stdout_and_tells_its_progress(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = ["team", "run", "How many orders did South have?", "--roles", "researcher,writer,editor"]
    code = run([*line, "-m", f"scripted:{SCRIPT}", "--cwd", str(folder), "--output-format", "json"])
    out, _ = capfd.readouterr()
    report = json.loads(out)
    assert code == 0
    assert report["result"].startswith("South had 31 orders")
    assert [each["name"] for each in report["team"]["members"]] == ["researcher", "writer", "editor"]
    assert report["team"]["conflicts"][0]["winner"] == {"member": "researcher", "value": "31"}
    code = run([*line, "-m", f"scripted:{SCRIPT}", "--cwd", str(folder)])
    out, err = capfd.readouterr()
    assert (code, out.strip()) == (0, report["result"].strip())
    assert "ba: Conflict about south_orders: researcher says 31, writer says 36" in err
    assert "ba: Settled south_orders: 31" in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["run", " "], "The goal is empty."),
        (["run", "x", "--roles", "wirter"], "There is no role 'wirter'. Did you mean writer?"),
        (["run", "x", "--pattern", "comittee"], "There is no pattern 'comittee'. Did you mean committee?"),
        (["run", "x", "--conflicts", "dice"], "Choose one of majority"),
        (["run", "x", "-r", "last"], "keeps its goal"),
    ],
)
def test_wrong_orders_are_one_line(folder: Path, args: list[str], said: str, capfd: pytest.CaptureFixture[str]) -> None:
    model = ["-m", f"scripted:{SCRIPT}"]
    assert run(["team", *args, *model, "--cwd", str(folder)]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert said in err
    assert "Traceback" not in err


def test_a_team_does_not_begin_without_its_redis_server(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BA_TEAM__BUS_URL", "redis://127.0.0.1:1/0")
    line = ["team", "run", "Count", "--roles", "researcher", "-m", f"scripted:{SCRIPT}", "--cwd", str(folder)]
    assert run(line) == 2
    _, err = capfd.readouterr()
    assert "The Redis server 127.0.0.1:1 can't be reached: no connection. Start the server" in err
    assert "started" not in err


def test_roles_are_listed(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["team", "roles", "--json", "--cwd", str(folder)]) == 0
    rows = json.loads(capfd.readouterr().out)
    assert {row["name"]: row["kind"] for row in rows}["researcher"] == "role"
    assert {row["name"]: row["kind"] for row in rows}["general"] == "agent"
