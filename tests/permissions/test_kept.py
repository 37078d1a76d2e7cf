"""A file that a rule keeps is not read either by a command that goes through all files around it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ba_tui.core.ports.permissions import RuleLine
from ba_tui.permissions.verdicts import Ask, Deny, JudgedCall
from tests.permissions.toolset import SHELL, judge, lines, policy


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("config/prod.yaml", "src/a.py"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x")
    return tmp_path


@pytest.mark.parametrize("rule", ["read_file(config/prod.yaml)", "read_file(**/*.yaml)", "@read(config/)"])
def test_commands_that_go_through_a_kept_file_ask(root: Path, rule: str) -> None:
    rules = policy(root, *lines("deny", rule), *lines("allow", "shell(rg:*)"), held=True)
    for command in (
        "grep -r x .",
        "cd config && grep -r x",
        "rg x",
        "rg -g '*.yaml' x config",
        "diff -r config src",
        "find . -name '*.yaml' -exec cat {} +",
        "git ls-files '*.yaml' | xargs cat",
    ):
        judged = rules.judge(JudgedCall(SHELL, {"command": command}, root))
        # A word that a pattern fits may name such a file itself, and that is denied.
        assert isinstance(judged, Ask | Deny), command
        assert isinstance(judged, Deny) or "config/prod.yaml, which is covered by the rule" in judged.reason
    for command in ("grep -r x src", "rg -g '*.py' x", "find . -name '*.py' | xargs cat", "ls -R"):
        assert judge(rules, SHELL, command) == "allow", command


def test_conditions_of_rules_hold_for_such_files_too(root: Path) -> None:
    kept = RuleLine("read_file", "ask", "test", terms='{"when": {"path": {"regex": "prod"}}}')
    rules = policy(root, kept, *lines("deny", "edit_file(src/**)"))
    assert judge(rules, SHELL, "grep -r x .") == "ask"
    assert judge(rules, SHELL, "grep -r x src") == "allow"
