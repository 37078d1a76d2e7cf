"""A file that a rule keeps is not read either by a command that goes through all files around it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ba_tui.core.ports.permissions import RuleLine
from ba_tui.permissions.command_judging import MOST_KEPT
from ba_tui.permissions.sandbox.confinement import Sandbox
from ba_tui.permissions.sandbox.workspace_scan import FileReach
from ba_tui.permissions.verdicts import Allow, Ask, Deny, JudgedCall
from tests.permissions.toolset import SHELL, judge, lines, policy


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("config/prod.yaml", "src/a.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x")
    return tmp_path


THROUGH = (
    "grep -r x .",
    "cd config && grep -r x",
    "rg x",
    "rg -g '*.yaml' x config",
    "diff -r config src",
    "find . -name '*.yaml' -exec cat {} +",
    "git ls-files '*.yaml' | xargs cat",
    "cat $(git ls-files)",
)
RULES = ("read_file(config/prod.yaml)", "read_file(**/*.yaml)", "@read(config/)")


@pytest.mark.parametrize("rule", RULES)
def test_commands_that_go_through_a_kept_file_ask_where_it_can_not_be_hidden(root: Path, rule: str) -> None:
    rules = policy(root, *lines("deny", rule), *lines("allow", "shell(rg:*)"))
    for command in THROUGH:
        judged = rules.judge(JudgedCall(SHELL, {"command": command}, root))
        # A word that a pattern fits may name such a file itself, and that is denied.
        assert isinstance(judged, Ask | Deny), command
    for command in ("grep -r x src", "rg -g '*.py' x", "find . -name '*.py' | xargs cat", "ls -R"):
        assert judge(rules, SHELL, command) == "allow", command


@pytest.mark.parametrize("verdict", ["deny", "ask"])
@pytest.mark.parametrize("rule", RULES)
def test_a_sandbox_hides_a_kept_file_from_commands_that_go_through_it(root: Path, rule: str, verdict: str) -> None:
    rules = policy(root, *lines(verdict, rule), *lines("allow", "shell(rg:*)", "shell(make:*)"), held=True)
    for command in THROUGH:
        judged = rules.judge(JudgedCall(SHELL, {"command": command}, root))
        if isinstance(judged, Allow):
            assert judged.profile.masked == (root / "config/prod.yaml",), command
        else:
            assert "config" in command or "*.yaml" in command, judged
    # What the rest of the command may write, nothing holds to reading: it asks as without a sandbox.
    assert judge(rules, SHELL, "make; grep -r x .") == "ask"
    for command in ("cat config/prod.yaml", "grep x config/*.yaml", "wc -l < config/prod.yaml"):
        assert judge(rules, SHELL, command) == verdict, command
    for command in ("grep -r x src", "rg -g '*.py' x", "ls -R"):
        judged = rules.judge(JudgedCall(SHELL, {"command": command}, root))
        assert isinstance(judged, Allow)
        assert judged.profile.masked == (), command


def test_more_files_than_can_be_hidden_ask_and_so_do_files_of_two_names(root: Path) -> None:
    rules = policy(root, *lines("deny", "read_file(config/)"), held=True)
    assert judge(rules, SHELL, "grep -r x .") == "allow"
    (root / "twin").hardlink_to(root / "config/prod.yaml")
    assert judge(rules, SHELL, "grep -r x .") == "ask"
    (root / "twin").unlink()
    for number in range(MOST_KEPT):
        (root / "config" / f"{number}").write_text("x")
    assert judge(rules, SHELL, "grep -r x .") == "ask"


def test_a_command_does_not_see_what_is_in_a_file_that_a_rule_keeps(tmp_path: Path) -> None:
    sandbox = Sandbox(FileReach((tmp_path,)))
    for name in ("config/prod.yaml", "src/a.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(f"kept: {name}\n")
    rules = policy(tmp_path, *lines("deny", "read_file(config/)"), held=True)
    judged = rules.judge(JudgedCall(SHELL, {"command": "grep -r . ."}, tmp_path))
    assert isinstance(judged, Allow)
    confined = sandbox.confine(judged.profile)
    assert confined is not None
    words = confined.wrap(["/bin/sh", "-c", f"cd {tmp_path} && grep -r . ."])
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    sandbox.close()
    assert "kept: src/a.py" in done.stdout
    assert "kept: config" not in done.stdout
    assert "ba hides config/prod.yaml; a permission rule is about reading it" in done.stdout


def test_conditions_of_rules_hold_for_such_files_too(root: Path) -> None:
    kept = RuleLine("read_file", "ask", "test", terms='{"when": {"path": {"regex": "prod"}}}')
    rules = policy(root, kept, *lines("deny", "edit_file(src/**)"))
    assert judge(rules, SHELL, "grep -r x .") == "ask"
    assert judge(rules, SHELL, "grep -r x src") == "allow"
