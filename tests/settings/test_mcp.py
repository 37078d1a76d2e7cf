"""Which MCP servers count, from which file, and what is told of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.resources import UserFolders
from ba_tui.settings import load_settings
from ba_tui.settings.editing import discreet
from ba_tui.settings.mcp_configured import FoundServers, McpChoices, ServerPlaces, check_files, found_servers
from ba_tui.settings.mcp_files import parse_servers, read_entry, tool_safe
from ba_tui.settings.mcp_servers import MissingValue, Values, expanded
from ba_tui.settings.sections.tools import ServerSettings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
    return tmp_path


@pytest.fixture
def where(home: Path) -> UserFolders:
    return UserFolders(*[home / "ba"] * 5)


@pytest.fixture
def root(home: Path) -> Path:
    (home / "project").mkdir()
    return home / "project"


def found(
    where: UserFolders, root: Path, *, trusted: bool = True, withheld: frozenset[str] = frozenset(), **flags: Any
) -> FoundServers:
    given = {f"mcp.{name}": value for name, value in flags.items()}
    loaded = load_settings(given, where, root, trusted=trusted)
    return found_servers(loaded, ServerPlaces(where, root, trusted, withheld))


def servers(path: Path, **named: Any) -> Path:
    path.write_text(json.dumps({"mcpServers": named}))
    return path


def test_the_stronger_scope_wins(where: UserFolders, root: Path, home: Path):
    where.config.mkdir()
    flag = servers(home / "flag.json", a={"command": "flag"})
    McpChoices(where, root).add("b", {"command": "local"})
    McpChoices(where, root).add("a", {"command": "local"})
    servers(root / ".mcp.json", **{name: {"command": "project"} for name in "abc"})
    where.settings.write_text("mcp: {servers: {c: {command: user}, d: {command: user}}}\n")
    state = {
        "mcpServers": {name: {"command": "claude"} for name in "de"},
        "projects": {str(root): {"mcpServers": {"b": {"command": "claude-local"}, "f": {"command": "claude-local"}}}},
    }
    (home / ".claude.json").write_text(json.dumps(state))
    result = found(where, root, config=[str(flag)])
    assert [(each.name, each.config.scope, each.config.command) for each in result.servers] == [
        ("a", "flag", ("flag",)),
        ("b", "local", ("local",)),
        ("f", "local", ("claude-local",)),
        ("c", "user", ("user",)),
        ("d", "user", ("user",)),
        ("e", "user", ("claude",)),
    ]
    assert result.servers[0].hides == (str(McpChoices(where, root).path), str(root / ".mcp.json"))
    assert len(result.problems) == 1
    assert [each.name for each in found(where, root, config=[str(flag)], strict=True).servers] == ["a"]


@pytest.mark.parametrize("yours", ["config.yaml", ".claude.json"])
@pytest.mark.parametrize("name", ["shop", "my shop"])
def test_a_projects_server_never_takes_the_name_of_the_users(
    where: UserFolders, root: Path, home: Path, yours: str, name: str
):
    where.config.mkdir()
    if yours == "config.yaml":
        where.settings.write_text(f"mcp: {{servers: {{{tool_safe(name)}: {{command: mine}}}}}}\n")
    else:
        servers(home / yours, **{name: {"command": "mine"}})
    servers(root / ".mcp.json", **{name: {"command": "theirs"}})
    for trusted in (True, False):
        result = found(where, root, trusted=trusted)
        (server,) = result.servers
        assert (server.config.scope, server.config.command, server.off) == ("user", ("mine",), "")
        assert server.hides == (str(root / ".mcp.json"),)
        assert [problem.partition(" (")[0] for problem in result.problems] == [
            f"{tool_safe(name)} in {root / '.mcp.json'} is not used: your own server {tool_safe(name)}"
        ] * trusted


def test_nothing_is_said_of_a_projects_server_that_is_the_users_own(where: UserFolders, root: Path):
    where.config.mkdir()
    where.settings.write_text("mcp: {servers: {shop: {command: same}}}\n")
    servers(root / ".mcp.json", shop={"command": "same"})
    assert found(where, root).problems == ()


def test_a_project_counts_once_it_is_trusted_and_never_approves_itself(where: UserFolders, root: Path, home: Path):
    servers(root / ".mcp.json", a={"command": "x", "env": {"K": "${ANTHROPIC_API_KEY}"}}, b={"command": "x"})
    (root / ".claude").mkdir()
    (root / ".claude" / "settings.json").write_text(
        '{"enableAllProjectMcpServers": true, "disabledMcpjsonServers": ["b"]}'
    )
    result = found(where, root, trusted=False)
    assert [(each.config.trusted, each.config.enabled) for each in result.servers] == [(False, True), (False, False)]
    (root / ".ba").mkdir()
    (root / ".ba" / "config.yaml").write_text("mcp: {servers: {evil: {command: x}}, claude: false}\n")
    loaded = load_settings({}, where, root, trusted=True)
    assert loaded.settings.mcp.servers == {}
    assert any("only in your own settings" in str(problem) for problem in loaded.warnings)
    assert any(each.key == "enableAllProjectMcpServers" for file in loaded.foreign for each in file.unsupported)


def test_a_projects_server_gets_no_key_for_models(where: UserFolders, root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-mine")
    monkeypatch.setenv("SHOP_TOKEN", "t-1")
    servers(root / ".mcp.json", a={"command": "x", "env": {"K": "${ANTHROPIC_API_KEY}", "T": "${SHOP_TOKEN}"}})
    withheld = frozenset({"ANTHROPIC_API_KEY"})
    (server,) = found(where, root, withheld=withheld).servers
    assert "a key of yours for models" in server.config.trouble
    assert "sk-mine" not in str(server.config.environment)
    McpChoices(where, root).add("a", {"command": "x", "env": {"K": "${ANTHROPIC_API_KEY}"}})
    (server,) = found(where, root, withheld=withheld).servers
    assert server.config.environment == {"K": "sk-mine"}


def test_choices_are_kept_for_one_project_and_privately(where: UserFolders, root: Path, home: Path):
    servers(root / ".mcp.json", a={"command": "x"})
    choices = McpChoices(where, root)
    choices.switch("a", on=False)
    choices.switch("a", "delete", on=False)
    assert McpChoices(where, root).path.stat().st_mode & 0o077 == 0
    (server,) = found(where, root).servers
    assert (server.config.enabled, server.config.tools_off) == (False, {"delete"})
    assert McpChoices(where, home).off() == frozenset()
    choices.switch("a", on=True)
    assert found(where, root).servers[0].config.enabled
    assert choices.reset()
    assert not choices.reset()
    assert found(where, root).servers[0].config.tools_off == frozenset()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", ".mcp.json:1: can't be read as JSON"),
        ("[]", ".mcp.json: expected"),
        ('{"mcpServers": {"a": {}}}', ".mcp.json:1: a: expected either a command or a url; this server is not used"),
        ('{"mcpServers": {"a": 1}}', "a: expected an object with command or url"),
        ('{\n"mcpServers": {\n"a": {"command": 1}}}', ".mcp.json:3: a: command: expected text, got 1"),
        ('{"mcpServers": {"a": {"command": "x", "url": "http://y"}}}', "expected either a command or a url"),
        ('{"mcpServers": {"a": {"type": "ws", "url": "ws://y"}}}', "type: expected stdio, http or sse, got 'ws'"),
        ('{"mcpServers": {"a": {"url": "file:///etc/passwd"}}}', "expected an address that begins with http"),
        ('{"mcpServers": {"a": {"command": "x", "args": "y"}}}', "args: expected a list of texts"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"K": {}}}}}', "env.K: expected a name and a text"),
        ('{"mcpServers": {"a b": {"command": "x"}, "a_b": {"command": "y"}}}', "another server of this file is called"),
    ],
)
def test_what_is_wrong_is_one_line_with_file_and_line(text: str, told: str):
    (problem,) = parse_servers(".mcp.json", text).problems
    assert told in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"command": "npx", "args": ["-y", 1]}, {"command": "npx", "args": ("-y", "1")}),
        ({"type": "streamable-http", "url": "https://x"}, {"type": "http", "url": "https://x"}),
        ({"httpUrl": "https://x"}, {"type": "http", "url": "https://x"}),
        ({"type": "local", "command": ["a", "b"], "environment": {"K": True}}, {"args": ("b",), "env": {"K": "true"}}),
        ({"command": "x", "disabled": True}, {"enabled": False}),
        ({"command": "x", "timeout": 5000}, {"timeout": 5.0}),
        ({"command": "x", "startup_timeout_sec": 9999}, {"startup_timeout": 600.0}),
        ({"command": "x", "excludeTools": ["t"]}, {"disabled_tools": ("t",)}),
    ],
)
def test_every_spelling_is_read(raw: dict[str, Any], expected: dict[str, Any]):
    entry = read_entry(raw)
    assert entry.problem == ""
    assert {name: getattr(entry.settings, name) for name in expected} == expected


def test_unknown_keys_are_named_and_change_nothing():
    entry = read_entry({"command": "x", "comand": "y", "autoApprove": ["*"], "headersHelper": "sh"})
    assert [remark.partition(":")[0] for remark in entry.remarks] == ["comand", "autoApprove", "headersHelper"]
    assert "did you mean command?" in entry.remarks[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [("${A}", "1"), ("x-${A}-${B:-two}", "x-1-two"), ("${E:-}", ""), ("$A ${", "$A ${"), ("${keyring:db}", "kept")],
)
def test_variables_are_filled_in(text: str, value: str):
    values = Values({"A": "1"}, lambda name: "kept" if name == "db" else "")
    assert expanded(ServerSettings(command="x", args=(text,)), values).args == (value,)


@pytest.mark.parametrize(
    "settings", [{"command": "${NO}"}, {"url": "${X}"}, {"url": "http://x", "headers": {"A": "${N}"}}]
)
def test_what_can_not_be_filled_in_is_told(settings: dict[str, Any]):
    with pytest.raises(MissingValue, match=r"is not set|no address|can't have"):
        expanded(ServerSettings(**settings), Values({"X": "ftp://y", "N": "a\nb"}))


def test_a_file_of_a_flag_counts_as_a_whole_or_not_at_all(tmp_path: Path):
    check_files(['{"mcpServers": {"a": {"command": "x"}}}'])
    with pytest.raises(UsageError, match="there is no such file"):
        check_files([str(tmp_path / "none.json")])
    with pytest.raises(UsageError, match="expected either a command or a url"):
        check_files(['{"mcpServers": {"a": {}}}'])


def test_names_fit_the_names_of_tools():
    assert [tool_safe(name) for name in ("a.b c", "a__b", "日本", "_x", "x" * 99)] == [
        "a_b_c",
        "a_b",
        "",
        "x",
        "x" * 64,
    ]


def test_settings_show_no_values_of_variables():
    key = "mcp.servers.a.env.TOKEN"
    assert discreet("secret", key) == "(hidden)"
    assert discreet("https://a:b@x.org/mcp?key=secret", "mcp.servers.a.url") == "https://x.org/mcp?…"
    assert discreet("${TOKEN}", key) == "${TOKEN}"
    assert discreet("Bearer x", "mcp.servers.a.headers.Authorization") == "(hidden)"


def test_what_is_shown_of_a_server_holds_no_value_of_a_variable(
    where: UserFolders, root: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SHOP_TOKEN", "s3cret")
    shop = {"command": "shop", "args": ["--token", "${SHOP_TOKEN}"]}
    web = {"url": "https://ann:s3cret@shop.example/${SHOP_TOKEN}?key=s3cret"}
    servers(root / ".mcp.json", shop=shop, web=web, mine={"command": "x", "env": {"A": "${keyring:shop}"}})
    result = found(where, root)
    used = {each.name: each.config for each in result.servers}
    assert used["shop"].command == ("shop", "--token", "s3cret")
    assert [used[name].address for name in ("shop", "web")] == [
        "shop --token '${SHOP_TOKEN}'",
        "https://shop.example/${SHOP_TOKEN}?…",
    ]
    assert "can't read your keyring" in used["mine"].trouble
