"""The rules that a question offers: useful ones, which cover what their words say and nothing that is dangerous."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ba_tui.core.errors import UsageError
from ba_tui.core.ports.permissions import EDITS, joined_rules
from ba_tui.core.tool import Effect, Tool
from ba_tui.permissions.paths import Workspace
from ba_tui.permissions.policy import Policy
from ba_tui.permissions.verdicts import Ask, Bounds, JudgedCall
from ba_tui.resources import places
from tests.permissions.toolset import EDIT, PYTHON, READ, SHELL, judge, lines, policy, tool

WRITE = tool("write_file", Effect.WRITE)
SEARCH = tool("web_search", Effect.NETWORK, "query", ())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "notes.md").write_text("x")
    return folder


def walled(*, network: bool = False) -> Bounds:
    """As where a sandbox holds what runs, with or without network."""
    return Bounds(own=places(), confined=lambda: True, unheld=lambda: "", walled=lambda: not network)


def asked(rules: Policy, each: Tool, about: str) -> Ask:
    verdict = rules.judge(JudgedCall(each, {each.facts.target: about}, rules.workspace.root))
    assert isinstance(verdict, Ask)
    return verdict


def test_all_edits_in_this_folder_for_the_session(root: Path) -> None:
    rules = policy(root)
    offered = asked(rules, EDIT, "notes.md")
    assert (offered.rule, offered.session_rule) == ("edit_file(notes.md)", joined_rules(EDITS))
    rules.remember(offered.session_rule or "", "session")
    for each, path in ((EDIT, "notes.md"), (EDIT, "src/new.py"), (WRITE, "deep/er/x.md")):
        assert judge(rules, each, path) == "allow"
    for path in (".git/config", ".ba/config.yaml", "../x", "/etc/hosts"):
        assert judge(rules, EDIT, path) == "ask", path
    assert judge(rules, EDIT, ".env") == "deny"
    assert judge(rules, READ, "../x") == "ask"
    for command in ("rm notes.md", "mv notes.md x", "chmod 777 notes.md", "sed -i s/x/y/ notes.md", "make"):
        assert judge(rules, SHELL, command) == "ask", command


def test_other_folders_of_the_workspace_are_not_this_folder(root: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    rules = Policy(Workspace(root, (tmp_path / "more",)))
    assert asked(rules, EDIT, str(tmp_path / "more" / "a.txt")).session_rule is None
    rules.remember(joined_rules(EDITS), "session")
    assert judge(rules, EDIT, str(tmp_path / "more" / "a.txt")) == "ask"


def test_a_broad_rule_settles_nothing_that_an_ask_rule_asked(root: Path) -> None:
    rules = policy(root, *lines("ask", "edit_file(src/**)"))
    for path in (".git/config", "src/a.py"):
        assert asked(rules, EDIT, path).session_rule is None
    rules.remember(joined_rules(EDITS), "session")
    assert judge(rules, EDIT, "notes.md") == "allow"
    assert judge(rules, EDIT, ".git/config") == "ask"
    assert judge(rules, EDIT, "src/a.py") == "ask"


def test_python_in_the_sandbox_without_network(root: Path) -> None:
    rules = policy(root, bounds=walled())
    offered = asked(rules, PYTHON, "print(1)")
    assert offered.session_rule == "python(@sandbox)"
    rules.remember("python(@sandbox)", "session")
    assert judge(rules, PYTHON, "import pandas as pd\nprint(pd.read_csv('a.csv'))") == "allow"
    for code in (
        "import requests",
        "import shutil; shutil.rmtree('src')",
        "open('/etc/passwd').read()",
        "open('.git/config', 'w')",
        "import urllib.request",
    ):
        assert judge(rules, PYTHON, code) == "ask", code
        assert asked(rules, PYTHON, code).session_rule is None
    out = rules.judge(JudgedCall(PYTHON, {"code": "print(1)", "outside": True}, root))
    assert isinstance(out, Ask)
    assert "outside the sandbox" in out.risks
    assert out.session_rule is None


def test_what_asks_for_another_reason_offers_no_rule_for_the_session(root: Path) -> None:
    suspicious = replace(walled(), suspicion=lambda tool, args: "it sends data")
    for each, about in ((PYTHON, "print(1)"), (SEARCH, "weather")):
        rules = policy(root, bounds=suspicious)
        offered = asked(rules, each, about)
        assert (offered.reason, offered.session_rule) == ("It sends data.", None)
        rules.remember("web_search", "session")
        rules.remember("python(@sandbox)", "session")
        assert judge(rules, each, about) == "ask"


@pytest.mark.parametrize("bounds", [walled(network=True), Bounds(own=None)])
def test_no_sandbox_or_one_with_network_is_not_that_rule(root: Path, bounds: Bounds) -> None:
    rules = policy(root, bounds=bounds)
    assert asked(rules, PYTHON, "print(1)").session_rule is None
    rules.remember("python(@sandbox)", "session")
    assert judge(rules, PYTHON, "print(1)") == "ask"


def test_all_web_searches_for_the_session(root: Path) -> None:
    rules = policy(root)
    offered = asked(rules, SEARCH, "weather in Paris")
    assert (offered.rule, offered.session_rule) == (None, "web_search")
    rules.remember("web_search", "session")
    assert judge(rules, SEARCH, "anything else") == "allow"


def test_several_commands_are_remembered_by_their_subcommands(root: Path) -> None:
    rules = policy(root, held=True)
    offered = asked(rules, SHELL, "git add -A && git commit -m 'first words'")
    rules.remember(offered.rule or "", "session")
    assert judge(rules, SHELL, "git add notes.md && git commit -m 'other words'") == "allow"
    assert judge(rules, SHELL, "git commit -m x && git push") == "ask"
    assert judge(rules, SHELL, "git commit --no-verify -m x") == "ask"


def test_one_wrong_line_keeps_none(root: Path) -> None:
    rules = policy(root)
    with pytest.raises(UsageError):
        rules.remember("edit_file(notes.md)\nedit_file(", "session")
    assert judge(rules, EDIT, "notes.md") == "ask"


@pytest.mark.parametrize("rule", ["shell(@sandbox)", "edit_file(@sandbox)", "@execute(@sandbox)"])
def test_the_sandbox_rule_is_for_code(root: Path, rule: str) -> None:
    with pytest.raises(UsageError, match="for allow rules about python"):
        policy(root).remember(rule, "session")


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("git add -A && git commit -m 'x y'", "shell(git add:*)\nshell(git commit:*)"),
        ("cd src && npm run test", "shell(npm run test:*)"),
        ("a; b; c", "shell(a)\nshell(b)\nshell(c)"),
        ("a; b; c; d", "shell(a; b; c; d)"),
        ("a; cat ../x.txt", "shell(a; cat ../x.txt)"),
        ("a; cp notes.md x", "shell(a; cp notes.md x)"),
        ("make a && rm -rf b", None),
        ("python -m pytest -q", "shell(python -m pytest:*)"),
        ("python -m pytest -p x", "shell(python -m pytest -p x)"),
        ("uv run pytest -q", "shell(uv run pytest:*)"),
        ("uv run --with x pytest", "shell(uv run --with x pytest)"),
        ("make SHELL=./x build", "shell(make SHELL=./x build)"),
        ("make install", "shell(make install:*)"),
        ("make ./x", "shell(make ./x)"),
        ("just bash -c x", "shell(just bash -c x)"),
    ],
)
def test_commands_are_offered_by_what_may_follow_them(root: Path, command: str, rule: str | None) -> None:
    assert asked(policy(root), SHELL, command).rule == rule


@pytest.mark.parametrize("effect", [Effect.EXECUTE, Effect.NETWORK])
def test_a_rule_for_a_tool_of_an_mcp_server_names_the_tool_unless_a_host_is_named(root: Path, effect: Effect) -> None:
    rules = policy(root)
    total = tool("mcp__books__total", effect, "year", ())
    offered = asked(rules, total, "2026")
    assert (offered.rule, offered.session_rule) == ("mcp__books__total", "mcp__books__total")
    assert offered.risks == ("calls an MCP server",)
    assert offered.reason == "Tools of MCP servers need approval in default mode."
    assert asked(rules, total, "https://books.example/2026").rule == "mcp__books__total(domain:books.example)"
