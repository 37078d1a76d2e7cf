"""The condition of a hook decides whether it is started; in doubt it is."""

from __future__ import annotations

from typing import Any

import pytest

from ba_tui.features.hooks.runner import may_apply


@pytest.mark.parametrize(
    ("condition", "name", "given", "applies"),
    [
        ("", "Bash", {"command": "ls"}, True),
        ("Bash", "Bash", {"command": "ls"}, True),
        ("Bash", "Read", {"file_path": "/a"}, False),
        ("Bash(git *)", "Bash", {"command": "git push"}, True),
        ("Bash(git *)", "Bash", {"command": "git"}, True),
        ("Bash(git:*)", "Bash", {"command": "git push"}, True),
        ("Bash(git *)", "Bash", {"command": "ls"}, False),
        ("Bash(git *)", "Bash", {"command": "cd x && git push"}, True),
        ("Bash(rm *)", "Bash", {"command": "A=1 B=2 rm -rf x"}, True),
        ("Bash(rm *)", "Bash", {"command": "echo $(rm -rf x)"}, True),
        ("Bash(rm *)", "Bash", {"command": "echo rm"}, False),
        ("Edit(*.ts)", "Edit", {"file_path": "/w/src/a.ts"}, True),
        ("Edit(src/**)", "Edit", {"file_path": "/w/src/a/b.ts"}, True),
        ("Edit(./src/*)", "Edit", {"file_path": "/w/src/a.ts"}, True),
        ("Edit(*.ts)", "Edit", {"file_path": "/w/a.py"}, False),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://u:p@docs.example.com:8/x"}, True),
        ("WebFetch(domain:example.com)", "WebFetch", {"url": "https://notexample.com/"}, False),
        ("mcp__github__*", "mcp__github__push", {}, True),
        ("Bash(*)", "Bash", {"command": "x"}, True),
        ("Edit(src/[z-a]*)", "Edit", {"file_path": "/w/lib/b.py"}, True),
        ("what is this ((", "Bash", {"command": "ls"}, True),
    ],
)
def test_conditions(condition: str, name: str, given: dict[str, Any], applies: bool) -> None:
    assert may_apply(condition, (name,), given) is applies
