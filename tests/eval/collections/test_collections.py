"""A small collection, with one of everything, fares as the table says."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.eval.collections.__main__ import rows, tried_in
from tests.eval.collections.found import found_in

GUARD = """\
import json, sys
call = json.load(sys.stdin)
if "rm -rf" in call["tool_input"].get("command", ""):
    print("Not that.", file=sys.stderr)
    sys.exit(2)
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    files = {
        "skills/forms/SKILL.md": "---\nname: forms\ndescription: Fills forms. Use it for forms.\n---\nFill.\n",
        "skills/forms/agents/helper.md": "---\nname: helper\ndescription: d\ntools: Read\n---\nIn a skill.\n",
        "agents/README.md": "---\nname: x\n---\nAbout them.\n",
        "agents/checker.md": "---\nname: checker\ndescription: d\ntools: Read, Magic\n---\nCheck.\n",
        "agents/notes.md": "Only notes.\n",
        "engineering/builder.md": "---\nname: builder\ndescription: d\ncolor: red\n---\nBuild.\n",
        "docs/agents/sample.md": "---\nname: sample\ndescription: d\n---\nA sample.\n",
        "codex/seer.toml": 'name = "seer"\ndescription = "d"\ndeveloper_instructions = "Look."\n',
        "commands/fix.md": "Fix $ARGUMENTS.\n",
        "commands/odd.md": "---\nname\n---\n",
        "scripts/guard.py": GUARD,
        ".claude/settings.json": json.dumps({
            "model": "opus",
            "hooks": {
                "PreToolUse": [{
                    "matcher": "Bash",
                    "hooks": [{"type": "command", "command": 'python3 "$CLAUDE_PROJECT_DIR"/scripts/guard.py'}],
                }],
                "SubagentStop": [{"hooks": [{"type": "command", "command": "true"}]}],
            },
        }),
    }  # fmt: skip
    for name, text in files.items():
        path = tmp_path / "pub" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "pub"


def test_what_people_would_bring_along_is_found(checkout: Path) -> None:
    found = {(item.kind, item.path.relative_to(checkout).as_posix()) for item in found_in(checkout)}
    assert found == {
        ("skills", "skills/forms"),
        ("agents", "agents/checker.md"),
        ("agents", "engineering/builder.md"),
        ("agents", "codex/seer.toml"),
        ("commands", "commands/fix.md"),
        ("commands", "commands/odd.md"),
        ("hooks", ".claude/settings.json"),
        ("settings", ".claude/settings.json"),
    }


async def test_each_kind_is_tried_and_counted(checkout: Path, tmp_path: Path) -> None:
    tried = await tried_in(checkout, tmp_path)
    table = list(rows("pub", tried))
    assert table[:3] == [
        "| pub | skills | 1 | 1 | 1 of 1 | 0 | 0 |",
        "| pub | agents | 3 | 3 | – | 1 | 0 |",
        "| pub | commands | 2 | 1 | 1 of 1 | 0 | 1 |",
    ]
    reasons = {each.name: each.reason for each in tried if each.reason}
    assert "is not a field" in reasons["commands/odd.md"]
    if shutil.which("bwrap"):
        (guard,) = [each for each in tried if each.answer]
        assert (guard.works, guard.answer) == (True, "shell: deny")
