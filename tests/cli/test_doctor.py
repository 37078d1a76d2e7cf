"""``ba doctor``: one line a finding, exit 1 when something fails, and never a traceback."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from ba_tui.cli.main import run
from ba_tui.observe.logs import start_logging
from ba_tui.resources import places
from tests.loopback import ModelServer, Raw
from tests.loopback.fixtures import model_server
from tests.program import Program

__all__ = ["model_server"]


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        # "0" is this machine by a name that does not look like it: as good as a server far away.
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://0:{taken.getsockname()[1]}")
        yield


def test_offline_and_without_a_key_nothing_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "FAIL" not in out
    assert "warn  endpoint      0 can't be reached" in out
    assert "→ Set ANTHROPIC_API_KEY" in out


def test_the_model_that_would_be_asked_is_looked_at(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://0:9/v1")
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "found for openai, from OPENAI_API_KEY" in out
    assert "no key for anthropic" not in out


def test_model_servers_are_listed_with_what_they_serve(
    ba_home: Path, capsys: pytest.CaptureFixture[str], model_server: Callable[..., ModelServer]
) -> None:
    many = model_server([], models=[f"m{number}" for number in range(12)])
    page = model_server([], pages={"/v1/models": Raw(b"<html>", content_type="text/html")})
    (ba_home / "config.yaml").write_text(
        f"providers:\n  ollama: {{base_url: '{many.openai_url}'}}\n  box: {{base_url: '{page.openai_url}'}}\n"
    )
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    five = "ollama/m0, ollama/m1, ollama/m2, ollama/m3, ollama/m4 and 7 more"
    assert f"ok    models        Ollama at {many.openai_url}: {five}" in out
    assert f"warn  models        127.0.0.1:{page.port} answered with a web page" in out


def test_json_holds_every_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is True
    assert {
        "python",
        "files",
        "terminal",
        "settings",
        "key",
        "endpoint",
        "ripgrep",
        "git",
        "bash",
        "sessions",
        "disk",
        "log",
    } <= {finding["name"] for finding in report["findings"]}


def test_what_is_broken_fails(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ba_home / "config.yaml").write_text("max_loops: many\npermissions: {allow: ['shell(rm * x)']}\n")
    (ba_home / "approvals.yaml").write_text("[\n")
    assert run(["doctor"]) == 1
    out = capsys.readouterr().out
    assert f"FAIL  settings      {ba_home / 'config.yaml'}:1: max_loops" in out
    assert f"FAIL  permissions   {ba_home / 'config.yaml'}:2: permission rule" in out
    assert f"FAIL  permissions   {ba_home / 'approvals.yaml'}:2" in out


def test_a_home_without_rights_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    env = {"BA_HOME": str(tmp_path / "file" / "home"), "ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "NO_PROXY": "*"}
    done = Program(tmp_path, tmp_path, env).here("doctor")
    assert done.returncode == 1
    assert "FAIL  sessions" in done.stdout
    assert done.stderr == ""


def test_a_tool_file_that_breaks_is_shown_with_its_traceback(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (ba_home / "tools").mkdir()
    (ba_home / "tools" / "broken.py").write_text("import nosuch\n")
    assert run(["doctor"]) == 0
    out = capsys.readouterr().out
    assert f"{ba_home}/tools/broken.py:1" in out
    assert "ModuleNotFoundError" in out


def test_it_names_the_log_file(ba_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["doctor", "--json"])
    findings = {each["name"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    named = Path(findings["log"]["text"])
    assert named == start_logging(places())
