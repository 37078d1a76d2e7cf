"""Tools in front matter: every spelling of public files, and the allow rules that they stand for."""

from __future__ import annotations

from typing import Any

import pytest

from ba_tui.settings.tool_names import rules_of, tools_in, tools_of

WANTED = ("Bash(git add:*)", "Read", "mcp__a__b")


@pytest.mark.parametrize(
    "value",
    [
        "Bash(git add:*) Read mcp__a__b",
        "Bash(git add:*), Read,mcp__a__b",
        '["Bash(git add:*)", "Read", "mcp__a__b"]',
        "[Bash(git add:*), Read, mcp__a__b]",
        "'Bash(git add:*)', `Read`, mcp__a__b",
        'Bash("git add:*"), Read, mcp__a__b',
        "Bash (git add:*), Read, mcp__a__b",
        "- Bash(git add:*)\n- Read\n- mcp__a__b",
        ["Bash(git add:*)", "Read, mcp__a__b", 3],
        {"Bash(git add:*)": "true", "Read": True, "Write": "false", "mcp__a__b": "allow"},
    ],
)
def test_every_spelling_says_the_same(value: Any) -> None:
    assert tools_of(value) == WANTED


def test_what_is_not_certain_takes_less_never_more() -> None:
    assert tools_of("Read, Bash(git:*") == ("Read",)
    assert tools_of(["Bash(git add:*", "git commit:*)", "Read"]) == ("Bash(git add:*)", "Bash(git commit:*)", "Read")
    assert tools_of("Bash(npm run test(unit):*), Read") == ("Bash(npm run test(unit):*)", "Read")
    assert tools_of(None) == tools_of("") == tools_of("- , ()") == tools_of(7) == ()


def test_the_field_has_several_names() -> None:
    assert tools_in({"allowed-tools": "Read", "tools": "Bash"}) == ("Read",)
    assert [tools_in({name: "Read"}) for name in ("allowed_tools", "allowedTools", "Tools", "other")] == [
        ("Read",), ("Read",), ("Read",), (),
    ]  # fmt: skip


def test_names_become_ours() -> None:
    given = (
        "Bash(git:*)",
        "bash(npm run *)",
        "read",
        "Read(*)",
        "Write(src/**)",
        "TodoWrite(*)",
        "mcp__x__y",
        "Nobody",
    )
    assert rules_of(given) == (
        *("shell(git:*)", "shell(npm run *)", "read_file", "write_file(src/**)", "todo_write", "mcp__x__y", "Nobody"),
    )
