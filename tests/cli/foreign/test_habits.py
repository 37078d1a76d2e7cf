"""Every flag and command that the helps of Claude Code 2.1.197 and Codex 0.169 list works here, or is answered.

``helps.json`` holds their names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ba_tui.cli.commands import guesses, shell_commands
from ba_tui.core.errors import UsageError
from ba_tui.features.compat.habits import translated
from ba_tui.flags import FLAGS as OURS
from ba_tui.flags import read_flags
from ba_tui.resources import bundled
from tests.program import Program

HELPS: dict[str, Any] = json.loads((Path(__file__).parent / "helps.json").read_text("utf-8"))
FLAGS = sorted({flag for flags in HELPS["flags"].values() for flag in flags})
NAMES = sorted({name for names in HELPS["commands"].values() for name in names})
OWN = {*OURS, "-h", "--help"}
"""Flags of ba; all that others have under these names means the same, but for -c and -p of Codex."""
PAGE = (bundled("config") / "guide" / "flags.md").read_text("utf-8")


@pytest.fixture
def ba(tmp_path: Path) -> Program:
    for name in ("work", "home"):
        (tmp_path / name).mkdir()
    return Program(tmp_path / "work", tmp_path / "home")


@pytest.mark.parametrize("flag", FLAGS)
def test_each_flag_means_the_same_or_is_answered_in_one_line(ba: Program, flag: str):
    assert f"`{flag}`" in PAGE
    if flag in OWN or flag in guesses().options or flag in {"--setting-sources", "--verbose"}:
        return
    done = ba.here("-p", flag, "x", "hi")
    assert done.returncode == 1
    assert done.stderr.startswith(f"ba: Unknown option {flag}. ")
    assert len(done.stderr.splitlines()) == 1
    assert guesses().advice[flag] in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_each_command_works_or_is_answered_in_one_line(ba: Program, name: str):
    if name in shell_commands():
        return
    done = ba.here(name)
    assert done.returncode == 1
    assert done.stderr.startswith(f"ba: There is no command {name!r}. {guesses().shell[name]}")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (["--max-turns", "3", "hi"], ["--max-loops", "3", "hi"]),
        (["--max-turns=3", "hi"], ["--max-loops", "3", "hi"]),
        (["--max-budget-usd", "0.5"], ["--max-cost", "0.5"]),
        (["--dangerously-skip-permissions", "hi"], ["--permission-mode", "bypass", "hi"]),
        (["--permission-mode", "acceptEdits"], ["--permission-mode", "accept-edits"]),
        (["--permission-mode=bypassPermissions"], ["--permission-mode", "bypass"]),
        (["--permission-mode", "plan", "-v0"], ["--permission-mode", "plan", "-v0"]),
        (["-p", "--permission-mode", "dontAsk"], ["-p", "--permission-mode", "default"]),
        (["-c", "--fork-session", "-C", "/tmp"], ["-c", "--fork", "--cwd", "/tmp"]),
        (
            ["--allowedTools", "Read,Bash(git log:*) Glob"],
            ["--allow", "read_file", "--allow", "shell(git log:*)", "--allow", "glob"],
        ),
        (["--allowed-tools", "Bash(npm test *)", "hi"], ["--allow", "shell(npm test:*)", "hi"]),
        (["--allowedTools", "Bash(npm test)"], ["--allow", "shell(npm test)"]),
        (["--allowedTools", "Read", "Grep", "how many?"], ["--allow", "read_file", "--allow", "grep", "how many?"]),
        (["--allowedTools", "Edit"], ["--allow", "edit_file", "--allow", "write_file", "--allow", "apply_patch"]),
        (
            ["--allowedTools", "WebFetch(domain:*.a.org),mcp__a__b"],
            ["--allow", "web_fetch(domain:*.a.org)", "--allow", "mcp__a__b"],
        ),
        (
            ["--allowedTools", "Glob(src/*)", "-C", "/"],
            ["--allow", "glob(src/*)", "--allow", "glob(src/*/**)", "--cwd", "/"],
        ),
        (["--cwd=/usr", "--allowedTools", "Glob(/lib/**)"], ["--cwd=/usr", "--allow", "glob(/usr/lib/**)"]),
        (
            ["--disallowedTools", "Read(.env),*"],
            ["--deny", "@read(**/.env)", "--deny", "@read(**/.env/**)", "--deny", "*"],
        ),
        (
            ["--allowedTools", "Task,ExitPlanMode,Skill(pdf)"],
            ["--allow", "delegate_task", "--allow", "activate_skill(pdf)"],
        ),
        (["--allowedTools", "edit_file(src/**)"], ["--allow", "edit_file(src/**)"]),
        (["--allowedTools", "NotebookEdit"], ["--allow", "edit_file(**/*.ipynb)"]),
        (
            ["--disallowedTools", "TaskStop,Tas*"],
            ["--deny", "shell_kill", "--deny", "shell_output", "--deny", "shell_kill", "--deny", "delegate_task"],
        ),
        (["--disallowedTools", "Bash"], ["--deny", "shell", "--deny", "python", "--deny", "run_skill_script"]),
        (["--disallowedTools", "Write"], ["--deny", "write_file", "--deny", "apply_patch"]),
        (["--setting-sources=user,project,local", "--skip-git-repo-check", "hi"], ["hi"]),
        (["--verbose", "--output-format", "claude-stream-json"], ["--output-format", "claude-stream-json"]),
        (["--verbose", "--input-format", "stream-json"], ["--input-format", "stream-json"]),
        (["--append-system-prompt", "--json", "hi"], ["--append-system-prompt", "--json", "hi"]),
        (["hi", "--", "--yolo"], ["hi", "--", "--yolo"]),
    ],
)
def test_flags_with_the_same_meaning_become_ours(theirs: list[str], ours: list[str]):
    assert translated(theirs) == ours


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["--yolo"], "--permission-mode auto"),
        (["--dangerously-bypass-approvals-and-sandbox"], "keeps the sandbox"),
        (["--permission-mode", "dontAsk"], "Use it with -p"),
        (
            ["--permission-mode", "dontAsk", "-p", "--permission-prompt-tool", "stdio"],
            "without --permission-prompt-tool",
        ),
        (["--setting-sources", "user"], "ba reads all of user, project and local"),
        (["-p", "--verbose"], "ba -p tells each step on stderr"),
        (["-p", "--output-format", "stream-json", "--verbose"], "use --output-format claude-stream-json"),
        (["--max-turns"], "It is ba's --max-loops"),
        (["--disallowedTools"], "It is ba's --deny"),
        (["-p", "--permission-mode=dontAsk", "--permission-prompt-tool=stdio"], "without --permission-prompt-tool"),
        (["--verbose", "what is claude-stream-json?"], "ba -p tells each step"),
        (
            ["--allowedTools", "Edit(../src/*)"],
            "--allow can't say 'Edit(../src/*)': it is about files above the folder.",
        ),
        (["--allowedTools", "Bash(a * b)"], "only at the end"),
        (["--allowedTools", "(x)"], "not written as TOOL(PATTERN)"),
        (["--disallowedTools", "Bsh"], "ba has no tool Bsh"),
        (["--allowedTools", "Read", "-C", "/gone"], "There is no folder /gone"),
        (["-c", "model=o3", "hi"], "To send it: ba -c -- model=o3."),
        (["exec", "--JSON"], "Use -p --output-format json"),
    ],
)
def test_what_only_looks_alike_is_answered(line: list[str], said: str):
    with pytest.raises(UsageError) as error:
        translated(line)
    assert said in f"{error.value} {error.value.hint}"


def test_a_setting_behind_c_is_not_taken_for_a_prompt(ba: Program):
    assert read_flags(["-c", "model=o3"]) is None
    assert "does not set model=o3" in ba.here("-c", "model=o3").stderr
    assert read_flags(["-c", "a = b"]) is not None


def test_a_sentence_for_run_is_told_how_to_ask(ba: Program):
    assert 'To ask the model: ba -p "fix the tests".' in ba.here("run", "fix the tests").stderr
