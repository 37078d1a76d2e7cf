"""Hooks that were written for Claude Code: they read its names, and what they answer in them counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ba_tui.core.agent import AskModel
from ba_tui.core.events import SideRequest
from ba_tui.core.messages import Usage
from ba_tui.core.results import ToolResult
from ba_tui.core.tool import Call, Tool
from ba_tui.features.hooks.guard import hooking
from ba_tui.features.hooks.runner import Hooks, SessionFacts
from ba_tui.settings.hooks import Hook, read_claude
from ba_tui.tools.claude_calls import claude_calls
from tests.tools.conftest import Harness, answering_call

BLOCK_RM = """\
#!/usr/bin/env python3
import json, re, sys
data = json.load(sys.stdin)
if data.get("tool_name") == "Bash":
    command = data.get("tool_input", {}).get("command", "")
    if re.search(r"\\brm\\s+-[a-z]*r[a-z]*f", command):
        print("BLOCKED: rm -rf", file=sys.stderr)
        sys.exit(2)
sys.exit(0)
"""


class Guarded:
    """A tool of ours with hooks around it; it keeps what it was run with instead of running."""

    def __init__(self, harness: Harness, name: str, *hooks: Hook, ask: AskModel | None = None) -> None:
        self.harness = harness
        self.ran: list[Mapping[str, Any]] = []
        root = harness.root
        facts = SessionFacts("s", root / "events", root, root, harness.environment, lambda: "default")
        self.hooks = Hooks(hooks, facts, str, ask)

        async def run(args: Mapping[str, Any], call: Call) -> ToolResult:
            self.ran.append(args)
            return ToolResult("done")

        guards = hooking(self.hooks)
        plain = replace(harness.tools.get(name, harness.tools["glob"]), name=name, run=run)
        self.tool: Tool = guards.after(guards.before(plain))

    async def run(self, **args: Any) -> ToolResult:
        return await self.tool.run(args, answering_call("call", self.harness.branch, self.harness))

    def told(self, name: str = "told") -> dict[str, Any]:
        return json.loads((self.harness.root / name).read_text())


def claude_hook(command: str, matcher: str = "", event: str = "pre_tool", **fields: Any) -> Hook:
    return Hook(event, command, matcher, for_claude=True, **fields)


def answer(**specific: object) -> str:
    return f"echo '{json.dumps({'hookSpecificOutput': specific})}'"


async def test_a_public_hook_that_blocks_rm_rf_blocks_it(harness: Harness) -> None:
    script = harness.write("guard.py", BLOCK_RM)
    settings = harness.root / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(
        json.dumps({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": f"python3 {script}"}]}]}})
    )
    hooks, problems = read_claude(settings)
    assert problems == []
    guarded = Guarded(harness, "shell", *hooks)
    assert "BLOCKED: rm -rf" in (await guarded.run(command="rm -rf build")).text
    assert guarded.ran == []
    assert (await guarded.run(command="ls")).text == "done"
    python = Guarded(harness, "python", *hooks)
    assert "BLOCKED" in (await python.run(code="import os\nos.system('rm -rf build')")).text, "it is Bash there"


async def test_the_command_reads_claude_codes_names(harness: Harness) -> None:
    guarded = Guarded(harness, "shell", claude_hook("cat > told", "Bash"))
    await guarded.run(command="make", timeout=30, background=True)
    told = guarded.told()
    assert (told["tool_name"], told["hook_event_name"]) == ("Bash", "PreToolUse")
    assert told["tool_input"] == {"command": "make", "timeout": 30_000, "run_in_background": True, "description": ""}


@pytest.mark.parametrize(
    ("name", "args", "tool", "given"),
    [
        ("read_file", {"path": "a.py", "limit": 5}, "Read", {"file_path": "{root}/a.py", "limit": 5}),
        ("write_file", {"path": "a.py", "content": "x"}, "Write", {"file_path": "{root}/a.py", "content": "x"}),
        (
            "edit_file",
            {"path": "a.py", "old_string": "x", "new_string": "y"},
            "Edit",
            {"file_path": "{root}/a.py", "old_string": "x", "new_string": "y"},
        ),
        ("glob", {"pattern": "*.py", "path": "src"}, "Glob", {"pattern": "*.py", "path": "{root}/src"}),
        (
            "grep",
            {"pattern": "x", "mode": "files", "ignore_case": True, "context": 2},
            "Grep",
            {"pattern": "x", "output_mode": "files_with_matches", "-i": True, "-C": 2},
        ),
        ("web_fetch", {"url": "https://x"}, "WebFetch", {"url": "https://x", "prompt": ""}),
        (
            "todo_write",
            {"items": [{"content": "do", "status": "pending"}]},
            "TodoWrite",
            {"todos": [{"content": "do", "status": "pending", "activeForm": "do"}]},
        ),
        ("list_files", {"path": "src"}, "LS", {"path": "{root}/src"}),
        ("calculator", {"expression": "1+1"}, "calculator", {"expression": "1+1"}),
        (
            "ask_user",
            {"question": "Which?", "options": ["a"]},
            "AskUserQuestion",
            {"questions": [{"question": "Which?", "header": "", "options": [{"label": "a"}], "multiSelect": False}]},
        ),
    ],
)
def test_every_tool_has_claude_codes_shape(
    harness: Harness, name: str, args: dict[str, Any], tool: str, given: dict[str, Any]
) -> None:
    (call,) = claude_calls(name, args, harness.root)
    wanted = json.loads(json.dumps(given).replace("{root}", str(harness.root)))
    assert (call.names[0], call.input) == (tool, wanted)
    assert call.own(dict(call.input)) == args, "what a hook leaves as it is stays as it is"


async def test_a_notebook_and_several_edits_are_told_whole(harness: Harness) -> None:
    edits = [{"old_string": "a", "new_string": "SECRET=1"}, {"old_string": "b", "new_string": "c"}]
    (call,) = claude_calls("edit_file", {"path": "n.ipynb", "edits": edits}, harness.root)
    assert call.names == ("NotebookEdit", "Edit", "MultiEdit")
    assert call.input["new_string"] == "SECRET=1\nc"
    assert call.input["notebook_path"] == call.input["file_path"] == str(harness.root / "n.ipynb")


async def test_a_patch_is_told_file_by_file_as_edits_and_writes(harness: Harness) -> None:
    patch = (
        "*** Begin Patch\n*** Add File: new.py\n+print(1)\n*** Update File: a.py\n*** Move to: b.py\n@@\n-one\n+two\n"
        "*** Delete File: gone.py\n*** End Patch"
    )
    calls = claude_calls("apply_patch", {"patch": patch}, harness.root)
    told = [(call.names[0], Path(call.input["file_path"]).name) for call in calls]
    assert told == [("Write", "new.py"), ("Edit", "a.py"), ("Edit", "b.py"), ("Write", "gone.py")]
    assert (calls[0].input["content"].strip(), calls[1].input["old_string"]) == ("print(1)", "one")
    guarded = Guarded(harness, "apply_patch", claude_hook("grep -q gone.py && exit 2; exit 0", "Write"))
    assert "denied this call" in (await guarded.run(patch=patch)).text


async def test_an_answer_in_claude_codes_names_changes_our_arguments(harness: Harness) -> None:
    changed = {"command": "make -n", "timeout": 5000, "description": "dry"}
    guarded = Guarded(harness, "shell", claude_hook(answer(updatedInput=changed), "Bash"))
    await guarded.run(command="make", background=False)
    assert guarded.ran == [{"command": "make -n", "timeout": 5.0, "background": False}]
    guarded = Guarded(harness, "write_file", claude_hook(answer(updatedInput={"file_path": "/moved"}), "Write"))
    await guarded.run(path="a", content="x")
    assert guarded.ran == [{"path": "/moved", "content": "x"}]


async def test_a_change_that_has_no_counterpart_denies_the_call(harness: Harness) -> None:
    guarded = Guarded(harness, "shell", claude_hook(answer(updatedInput={"sandbox": False}), "Bash"))
    assert "the field 'sandbox' has no counterpart here" in (await guarded.run(command="make")).text
    guarded = Guarded(harness, "python", claude_hook(answer(updatedInput={"command": "true"}), "Bash"))
    assert "can't be changed by a hook" in (await guarded.run(code="1")).text
    assert guarded.ran == []


async def test_results_have_the_fields_that_hooks_read(harness: Harness) -> None:
    guarded = Guarded(harness, "shell", claude_hook("cat > told", "Bash", "post_tool"))
    await guarded.run(command="make")
    assert guarded.told()["tool_response"]["stdout"] == "done"
    guarded = Guarded(harness, "write_file", claude_hook("cat > told", "Edit|Write", "post_tool"))
    await guarded.run(path="a", content="x")
    assert guarded.told()["tool_name"] == "Write"
    assert guarded.told()["tool_response"]["filePath"] == str(harness.root / "a")


async def test_a_condition_spares_the_hook(harness: Harness) -> None:
    guarded = Guarded(harness, "shell", claude_hook("exit 2", "Bash", condition="Bash(git push *)"))
    assert (await guarded.run(command="git status")).text == "done"
    assert "denied" in (await guarded.run(command="cd x; git push origin")).text


async def test_a_hook_may_run_once_or_in_the_background(harness: Harness) -> None:
    guarded = Guarded(harness, "shell", claude_hook("echo x >> once", "Bash", once=True))
    await guarded.run(command="a")
    await guarded.run(command="b")
    assert (harness.root / "once").read_text() == "x\n"
    late = 'echo \'{"decision": "block", "systemMessage": "built"}\''
    guarded = Guarded(harness, "shell", claude_hook(late, "Bash", background=True))
    assert (await guarded.run(command="a")).text == "done", "what it decides comes too late"
    assert not guarded.hooks.later().notices
    await guarded.hooks.close()
    verdict = guarded.hooks.later()
    assert [notice.text.endswith(": built") for notice in verdict.notices] == [True]
    assert verdict.decision == ""


async def test_a_hook_with_arguments_needs_no_shell(harness: Harness) -> None:
    guarded = Guarded(harness, "shell", claude_hook("touch", "Bash", args=("a b; c",)))
    await guarded.run(command="x")
    assert (harness.root / "a b; c").exists()


async def test_hooks_may_use_what_bash_can(harness: Harness) -> None:
    guarded = Guarded(harness, "shell", claude_hook('[[ $(cat) == *"rm -rf"* ]] && exit 2 || exit 0', "Bash"))
    assert "denied" in (await guarded.run(command="rm -rf x")).text
    assert (await guarded.run(command="ls")).text == "done"


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ('{"ok": true}', "done"),
        ('```json\n{"ok": false, "reason": "not in main"}\n```', "denied this call: not in main"),
        ('{"ok": false}', "denied this call: The condition is not met: Is it safe? $ARGUMENTS"),
        ("I think so.", "done"),
    ],
)
async def test_a_prompt_is_a_hook(harness: Harness, said: str, text: str) -> None:
    asked: list[str] = []

    async def ask(system: str, message: str, purpose: str) -> tuple[str, SideRequest]:
        asked.append(message)
        return said, SideRequest(purpose, "small", Usage(input=10), 0.5)

    hook = Hook("pre_tool", "", "Bash", prompt="Is it safe? $ARGUMENTS", for_claude=True)
    guarded = Guarded(harness, "shell", hook, ask=ask)
    assert text in (await guarded.run(command="make")).text
    assert json.loads(asked[0].removeprefix("Is it safe? "))["tool_input"]["command"] == "make"
    assert [event.cost for event in harness.events if isinstance(event, SideRequest)] == [0.5]
