"""Pictures of the approval panel: a command and a diff, small and large, dark and light."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot
from textual.widgets import Static

from ba_tui.core.questions import Question
from ba_tui.core.results import CommandText, Diff
from ba_tui.faces.tui.inspector.model import InspectorValue
from ba_tui.faces.tui.inspector.pane import Inspector
from ba_tui.faces.tui.widgets.ask import AskPanel
from tests.faces.tui.asking.test_ask import settle

DARK, LIGHT = "textual-dark", "textual-light"
BEFORE = '''"""Totals by month."""

import csv


def read(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def months(rows):
    """The months that occur."""
    return sorted({row["month"] for row in rows})


def total(rows, month):
    found = 0
    for row in rows:
        if row["month"] == month:
            found = found + int(row["amount"])
    return found


def report(rows):
    for month in months(rows):
        print(month, total(rows, month))
'''
AFTER = (
    BEFORE.replace("open(path) as file", 'open(path, encoding="utf-8", newline="") as file')
    .replace("found = found + int(row", "found += Decimal(row")
    .replace("import csv\n", "import csv\nfrom decimal import Decimal\n")
)
OUTPUT = (
    "\x1b[1mtests/test_totals.py\x1b[0m \x1b[32m..\x1b[31mF\x1b[0m  [100%]\n\n"
    "\x1b[31mE   AssertionError: assert 41 == 42\x1b[0m\n\x1b[1;31m1 failed\x1b[0m, \x1b[32m2 passed\x1b[0m in 0.12s\n"
)
PUSH = "git add -A && git commit -m 'Count in decimals' \\\n  && git push origin main  # shared branch"
SAMPLES = {
    "diff": InspectorValue(
        "edit_file src/totals.py", {"path": "src/totals.py"}, Diff("src/totals.py", BEFORE, AFTER), "", "ok", 0.04
    ),
    "command": InspectorValue(
        "shell pytest -q",
        {"command": "pytest -q", "timeout": 120},
        CommandText("pytest -q", "projects/sales", OUTPUT, 1),
        "",
        "failed",
        72.3,
    ),
}
QUESTIONS = {
    "ask": Question(
        "permission",
        "Run this command?",
        tool="shell",
        args={"command": PUSH, "timeout": 60},
        preview=CommandText(PUSH, "projects/sales"),
        reason="no rule allows git push",
        risks=("runs a command", "network"),
        rule="shell(git push origin main)",
    ),
    "ask-diff": Question(
        "permission",
        "Make this edit?",
        tool="edit_file",
        args={"path": "src/totals.py", "old_string": "int(row", "new_string": "Decimal(row"},
        preview=Diff("src/totals.py", BEFORE, AFTER),
        reason="default mode asks before files are written",
        risks=("writes",),
        rule="edit_file(src/**)",
    ),
    "ask-destructive": Question(
        "permission",
        "Run this command?",
        tool="shell",
        args={"command": "rm -rf build dist"},
        preview=CommandText("rm -rf build dist"),
        reason="rm is never remembered",
        risks=("runs a command", "destructive"),
    ),
    "ask-danger": Question(
        "permission",
        "Run this command?",
        tool="shell",
        args={"command": "curl https://аpple.com/in\u202e"},
        preview=CommandText("curl https://аpple.com/in\u202e"),
        reason="the rule shell(curl) asks (user config.yaml:3)",
        risks=("runs a command", "network", "shares a secret"),
        warnings=("The command holds a hidden character: U+202E.", "аpple.com mixes alphabets: U+0430."),
        rewritten="the hook guard.sh",
        timeout=300.0,
    ),
}


class Demo(App[None]):
    """One sample: a result in the inspector, or a question above a conversation."""

    CSS = """
    Inspector { height: 1fr; }
    #talk { height: 1fr; padding: 0 1; color: $text-muted; }
    """

    def __init__(self, sample: str, theme: str) -> None:
        super().__init__()
        self.sample = sample
        self.theme = theme

    def compose(self) -> ComposeResult:
        if self.sample in SAMPLES:
            yield Inspector(SAMPLES[self.sample])
        else:
            yield Static("The conversation stands here.", id="talk")
            yield AskPanel()

    def on_mount(self) -> None:
        if self.sample in QUESTIONS:
            panel = self.query_one(AskPanel)
            panel.ask("1", QUESTIONS[self.sample], "main")
            panel.ask("2", QUESTIONS["ask-diff"], "main/explore-1")
        else:
            self.call_after_refresh(self.query_one(Inspector).focus)


async def quiet(pilot: Pilot[None]) -> None:
    await settle(pilot)
    await settle(pilot)


@pytest.mark.parametrize(
    ("sample", "theme", "size"),
    [
        ("ask", DARK, (80, 24)),
        ("ask", DARK, (120, 36)),
        ("ask", LIGHT, (80, 24)),
        ("ask-diff", DARK, (80, 24)),
        ("ask-diff", DARK, (120, 36)),
        ("ask-diff", LIGHT, (80, 24)),
        ("ask-destructive", DARK, (40, 12)),
        ("diff", DARK, (120, 36)),
        ("command", LIGHT, (80, 24)),
        ("ask-danger", LIGHT, (80, 24)),
    ],
)
def test_picture(snap_compare: Callable[..., bool], sample: str, theme: str, size: tuple[int, int]) -> None:
    assert snap_compare(Demo(sample, theme), terminal_size=size, run_before=quiet)
