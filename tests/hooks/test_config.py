"""Which hooks are read, in either shape, and what each is for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ba_tui.resources import places
from ba_tui.settings import load_settings
from ba_tui.settings.hooks import Hook, read_claude, read_hooks
from ba_tui.settings.tool_names import names_of

OURS = """\
hooks:
  pre_tool:
    - matcher: shell
      command: ./check.sh
      timeout: 5
  PreToolUse:
    - matcher: Edit|Write
      hooks:
        - type: command
          command: ./format.sh
        - type: command
          command: ./lint.sh
          timeout: 10
  stop:
    - command: say done
"""


def test_both_shapes_are_read_in_their_order(tmp_path: Path) -> None:
    own = places().settings
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(OURS)
    loaded = load_settings({}, places(), tmp_path)
    assert loaded.warnings == ()
    assert read_hooks(loaded.hooks) == [
        Hook("pre_tool", "./check.sh", "shell", 5, f"{own}:3"),
        Hook("pre_tool", "./format.sh", "Edit|Write", 60, f"{own}:7", for_claude=True),
        Hook("pre_tool", "./lint.sh", "Edit|Write", 10, f"{own}:7", for_claude=True),
        Hook("stop", "say done", "", 60, f"{own}:15"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hooks: {PreTool: [{command: a}]}", "expected an event; did you mean PreToolUse?"),
        ("hooks: {zzz: [{command: a}]}", "expected an event such as pre_tool"),
        ("hooks: {stop: [{comand: a}]}", "did you mean command?"),
        ("hooks: {stop: [{command: a, timeout: 0}]}", "expected more than 0"),
        ("hooks: {stop: [{hooks: [{type: prompt, command: a}]}]}", "expected a prompt"),
        ("hooks: {stop: [{hooks: [{prompt: a, command: a}]}]}", "expected a command or a prompt, not both"),
        ("hooks: {stop: [{hooks: [{type: agent, command: a}]}]}", "expected command"),
        ("hooks: {stop: {command: a}}", "expected a list"),
        ("hooks: {stop: [{matcher: a}]}", "expected a command"),
        ('hooks: {stop: [{matcher: "(", command: a}]}', "expected a valid regular expression as matcher"),
    ],
)
def test_what_is_wrong_in_settings_is_told_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    own = places().settings
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text(f"\n{text}\n")
    loaded = load_settings({}, places(), tmp_path)
    assert [problem for problem in loaded.warnings if said in problem.text and problem.line == 2], loaded.warnings


def test_claude_codes_own_file_is_read_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    group = {"type": "command", "command": "check", "timeout": 7, "statusMessage": "…", "async": False}
    prompt = {"type": "prompt", "prompt": "sure? $ARGUMENTS", "once": True, "if": "Bash(git *)"}
    hooks = {
        "PreToolUse": [{"matcher": "Bash", "hooks": [group, prompt]}],
        "Stop": [{"hooks": [{"type": "command", "command": "done", "args": ["a b"], "async": True}]}],
        "SubagentStop": [{"hooks": [group]}],
        "Elsewhere": [{"hooks": [group]}],
        "SessionEnd": [{"hooks": [{"type": "command"}]}, "nonsense"],
        "Notification": [{"matcher": "(", "hooks": [group]}],
        "SessionStart": [
            {"hooks": [{"type": "http", "url": "http://x"}, {"type": "command", "command": "a", "shell": "powershell"}]}
        ],
    }
    file.write_text(f"// mine\n{json.dumps({'model': 'opus', 'hooks': hooks})[:-1]}, /* no more */ }}")
    every, problems = read_claude(file)
    where = str(file)
    found = [hook for hook in every if hook.event != "notification"]
    assert found == [
        Hook("pre_tool", "check", "Bash", 7, where, for_claude=True),
        Hook("pre_tool", "", "Bash", 60, where, True, "sure? $ARGUMENTS", condition="Bash(git *)", once=True),
        Hook("stop", "done", "", 60, where, for_claude=True, args=("a b",), background=True),
        Hook("subagent_stop", "check", "", 7, where, for_claude=True),
    ]
    # In doubt a hook runs: it may be the one that blocks.
    assert Hook("notification", "check", "", 7, where, for_claude=True) in every
    assert len(problems) == 6
    assert f"{file}: Elsewhere: ba has no such event; its hooks are ignored." in problems
    assert f"{file}: SessionStart: ba has no hooks of type 'http'; it is ignored." in problems
    assert all(problem.startswith(f"{file}: ") for problem in problems)


@pytest.mark.parametrize(
    "content", ["", "[]", "{", '{"hooks": 3}', '{"hooks": {"Stop": {}}}', '{"disableAllHooks": true}']
)
def test_a_broken_file_of_claude_code_brings_no_hooks(tmp_path: Path, content: str) -> None:
    (tmp_path / "settings.json").write_text(content)
    assert read_claude(tmp_path / "settings.json")[0] == []
    assert read_claude(tmp_path / "missing.json") == ([], [])


@pytest.mark.parametrize(
    ("matcher", "tools"),
    [
        ("", {"shell", "edit_file", "apply_patch", "mcp__git__log"}),
        ("*", {"shell", "edit_file", "apply_patch", "mcp__git__log"}),
        ("Bash", {"shell"}),
        ("shell", {"shell"}),
        ("Edit|Write", {"edit_file", "apply_patch"}),
        ("Edit, Bash", {"edit_file", "shell", "apply_patch"}),
        ("mcp__.*", {"mcp__git__log"}),
        ("^(edit|apply)_", {"edit_file", "apply_patch"}),
        ("ash", set()),
        ("Nothing", set()),
    ],
)
def test_matchers_know_our_names_and_claude_codes(matcher: str, tools: set[str]) -> None:
    hook = Hook("pre_tool", "x", matcher)
    assert {
        name for name in ("shell", "edit_file", "apply_patch", "mcp__git__log") if hook.matches(names_of(name))
    } == tools


@pytest.mark.parametrize(
    ("hook", "dialect"),
    [
        (Hook("pre_tool", "x", "Bash"), "claude"),
        (Hook("pre_tool", "x", "shell", for_claude=True), "ba"),
        (Hook("pre_tool", "x", "", for_claude=True), "claude"),
        (Hook("pre_tool", "x", "mcp__.*", for_claude=True), "claude"),
        (Hook("pre_tool", "x", "*"), "ba"),
        (Hook("pre_tool", "x", "^(Edit|Write)$"), "claude"),
    ],
)
def test_a_hook_speaks_the_language_of_its_matcher_else_of_its_event(hook: Hook, dialect: str) -> None:
    assert hook.dialect == dialect
