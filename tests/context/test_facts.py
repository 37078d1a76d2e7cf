"""What notes take from results: which calls failed, and which lines of a failure tell something."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ba_tui.context.compression.facts import result_lines
from ba_tui.context.compression.strategies import extract
from ba_tui.core.messages import Message, Text, ToolOutput, ToolUse, user
from ba_tui.core.results import failure, identified
from tests.context.conversations import answer, count, rounds

LOG = "INFO started\nERROR worker 3 died\nTraceback (most recent call last):\n  File a\nValueError: bad row"


@pytest.mark.parametrize(
    ("call", "output", "open_"),
    [
        (ToolUse("x", "read_file", {"path": "app.log"}), ToolOutput("x", LOG), False),
        (ToolUse("x", "read_file", {"path": "notes.md"}), ToolOutput("x", "It ends with\nexit code 1"), False),
        (
            ToolUse("x", "grep", {"pattern": "error"}),
            ToolOutput("x", "a.py:3: raise ValueError\nFAILED tests/a.py"),
            False,
        ),
        (ToolUse("x", "shell", {"command": "cat app.log"}), ToolOutput("x", LOG, exit_status=0), False),
        (ToolUse("x", "shell", {"command": "cat run.log"}), ToolOutput("x", "[exit code 1]", exit_status=0), False),
        (ToolUse("x", "shell", {"command": "pytest"}), ToolOutput("x", "3 errors were found", exit_status=1), True),
        (ToolUse("x", "shell", {"command": "make &"}), ToolOutput("x", "3 errors were found"), False),
        (ToolUse("x", "Bash", {"command": "python a.py"}), ToolOutput("x", LOG), True),
        (ToolUse("x", "Bash", {"command": "make"}), ToolOutput("x", "3 errors were found\nExit code 1"), True),
        (ToolUse("x", "Bash", {"command": "tail app.log"}), ToolOutput("x", f"{LOG}\nINFO started again"), False),
        (
            ToolUse("x", "bash", {"command": "pytest"}),
            ToolOutput("x", "FAILED tests/a.py\n=== 1 failed, 2 passed ==="),
            True,
        ),
    ],
)
def test_only_a_call_that_failed_leaves_an_error_open(call: ToolUse, output: ToolOutput, open_: bool) -> None:
    told = Message("user", (output,), origin="tool")
    messages = [user("Look."), answer(call), told, answer(Text("I see.")), *rounds(20)]
    notes = extract(messages, count(messages) // 4, count).messages[0].text
    assert ("## Errors not resolved" in notes) is open_


def test_notes_of_a_failure_hold_its_message_and_its_output_alone() -> None:
    failed = identified(failure("execution_error", "column owner_id is missing", hint="Look again."), "x")
    output = replace(failed, text=f"{failed.text}\nSuggestion: printed by the program").output("x")
    assert result_lines(output) == ["Error Message: column owner_id is missing", "Suggestion: printed by the program"]
