"""Trust in the MCP servers of a folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ba_tui.core.ports.permissions import TrustState
from ba_tui.permissions.trust.grants import Trust
from ba_tui.resources import UserFolders


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def trust(tmp_path: Path) -> Trust:
    return Trust(UserFolders(tmp_path / "config", tmp_path / "data", tmp_path / "cache", tmp_path / "state"))


def write(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text)


def _held(seen: TrustState) -> list[tuple[str, tuple[str, ...]]]:
    return [(part.kind, part.names) for part in seen.holds]


def test_servers_are_listed_with_what_would_run_and_without_secrets(trust: Trust, root: Path):
    key = "sk-ant-api03-" + "A1b2C3d4" * 6
    write(root, "serve.js", "1")
    servers = {
        "files": {"command": "npx", "args": ["-y", "a b"]},
        "own": {"command": "node", "args": ["./serve.js"], "env": {"A": "${SHOP_TOKEN}", "B": "x${TWO:-2}", "C": "c"}},
        "web": {"url": f"https://me:pw@x.org/mcp?key={key}"},
        "broken": {},
    }
    write(root, ".mcp.json", json.dumps({"mcpServers": servers}))
    seen = trust.look(root)
    names = (
        "files: npx -y 'a b'",
        "own: node ./serve.js (variables: $SHOP_TOKEN, $TWO)",
        "web: https://x.org/mcp?…",
        "broken: not usable",
        "serve.js",
    )
    assert dict(_held(seen))["MCP servers"] == names
    assert key not in str(seen.holds)


def test_a_changed_server_asks_again_with_the_difference(trust: Trust, root: Path):
    write(root, ".mcp.json", '{"mcpServers": {"files": {"command": "npx"}}}')
    trust.grant(trust.look(root))
    assert trust.trusted(root)
    write(root, ".mcp.json", '{"mcpServers": {"files": {"command": "evil"}}}')
    assert not trust.trusted(root)
    seen = trust.look(root)
    assert seen.state == "changed"
    assert [(file.path, "npx" in str(file.before), "evil" in file.after) for file in seen.files] == [
        (".mcp.json", True, True)
    ]


def test_a_file_of_servers_may_be_of_any_shape(trust: Trust, root: Path):
    (root / ".mcp.json").symlink_to("/dev/zero")
    assert "MCP servers" not in dict(_held(trust.look(root)))
    (root / ".mcp.json").unlink()
    write(root, ".mcp.json", "[")
    assert dict(_held(trust.look(root)))["MCP servers"] == (".mcp.json, which can't be understood",)
