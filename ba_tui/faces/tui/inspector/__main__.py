"""Look at the inspector and the approval panel without an agent: ``python -m ba_tui.faces.tui.inspector [SAMPLE]``."""

from __future__ import annotations

import argparse

from textual.app import App, ComposeResult
from textual.widgets import Static

from ba_tui.core.questions import Option, Question
from ba_tui.core.results import CommandText, Diff, Prose, Source, Table, Todos
from ba_tui.core.work import Todo
from ba_tui.faces.tui.clipboard import CopyToClipboard, copy
from ba_tui.faces.tui.inspector.model import Inspected
from ba_tui.faces.tui.inspector.pane import Inspector
from ba_tui.faces.tui.widgets.ask import AskPanel

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
    "diff": Inspected(
        "edit_file src/totals.py", {"path": "src/totals.py"}, Diff("src/totals.py", BEFORE, AFTER), "", "ok", 0.04
    ),
    "new": Inspected(
        "write_file src/totals.py", {"path": "src/totals.py"}, Diff("src/totals.py", None, AFTER), "", "ok", 0.1
    ),
    "command": Inspected(
        "shell pytest -q",
        {"command": "pytest -q", "timeout": 120},
        CommandText("pytest -q", "projects/sales", OUTPUT, 1),
        "",
        "failed",
        72.3,
    ),
    "source": Inspected(
        "read_file src/totals.py", {"path": "src/totals.py"}, Source("src/totals.py", AFTER, 1), "", "ok", 0.01
    ),
    "prose": Inspected(
        "notes", {}, Prose("# Totals\n\nDecimals, **not** floats: `Decimal`.\n\n- one\n- two\n", markdown=True)
    ),
    "table": Inspected(
        "query",
        {"sql": "select * from sales"},
        Table(("month", "region", "amount"), tuple((f"2026-{n:02}", "North [EU]", n * 1234.5) for n in range(1, 13))),
        "",
        "ok",
        0.4,
    ),
    "todos": Inspected(
        "todo_write",
        {"items": [{"content": "Read the data", "status": "completed"}, {"content": "Write the report"}]},
        Todos(
            (
                Todo("1", "Read the data", "completed"),
                Todo("2", "Write the report", "in_progress", "high"),
                Todo("3", "Send it"),
            )
        ),
        "",
        "ok",
        0.0,
    ),
    "error": Inspected(
        "read_file missing.csv", {"path": "missing.csv"}, None, "Operation failed.\nNo such file.", "failed", 0.0
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
    "ask-choice": Question(
        "choice",
        "Which months should the report cover?",
        options=(
            Option("This quarter", "July to September"),
            Option("The whole year", "January to today"),
            Option("Last month"),
        ),
    ),
    "ask-several": Question(
        "choice",
        "Which regions?",
        options=(Option("North"), Option("South", "without the islands"), Option("East")),
        multiple=True,
    ),
    "ask-continue": Question("continue", "100 steps were taken in this turn. Go on?"),
}


class Demo(App[None]):
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

    def on_ask_panel_answered(self, event: AskPanel.Answered) -> None:
        self.query_one("#talk", Static).update(
            f"{event.reply}{' and interrupt' if event.interrupt else ''}", layout=False
        )

    def on_inspector_closed(self) -> None:
        self.exit()

    async def on_copy_to_clipboard(self, event: CopyToClipboard) -> None:
        self.notify(await copy(self, event.text), markup=False)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sample", nargs="?", default="diff", choices=[*SAMPLES, *QUESTIONS])
    parser.add_argument("--theme", default="textual-dark")
    chosen = parser.parse_args()
    Demo(chosen.sample, chosen.theme).run()
