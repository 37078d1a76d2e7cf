"""``ba mcp``, in this process; one test starts a server."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ba_tui.cli.main import run
from ba_tui.permissions.trust.grants import Trust, trust_folder
from ba_tui.providers.scripted import Step
from ba_tui.resources import places
from tests.loopback import ModelServer
from tests.program import Program
from tests.protocols.mcp.programs import raw

SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("sums")
@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b
server.run("stdio")
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, ba_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    return folder


def rows(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    capsys.readouterr()
    assert run(["mcp", "list", "--json"]) == 0
    return {row["name"]: row for row in json.loads(capsys.readouterr().out)}


def test_add_list_get_and_remove_in_every_scope(ba_home: Path, project: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["mcp", "add", "files", "-e", "TOKEN=${HOME}", "--", "npx", "-y", "fs", "--flag"]) == 0
    assert (
        run(["mcp", "add", "-s", "user", "-t", "sse", "docs", "https://x.org/mcp", "-H", "Authorization: Bearer abc"])
        == 0
    )
    assert run(["mcp", "add-json", "-s", "project", "team", '{"command": "uvx", "args": ["a"]}']) == 0
    assert json.loads((project / ".mcp.json").read_text()) == {
        "mcpServers": {"team": {"command": "uvx", "args": ["a"]}}
    }
    listed = rows(capsys)
    assert {name: (row["scope"], row["state"], row["transport"], row["target"]) for name, row in listed.items()} == {
        "files": ("local", "on", "stdio", "npx -y fs --flag"),
        "team": ("project", "not trusted", "stdio", "uvx a"),
        "docs": ("user", "on", "sse", "https://x.org/mcp"),
    }
    assert run(["mcp", "get", "docs"]) == 0
    shown = capsys.readouterr().out
    assert "Authorization=(hidden)" in shown
    assert "abc" not in shown
    assert run(["config", "show"]) == 0
    assert "abc" not in capsys.readouterr().out
    assert [run(["mcp", "remove", name]) for name in ("files", "docs", "team")] == [0, 0, 0]
    assert rows(capsys) == {}


def test_a_change_of_the_project_by_its_person_keeps_their_trust(project: Path, capsys: pytest.CaptureFixture[str]):
    trust_folder(project)
    assert run(["mcp", "add", "-s", "project", "team", "--", "uvx", "a"]) == 0
    assert Trust(places()).trusted(project)
    assert rows(capsys)["team"]["state"] == "on"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (["add", "a b", "--", "x"], "can't be a server's name"),
        (["add", "a", "-t", "ws", "x"], "There is no transport 'ws'"),
        (["add", "a", "-t", "http", "x"], "x is no address for transport http"),
        (["add", "a", "-e", "secret", "--", "x"], "--env takes NAME=VALUE"),
        (["add", "a", "http://x", "y"], "takes no argument y"),
        (["add", "a", "-s", "team", "--", "x"], "There is no scope 'team'"),
        (["add-json", "a", "{"], "That is no valid JSON"),
        (["add-json", "a", '{"command": "x", "foo": 1}'], "foo: unknown"),
        (["get", "a"], "There is no MCP server 'a'. Add one"),
        (["test", "a"], "There is no MCP server 'a'"),
        (["test"], "No MCP server is used here"),
    ],
)
def test_what_is_wrong_is_one_line(line: list[str], told: str, capsys: pytest.CaptureFixture[str]):
    assert run(["mcp", *line]) == 1
    said = capsys.readouterr().err
    assert told in said
    assert "secret" not in said
    assert said.count("\n") == 1


def test_a_name_is_taken_once_and_comments_are_not_lost(project: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["mcp", "add", "a", "--", "x"]) == 0
    assert run(["mcp", "add", "a", "--", "y"]) == 1
    assert "ba mcp remove a -s local" in capsys.readouterr().err
    (project / ".mcp.json").write_text('{"mcpServers": {} /* mine */}')
    assert run(["mcp", "add", "-s", "project", "b", "--", "x"]) == 1
    assert "has comments, which would be lost" in capsys.readouterr().err


def test_a_flag_names_files_that_must_be_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run(["-p", "--mcp-config", str(tmp_path / "none.json"), "hi"]) == 1
    assert "there is no such file" in capsys.readouterr().err


def test_a_server_is_tried(project: Path, capsys: pytest.CaptureFixture[str]):
    (project / "server.py").write_text(SERVER)
    assert run(["mcp", "add", "sums", "--", sys.executable, "server.py"]) == 0
    assert run(["mcp", "add", "gone", "--", "no-such-program-anywhere"]) == 0
    capsys.readouterr()
    assert run(["mcp", "test", "--json"]) == 2
    gone, sums = json.loads(capsys.readouterr().out)
    assert gone["ok"] is False
    assert "no-such-program-anywhere" in gone["error"]
    assert sums["ok"] is True
    assert [tool["name"] for tool in sums["tools"]] == ["mcp__sums__add"]


MANY = """
schema = {"type": "object", "properties": {"query": {"type": "string", "description": "What to look for. " * 5}}}
serve([tool(f"find_{number}", "Find records of one kind. " * 8, schema) for number in range(40)])
"""


def test_the_first_request_with_200_tools_of_5_new_servers(tmp_path: Path, project: Path):
    program, *script = raw(tmp_path, MANY).command
    servers = {f"server{number}": {"command": program, "args": script} for number in range(5)}
    with ModelServer([Step(say="Hi.")]) as model:
        env = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "k-test-1234"}
        ba = Program(project, tmp_path, env)
        done = ba.here("-p", "-m", "anthropic/test", "--mcp-config", json.dumps({"mcpServers": servers}), "hello")
    assert done.returncode == 0, done.stderr
    (request,) = model.requests
    assert len(request.body) <= 12 * 1024
    # They came after the tools were listed: the model is told of them all the same.
    assert all(f"mcp__server{number}__* (40)" in request.body.decode() for number in range(5))
