"""Which tools the file of an agent is given, in all the words that public collections use."""

from __future__ import annotations

from typing import Any

import pytest

from ba_tui.agent_files.agent_file import chosen_tools

KNOWN = frozenset({
    *("read_file", "write_file", "edit_file", "apply_patch", "list_files", "glob", "grep", "shell", "shell_output"),
    *("shell_kill", "python", "run_skill_script", "web_fetch", "web_search", "todo_write", "todo_read", "mine"),
})  # fmt: skip
RUNNING = {"shell", "shell_output", "shell_kill", "python"}


@pytest.mark.parametrize(
    ("fields", "tools"),
    [
        ({}, None),
        ({"tools": "*"}, None),
        ({"tools": ["*"]}, None),
        ({"tools": "All"}, None),
        ({"tools": "Read, Grep,Glob"}, {"read_file", "grep", "glob"}),
        ({"tools": "Read Grep"}, {"read_file", "grep"}),
        ({"tools": ["Read", "LS", "WebFetch"]}, {"read_file", "list_files", "web_fetch"}),
        ({"tools": "[Read, 'Grep']"}, {"read_file", "grep"}),
        ({"tools": "Bash"}, RUNNING),
        ({"tools": "bash, read"}, {*RUNNING, "read_file"}),
        ({"tools": "shell, mine"}, {"shell", "mine"}),
        ({"tools": "Write"}, {"write_file"}),
        ({"tools": "Edit, MultiEdit"}, {"edit_file"}),
        ({"tools": "Write, Edit"}, {"write_file", "edit_file", "apply_patch"}),
        ({"tools": ["search/codebase", "edit/editFiles"]}, {"grep", "glob", "write_file", "edit_file", "apply_patch"}),
        ({"tools": "mcp__github__*, Nothing"}, set[str]()),
        ({"tools": []}, set[str]()),
        ({"tools": ""}, set[str]()),
        ({"tools": {"*": "false", "read": "true"}}, {"read_file"}),
        ({"permission": "deny"}, set[str]()),
        ({"permission": {"*": "deny", "read": "allow"}}, {"read_file"}),
        ({"tools": "Read, Write", "disallowedtools": "Write"}, {"read_file"}),
        ({"disallowedtools": "*"}, set[str]()),
    ],
)
def test_only_what_is_named_is_given(fields: dict[str, Any], tools: set[str] | None) -> None:
    chosen = chosen_tools(fields, KNOWN).tools
    assert (None if chosen is None else set(chosen)) == tools


@pytest.mark.parametrize(
    ("fields", "without"),
    [
        ({"disallowedtools": "Bash(rm *), WebFetch"}, {*RUNNING, "run_skill_script", "web_fetch"}),
        ({"disallowedtools": ["Write"]}, {"write_file", "apply_patch"}),
        ({"disallowedtools": "Edit"}, {"edit_file", "write_file", "apply_patch"}),
        ({"tools": {"bash": "false", "read": "true"}}, {*RUNNING, "run_skill_script"}),
        ({"permission": {"edit": "deny", "webfetch": "ask"}}, {"edit_file", "write_file", "apply_patch"}),
        ({"permission": {"bash": {"*": "deny", "git diff": "allow"}}}, {*RUNNING, "run_skill_script"}),
    ],
)
def test_what_is_taken_away_goes_with_all_that_does_the_same(fields: dict[str, Any], without: set[str]) -> None:
    chosen = chosen_tools(fields, KNOWN)
    assert chosen.tools is None
    assert set(chosen.without) == without


def test_what_is_not_understood_is_named() -> None:
    chosen = chosen_tools({"tools": "Read, Bash(git:*, rg *), mcp__x__y, Task(reviewer)"}, KNOWN)
    assert chosen.unknown == ("mcp__x__y", "Task(reviewer)")
    assert chosen.limits == ("Bash(git:*, rg *)",)
    partly = chosen_tools({"permission": {"bash": {"sudo *": "deny", "ls": "allow"}}}, KNOWN)
    assert (partly.tools, partly.without, partly.partly) == (None, (), ("bash",))
